"""Advice: the best, its ties, the smallest of them; who is left out; what the sentences say."""

import json

import pytest

from geneb_ci.board.columns import Entry
from geneb_ci.board.files import encode
from geneb_ci.board.recommend import (
    LEVELS,
    SIZES,
    TRUST,
    Advice,
    ModelRequest,
    advise,
    parameters,
    recommendations,
    size_text,
)
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import UsageProblem
from tests.board.board import entries, entry, found_intervals
from tests.paths import PUBLIC

BENCHMARK = shipped_benchmark()
BETTER = (
    "With the benchmark's own training draws it is significantly better than each of the others"
)
TIE = "do not differ significantly from it."
NOT_COVERED = (
    "The intervals cover other test sequences, not other training draws: "
    "the row gives no scores by seed."
)


def ask(
    category: str | None = None,
    regime: str = "full",
    max_params: int | None = None,
    level: str | None = None,
    rows: tuple[Entry, ...] | None = None,
) -> Advice:
    need = ModelRequest(category=category, regime=regime, max_params=max_params, level=level)
    return advise(need, entries() if rows is None else rows, BENCHMARK, found_intervals())


def named(advice: Advice) -> tuple[str, list[str], str]:
    assert advice.best is not None
    assert advice.smallest is not None
    return advice.best.model, advice.ties, advice.smallest.model


def test_ties_and_the_smallest_of_them():
    advice = ask("Splice Sites")
    best, ties, smallest = named(advice)
    assert best == "nucleotide-transformer-2.5b-multi-species"
    assert "splicebert-1024nt" in ties
    assert smallest == "splicebert-1024nt"
    assert advice.considered == 41
    assert advice.why[1:] == [
        f"{len(ties)} others {TIE}",
        "splicebert-1024nt is the smallest of these: 19.7M parameters, 126.8 times fewer.",
        "The best of them over all categories, GENERator-eukaryote-3b-base, is number 2 here.",
    ]


def test_a_limit_of_size_holds():
    advice = ask("Splice Sites", "10shot", 500_000_000)
    assert named(advice) == ("gena-lm-bert-large-t2t", [], "gena-lm-bert-large-t2t")
    assert (
        advice.considered == sum(e.submission.meta.params <= 500_000_000 for e in entries()) == 29
    )
    assert advice.why[1:] == [
        f"{BETTER}.",
        "The best of them over all categories, splicebert-1024nt, is number 2 here.",
        NOT_COVERED,
    ]


def test_the_board_s_own_group_is_the_tie_group_when_nothing_is_left_out():
    for category in (None, *BENCHMARK.category_order):
        for regime in BENCHMARK.regimes:
            found = found_intervals().regimes[regime]
            models = found.categories[category] if category else found.macro
            best, ties, _ = named(ask(category, regime))
            assert [best, *ties] == [m for m, s in models.items() if s.group == 1]


def test_the_level_is_a_least_one():
    assert named(ask(max_params=20_000_000))[0] == "splicebert-1024nt"
    verified = ask(max_params=20_000_000, level="verified")
    assert named(verified)[0] == "hyenadna-medium-160k-seqlen-hf"
    assert ask(level="self-reported").considered == 41
    assert ask(level="official").considered == 40


@pytest.mark.parametrize(
    ("level", "asked", "considered"),
    [("disputed", None, 0), ("stale", None, 1), ("stale", "self-reported", 0), ("new", None, 1)],
)
def test_rows_whose_evidence_failed_or_is_old(level, asked, considered):
    row = (entry(entries()[0].submission, level),)
    assert ask(level=asked, rows=row).considered == considered


def test_no_model_is_an_answer():
    advice = ask(max_params=1000, level="verified")
    assert (advice.best, advice.ties, advice.smallest, advice.considered) == (None, [], None, 0)
    assert advice.why == [
        "No model ranked in the regime full meets at most 1K parameters and level verified or more."
    ]


def test_only_one_model_claims_no_comparison():
    advice = ask(max_params=1_930_000)
    assert len(advice.why) == 1


@pytest.mark.parametrize(
    ("need", "message"),
    [
        ({"category": "splice"}, '"splice" is not a category of the benchmark'),
        ({"regime": "2shot"}, '"2shot" is not a regime of the benchmark'),
    ],
)
def test_names_that_do_not_exist(need, message):
    with pytest.raises(UsageProblem) as refusal:
        ask(**need)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500M", 500_000_000),
        ("1.2b", 1_200_000_000),
        (" 86000000 ", 86_000_000),
        ("0", 0),
        ("2 K", 2000),
    ],
)
def test_parameter_counts_as_people_write_them(text, value):
    assert parameters(text) == value


@pytest.mark.parametrize(
    "text", ["", "M", "-5M", "5e8", "1,000", "5MM", "\u0665M", "9" * 40, "nan"]
)
def test_what_is_no_parameter_count(text):
    with pytest.raises(UsageProblem):
        parameters(text)


def test_parameter_counts_are_written_for_people():
    assert [size_text(n) for n in (0, 999, 1_930_000, 500_000_000, 7_000_000_000)] == [
        *("0", "999", "1.93M", "500M", "7B")
    ]


def test_recommendations_hold_an_answer_to_every_common_need():
    value = recommendations(entries(), BENCHMARK, found_intervals())
    assert encode("recommendations.json", value) == encode(
        "recommendations.json", recommendations(entries()[::-1], BENCHMARK, found_intervals())
    )
    assert len(value["advice"]) == 3 * 14 * len(SIZES) * len(LEVELS)
    assert set(LEVELS) <= {None, *TRUST}
    need = {
        "category": "Splice Sites",
        "regime": "10shot",
        "max_params": 500_000_000,
        "level": None,
    }
    (one,) = [a for a in value["advice"] if a["need"] == need]
    assert one == ask("Splice Sites", "10shot", 500_000_000).model_dump(mode="json")


def recommend(*options: str) -> int:
    return main(["recommend", str(PUBLIC), *options])


def test_the_command(capsys):
    code = recommend("--category", "Splice Sites", "--regime", "10shot", "--max-params", "500M")
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    assert shown.out == (
        "best      gena-lm-bert-large-t2t  MCC 0.279 (0.270 to 0.288), 336M parameters, official\n"
        "ties      none\n"
        "smallest  gena-lm-bert-large-t2t  MCC 0.279 (0.270 to 0.288), 336M parameters, official\n"
        "\n"
        "gena-lm-bert-large-t2t has the highest MCC on Splice Sites in the regime 10shot, of 29 "
        "models with at most 500M parameters: 0.279, 95 % interval 0.270 to 0.289.\n"
        f"{BETTER}.\n"
        "The best of them over all categories, splicebert-1024nt, is number 2 here.\n"
        f"{NOT_COVERED}\n"
    )


def test_the_command_as_json_and_without_an_answer(capsys, tmp_path):
    path = tmp_path / "advice.json"
    code = recommend("--max-params", "1K", "--format", "json", "--output", str(path))
    assert code == 3
    told = json.loads(path.read_bytes())
    assert (told["best"], told["considered"], told["need"]["max_params"]) == (None, 0, 1000)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-params", "big"), '"big" is not a number of parameters'),
        (("--category", "x"), '"x" is not a category of the benchmark'),
        (("--level", "disputed"), "Invalid value for '--level'"),
    ],
)
def test_the_command_refuses_what_does_not_exist(options, said, capsys):
    assert recommend(*options) == 2
    assert said in capsys.readouterr().err

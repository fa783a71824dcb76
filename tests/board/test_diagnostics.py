"""diagnostics.json: whole figures on small boards made by hand, and what the public rows say."""

import itertools
import json
from typing import Any

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from geneb_ci.board.diagnostics.figures import (
    ATTRIBUTES,
    _Facts,
    controlled,
    correlation,
    pareto,
    ratio,
    tau,
)
from geneb_ci.board.diagnostics.whole import diagnostics
from geneb_ci.board.files import encode
from geneb_ci.board.uncertainty import intervals
from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from geneb_ci.submission.models import SubmissionV10
from tests.board.board import DRAWS, entries, entry, found_diagnostics, found_intervals
from tests.board.test_board import drop
from tests.paths import ROOT
from tests.small import BENCHMARK, small

SIZED = Benchmark.model_validate(
    BENCHMARK.model_dump(by_alias=True)
    | {"tasks": [task.model_dump() | {"n_test": 500} for task in BENCHMARK.tasks]}
)
REGIMES = ["full", "10shot", "1shot"]


def board(*names: str, params: dict[str, int] | None = None) -> dict[str, Any]:
    """Build diagnostics of made-up rows on three tasks."""
    rows = []
    for name in names:
        document = small(name)
        document["meta"]["params"] = (params or {}).get(name, 86_000_000)
        rows.append(entry(SubmissionV10.model_validate(document)))
    found = intervals(rows, SIZED, draws=DRAWS)
    return diagnostics(rows, SIZED, found)


SCHEMA = Draft202012Validator(
    json.loads((ROOT / "schemas/diagnostics-1.0.schema.json").read_bytes())
)


@pytest.mark.parametrize("name", ["diagnostics-1.0", "recommendations-1.0"])
def test_the_schemas_are_schemas(name):
    path = ROOT / f"schemas/{name}.schema.json"
    Draft202012Validator.check_schema(json.loads(path.read_bytes()))


def test_the_public_rows_fit_the_schema_and_their_order_changes_no_byte():
    found = found_diagnostics()
    again = diagnostics(tuple(reversed(entries())), shipped_benchmark(), found_intervals())
    assert encode("diagnostics.json", found) == encode("diagnostics.json", again)
    SCHEMA.validate(found)
    assert list(found["ranks"]) == REGIMES
    assert len(found["models"]) == 41


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "b", "c")])
def test_boards_of_few_models_have_figures_where_those_are_defined(names):
    found = board(*names)
    SCHEMA.validate(found)
    assert [row["model"] for row in found["models"]] == list(names)
    rho = found["scale"]["full"]["board"]["macro"]
    assert rho == {"models": len(names), "rho": None, "p": None}  # all of one size
    assert (found["retention"]["models"] == {}) == (not names)


def test_a_row_with_gaps_is_left_out_of_its_regime_only(submission_v11):
    task = shipped_benchmark().task_ids[0]
    row = submission_v11(lambda document: drop(document, "1shot", task))
    rows = [*entries()[:3], entry(row)]
    rows = [e for e in rows if e.submission.model_id != "splicebert-1024nt"] + rows[-1:]
    found = diagnostics(
        rows, shipped_benchmark(), intervals(rows, shipped_benchmark(), draws=DRAWS)
    )
    SCHEMA.validate(found)
    counts = [len(found["ranks"][regime]["macro"]) for regime in REGIMES]
    assert counts == [4, 4, 3]
    assert next(m for m in found["models"] if m["model"] == "splicebert-1024nt")["regimes"] == [
        "full",
        "10shot",
    ]
    assert "splicebert-1024nt" not in found["retention"]["models"]


def test_ranks_of_categories_and_regimes():
    for ranks in found_diagnostics()["ranks"].values():
        assert list(ranks["categories"]) == list(shipped_benchmark().category_order)
        for models in (ranks["macro"], ranks["micro"], *ranks["categories"].values()):
            scores = [s["score"] for s in models.values()]
            assert scores == sorted(scores, reverse=True)
            for one in models.values():
                above = sum(score > one["score"] for score in scores)
                assert one["rank"] == above + 1 or one["score"] in scores[: one["rank"] - 1]


def test_correlation_shares_ranks_of_equal_counts():
    counts = pd.Series({"a": 1.0, "b": 2.0, "c": 2.0, "d": 4.0, "e": 9.0})
    scores = pd.Series({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "x": 0.9})
    found = correlation(counts, scores)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: rho = 4.5 / sqrt(4.5 x 5).
    assert (found.models, found.rho) == (4, 0.9487)


def test_tau_by_hand():
    one = pd.Series({"a": 1.0, "b": 2.0, "c": 3.0})
    assert tau(one, pd.Series({"a": 1.0, "c": 2.0, "b": 3.0})) == 0.3333
    assert tau(one, one) == 1.0
    assert tau(one, pd.Series({"a": 1.0, "b": 1.0, "c": 1.0})) is None
    assert tau(one, pd.Series({"z": 1.0})) is None


def test_winners_change_from_full_to_10shot_in_nine_of_thirteen_categories():
    pair = found_diagnostics()["stability"]["regime_pairs"][0]
    ranks = found_diagnostics()["ranks"]
    changed = [
        name
        for name in shipped_benchmark().category_order
        if next(iter(ranks["full"]["categories"][name]))
        != next(iter(ranks["10shot"]["categories"][name]))
    ]
    assert (pair["regimes"], pair["winners_changed"], pair["categories"]) == (
        ["full", "10shot"],
        9,
        13,
    )
    assert [change["category"] for change in pair["changes"]] == changed
    assert (
        pair["winners_significantly_changed"] == sum(c["significant"] for c in pair["changes"]) < 9
    )


def test_who_wins_where():
    winners = found_diagnostics()["stability"]["winners"]["full"]
    assert winners["TF Binding"]["model"] == "enformer-official-rough"
    assert winners["Splice Sites"]["model"] == "nucleotide-transformer-2.5b-multi-species"
    assert winners["Chromatin Acc."]["ties"] > 20


def test_agreement_of_categories_is_a_symmetric_matrix():
    for table in found_diagnostics()["stability"]["category_tau"].values():
        for a, b in itertools.product(table, repeat=2):
            assert table[a][b] == table[b][a]
            assert a != b or table[a][b] == 1.0


def test_retention_is_a_ratio_of_macro_scores():
    found = found_diagnostics()["retention"]
    space = found_diagnostics()["ranks"]
    scores = {regime: ranks["macro"]["space"]["score"] for regime, ranks in space.items()}
    for regime in ("10shot", "1shot"):
        assert found["models"]["space"][regime] == pytest.approx(
            scores[regime] / scores["full"], abs=1e-3
        )
    assert [ratio(0.1, 0.3), ratio(0.1, 0.0), ratio(0.1, -0.2)] == [0.333, None, None]


def test_hard_tasks_are_those_nobody_can_do():
    hard = found_diagnostics()["tasks"]["full"]["hard"]
    assert [(t["task"], t["best"]) for t in hard] == [
        ("deep4mc_G.subterraneus_4mC", 0.2063),
        ("deep4mc_G.pickeringii_4mC", 0.2603),
    ]


def test_high_variance_tasks_are_those_on_which_models_differ_most():
    wide = found_diagnostics()["tasks"]["full"]["high_variance"]
    assert len(wide) == 10
    assert [t["deviation"] for t in wide] == sorted((t["deviation"] for t in wide), reverse=True)
    assert (wide[0]["task"], wide[0]["deviation"]) == ("leannmlindsey_GUE_fungi_species_20", 0.2147)


def test_the_front_by_hand():
    table = pd.DataFrame(
        {"params": [1, 1, 2, 3, 4], "macro": [0.3, 0.2, 0.3, 0.5, 0.4]}, index=list("abcde")
    )
    assert [(m.model, m.params) for m in pareto(table)] == [("a", 1), ("d", 3)]


def test_no_model_is_both_no_larger_and_better_than_one_of_the_front():
    found = found_diagnostics()
    for regime, size in found["size"].items():
        macro = {m: s["score"] for m, s in found["ranks"][regime]["macro"].items()}
        params = {row["model"]: row["params"] for row in found["models"]}
        for one in size["pareto"]:
            assert not [m for m in macro if params[m] <= one["params"] and macro[m] > one["macro"]]


def test_a_model_is_beaten_by_one_at_least_five_times_smaller():
    params = {"a": 20, "b": 100, "c": 21, "d": 0}
    found = board(*params, params=params)
    for regime in REGIMES:
        macro = {m: s["score"] for m, s in found["ranks"][regime]["macro"].items()}
        expected = [("b", "a")] if macro["a"] > macro["b"] else []
        assert [(x["model"], x["by"]) for x in found["size"][regime]["beaten"]] == expected
    assert any(found["size"][regime]["beaten"] for regime in REGIMES)
    for one in found_diagnostics()["size"]["full"]["beaten"]:
        assert one["by_params"] * 5 <= one["params"]
        assert one["by_macro"] > one["macro"]


def facts(model: str, params: float, **kinds: str) -> _Facts:
    return _Facts(model, params, dict.fromkeys(ATTRIBUTES[1:], "x") | kinds)


def test_controlled_pairs_differ_in_one_attribute():
    models = [
        facts("a", 100),
        facts("b", 120),  # of one size with a: no pair, as nothing differs
        facts("c", 100, tokenization="y"),
        facts("d", 500),
        facts("e", 500, tokenization="y", pretraining="y"),
    ]
    assert [(name, one.model, other.model) for name, one, other in controlled(models)] == [
        ("tokenization", "c", "a"),
        ("size", "d", "a"),
        ("tokenization", "c", "b"),
        ("size", "d", "b"),
    ]


def test_controlled_pairs_of_the_public_rows():
    found = found_diagnostics()["pairs"]["full"]
    assert {name: len(part["pairs"]) for name, part in found.items()} == {
        "size": 26,
        "architecture": 7,
        "tokenization": 4,
        "pretraining": 5,
        "pooling": 0,
    }
    assert found["size"]["contrasts"] == [
        {
            "values": ["larger", "smaller"],
            "pairs": 26,
            "mean_difference": 0.0424,
            "first_better": 23,
        }
    ]

"""How often GitHub is asked: a pull request takes 12 requests, 3 of them writes; a queue of 200
stays below the 1,000 of an hour."""

import json

import pytest

from geneb_ci.github.api import connect
from geneb_ci.github.receipt import Receipt, marker_line
from geneb_ci.github.verdict import BYTES_MAX, PULLS_MAX, PullOutcome
from tests.github.conftest import CARD_PATH, REGULAR, sound
from tests.github.server import BOT

HOUR = 1000
RECEIPT = Receipt(
    number=1,
    head_sha="0" * 40,
    outcome=PullOutcome.PASSED,
    model="model",
    level="self-reported",
    is_edit=False,
    error=0,
    warning=0,
    weight=0.0,
    drawn=13,
    sequences=0,
)
OPEN = 200


@pytest.mark.parametrize("arguments", [["--pr"], ["--head-sha"]])
def test_one_pull_request_takes_twelve_requests(place, arguments):
    number = place.pull(sound())
    named = str(number) if arguments == ["--pr"] else place.server.pulls[number]["head"]["sha"]
    code, line, _ = place.run("reconcile", *arguments, named)
    assert code == 0
    assert len(place.server.requests) == 7
    assert place.report(line)[0] == 0
    assert len(place.server.requests) == 12
    assert len(place.server.writes()) == 3
    # Again, with nothing new: two requests, no write.
    assert place.report(line)[0] == 0
    assert len(place.server.requests) == 14
    assert len(place.server.writes()) == 3


@pytest.mark.parametrize("before", [["help wanted"], ["geneb: passed", "dataset"]])
def test_a_second_verdict_takes_no_more(place, before):
    """New commits and another outcome: a label goes, one comes, in the same twelve requests."""
    number = place.pull(sound())
    place.both(number)
    broken = place.files | sound() | {CARD_PATH: (REGULAR, b"")}
    pull = place.server.pulls[number]
    pull["head"]["sha"] = place.server.commit(broken, place.base)
    pull["labels"] = [{"name": name} for name in before]
    place.server.requests.clear()
    place.both(number)
    assert (len(place.server.requests), len(place.server.writes())) == (12, 3)
    place.both(number)
    assert len(place.server.writes()) == 3


@pytest.fixture
def crowd(place):
    """Open 200 pull requests, all but ten with their verdict."""
    for n in range(OPEN):
        number = place.pull(sound(f"model-{n}"))
        if n >= 10:
            head = place.server.pulls[number]["head"]["sha"]
            said = RECEIPT.model_copy(update={"number": number, "head_sha": head})
            place.server.add_comment(number, BOT, marker_line(said) + "passed")
    return place


def test_an_hour_of_sweeps_over_200_pull_requests(crowd):
    judged = []
    for _ in range(4):  # one each 15 minutes
        code, line, err = crowd.run("reconcile")
        assert code == 0, err
        verdict = json.loads(line)
        assert len(line) <= BYTES_MAX
        assert crowd.report(line)[0] == 0
        judged += [pull["number"] for pull in verdict["pulls"]]
        assert verdict["waiting"] == max(0, 10 - len(judged))
    assert judged == list(range(1, 11))  # the longest waiting first, at most four a sweep
    assert PULLS_MAX == 4
    assert crowd.server.charged <= HOUR
    assert json.loads(crowd.run("reconcile")[1])["pulls"] == []


def test_a_sweep_ends_before_the_hour_is_used_up(crowd):
    crowd.server.limit = 150
    code, line, err = crowd.run("reconcile")
    assert code == 0, err
    assert "requests left in this hour" in err
    assert crowd.server.charged < 150
    assert json.loads(line)["pulls"] != []


def test_triage_of_200_asks_once_for_each_and_then_for_nothing(crowd, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, first, _ = crowd.run("triage", "--json", "--limit", "200")
    assert (code, crowd.server.charged) == (0, 2 + OPEN)
    code, second, _ = crowd.run("triage", "--json", "--limit", "200")
    assert (code, crowd.server.charged) == (0, 2 + OPEN)  # 202 answers of 304
    ages = [json.loads(text) for text in (first, second)]
    for value in ages:
        value.pop("clock")
        for row in value["pulls"]:
            row.pop("age_seconds")
    assert ages[0] == ages[1]
    # A comment that changes is seen.
    crowd.both(1)
    rows = json.loads(crowd.run("triage", "--json", "--limit", "200")[1])["pulls"]
    assert next(row["verdict"] for row in rows if row["number"] == 1) == "passed"


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1, "answers": 3}', '{"format": 2}', "["])
def test_a_cache_that_is_damaged_is_none(place, tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "geneb-ci").mkdir()
    (tmp_path / "geneb-ci/github.json").write_text(content, encoding="utf-8")
    place.pull(sound())
    assert place.run("triage")[0] == 0
    assert "answers" in (tmp_path / "geneb-ci/github.json").read_text(encoding="utf-8")


def test_an_answer_that_still_holds_is_free(place):
    place.pull(sound())
    with connect(None) as github:
        assert [pull.number for pull in github.open_pulls()] == [1]
        assert [pull.number for pull in github.open_pulls()] == [1]
        assert github.wire.remaining == 5000 - 1 == 5000 - place.server.charged

"""The queue of a maintainer: whole outputs, by a clock that stands still."""

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.finding import Finding
from geneb_ci.github.ages import duration
from geneb_ci.github.queue import PullFacts, Turn, queue
from geneb_ci.github.queue_text import as_json, markdown, terminal
from geneb_ci.github.replies import Pull, parsed
from geneb_ci.github.verdict.model import PullOutcome, PullVerdict, VerdictFinding
from tests.github.conftest import REGULAR, ROW, encoded, golden, of_module, sound
from tests.github.server import REPOSITORY
from tests.github.text import CONTROL, commands, outside_code
from tests.render.hostile import texts
from tests.rules.fixtures.coverage import REASON
from tests.small import CARD, small_v11

NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)
HEAD = "a" * 40
URL = "https://github.com/org/board/pull/"


def pull(number: int, days: float, title: str = "Add a model") -> Pull:
    stamps = {
        "created_at": NOW - dt.timedelta(days=days),
        "updated_at": NOW - dt.timedelta(days=days),
    }
    repo = {"full_name": "org/board", "default_branch": "main"}
    ends = {"head": {"sha": HEAD}, "base": {"sha": "b" * 40, "ref": "main", "repo": repo}}
    value = (
        {
            "number": number,
            "state": "open",
            "title": title,
            "user": {"id": 7, "login": "stranger"},
            "html_url": URL + str(number),
        }
        | stamps
        | ends
    )
    return parsed(Pull, value, "a pull request")


def verdict(number: int, outcome: PullOutcome, **options: Any) -> PullVerdict:
    values = {
        "number": number,
        "head_sha": HEAD,
        "base_sha": "b" * 40,
        "outcome": outcome,
        "model": f"model-{number}",
        "level": "self-reported",
        "is_edit": False,
        "files": [],
        "places": {},
        "weight": 0.0,
        "findings": [],
        "comparison": None,
        "standings": [],
        "neighbour": None,
        "audit": AUDIT,
    }
    return PullVerdict.model_validate(values | options)


def foreign(number: int, path: str, **options: Any) -> PullVerdict:
    rule = BY_ID["foreign-file"]
    fault = Finding(rule.id, rule.severity, "m", path, "", 1, 1, "", "", rule.fix)
    options |= {"places": {rule.id: 1}, "findings": [VerdictFinding.of(fault)]}
    return verdict(number, PullOutcome.NEEDS_MAINTAINER, **options)


AUDIT = {"drawn": 13, "tasks": 100, "sequences": 61_000, "fabricated": 20, "detection": 0.9}
ERRORS: dict[str, Any] = {"places": {"missing-field": 2}, "level": None, "audit": None}
UNKNOWN: dict[str, Any] = {"level": None, "audit": None}
QUEUE = queue(
    [
        (pull(1, 2), PullFacts(verdict(1, PullOutcome.PASSED))),
        (
            pull(2, 9),
            PullFacts(verdict(2, PullOutcome.WARNINGS, places={"declared-gap": 3}, weight=14.5)),
        ),
        (
            pull(3, 3),
            PullFacts(verdict(3, PullOutcome.WARNINGS, places={"declared-gap": 1}, weight=1.2)),
        ),
        (
            pull(4, 40),
            PullFacts(verdict(4, PullOutcome.CHANGES_NEEDED, **ERRORS)),
        ),
        (pull(5, 4), PullFacts(verdict(5, PullOutcome.CHANGES_NEEDED, **ERRORS))),
        (pull(6, 5), PullFacts(verdict(6, PullOutcome.PASSED, is_edit=True))),
        (pull(7, 0.1), PullFacts(verdict(7, PullOutcome.PASSED, level="official"))),
        (pull(8, 1, title="##[error]x @everyone |"), PullFacts()),
        (pull(9, 0.01), PullFacts(verdict(9, PullOutcome.PASSED, head_sha="c" * 40))),
        (pull(10, 1), PullFacts(foreign(10, "README.md", model=None))),
        (
            pull(11, 1),
            PullFacts(foreign(11, "tools/x.py", **UNKNOWN)),
        ),
        (pull(12, 1), PullFacts(verdict(12, PullOutcome.NOT_CHECKED, **UNKNOWN))),
    ],
    NOW,
)


def test_the_order_is_whose_turn_it_is_then_age():
    assert [(row.number, row.turn.value) for row in QUEUE.rows] == [
        *((n, "maintainer") for n in (4, 2, 6, 3, 1, 8, 10, 11, 12, 7)),
        (9, "program"),
        (5, "contributor"),
    ]
    assert [row.action for row in QUEUE.rows][5:] == [
        "gh workflow run verdict.yml -f pr=8",
        "review README.md: it belongs to no submission",
        "review tools/x.py: it belongs to no submission",
        "fix geneb-ci: a rule crashed",
        "merge",
        "wait for the next sweep",
        "wait for new commits",
    ]
    assert QUEUE.summary == (
        "waiting: 10 for a maintainer (longest: 40 d); 1 for a verdict (longest: 14 min); "
        "1 for the contributor (longest: 4 d); 2 overdue (over 7 d)"
    )


ASKED = "#4 because nothing happens, #6 because it changes a row, #5 because missing-field"


def test_the_first_lines_say_what_to_do_with_which():
    """In eighty columns and in Markdown: numbers, and why somebody is asked or a row is audited."""
    lines = terminal(QUEUE, 10, color=False, width=160).splitlines()[:5]
    assert lines == [
        "merge: #1, #7",
        f"ask back: {ASKED}",
        "audit: #2 because its warnings weigh 14.5",
        "look at: #3, #8, #10, #11, #12",
        "",
    ]
    assert [f"- {line}" for line in lines[:4]] == markdown(QUEUE, 10).splitlines()[2:6]
    fine = queue([(pull(1, 2), PullFacts(verdict(1, PullOutcome.PASSED)))], NOW)
    shown = terminal(fine, 10, color=False, width=80).splitlines()[:4]
    assert shown == ["merge: #1", "ask back: none", "audit: none", ""]


def test_who_is_asked_back_is_told_the_rules(board_checkout):
    document = small_v11("model")
    del document["meta"]["display"], document["results"]["full"]
    number = board_checkout.pull(sound() | {ROW: (REGULAR, encoded(document))})
    board_checkout.both(number)
    line = board_checkout.run("triage")[1].splitlines()[1]
    assert line == "ask back: #1 because extractor-mismatch, missing-field and 1 more"


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        (
            {"results/x.txt": (REGULAR, b"{}")},
            "review results/x.txt: it belongs to no submission",
        ),
        (sound("one") | sound("two"), "ask its author for one pull request for each model"),
        ({"submissions/alpha.json": None}, "decide whether a row is withdrawn: it deletes files"),
        (
            sound() | {"RULES.md": (REGULAR, b"x")},
            "ask its author to take the generated file out",
        ),
        (
            {f"submissions/x/{n}.txt": (REGULAR, b"x") for n in range(60)},
            "review it by hand: it changes more files than geneb-ci reads",
        ),
        (
            {"submissions/cards/model.md": (REGULAR, CARD.encode())},
            "ask its author for the row that belongs to its files",
        ),
        ({}, "close it: it changes nothing that main does not have"),
    ],
)
def test_what_is_no_submission_is_named(board_checkout, changes, action):
    """All of these were "review it: it is not a submission"."""
    number = board_checkout.pull(changes)
    board_checkout.both(number)
    (row,) = json.loads(board_checkout.run("triage", "--format", "json")[1])["pulls"]
    assert (row["number"], row["turn"], row["action"]) == (number, "maintainer", action)


def test_a_row_that_is_not_ranked_is_no_audit_record(board_checkout):
    """A row with declared gaps was said to be an audit record that verifies."""
    document = small_v11("model")
    document["gaps"] = {}
    for regime, cells in document["results"].items():
        task = min(cells)
        del cells[task], document["evidence"][regime][task]
        document["gaps"][regime] = {task: REASON}
    number = board_checkout.pull(
        sound() | {ROW: (REGULAR, encoded(document | of_module(document)))}
    )
    board_checkout.both(number)
    (row,) = json.loads(board_checkout.run("triage", "--format", "json")[1])["pulls"]
    assert (row["effect"], row["verdict"]) == ("not ranked", "warnings")
    assert row["action"] == "read the warnings and their answers"


def test_the_whole_tables(update_golden):
    golden("triage.txt", terminal(QUEUE, 10, color=False, width=160), update=update_golden)
    golden("triage-narrow.txt", terminal(QUEUE, 10, color=False, width=80), update=update_golden)
    golden("triage.md", markdown(QUEUE, 10), update=update_golden)
    assert "\x1b[" in terminal(QUEUE, 10, color=True, width=140)


def test_json_whole():
    value = json.loads(as_json(QUEUE, 2))
    assert value["left_out"] == 10
    assert value["pulls"][1] == {
        "number": 2,
        "url": URL + "2",
        "name": "model-2",
        "author": "stranger",
        "assignees": [],
        "age_seconds": 9 * 86_400,
        "verdict": "warnings",
        "errors": 0,
        "warnings": 3,
        "weight": 14.5,
        "effect": "not ranked",
        "level": "self-reported",
        "audit_tasks": 13,
        "audit_sequences": 61_000,
        "turn": "maintainer",
        "who": "a maintainer",
        "step": "audit",
        "action": "review, then set the label audit",
        "reason": "its warnings weigh 14.5",
        "is_overdue": True,
    }


def test_no_submission_waits():
    empty = queue([], NOW)
    assert terminal(empty, 5, color=False, width=100) == "no pull request is open\n"
    assert markdown(empty, 5) == "## Open pull requests\n\nno pull request is open\n"


@given(title=texts, width=st.integers(80, 200))
def test_a_hostile_title_commands_nothing_and_pings_nobody(title, width):
    queue_document = queue([(pull(1, 1, title=title), PullFacts())], NOW)
    for text in (
        terminal(queue_document, 5, color=False, width=width),
        markdown(queue_document, 5),
        as_json(queue_document, 5),
    ):
        assert commands(text) == []
        assert CONTROL.search(text) is None
    assert "@everyone" not in outside_code(markdown(queue_document, 5))
    assert markdown(queue_document, 5).count("\n") == 12


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (200_000, "2 d")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_triage_over_http_from_comments(board_checkout):
    clean, other = board_checkout.pull(sound()), board_checkout.pull(sound("other"))
    board_checkout.both(clean)
    code, out, err = board_checkout.run("triage", "--format", "json", "--no-cache")
    assert (code, err) == (0, "")
    rows = {row["number"]: row for row in json.loads(out)["pulls"]}
    assert (rows[clean]["verdict"], rows[clean]["turn"]) == ("passed", Turn.MAINTAINER)
    assert (rows[other]["verdict"], rows[other]["name"]) == ("waiting", f"Add a model ({other})")
    # A verdict that was copied to another pull request is not believed.
    board_checkout.server.comments[other] = [board_checkout.server.comments[clean][0] | {"id": 5}]
    rows = {
        row["number"]: row
        for row in json.loads(board_checkout.run("triage", "--format", "json", "--no-cache")[1])[
            "pulls"
        ]
    }
    assert rows[other]["verdict"] == "waiting"
    # With new commits, the old verdict does not count.
    board_checkout.server.pulls[clean]["head"]["sha"] = board_checkout.server.commit(
        board_checkout.files, board_checkout.base
    )
    code, out, _ = board_checkout.run("triage", "--format", "markdown", "--no-cache")
    assert code == 0
    address = f"https://github.com/{REPOSITORY}/pull/{clean}"
    assert f"| [{clean}]({address}) | `model` | `stranger` | " in out
    assert "`waiting`" in out


def test_a_flood_of_comments_hides_neither_itself_nor_another(board_checkout):
    flooded, clean = (
        board_checkout.pull(sound("flooded"), title="a flood"),
        board_checkout.pull(sound()),
    )
    board_checkout.both(clean)
    board_checkout.server.comments[flooded] = [
        {"id": n, "user": None, "body": "x"} for n in range(3001)
    ]
    code, out, err = board_checkout.run("triage", "--format", "json", "--no-cache")
    assert (code, err) == (0, "")
    rows = {row["number"]: row for row in json.loads(out)["pulls"]}
    assert rows[clean]["verdict"] == "passed"
    assert {key: rows[flooded][key] for key in ("name", "verdict", "turn", "action")} == {
        "name": "a flood",
        "verdict": "waiting",
        "turn": "maintainer",
        "action": "review it manually: its comments cannot be read",
    }


def test_after_a_limit_nothing_is_printed_and_the_next_run_reads_all(board_checkout):
    for n in range(10):
        board_checkout.pull(sound(f"model-{n}"))
    board_checkout.server.is_graphql = False
    board_checkout.server.limit = 6
    code, out, err = board_checkout.run("triage", "--format", "json")
    assert (code, out) == (3, "")
    assert err.startswith("geneb-ci: GitHub's rate limit is reached until ")
    board_checkout.server.charged, board_checkout.server.limit = 0, 100
    assert board_checkout.run("triage", "--format", "json")[0] == 0


def test_a_draft_is_its_authors():
    draft = pull(1, 8).model_copy(update={"draft": True})
    (row,) = queue([(draft, PullFacts(verdict(1, PullOutcome.PASSED)))], NOW).rows
    assert (row.turn, row.action, row.is_overdue) == (
        Turn.CONTRIBUTOR,
        "wait: it is a draft",
        False,
    )
    old = pull(1, 31).model_copy(update={"draft": True})
    (row,) = queue([(old, PullFacts(verdict(1, PullOutcome.PASSED)))], NOW).rows
    assert (row.turn, row.action) == (Turn.MAINTAINER, "ask whether work continues, or close it")

"""Each rule is raised by its failing fixture, and not by its passing one; no other rule changes."""

import dataclasses
import json
import sys
from collections.abc import Iterator

import pytest

from geneb_ci.check.context import Context
from geneb_ci.check.registry import BY_ID, RULES, select
from geneb_ci.read.fault import Fault
from tests.rules import make
from tests.rules.place import EXPECTED, HERE, found

FIXTURES = sorted(path.parent for path in HERE.glob(f"*/*/{EXPECTED}"))


def test_the_committed_fixtures_are_those_that_the_script_makes(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make", "--check"])
    assert make.main() == 0


def test_every_rule_has_a_failing_and_a_passing_fixture():
    names = [f"{path.parent.name}/{path.name}" for path in FIXTURES]
    assert names == sorted(f"{rule}/{verdict}" for rule in BY_ID for verdict in ("fail", "pass"))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_fixture_says_exactly_what_is_expected(tmp_path, fixture):
    rows = found(fixture, tmp_path)
    assert rows == json.loads((fixture / EXPECTED).read_text(encoding="utf-8"))
    rule = fixture.parent.name
    crashed = rule == "check-crashed"  # sound: the next test puts a rule in that fails
    assert (rule in {row["rule"] for row in rows}) == (fixture.name == "fail" and not crashed)


def raising(context: Context) -> Iterator[Fault]:
    message = f"no such\n\x1b[2Jkey: {context.model_id}"
    raise KeyError(message)


def late(context: Context) -> Iterator[Fault]:
    yield Fault("missing-task", (), "found before the fall")
    yield Fault("missing-task", (), str(1 // len(context.model_id[:0])))


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            raising,
            "the rule missing-task failed: KeyError: \"'no such\\\\n\\\\x1b[2Jkey: model'\"",
        ),
        (
            late,
            'the rule missing-task failed: ZeroDivisionError: "integer division or modulo by zero"',
        ),
    ],
)
def test_a_rule_that_raises_is_an_error_and_the_others_still_run(tmp_path, check, message):
    broken = dataclasses.replace(select(["missing-task"], [])[0], check=check)
    rules = tuple(broken if rule.id == broken.id else rule for rule in RULES)
    fixture = HERE / "check-crashed/fail"
    sound = json.loads((fixture / EXPECTED).read_text(encoding="utf-8"))
    crash = {
        "rule": "check-crashed",
        "file": "submissions/model.json",
        "pointer": "",
        "line": 1,
        "column": 1,
        "message": message,
    }
    assert found(fixture, tmp_path, rules) == [crash, *sound]

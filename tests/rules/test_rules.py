"""Each rule is raised by its failing fixture, and not by its passing one; no other rule changes."""

import dataclasses
from collections.abc import Iterator

import pytest

from geneb_ci.check.registry import BY_ID, RULES, select
from geneb_ci.check.rule import Context
from geneb_ci.common.finding import Fault
from tests.rules.deltas import SOUND
from tests.rules.expectations import FOLDER as EXPECTED
from tests.rules.expectations import NOTHING, VERDICTS, read, text_of
from tests.rules.fixtures import FAMILIES, fixture
from tests.rules.place import digest, rows_found

TABLE = read()
EXPECTATIONS = {
    case: expectation for cases in TABLE.values() for case, expectation in cases.items()
}
CASES = [f"{rule}/{v}" for pairs in FAMILIES.values() for rule in pairs for v in VERDICTS]
CRASHED = "check-crashed"
UPDATE = "if this is what you meant, run .venv/bin/python -m tests.rules.update"


def test_every_rule_has_fixtures_and_every_fixture_expectations():
    assert sorted(rule for pairs in FAMILIES.values() for rule in pairs) == sorted(BY_ID)
    written = {family: [case.split("/")[0] for case in cases] for family, cases in TABLE.items()}
    assert written == {
        family: [rule for rule in pairs for _ in VERDICTS] for family, pairs in FAMILIES.items()
    }, UPDATE
    assert sorted(EXPECTATIONS) == sorted(CASES), UPDATE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_files_of_expectations_are_those_that_the_command_writes(family):
    text = (EXPECTED / f"{family}.json").read_text(encoding="utf-8")
    assert text == text_of(TABLE[family])


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_has_exactly_the_findings_expected(case):
    rule, verdict = case.split("/")
    expected, rows = EXPECTATIONS.get(case, NOTHING), rows_found(fixture(case))
    assert rows == expected.findings, f"{UPDATE} {rule}"
    assert digest(fixture(case)) == expected.input, f"the input changed: {UPDATE} {rule}"
    expected_value = (
        verdict == "fail" and rule != CRASHED
    )  # sound: the next test puts a failing rule in
    assert (rule in {row["rule"] for row in rows}) == expected_value, (
        f"the {verdict}ing fixture must {'' if expected_value else 'not '}have the finding {rule}"
    )


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
            "the rule missing-task crashed: KeyError: \"'no such\\\\n\\\\x1b[2Jkey: model'\"",
        ),
        (
            late,
            (
                "the rule missing-task crashed: ZeroDivisionError: "
                '"integer division or modulo by zero"'
            ),
        ),
    ],
)
def test_a_rule_that_raises_is_an_error_and_the_others_still_run(check, message):
    broken = dataclasses.replace(select(["missing-task"], [])[0], check=check)
    rules = tuple(broken if rule.id == broken.id else rule for rule in RULES)
    crash = {
        "rule": "check-crashed",
        "file": "submissions/model.json",
        "pointer": "",
        "line": 1,
        "column": 1,
        "message": message,
    }
    assert rows_found(SOUND, rules) == [crash, *EXPECTATIONS[f"{CRASHED}/fail"].findings]

"""From findings to one word: the whole table, and which findings are told where not all can be."""

import itertools

import pytest

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.verdict.model import (
    FINDINGS_MAX,
    LISTED_PER_RULE_MAX,
    MAINTAINER_RULES,
    PullOutcome,
    SeverityCounts,
    counts_by_rule,
    counts_of,
    important_findings,
    outcome_of,
)

ERROR, WARNING, NOTE = "missing-task", "round-numbers", "no-run-details"
CRASHED = "check-crashed"


def finding(rule: str, index: int = 0) -> Finding:
    severity = BY_ID[rule].severity
    return Finding(rule, severity, "message", "m.json", "", index, 1, "found", "expected", "fix")


def test_the_examples_are_of_three_severities():
    severities = [BY_ID[rule].severity for rule in (ERROR, WARNING, NOTE)]
    assert severities == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


def test_the_whole_table():
    """Each line outranks all below it."""
    table = [
        ("foreign-file", PullOutcome.NEEDS_MAINTAINER),
        (ERROR, PullOutcome.CHANGES_NEEDED),
        (CRASHED, PullOutcome.NOT_CHECKED),
        (WARNING, PullOutcome.WARNINGS),
        (NOTE, PullOutcome.PASSED),
    ]
    for size in range(1, len(table) + 1):
        for rows in itertools.combinations(table, size):
            places = {rule: 2 for rule, _ in rows}
            assert outcome_of(places, is_checked=True) == rows[0][1]
    assert outcome_of({}, is_checked=True) == PullOutcome.PASSED


def test_what_was_not_read_is_for_a_maintainer_unless_more_is_known():
    outcomes_by_rule = {
        rule: outcome_of({rule: 1}, is_checked=False)
        for rule in (ERROR, CRASHED, WARNING, NOTE, "too-many-files")
    }
    assert outcomes_by_rule == {
        ERROR: PullOutcome.CHANGES_NEEDED,
        CRASHED: PullOutcome.NOT_CHECKED,
        WARNING: PullOutcome.NEEDS_MAINTAINER,
        NOTE: PullOutcome.NEEDS_MAINTAINER,
        "too-many-files": PullOutcome.NEEDS_MAINTAINER,
    }
    assert outcome_of({}, is_checked=False) == PullOutcome.NEEDS_MAINTAINER


@pytest.mark.parametrize("rule", sorted(MAINTAINER_RULES))
def test_what_no_program_decides_on(rule):
    assert rule in BY_ID
    assert outcome_of({rule: 1, ERROR: 3}, is_checked=True) == PullOutcome.NEEDS_MAINTAINER


def test_exactly_these_rules_are_for_maintainers():
    assert sorted(MAINTAINER_RULES) == [
        "deleted-file",
        "foreign-file",
        "generated-file",
        "several-models",
        "too-many-files",
        "truncated-tree",
    ]


def test_findings_are_counted_by_rule_and_by_severity():
    findings = [finding(rule) for rule in (WARNING, ERROR, ERROR, CRASHED, NOTE, WARNING, WARNING)]
    places = counts_by_rule(findings)
    assert list(places.items()) == sorted({ERROR: 2, CRASHED: 1, WARNING: 3, NOTE: 1}.items())
    assert counts_of(places) == SeverityCounts(error=2, crashed=1, warning=3, note=1)
    assert counts_of({}) == SeverityCounts(0, 0, 0, 0)


def test_the_first_of_each_rule_is_told_before_the_second_of_any():
    findings = [finding(rule, index) for rule in (NOTE, WARNING, ERROR) for index in range(7)]
    findings += [finding("foreign-file", index) for index in range(2)]
    order = ("foreign-file", ERROR, WARNING, NOTE)
    assert [(important.rule, important.line) for important in important_findings(findings)] == [
        (rule, index)
        for index in range(LISTED_PER_RULE_MAX)
        for rule in order
        if rule != "foreign-file" or index < 2
    ]


def test_a_crash_of_ours_is_told_after_the_errors_of_the_file():
    findings = important_findings([finding(CRASHED), finding(WARNING), finding(ERROR)])
    assert [important.rule for important in findings] == [ERROR, CRASHED, WARNING]


def test_the_end_is_cut():
    rules = [rule for rule in BY_ID if BY_ID[rule].severity is Severity.ERROR][:20]
    findings = important_findings(finding(rule, index) for rule in rules for index in range(9))
    assert len(findings) == FINDINGS_MAX == 60
    assert {important.rule for important in findings} == set(rules)
    assert {important.line for important in findings} == {0, 1, 2}

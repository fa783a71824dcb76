"""The verdict and the one line that all formats share."""

import dataclasses

import pytest

from geneb_ci.check.report import Report, Verdict
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import percent
from geneb_ci.render.formats import finding_sentence, render, summary_line, verdict_of
from reference_harness.formats.text import plural
from tests.render.examples import finding

ERROR = finding("missing-task", "a.json", "m")
WARNING = finding("missing-card", "a.json", "m")
NOTE = finding("no-run-details", "a.json", "m")
CRASH = finding("check-crashed", "a.json", "m")
LOST = NothingChecked("b.json: cannot be read", "")


@pytest.mark.parametrize(
    ("report", "expected", "line"),
    [
        (Report(), Verdict.NOT_CHECKED, "nothing was checked: no submission was found"),
        (Report(files=["a"]), Verdict.NOT_CHECKED, "nothing was checked: no rule was run"),
        (Report(["a"], rules=1), Verdict.CLEAN, "1 submission, 1 rule: nothing to fix"),
        (Report(["a"], [NOTE], rules=2), Verdict.CLEAN, "1 submission, 2 rules: 1 note"),
        (
            Report(["a", "b"], [WARNING, NOTE], rules=2),
            Verdict.WARNINGS,
            "2 submissions, 2 rules: 1 warning, 1 note",
        ),
        (
            Report(["a"], [NOTE, ERROR, WARNING, ERROR], rules=2),
            Verdict.ERRORS,
            "1 submission, 2 rules: 2 errors, 1 warning, 1 note",
        ),
        (
            Report(["a"], [WARNING], [LOST], rules=2),
            Verdict.NOT_CHECKED,
            "1 submission, 2 rules: 1 warning, 1 path could not be checked",
        ),
        (
            Report(["a"], [ERROR], [LOST, LOST], rules=2),
            Verdict.ERRORS,
            "1 submission, 2 rules: 1 error, 2 paths could not be checked",
        ),
        (
            Report([], [], [LOST], rules=2),
            Verdict.NOT_CHECKED,
            "0 submissions, 2 rules: 1 path could not be checked",
        ),
        (Report(["a"], [CRASH], rules=2), Verdict.NOT_CHECKED, "1 submission, 2 rules: 1 error"),
        (
            Report(["a"], [CRASH, ERROR], rules=2),
            Verdict.ERRORS,
            "1 submission, 2 rules: 2 errors",
        ),
    ],
)
def test_verdict_and_line(report, expected, line):
    assert (verdict_of(report), summary_line(report)) == (expected, line)


@pytest.mark.parametrize(
    ("message", "result", "expected", "text"),
    [
        ("MCC is 1.7", "1.7", "at most 1", "MCC is 1.7; expected at most 1"),
        ("a gap", "2 gaps", "no gap", "a gap; found 2 gaps, expected no gap"),
        ("a gap", "2 gaps", "", "a gap; found 2 gaps"),
        ("no card", "nothing", "a card", "no card; expected a card"),
        ("a gap", "", "", "a gap"),
        ('the field "meta" is missing', "nothing", "meta", 'the field "meta" is missing'),
        (
            "no matrix gives 0.1, 0.2, 0.3; the nearest matrix gives 0.1, 0.2, 0.4",
            "0.1, 0.2, 0.3",
            "0.1, 0.2, 0.4",
            "no matrix gives 0.1, 0.2, 0.3; the nearest matrix gives 0.1, 0.2, 0.4",
        ),
        ("1 of 2 seeds", "nothing", "2", "1 of 2 seeds; expected 2"),
    ],
)
def test_each_is_said_once(message, result, expected, text):
    item = finding("missing-task", "a.json", message, found=result, expected=expected)
    assert finding_sentence(item) == text


def test_the_score_of_a_finding_is_not_taken_for_a_score_of_the_submission():
    item = finding("missing-task", "a.json", "MCC is off", found="0.3063", expected="about 0.792")
    message = "MCC is off; found 0.3063, expected about 0.792 (finding score 1.4)"
    assert finding_sentence(dataclasses.replace(item, score=1.4)) == message


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.12, "12 %"),
        (299 / 300, "99.6 %"),
        (0.9999, "99.9 %"),
        (1 / 300, "0.4 %"),
    ],
)
def test_only_all_are_100_percent(share, message):
    assert percent(share) == message


@pytest.mark.parametrize(
    ("number", "message"),
    [(0, "0 errors"), (1, "1 error"), (2, "2 errors"), (1234, "1,234 errors")],
)
def test_counted(number, message):
    assert plural(number, "error") == message


def of_many_files() -> Report:
    """Twelve files with an error and a note each, and two with a warning as well."""
    names = [f"submissions/m{number:02}.json" for number in range(12)]
    findings = [
        finding("missing-task", names[0], "3 tasks have no scores", unlisted=2),
        *(finding("missing-task", name, "1 task has no scores") for name in names[1:]),
        *(finding("missing-card", name, "no card") for name in names[:2]),
        *(finding("no-run-details", name, "no run details") for name in names),
    ]
    return Report(names, findings, rules=60)


def test_findings_of_many_files_are_summed_up_by_rule():
    text = render("text", of_many_files(), width=80)
    assert len(text.splitlines()) <= 60
    for line in (
        "12 files with findings, by rule",
        "  error: missing-task  14 findings in 12 files",
        "    submissions/m00.json, submissions/m01.json, submissions/m02.json and 9 more",
        "    first: 3 tasks have no scores",
        "  warning: missing-card  2 findings in 2 files",
        "    submissions/m00.json, submissions/m01.json",
        "  note: no-run-details  12 findings in 12 files",
        "To list all findings: `geneb-ci check FILE` for a file, `--format full` for all.",
        "12 submissions, 60 rules: 14 errors, 2 warnings, 12 notes",
    ):
        assert line in text.splitlines()


def test_the_full_text_has_every_finding_by_file():
    report = of_many_files()
    text = render("full", report, width=80)
    assert [line for line in text.splitlines() if line.startswith("submissions/")] == report.files
    assert text.splitlines()[-1] == render("text", report, width=80).splitlines()[-1]


def test_row_card_and_extractor_are_never_summed_up():
    files = ["submissions/m.json", "submissions/cards/m.md", "submissions/extractors/m.py"]
    rules = ("missing-task", "missing-field", "missing-card", "score-out-of-range")
    findings = [
        finding(rule, file, "a long message " * 40, line=line)
        for file in files
        for rule in rules
        for line in (1, 2)
    ]
    report = Report(files, findings, rules=60)
    assert render("text", report, width=80) == render("full", report, width=80)
    assert len(render("text", report, width=80).splitlines()) > 60

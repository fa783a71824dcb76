"""JUnit, as a stock XML parser reads it."""

from xml.etree import ElementTree as ET

from hypothesis import given

from geneb_ci.check.runner import Report
from geneb_ci.common.finding import Severity
from geneb_ci.render.formats import (
    finding_sentence,
    nothing_checked_reason,
    render,
    sorted_findings,
)
from geneb_ci.render.plain import visible
from tests.render.hostile import BRIEF, reports


def parse(report: Report) -> ET.Element:
    return ET.fromstring(render("junit", report).encode("utf-8"))  # noqa: S314 (our own output)


def totals(element: ET.Element) -> dict[str, int]:
    return {
        name: int(element.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")
    }


def counted(element: ET.Element) -> dict[str, int]:
    names = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    return {name: len(list(element.iter(tag))) for name, tag in names.items()}


@BRIEF
@given(report=reports())
def test_it_parses_and_counts(report):
    root = parse(report)
    assert totals(root) == counted(root)
    assert [totals(suite) for suite in root] == [counted(suite) for suite in root]
    files = {*report.files, *(finding.file for finding in report.findings)}
    unchecked = len(report.unreadable) + bool(nothing_checked_reason(report))
    assert len(root) == len(files) + bool(unchecked)
    clean = files - {finding.file for finding in report.findings}
    assert totals(root)["tests"] == len(report.findings) + len(clean) + unchecked


@BRIEF
@given(report=reports())
def test_every_finding_says_what_it_is(report):
    root = parse(report)
    cases = root.findall("testsuite/testcase")
    failed_cases = [case for case in cases if len(case)][: len(report.findings)]
    for case, finding in zip(failed_cases, sorted_findings(report), strict=True):
        assert case.get("classname") == visible(finding.file)
        verdict = case[0]
        if finding.rule == "check-crashed":
            assert verdict.tag == "error"
        else:
            failed = finding.severity is Severity.ERROR
            assert verdict.tag == ("failure" if failed else "skipped")
        if verdict.tag != "skipped":
            assert verdict.get("message") == visible(finding_sentence(finding))

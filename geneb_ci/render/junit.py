"""Renders findings as JUnit XML for build servers: one suite per file, one case per finding.

JUnit has no warnings, so warnings and notes are skipped cases, which do not fail the build. A check
that could not run is an error rather than a failure.
"""

import html
from collections.abc import Iterator

from geneb_ci.check.report import Report
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.render.formats import (
    DEFAULT_WIDTH,
    finding_sentence,
    nothing_checked_reason,
    skipped_rules,
    sorted_findings,
)
from geneb_ci.render.plain import visible

_TAG_BY_SEVERITY = {
    Severity.ERROR: "failure",
    Severity.WARNING: "skipped",
    Severity.NOTE: "skipped",
}
"""By severity: the element of JUnit that shows a finding."""


def escape(text: str) -> str:
    """Escape text for elements and attributes, without control characters."""
    return html.escape(visible(text), quote=True)


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render one suite per file, sorted by name."""
    findings_by_file: dict[str, list[Finding]] = {file: [] for file in report.files}
    for finding in sorted_findings(report):
        findings_by_file.setdefault(finding.file, []).append(finding)
    suites = [
        _test_suite(file, [_test_case(f) for f in file_findings])
        for file, file_findings in sorted(findings_by_file.items())
    ]
    unchecked = [_unchecked_case(error.message, error.fix) for error in report.unreadable]
    reason_for_nothing = nothing_checked_reason(report)
    if reason_for_nothing:
        unchecked.append(_unchecked_case(reason_for_nothing, ""))
    if unchecked:
        suites.append(_test_suite("not checked", unchecked))
    skipped_cases = [
        _test_case_element("not run", unmet.need.text, "skipped", "not-run", [unmet.message])
        for unmet in skipped_rules(report)
    ]
    if skipped_cases:
        suites.append(_test_suite("not run", skipped_cases))
    body = "".join(suites)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites name="geneb-ci" {_totals(body)}>\n{body}</testsuites>\n'
    )


def _test_suite(file: str, cases: list[str]) -> str:
    """Return the test suite of a file."""
    file_name = escape(file)
    body = "".join(
        cases or [f'    <testcase classname="{file_name}" name="every rule" time="0"></testcase>\n']
    )
    return f'  <testsuite name="{file_name}" {_totals(body)} time="0">\n{body}  </testsuite>\n'


def _totals(body: str) -> str:
    """Return the numbers of test cases of each kind as attributes of a test suite."""
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    return " ".join(f'{name}="{body.count(f"<{tag} ")}"' for name, tag in tags.items())


def _test_case(finding: Finding) -> str:
    """Return a finding as a test case."""
    tag = "error" if finding.rule == "check-crashed" else _TAG_BY_SEVERITY[finding.severity]
    position = f"{finding.line}:{finding.column}"
    case_name = " ".join(filter(None, (finding.rule, position, finding.pointer)))
    return _test_case_element(
        finding.file, case_name, tag, finding.rule, list(_test_case_lines(finding))
    )


def _test_case_lines(finding: Finding) -> Iterator[str]:
    """Yield the text of a finding."""
    yield finding_sentence(finding)
    yield f"{finding.severity} at {finding.file}:{finding.line}:{finding.column}"
    if finding.fix:
        yield f"fix: {finding.fix}"


def _unchecked_case(message: str, fix: str) -> str:
    """Return a test case for something that was not checked."""
    return _test_case_element(
        "not checked", message, "error", "not-checked", [message, *([f"fix: {fix}"] if fix else [])]
    )


def _test_case_element(
    classname: str, case_name: str, tag: str, rule: str, lines: list[str]
) -> str:
    """Return one test case. A skipped one has only a message, which therefore includes the fix."""
    attributes = f'message="{escape(lines[0])}" type="{escape(rule)}"'
    detail = "\n".join(f"      {escape(line)}" for line in lines[1:])
    if tag == "skipped":
        attributes, detail = f'message="{escape("; ".join([lines[0], *lines[2:]]))}"', ""
    return (
        f'    <testcase classname="{escape(classname)}" name="{escape(case_name)}" time="0">\n'
        f"      <{tag} {attributes}>" + (f"\n{detail}\n      " if detail else "") + f"</{tag}>\n"
        "    </testcase>\n"
    )

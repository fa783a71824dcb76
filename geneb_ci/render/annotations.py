"""Workflow commands of GitHub Actions: annotations at the lines of a pull request."""

from collections.abc import Iterator

from geneb_ci.check.report import Report
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.render.formats import (
    DEFAULT_WIDTH,
    counts_by_severity,
    finding_sentence,
    nothing_checked_reason,
    skipped_rules,
    sorted_findings,
    summary_line,
)
from geneb_ci.render.plain import visible

ANNOTATIONS_MAX = 10
"""Number of annotations of each severity that GitHub shows per step; all others are only in the
log."""

_COMMAND_BY_SEVERITY = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}
"""By severity: the workflow command that shows a finding."""


def escape_data(text: str) -> str:
    """Escape text for the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape text for a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render one workflow command per finding, then the summary line."""
    return "".join(f"{line}\n" for line in _command_lines(report))


def _command_lines(report: Report) -> Iterator[str]:
    """Yield one workflow command per file that was not read and per finding, then the summary."""
    for refusal in report.unreadable:
        yield _command("error", [refusal.message, refusal.fix], title="not checked")
    for finding in _alternating_by_rule(sorted_findings(report)):
        yield _command(
            _COMMAND_BY_SEVERITY[finding.severity],
            [finding_sentence(finding), finding.fix],
            file=finding.file,
            line=str(finding.line),
            col=str(finding.column),
            title=finding.rule,
        )
    for unmet in skipped_rules(report):
        yield unmet.message
    reason_for_nothing = nothing_checked_reason(report)
    if reason_for_nothing:
        yield _command("error", [reason_for_nothing], title="not checked")
    else:
        yield summary_line(report)
    if any(number > ANNOTATIONS_MAX for number in counts_by_severity(report).values()):
        yield f"GitHub shows {ANNOTATIONS_MAX} annotations per severity; the step summary has all."


def _command(level: str, lines: list[str], **properties: str) -> str:
    """Return one workflow command; each text becomes one printable line and is then escaped."""
    head = ",".join(f"{key}={escape_property(visible(value))}" for key, value in properties.items())
    body = "\n".join([visible(lines[0]), *(f"Fix: {visible(fix)}" for fix in lines[1:] if fix)])
    return f"::{level} {head}::{escape_data(body)}"


def _alternating_by_rule(findings: list[Finding]) -> list[Finding]:
    """Return the first finding of each rule, then the second of each: GitHub shows only some."""
    count_by_rule: dict[str, int] = {}
    positions = []
    for finding in findings:
        count_by_rule[finding.rule] = count_by_rule.get(finding.rule, 0) + 1
        positions.append(count_by_rule[finding.rule])
    return [
        finding
        for _, finding in sorted(zip(positions, findings, strict=True), key=lambda pair: pair[0])
    ]

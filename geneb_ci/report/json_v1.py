"""The report for another program, in the shape of `schemas/findings-1.0.schema.json`."""

import dataclasses

from geneb_ci import __version__
from geneb_ci.check.runner import Report
from geneb_ci.finding import Finding
from geneb_ci.report.formats import WIDTH
from geneb_ci.report.json_shape import (
    BenchmarkV1,
    CountsV1,
    FindingV1,
    ReportV1,
    SkippedV1,
    ToolV1,
    UnreadableV1,
)
from geneb_ci.report.json_text import dumps
from geneb_ci.report.summary import counts, ordered, rules_run, skipped, verdict


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render as one JSON object."""
    return dumps(dataclasses.asdict(to_v1(report)))


def to_v1(report: Report) -> ReportV1:
    """Bring a report into the frozen shape."""
    tally = {severity.value: number for severity, number in counts(report).items()}
    return ReportV1(
        format_version="1.0",
        tool=ToolV1(name="geneb-ci", version=__version__),
        verdict=verdict(report),
        files=len(report.files),
        rules=rules_run(report),
        counts=CountsV1(**tally),
        benchmarks=[BenchmarkV1(name, sha) for name, sha in sorted(report.benchmarks.items())],
        findings=[_finding(finding) for finding in ordered(report)],
        unreadable=[UnreadableV1(error.message, error.fix) for error in report.unreadable],
        skipped=[
            SkippedV1(one.need, one.rules, one.files, one.message, one.need.fix)
            for one in skipped(report)
        ],
    )


def _finding(finding: Finding) -> FindingV1:
    return FindingV1(
        rule=finding.rule,
        severity=finding.severity,
        message=finding.message,
        file=finding.file,
        pointer=finding.pointer,
        line=finding.line,
        column=finding.column,
        found=finding.found,
        expected=finding.expected,
        fix=finding.fix,
        score=finding.score,
    )

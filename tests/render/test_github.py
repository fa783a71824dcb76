"""Workflow commands: one a finding, which nothing in it can end or start anew."""

import re
from collections.abc import Iterator

from hypothesis import given

from geneb_ci.check.runner import Report
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.render.formats import (
    finding_sentence,
    nothing_checked_reason,
    render,
    sorted_findings,
)
from geneb_ci.render.plain import visible
from tests.render.examples import score
from tests.render.hostile import BRIEF, reports

Command = tuple[str, dict[str, str], str]
COMMAND = re.compile(r"::(?P<name>error|warning|notice) (?P<properties>[^:]*)::(?P<data>.*)")


def unescape(text: str) -> str:
    codes = {"%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}
    return re.sub("%25|%0D|%0A|%3A|%2C", lambda match: codes[match.group()], text)


def parse(output: str) -> Iterator[Command]:
    """Read commands as the runner does: the first "::" after the name ends the properties."""
    for line in output.split("\n"):
        if line.startswith("::"):
            match = COMMAND.fullmatch(line)
            assert match is not None, line
            pairs = (part.split("=", 1) for part in match["properties"].split(","))
            yield match["name"], {k: unescape(v) for k, v in pairs}, unescape(match["data"])


def command(finding: Finding) -> Command:
    names = {"error": "error", "warning": "warning", "note": "notice"}
    properties = {
        "file": visible(finding.file),
        "line": str(finding.line),
        "col": str(finding.column),
        "title": visible(finding.rule),
    }
    fix = f"\nFix: {visible(finding.fix)}" if finding.fix else ""
    return names[finding.severity], properties, visible(finding_sentence(finding)) + fix


@BRIEF
@given(report=reports())
def test_one_command_a_finding_which_reads_back(report):
    commands = list(parse(render("github", report)))
    first = len(report.unreadable)
    last = len(commands) - bool(nothing_checked_reason(report))
    assert sorted(map(repr, commands[first:last])) == sorted(
        repr(command(finding)) for finding in sorted_findings(report)
    )
    assert all(
        (name, properties) == ("error", {"title": "not checked"})
        for name, properties, _ in (*commands[:first], *commands[last:])
    )


def test_the_first_of_each_rule_comes_first():
    report = Report(files=["a"], rules=61, findings=[score(2, column) for column in range(1, 5)])
    report.findings.append(Finding("missing-task", Severity.ERROR, "m", "z", "", 9, 9, "", "", ""))
    titles = [properties["title"] for _, properties, _ in parse(render("github", report))]
    assert titles == ["score-out-of-range", "missing-task", *["score-out-of-range"] * 3]

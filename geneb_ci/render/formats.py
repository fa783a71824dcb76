"""Output formats by name, imported when used, and what they share: verdict, counts, summary."""

import importlib
from collections import Counter
from typing import NamedTuple, Protocol, cast

from geneb_ci.check.registry import CHANGE_TOPICS
from geneb_ci.check.report import Report, Verdict
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Need, Severity, first_and_more
from reference_harness.formats.text import plural

_CRASHED = "check-crashed"
"""Id of the rule of a check that failed by itself."""
_SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
"""By severity: its position in the order of severities."""
CONTAINED_TEXT_MIN = 12
"""Minimum length in characters of a text that counts as contained in a message; a shorter text may
occur there by chance."""
DEFAULT_WIDTH = 100
"""Columns of a report, if the width of the terminal is unknown."""
COMMIT_DIGITS_SHOWN = 12
"""Hex digits of a commit that are shown."""


def is_complete(report: Report) -> bool:
    """Whether everything was checked; False for a run without any file."""
    crashed = any(finding.rule == _CRASHED for finding in report.findings)
    is_all_read = not (nothing_checked_reason(report) or report.unreadable)
    return bool(report.files and is_all_read and not crashed)


def verdict_of(report: Report) -> Verdict:
    """Return the verdict: errors outweigh unchecked files, which outweigh warnings.

    For a pull request it is the server's verdict.
    """
    if report.proposal is not None:
        return report.proposal.verdict
    severities = {finding.severity for finding in report.findings if finding.rule != _CRASHED}
    if Severity.ERROR in severities:
        return Verdict.ERRORS
    if not is_complete(report):
        return Verdict.NOT_CHECKED
    return Verdict.WARNINGS if Severity.WARNING in severities else Verdict.CLEAN


def counts_by_severity(report: Report) -> dict[Severity, int]:
    """Return the number of findings by severity, including zeros, the most severe first."""
    count_by_severity = dict.fromkeys(Severity, 0)
    for finding in report.findings:
        count_by_severity[finding.severity] += 1 + finding.unlisted
    return count_by_severity


def sorted_findings(report: Report) -> list[Finding]:
    """Return the findings sorted by file and position, so that output is deterministic."""
    return sorted(report.findings, key=Finding.sort_key)


def findings_by_rule(findings: list[Finding]) -> list[list[Finding]]:
    """Return the findings grouped by rule, sorted by severity, then by first position."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return sorted(groups.values(), key=lambda group: _SEVERITY_RANKS[group[0].severity])


def finding_sentence(finding: Finding) -> str:
    """Return message, found, expected and score of a finding as one sentence."""
    clauses = []
    if finding.found not in {"", "nothing"} and finding.found not in finding.message:
        clauses.append(f"found {finding.found}")
    if finding.expected and not _contains(finding.message, finding.expected):
        clauses.append(f"expected {finding.expected}")
    message = "; ".join([finding.message, ", ".join(clauses)]) if clauses else finding.message
    return f"{message} (finding score {finding.score:g})" if finding.score else message


def _contains(message: str, expected: str) -> bool:
    """Whether a message already contains the expected value."""
    return f'"{expected}"' in message or (
        len(expected) >= CONTAINED_TEXT_MIN and expected in message
    )


def finding_counts_text(report: Report) -> str:
    """Return the numbers of findings as text: "2 errors, 1 warning"."""
    phrases = [
        plural(number, severity)
        for severity, number in counts_by_severity(report).items()
        if number
    ]
    if report.unreadable:
        phrases.append(f"{plural(len(report.unreadable), 'path')} could not be checked")
    return ", ".join(phrases) or "nothing to fix"


def rules_run_count(report: Report) -> int:
    """Return the number of rules that were run on at least one file."""
    skipped_files_by_rule: Counter[str] = Counter()
    for rules in report.skipped.values():
        skipped_files_by_rule.update(rules)
    files = len(report.files)
    return report.rules - sum(number == files for number in skipped_files_by_rule.values())


class SkippedRules(NamedTuple):
    """Rules that were not run because of one unmet need."""

    need: Need
    """Inputs that rules need and that are missing."""
    rules: list[str]
    """Ids of the rules."""
    files: int
    """Number of files on which the rules were not run."""
    message: str
    """Why they were not run."""
    fix: str
    """How to have them run."""


def skipped_rules(report: Report) -> list[SkippedRules]:
    """Return which rules were not run and why, one item per unmet need."""
    if not report.skipped:
        return []
    skipped = []
    practice = shipped_benchmark(PRACTICE_BENCHMARK).name
    is_only_practice = set(report.benchmarks) == {practice}
    for need in sorted(report.skipped, key=list(Need).index):
        rules = report.skipped[need]
        files = max(rules.values())
        verb_form = "needs" if len(rules) == 1 else "need"
        scope_text = (
            f" in {files:,} of {len(report.files):,} files" if files < len(report.files) else ""
        )
        fix = (report.proposal is not None and need.pull_request_fix) or need.fix
        reason = (
            f"{practice} {need.practice_reason}"
            if is_only_practice and need.practice_reason
            else fix
        )
        message = f"{plural(len(rules), 'rule')} {verb_form} {need.text}{scope_text}: {reason}"
        skipped.append(SkippedRules(need, sorted(rules), files, message, fix))
    return skipped


def nothing_checked_reason(report: Report) -> str:
    """Return why nothing was checked, or "" if something was."""
    facts = report.proposal
    is_judged = (
        facts is None
        or facts.is_row
        or facts.verdict is not Verdict.NOT_CHECKED
        or bool(report.findings)
    )
    is_empty = facts is None and not (report.files or report.unreadable)
    if is_empty or not is_judged:
        return "nothing was checked: no submission was found"
    return "" if report.rules else "nothing was checked: no rule was run"


def summary_line(report: Report) -> str:
    """Return the summary: "41 submissions, 61 rules: 2 errors, 1 warning, 1 note"."""
    noun = "submission" if report.proposal is None or report.proposal.is_row else "changed file"
    checked_text = f"{plural(len(report.files), noun)}, {plural(rules_run_count(report), 'rule')}"
    return nothing_checked_reason(report) or f"{checked_text}: {finding_counts_text(report)}"


LISTED_UNCOMMITTED_MAX = 5
"""Maximum number of uncommitted files that are named."""


def proposal_lines(report: Report) -> list[str]:
    """Return the verdict on a pull request and what the verdict does not cover, as sentences."""
    facts = report.proposal
    if facts is None:
        return []
    model = facts.model or "no submission"
    lines = [
        f"verdict on the pull request: {facts.title}",
        f"  {model}, commit {facts.head_sha[:COMMIT_DIGITS_SHOWN]} on {facts.base}",
        f"  status {facts.status}: {facts.description}",
    ]
    if facts.advice:
        lines.append(f"  {facts.advice}")
    if facts.uncommitted:
        uncommitted_texts = [f"{file.path} ({file.reason})" for file in facts.uncommitted]
        lines.append(
            "  not committed, so the server does not see: "
            f"{first_and_more(uncommitted_texts, LISTED_UNCOMMITTED_MAX)}"
        )
    if facts.unseen:
        lines.append(f"  not checked (GitHub only): {'; '.join(facts.unseen)}")
    return lines


def pull_request_hint(*, is_short: bool = False) -> str:
    """Return a hint at what the server checks of a pull request beyond its files.

    The short hint is for a file with errors, which should be fixed first.
    """
    if is_short:
        return "To check card, extractor and number of models, too: `geneb-ci check`."
    return (
        f"Not checked here, but required of a pull request: {'; '.join(CHANGE_TOPICS)}. "
        "`geneb-ci check` without a file, on the committed branch, gives the server's verdict."
    )


class Renderer(Protocol):
    """The function `render` that each format's module has.

    Only `text` uses `color` and `width`. The output ends with a newline and is safe in a log of
    GitHub Actions: it has no control characters except newlines, and no workflow commands from
    contributors' texts.
    """

    def __call__(self, report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:
        """Return the whole output."""


class Format(NamedTuple):
    """One format of `geneb-ci check --format`."""

    module: str
    """The module in geneb_ci.render; its function `render` is a Renderer."""
    suffix: str
    """File name extension of the format, without the dot."""
    description: str
    """Purpose of the format, as in the help of the command."""


FULL_TEXT = "full"
"""The format that lists every finding and summarises nothing."""
FORMATS: dict[str, Format] = {
    "text": Format("text", "txt", "for a terminal; many files are summed up by rule"),
    FULL_TEXT: Format("whole_text", "txt", "the same, with every finding of every file"),
    "json": Format("findings_json", "json", "for programs: schemas/findings-1.0.schema.json"),
    "sarif": Format("sarif", "sarif", "for code scanning and editors"),
    "github": Format("annotations", "txt", "annotations of a GitHub Actions run"),
    "markdown": Format("markdown", "md", "for a step summary or a comment"),
    "junit": Format("junit", "xml", "for test reports of CI systems"),
}
"""The formats by their names on the command line; help, docs page and tests use this table."""


def renderer(format_: str) -> Renderer:
    """Import and return the renderer of a format. Raises UsageProblem for an unknown name."""
    if format_ not in FORMATS:
        raise UsageProblem(f"{format_!r} is not a format", f"use one of {', '.join(FORMATS)}")
    module = importlib.import_module(f"geneb_ci.render.{FORMATS[format_].module}")
    return cast("Renderer", module.render)


def render(format_: str, report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:
    """Render a report in the format of that name."""
    return renderer(format_)(report, color=color, width=width)

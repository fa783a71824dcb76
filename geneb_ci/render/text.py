"""Render a report for a terminal: findings by file, then by rule, with their fixes."""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from geneb_ci.check.report import Report
from geneb_ci.common.finding import Finding, Severity, first_and_more
from geneb_ci.render.formats import (
    DEFAULT_WIDTH,
    FULL_TEXT,
    finding_sentence,
    findings_by_rule,
    nothing_checked_reason,
    proposal_lines,
    skipped_rules,
    sorted_findings,
    summary_line,
)
from geneb_ci.render.plain import printable_pieces, visible
from reference_harness.formats.recognition import ENCODING, FOREIGN, POINTER
from reference_harness.formats.text import plural

_CUT_MARK = "..."
"""Written where text was cut off."""
REPORT_LINES_MAX = 60
"""Lines of a report of many files above which findings are summarised by rule."""
SUBMISSION_FILES_MAX = (
    3  # files of one submission (row, card, extractor), which are never summarised
)
"""Number of files of one submission (row, card, extractor), which are never summarised."""
NAMED_FILES_MAX = 3
"""Maximum number of files of a rule that a summary names."""
SAME_RULE_MAX = 5
"""Maximum number of findings of one rule in one file that are all listed."""
LISTED_OF_SAME_RULE = 3
"""Number of findings listed if there are more, as they usually have the same cause."""
WIDTH_MIN = 40
"""Columns of a terminal below which output is not aligned."""
WIDTH_MAX = 120
"""Maximum columns of output; longer lines are hard to read."""
_STYLE_BY_SEVERITY = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}
"""By severity: its colour and weight on a terminal."""
_FIX_PREFIX = "    fix: "
"""Beginning of the line with the fix of a finding."""
_SGR_CODE_BY_WORD = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
"""By word of a style: its parameter in an escape sequence (ECMA-48)."""
_WORD = re.compile(r"\s*\S+\s*")
"""A word with the spaces around it."""


def _terminal_columns(text: str) -> int:
    """Return the number of terminal columns of a text, usually its length."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def excerpt_around(text: str, position: int, width: int, *, is_cut: bool) -> tuple[str, int]:
    """Return the text around an index in at most `width` columns, and the column of the index.

    `is_cut` is whether the line continues to the left of `text`; otherwise its indent is removed.
    """
    if not is_cut:
        indent = min(position, len(text) - len(text.lstrip(" \t")))
        text, position = text[indent:], position - indent
    window_start = max(0, position - width)
    is_cut = is_cut or window_start > 0
    window = text[window_start : position + width].replace("\t", " ")
    characters = printable_pieces(window)
    position, columns = min(position - window_start, len(characters)), width - 2 * len(_CUT_MARK)
    start, stop = _slice_around(characters, position, columns)
    before = (_CUT_MARK if is_cut or start > 0 else "") + "".join(characters[start:position])
    after = "".join(characters[position:stop]) + (_CUT_MARK if stop < len(characters) else "")
    return before + after, _terminal_columns(before)


def _slice_around(pieces: list[str], position: int, columns: int) -> tuple[int, int]:
    """Return start and end of the largest slice around an index that fits in `columns`."""
    start = stop = position
    has_grown = True
    while has_grown:
        has_grown = False
        if stop < len(pieces) and (needed := _terminal_columns(pieces[stop])) <= columns:
            stop, columns, has_grown = stop + 1, columns - needed, True
        if start > 0 and (needed := _terminal_columns(pieces[start - 1])) <= columns:
            start, columns, has_grown = start - 1, columns - needed, True
    return start, stop


def escape(text: str) -> str:
    r"""Return contributor text, made safe for a terminal and a log of GitHub Actions.

    The runner interprets "::" at the beginning of a line as a command, and wrapping can put any
    word there.
    """
    return visible(text).replace("::", r":\x3a")


class StyledText(NamedTuple):
    """A part of a line and its style, "" for none."""

    text: str
    style: str = ""


Line = tuple[StyledText, ...]
"""A line of output in parts, each with its style."""


def _line_text(line: Line, *, color: bool) -> str:
    """Return a line as text; escape sequences only if `color`."""
    return "".join([coloured(part) if color else part.text for part in line])


def coloured(part: StyledText) -> str:
    """Return a part of a line with the escape sequences of its style."""
    codes = ";".join(_SGR_CODE_BY_WORD[word] for word in part.style.split())
    return f"\x1b[{codes}m{part.text}\x1b[0m" if codes and part.text else part.text


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:
    """Render a report in `width` columns; with escape sequences only if `color` is true.

    Findings of many files that would take more than `REPORT_LINES_MAX` lines are summarised by
    rule.
    """
    return report_text(report, color=color, width=width, is_whole=False)


def report_text(report: Report, *, color: bool, width: int, is_whole: bool) -> str:
    """Return a report as text, which is summarised if it is long and not `is_whole`."""
    columns = min(max(width, WIDTH_MIN), WIDTH_MAX)
    lines = _report_lines(report, columns, is_whole=is_whole)
    return "".join(f"{_line_text(line, color=color)}\n" for line in lines)


def _report_lines(report: Report, width: int, *, is_whole: bool) -> Iterator[Line]:
    """Yield the lines of a report."""
    findings_by_file: dict[str, list[Finding]] = {}
    for finding in sorted_findings(report):
        findings_by_file.setdefault(finding.file, []).append(finding)
    lines = list(_lines_by_file(findings_by_file, report, width))
    if (
        not is_whole
        and len(findings_by_file) > SUBMISSION_FILES_MAX
        and len(lines) > REPORT_LINES_MAX
    ):
        lines = list(_lines_by_rule(report, len(findings_by_file), width))
    yield from lines
    if report.unreadable:
        yield (StyledText("not checked", "bold"),)
        for error in report.unreadable:
            yield ()
            yield from _wrapped_lines("    ", StyledText(escape(error.message)), width)
            if error.fix:
                yield from _wrapped_lines(
                    _FIX_PREFIX, StyledText(escape(error.fix), "green"), width
                )
        yield ()
    if report.findings:
        hint = StyledText("To explain a rule: `geneb-ci explain RULE`.", "dim")
        yield from _wrapped_lines("", hint, width)
    for unmet in skipped_rules(report):
        yield from _wrapped_lines("", StyledText(unmet.message, "dim"), width)
    yield from _wrapped_lines("", StyledText(summary_line(report), _summary_style(report)), width)
    yield from _proposal_lines(report, width)


def _lines_by_file(
    findings_by_file: Mapping[str, list[Finding]], report: Report, width: int
) -> Iterator[Line]:
    """Yield the findings of each file."""
    same_finding = _same_finding(findings_by_file)
    for file, findings in findings_by_file.items():
        if file in same_finding.later_files:
            continue
        yield (StyledText(f"{escape(file)}{same_finding.summaries.get(file, '')}", "bold"),)
        for group in findings_by_rule(findings):
            yield from _group_lines(group, report, width)
        yield ()


def _lines_by_rule(report: Report, files: int, width: int) -> Iterator[Line]:
    """Yield, per rule, the number of findings, their files, the first one and its fix."""
    yield (StyledText(f"{plural(files, 'file')} with findings, by rule", "bold"),)
    for group in findings_by_rule(sorted_findings(report)):
        first_finding, file_names = group[0], list(dict.fromkeys(finding.file for finding in group))
        number = sum(1 + finding.unlisted for finding in group)
        yield ()
        yield (
            StyledText("  "),
            StyledText(f"{first_finding.severity}:", _STYLE_BY_SEVERITY[first_finding.severity]),
            StyledText(f" {escape(first_finding.rule)}", "bold"),
            StyledText(f"  {plural(number, 'finding')} in {plural(len(file_names), 'file')}"),
        )
        yield from _wrapped_lines(
            "    ", StyledText(escape(first_and_more(file_names, NAMED_FILES_MAX)), "dim"), width
        )
        if first_finding.severity is not Severity.NOTE:
            yield from _wrapped_lines(
                "    first: ", StyledText(escape(finding_sentence(first_finding))), width
            )
            if first_finding.fix:
                yield from _wrapped_lines(
                    _FIX_PREFIX, StyledText(escape(first_finding.fix), "green"), width
                )
    yield ()
    hint = (
        f"To list all findings: `geneb-ci check FILE` for a file, `--format {FULL_TEXT}` for all."
    )
    yield from _wrapped_lines("", StyledText(hint, "dim"), width)


def _proposal_lines(report: Report, width: int) -> Iterator[Line]:
    """Yield the verdict on a pull request."""
    style = "bold"
    for line in proposal_lines(report):
        text = escape(line.lstrip())
        yield from _wrapped_lines(
            " " * (len(line) - len(line.lstrip())), StyledText(text, style), width
        )
        style = ""


class _SameFinding(NamedTuple):
    """Groups of files whose only finding is the same and about the whole file; one is printed."""

    later_files: frozenset[str]
    """Files after the first of each group, which are not printed."""
    summaries: dict[str, str]
    """By the first file of each group: a text with the number of its other files."""


def _same_finding(findings_by_file: Mapping[str, list[Finding]]) -> _SameFinding:
    """Return the groups of files whose only finding is the same, and about the whole file."""
    files_by_finding: dict[tuple[str, str, str], list[str]] = {}
    for file, (first_finding, *further_findings) in findings_by_file.items():
        if first_finding.rule in WHOLE_FILE_RULES and not further_findings:
            files_by_finding.setdefault(
                (first_finding.rule, first_finding.message, first_finding.fix), []
            ).append(file)
    groups = [names for names in files_by_finding.values() if len(names) >= ALIKE_MIN]
    return _SameFinding(
        frozenset(name for names in groups for name in names[1:]),
        {names[0]: f" and {plural(len(names) - 1, 'more file')}" for names in groups},
    )


WHOLE_FILE_RULES = frozenset({POINTER, ENCODING, FOREIGN})
"""Rules whose findings are about a file as a whole."""
ALIKE_MIN = 3
"""Number of files with the same finding from which only the first file is printed."""


def _group_lines(group: list[Finding], report: Report, width: int) -> Iterator[Line]:
    """Yield the findings of one rule in one file."""
    first_finding, last_position, message = group[0], (0, 0), ""
    yield ()
    severity = StyledText(f"{first_finding.severity}:", _STYLE_BY_SEVERITY[first_finding.severity])
    yield (
        StyledText("  "),
        severity,
        StyledText(" "),
        StyledText(escape(first_finding.rule), "bold"),
    )
    listed_findings = group if len(group) <= SAME_RULE_MAX else group[:LISTED_OF_SAME_RULE]
    for fix, findings_with_fix in itertools.groupby(listed_findings, lambda finding: finding.fix):
        for finding in findings_with_fix:
            position = f"    {finding.line}:{finding.column}  "
            yield from _wrapped_lines(position, StyledText(escape(finding.pointer), "dim"), width)
            if finding_sentence(finding) != message:  # a repeated message is printed once
                message = finding_sentence(finding)
                yield from _wrapped_lines("      ", StyledText(escape(message)), width)
            if (finding.line, finding.column) != last_position:  # one excerpt per position
                yield from _excerpt_lines(finding, report, width)
            last_position = finding.line, finding.column
        if fix:
            yield from _wrapped_lines(_FIX_PREFIX, StyledText(escape(fix), "green"), width)
    if len(group) > len(listed_findings):
        hidden_count = (
            len(group) - len(listed_findings) + sum(finding.unlisted for finding in group)
        )
        yield (
            StyledText(f"    and {hidden_count:,} more of {escape(first_finding.rule)}", "bold"),
        )


def _excerpt_lines(finding: Finding, report: Report, width: int) -> Iterator[Line]:
    """Yield the text at a finding, with a caret under its position."""
    text, at = report.excerpts.get(finding, ("", 0))
    if len(text.strip()) <= 1:  # empty, or only the opening brace
        return
    gutter = "      | "
    line, caret = excerpt_around(text, at, width - len(gutter), is_cut=finding.column - 1 > at)
    yield (StyledText(gutter, "dim"), StyledText(line))
    mark = StyledText("^", _STYLE_BY_SEVERITY[finding.severity])
    yield (StyledText(gutter, "dim"), StyledText(" " * caret), mark)


def _wrapped_lines(prefix: str, part: StyledText, width: int) -> Iterator[Line]:
    """Yield the aligned lines of a wrapped text; the first begins with `prefix`."""
    indent = prefix
    for line in _divided_text(part.text, width - len(prefix)):
        text = line.rstrip()
        yield (
            StyledText(indent if text else indent.rstrip(), "bold" if indent.strip() else ""),
            StyledText(text, part.style),
        )
        indent = " " * len(prefix)


@functools.lru_cache(maxsize=1024)
def _divided_text(text: str, width: int) -> tuple[str, ...]:
    """Return a text as lines of at most `width` columns, divided between words if possible."""
    return (text,) if _terminal_columns(text) <= width else tuple(_lines_of(text, width))


def _lines_of(text: str, width: int) -> Iterator[str]:
    """Yield text as lines of at most `width` columns, divided between words if possible."""
    line, used_columns = "", 0
    for word in _WORD.findall(text):
        needed_columns = _terminal_columns(word.rstrip())
        if needed_columns > width - used_columns:
            if needed_columns > width:
                if line:
                    yield line
                *full_lines, word = chop_cells(word, width)  # noqa: PLW2901
                yield from full_lines
                line, used_columns = "", 0
            elif line:
                yield line
                line, used_columns = "", 0
        line, used_columns = line + word, used_columns + _terminal_columns(word)
    yield line


def _summary_style(report: Report) -> str:
    """Return the style of the last line of a report."""
    severities = {finding.severity for finding in report.findings}
    if report.unreadable or nothing_checked_reason(report):
        return _STYLE_BY_SEVERITY[Severity.ERROR]
    return next(
        (style for severity, style in _STYLE_BY_SEVERITY.items() if severity in severities), "green"
    )

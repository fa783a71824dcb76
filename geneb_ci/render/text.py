"""Renders for a terminal: one table type, and a report by file, then by rule, with its fixes."""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from geneb_ci.check.report import Report
from geneb_ci.common.finding import Finding, Severity, first_and_more
from geneb_ci.render.formats import (
    FULL_TEXT,
    WIDTH,
    by_rule,
    proposal_lines,
    sentence,
    skipped_rules,
    sorted_findings,
    summary_line,
    why_nothing,
)
from geneb_ci.render.plain import pieces, visible
from reference_harness.formats.recognition import ENCODING, FOREIGN, POINTER
from reference_harness.formats.text import plural

_MARK = "..."
LINES_MAX = 60  # that a command prints unless it is asked for all
FILES_MAX = 3  # files of one submission, whose findings are never summed up: row, card, extractor
FILES_NAMED = 3  # files of a rule that a sum names
SAME_RULE_MAX = 5  # findings of one rule in one file that are all listed
LISTED_OF_MANY = 3  # listed ones where there are more: their cause is one, and the rest is counted
WIDTH_MIN = 40  # columns; narrower output cannot be aligned
WIDTH_MAX = 120  # wider, lines are hard to read
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_FIX = "    fix: "
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
"""Words of a style and their SGR parameters (ECMA-48)."""
_WORD = re.compile(r"\s*\S+\s*")


def _columns(text: str) -> int:
    """Return how many columns a text takes; it is its length for nearly all."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def frame(text: str, at: int, width: int, *, is_cut: bool) -> tuple[str, int]:
    """Return the text around `at` in at most `width` columns, and the column of `at` in it.

    `is_cut` is whether the line continues to the left of `text`; otherwise its indent is removed.
    """
    if not is_cut:
        indent = min(at, len(text) - len(text.lstrip(" \t")))
        text, at = text[indent:], at - indent
    window_start = max(0, at - width)
    is_cut = is_cut or window_start > 0
    near = text[window_start : at + width].replace("\t", " ")
    characters = pieces(near)
    at, room = min(at - window_start, len(characters)), width - 2 * len(_MARK)
    is_plain = near.isascii() and "".join(characters) == near  # a column a piece, as nearly all
    start, stop = (_plain_window if is_plain else _window)(characters, at, room)
    before = (_MARK if is_cut or start > 0 else "") + "".join(characters[start:at])
    after = "".join(characters[at:stop]) + (_MARK if stop < len(characters) else "")
    return before + after, _columns(before)


def _window(pieces: list[str], at: int, room: int) -> tuple[int, int]:
    """Return the largest window around a position that fits, grown to both sides."""
    start = stop = at
    grown = True
    while grown:
        grown = False
        if stop < len(pieces) and (need := _columns(pieces[stop])) <= room:
            stop, room, grown = stop + 1, room - need, True
        if start > 0 and (need := _columns(pieces[start - 1])) <= room:
            start, room, grown = start - 1, room - need, True
    return start, stop


def _plain_window(pieces: list[str], at: int, room: int) -> tuple[int, int]:
    """Return the result of `_window` where each piece takes one column."""
    after, before = len(pieces) - at, at
    right, left = min(after, (room + 1) // 2), min(before, room // 2)
    return at - min(before, room - right), at + min(after, room - left)


def escape(text: str) -> str:
    r"""Return contributor text, made safe for a terminal and a log of GitHub Actions.

    The runner interprets "::" at the beginning of a line as a command, and wrapping can put any
    word there.
    """
    return visible(text).replace("::", r":\x3a")


class StyledText(NamedTuple):
    """A piece of a line and its style, "" for none."""

    text: str
    style: str = ""


Line = tuple[StyledText, ...]


def _line_text(line: Line, *, color: bool) -> str:
    """Return a line as text; escape sequences only if `color`."""
    return "".join([coloured(part) if color else part.text for part in line])


def coloured(part: StyledText) -> str:
    """Return a piece of a line with the escape sequences of its style."""
    codes = ";".join(_CODES[word] for word in part.style.split())
    return f"\x1b[{codes}m{part.text}\x1b[0m" if codes and part.text else part.text


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render for a terminal, in `width` columns; escape sequences only if `color` is true.

    Findings of many files that take more than `LINES_MAX` lines are summed up by rule.
    """
    return rendered(report, color=color, width=width, is_whole=False)


def rendered(report: Report, *, color: bool, width: int, is_whole: bool) -> str:
    """Return a report as text: whole, or summed up where it would be long."""
    columns = min(max(width, WIDTH_MIN), WIDTH_MAX)
    lines = _lines(report, columns, is_whole=is_whole)
    return "".join(f"{_line_text(line, color=color)}\n" for line in lines)


def _lines(report: Report, width: int, *, is_whole: bool) -> Iterator[Line]:
    files: dict[str, list[Finding]] = {}
    for finding in sorted_findings(report):
        files.setdefault(finding.file, []).append(finding)
    lines = list(_by_file(files, report, width))
    if not is_whole and len(files) > FILES_MAX and len(lines) > LINES_MAX:
        lines = list(_summed_up(report, len(files), width))
    yield from lines
    if report.unreadable:
        yield (StyledText("not checked", "bold"),)
        for error in report.unreadable:
            yield ()
            yield from _wrapped("    ", StyledText(escape(error.message)), width)
            if error.fix:
                yield from _wrapped(_FIX, StyledText(escape(error.fix), "green"), width)
        yield ()
    if report.findings:
        hint = StyledText("To explain a rule: `geneb-ci explain RULE`.", "dim")
        yield from _wrapped("", hint, width)
    for unmet in skipped_rules(report):
        yield from _wrapped("", StyledText(unmet.message, "dim"), width)
    yield from _wrapped("", StyledText(summary_line(report), _summary_style(report)), width)
    yield from _proposal(report, width)


def _by_file(files: Mapping[str, list[Finding]], report: Report, width: int) -> Iterator[Line]:
    alike = _same_finding(files)
    for file, findings in files.items():
        if file in alike.later_files:
            continue
        yield (StyledText(f"{escape(file)}{alike.summaries.get(file, '')}", "bold"),)
        for group in by_rule(findings):
            yield from _group(group, report, width)
        yield ()


def _summed_up(report: Report, files: int, width: int) -> Iterator[Line]:
    """Yield the findings of many files by rule: how many, in which files, the first, its fix."""
    yield (StyledText(f"{plural(files, 'file')} with findings, by rule", "bold"),)
    for group in by_rule(sorted_findings(report)):
        first, names = group[0], list(dict.fromkeys(finding.file for finding in group))
        number = sum(1 + finding.unlisted for finding in group)
        yield ()
        yield (
            StyledText("  "),
            StyledText(f"{first.severity}:", _STYLES[first.severity]),
            StyledText(f" {escape(first.rule)}", "bold"),
            StyledText(f"  {plural(number, 'finding')} in {plural(len(names), 'file')}"),
        )
        yield from _wrapped(
            "    ", StyledText(escape(first_and_more(names, FILES_NAMED)), "dim"), width
        )
        if first.severity is not Severity.NOTE:
            yield from _wrapped("    first: ", StyledText(escape(sentence(first))), width)
            if first.fix:
                yield from _wrapped(_FIX, StyledText(escape(first.fix), "green"), width)
    yield ()
    hint = f"Every finding of a file: `geneb-ci check FILE`; of all files: `--format {FULL_TEXT}`."
    yield from _wrapped("", StyledText(hint, "dim"), width)


def _proposal(report: Report, width: int) -> Iterator[Line]:
    style = "bold"
    for line in proposal_lines(report):
        text = escape(line.lstrip())
        yield from _wrapped(" " * (len(line) - len(line.lstrip())), StyledText(text, style), width)
        style = ""


class _SameFinding(NamedTuple):
    """Files that are refused as a whole for one reason: it is said once."""

    later_files: frozenset[str]
    """Files after the first."""
    summaries: dict[str, str]
    """The first file of each reason, with how many others have it."""


def _same_finding(files: Mapping[str, list[Finding]]) -> _SameFinding:
    """Return which files have nothing but the same finding of a whole file, such as logs."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for file, (first, *further_findings) in files.items():
        if first.rule in FILE_RULES and not further_findings:
            reasons.setdefault((first.rule, first.message, first.fix), []).append(file)
    many = [names for names in reasons.values() if len(names) >= ALIKE_MIN]
    return _SameFinding(
        frozenset(name for names in many for name in names[1:]),
        {names[0]: f" and {plural(len(names) - 1, 'more file')}" for names in many},
    )


FILE_RULES = frozenset({POINTER, ENCODING, FOREIGN})
ALIKE_MIN = 3
"""Files from which one stands for all."""


def _group(group: list[Finding], report: Report, width: int) -> Iterator[Line]:
    first, last, message = group[0], (0, 0), ""
    yield ()
    severity = StyledText(f"{first.severity}:", _STYLES[first.severity])
    yield (StyledText("  "), severity, StyledText(" "), StyledText(escape(first.rule), "bold"))
    listed = group if len(group) <= SAME_RULE_MAX else group[:LISTED_OF_MANY]
    for fix, run in itertools.groupby(listed, lambda finding: finding.fix):
        for finding in run:
            position = f"    {finding.line}:{finding.column}  "
            yield from _wrapped(position, StyledText(escape(finding.pointer), "dim"), width)
            if sentence(finding) != message:  # of 300 cells with the same, once
                message = sentence(finding)
                yield from _wrapped("      ", StyledText(escape(message)), width)
            if (finding.line, finding.column) != last:  # one excerpt per position
                yield from _frame(finding, report, width)
            last = finding.line, finding.column
        if fix:
            yield from _wrapped(_FIX, StyledText(escape(fix), "green"), width)
    if len(group) > len(listed):
        more = len(group) - len(listed) + sum(finding.unlisted for finding in group)
        yield (StyledText(f"    and {more:,} more of {escape(first.rule)}", "bold"),)


def _frame(finding: Finding, report: Report, width: int) -> Iterator[Line]:
    text, at = report.frames.get(finding, ("", 0))
    if len(text.strip()) <= 1:  # empty, or only the opening brace
        return
    gutter = "      | "
    line, caret = frame(text, at, width - len(gutter), is_cut=finding.column - 1 > at)
    yield (StyledText(gutter, "dim"), StyledText(line))
    mark = StyledText("^", _STYLES[finding.severity])
    yield (StyledText(gutter, "dim"), StyledText(" " * caret), mark)


def _wrapped(prefix: str, part: StyledText, width: int) -> Iterator[Line]:
    """Wrap text into aligned lines; the first begins with `prefix`."""
    indent = prefix
    for line in _divided(part.text, width - len(prefix)):
        text = line.rstrip()
        yield (
            StyledText(indent if text else indent.rstrip(), "bold" if indent.strip() else ""),
            StyledText(text, part.style),
        )
        indent = " " * len(prefix)


@functools.lru_cache(maxsize=1024)
def _divided(text: str, width: int) -> tuple[str, ...]:
    """Divide text into lines of at most `width` columns, between words where that is possible."""
    return (text,) if _columns(text) <= width else tuple(_lines_of(text, width))


def _lines_of(text: str, width: int) -> Iterator[str]:
    line, used = "", 0
    for word in _WORD.findall(text):
        needs = _columns(word.rstrip())
        if needs > width - used:
            if needs > width:
                if line:
                    yield line
                *whole, word = chop_cells(word, width)  # noqa: PLW2901
                yield from whole
                line, used = "", 0
            elif line:
                yield line
                line, used = "", 0
        line, used = line + word, used + _columns(word)
    yield line


def _summary_style(report: Report) -> str:
    severities = {finding.severity for finding in report.findings}
    if report.unreadable or why_nothing(report):
        return _STYLES[Severity.ERROR]
    return next((style for severity, style in _STYLES.items() if severity in severities), "green")

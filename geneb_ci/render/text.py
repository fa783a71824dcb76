"""Renders a report for a terminal: by file, then by rule, each with the fix at the end."""

import io
import itertools
from collections.abc import Iterator
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from geneb_ci.check.runner import Report
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.render.formats import WIDTH
from geneb_ci.render.plain import pieces, visible
from geneb_ci.render.summary import by_rule, ordered, sentence, skipped, summary_line, why_nothing

_MARK = "..."


def frame(text: str, at: int, width: int, *, is_cut: bool) -> tuple[str, int]:
    """Return the text around `at` in at most `width` columns, and the column of `at` in it.

    `is_cut` is whether the line continues to the left of `text`; otherwise its indent is removed.
    """
    if not is_cut:
        indent = min(at, len(text) - len(text.lstrip(" \t")))
        text, at = text[indent:], at - indent
    left = max(0, at - width)
    is_cut = is_cut or left > 0
    shown = pieces(text[left : at + width].replace("\t", " "))
    at = min(at - left, len(shown))
    start, stop = _window(shown, at, width - 2 * len(_MARK))
    before = (_MARK if is_cut or start > 0 else "") + "".join(shown[start:at])
    after = "".join(shown[at:stop]) + (_MARK if stop < len(shown) else "")
    return before + after, cell_len(before)


def _window(shown: list[str], at: int, room: int) -> tuple[int, int]:
    """Return the largest window around a position that fits, grown to both sides."""
    start = stop = at
    grown = True
    while grown:
        grown = False
        if stop < len(shown) and (need := cell_len(shown[stop])) <= room:
            stop, room, grown = stop + 1, room - need, True
        if start > 0 and (need := cell_len(shown[start - 1])) <= room:
            start, room, grown = start - 1, room - need, True
    return start, stop


SAME_RULE_MAX = 10  # listed findings of one rule in one file; the rest is counted
WIDTH_MIN = 40  # columns; narrower output cannot be aligned
WIDTH_MAX = 120  # wider, lines are hard to read

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_FIX = "    fix: "


def escape(text: str) -> str:
    r"""Return contributor text, made safe for a terminal and a log of GitHub Actions.

    The runner interprets "::" at the beginning of a line as a command, and wrapping can put any
    word there.
    """
    return visible(text).replace("::", r":\x3a")


def console_of(stream: TextIO, width: int, *, color: bool) -> Console:
    """Return a console that adds colours and nothing else: no markup, emoji or highlighting."""
    return Console(
        file=stream,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        legacy_windows=False,
    )


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render for a terminal, in `width` columns; escape sequences only if `color` is true."""
    stream = io.StringIO()
    console = console_of(stream, min(max(width, WIDTH_MIN), WIDTH_MAX), color=color)
    for line in _lines(report, console):
        console.print(line)
    return stream.getvalue()


def _lines(report: Report, console: Console) -> Iterator[Text]:
    files: dict[str, list[Finding]] = {}
    for finding in ordered(report):
        files.setdefault(finding.file, []).append(finding)
    for file, findings in files.items():
        yield Text(escape(file), "bold")
        for group in by_rule(findings):
            yield from _group(group, report, console)
        yield Text()
    if report.unreadable:
        yield Text("not checked", "bold")
        for error in report.unreadable:
            yield Text()
            yield from _wrapped("    ", Text(escape(error.message)), console)
            if error.fix:
                yield from _wrapped(_FIX, Text(escape(error.fix), "green"), console)
        yield Text()
    if report.findings:
        hint = Text("To explain a rule: `geneb-ci explain RULE`.", "dim")
        yield from _wrapped("", hint, console)
    for one in skipped(report):
        yield from _wrapped("", Text(one.message, "dim"), console)
    yield from _wrapped("", Text(summary_line(report), _summary_style(report)), console)


def _group(group: list[Finding], report: Report, console: Console) -> Iterator[Text]:
    first, last = group[0], (0, 0)
    yield Text()
    yield Text.assemble(
        "  ", (f"{first.severity}:", _STYLES[first.severity]), " ", (escape(first.rule), "bold")
    )
    for fix, run in itertools.groupby(group[:SAME_RULE_MAX], lambda finding: finding.fix):
        for finding in run:
            yield from _place(finding, console)
            if (finding.line, finding.column) != last:  # one excerpt per position
                yield from _frame(finding, report, console)
            last = finding.line, finding.column
        if fix:
            yield from _wrapped(_FIX, Text(escape(fix), "green"), console)
    if len(group) > SAME_RULE_MAX:
        yield Text(f"    and {len(group) - SAME_RULE_MAX:,} more of {escape(first.rule)}", "bold")


def _place(finding: Finding, console: Console) -> Iterator[Text]:
    place = f"    {finding.line}:{finding.column}  "
    yield from _wrapped(place, Text(escape(finding.pointer), "dim"), console)
    yield from _wrapped("      ", Text(escape(sentence(finding))), console)


def _frame(finding: Finding, report: Report, console: Console) -> Iterator[Text]:
    text, at = report.frames.get(finding, ("", 0))
    if len(text.strip()) <= 1:  # empty, or only the opening brace
        return
    gutter = "      | "
    room = console.width - len(gutter)
    line, caret = frame(text, at, room, is_cut=finding.column - 1 > at)
    yield Text.assemble((gutter, "dim"), line)
    yield Text.assemble((gutter, "dim"), " " * caret, ("^", _STYLES[finding.severity]))


def _wrapped(lead: str, text: Text, console: Console) -> Iterator[Text]:
    """Wrap text into aligned lines; the first begins with `lead`."""
    indent = lead
    for line in text.wrap(console, console.width - len(lead), no_wrap=False):
        line = Text.assemble((indent, "bold" if indent.strip() else ""), line)  # noqa: PLW2901
        line.rstrip()
        yield line
        indent = " " * len(lead)


def _summary_style(report: Report) -> str:
    severities = {finding.severity for finding in report.findings}
    if report.unreadable or why_nothing(report):
        return _STYLES[Severity.ERROR]
    return next((style for severity, style in _STYLES.items() if severity in severities), "green")

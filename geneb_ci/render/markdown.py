"""Markdown for the step summary and the comment on a pull request: the verdict, then by rule.

What a contributor wrote stands only in code spans. A zero-width space breaks up what would ping,
link or embed if it ever left its span.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

from geneb_ci.check.runner import Report
from geneb_ci.common.finding import Finding, plural
from geneb_ci.render.formats import WIDTH
from geneb_ci.render.plain import visible
from geneb_ci.render.summary import (
    Verdict,
    by_rule,
    ordered,
    sentence,
    skipped,
    summary_line,
    verdict,
)

CHARACTERS_MAX = 60_000  # GitHub refuses a comment of more than 65,536
SPAN_MAX = 600  # characters of one code span: six lines of a comment

_TITLES = {
    Verdict.CLEAN: "passed",
    Verdict.WARNINGS: "passed, with warnings",
    Verdict.ERRORS: "changes needed",
    Verdict.NOT_CHECKED: "not checked",
}
_FOOTER = (
    "\n---\n\nWhy a rule is there: `geneb-ci explain RULE`. The same check on your own machine: "
    "`geneb-ci check PATH`.\n"
)
_CUT_MAX = 100  # room for the line that counts what was cut
# Mentions, references, tags, links and images; GitHub reads "@x" and "#1" after Markdown is done.
_LIVE = re.compile(
    r"[@#](?=\w)|<(?=[A-Za-z!/?])|\](?=[(\[])|!(?=\[)|:(?=//)|(?i:www)(?=\.)|(?i:gh)(?=-\d)"
)
_COMMIT = re.compile(r"\b[0-9a-f]{7}(?=[0-9a-f]{33}\b)")  # becomes a link where there is such a one
_MARKS = re.compile(r"[\\`*_~\[\]]")
_BREAK = "\u200b"


def code(text: str) -> str:
    """Put contributor text into a code span that it cannot end, whatever backticks it holds."""
    text = _LIVE.sub(rf"\g<0>{_BREAK}", visible(text, SPAN_MAX))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    # A span may not touch its own backticks, and one of spaces only keeps them all.
    pad = " " if not text.strip(" ") or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    """Put contributor text into a cell of a table: a bar would end it, even in a code span."""
    return code(text.replace("|", r"\x7c"))


def prose(text: str) -> str:
    """Write our own text, whose `code` stays code; with odd backticks it is not ours: all code."""
    text = visible(text)
    if "``" in text or text.count("`") % 2:
        return code(text)
    parts = enumerate(text.split("`"))
    return "".join(code(part) if i % 2 else _plain(part) for i, part in parts)


def _plain(text: str) -> str:
    for live in (_LIVE, _COMMIT):
        text = live.sub(rf"\g<0>{_BREAK}", text)
    text = _MARKS.sub(r"\\\g<0>", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render at most CHARACTERS_MAX characters, cut between two findings."""
    groups = by_rule(ordered(report))
    head = f"## geneb-ci: {_TITLES[verdict(report)]}\n\n{summary_line(report)}.\n"
    if len(groups) > 1:
        head += (
            "\n" + " · ".join(f"{code(group[0].rule)} {len(group):,}" for group in groups) + "\n"
        )
    head += "".join(f"\n{prose(one.message)}.\n" for one in skipped(report))
    foot = _FOOTER if report.findings else ""
    room = CHARACTERS_MAX - len(head) - len(foot) - _CUT_MAX
    body, left = fill(_blocks(report, groups), room)
    cut = f"\n**{left:,} more**, cut to fit; `geneb-ci check` lists them all.\n" if left else ""
    return f"{head}{body}{cut}{foot}"


def fill(blocks: Iterator[tuple[str, str]], room: int) -> tuple[str, int]:
    """Take blocks while they fit, each with the heading it needs, and count those left out."""
    taken: list[str] = []
    left = 0
    for heading, block in blocks:
        room -= len(heading) + len(block)
        if left or room < 0:
            left += 1
        else:
            taken += (heading, block)
    return "".join(taken), left


def _blocks(report: Report, groups: list[list[Finding]]) -> Iterator[tuple[str, str]]:
    """Return each finding, and above the first of a kind its heading and its cure."""
    heading = "\n### Could not be read\n\n"
    for error in report.unreadable:
        fix = f"\\\n  **Fix:** {prose(error.fix)}" if error.fix else ""
        yield heading, f"- {code(error.message)}{fix}\n"
        heading = ""
    yield from finding_blocks(groups)


def finding_blocks(
    groups: list[list[Finding]], places: Mapping[str, int] | None = None
) -> Iterator[tuple[str, str]]:
    """Return each finding of groups of one rule each, with the heading that it needs or "".

    `places` counts the findings of a rule where a group is not all of them.
    """
    for group in groups:
        first = group[0]
        total = (places or {}).get(first.rule, len(group))
        heading = f"\n### {first.severity.capitalize()}: {code(first.rule)}"
        heading += f", {plural(total, 'place')}" if total > 1 else ""
        heading += f", the first {len(group)}\n" if total > len(group) else "\n"
        for fix, run in itertools.groupby(group, lambda finding: finding.fix):
            heading += f"\n**Fix:** {prose(fix)}\n\n" if fix else "\n"
            for finding in run:
                yield heading, _item(finding)
                heading = ""


def _item(finding: Finding) -> str:
    place = code(f"{finding.file}:{finding.line}:{finding.column}")
    pointer = f" at {code(finding.pointer)}" if finding.pointer else ""
    return f"- {code(sentence(finding))}\\\n  {place}{pointer}\n"

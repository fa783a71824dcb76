"""Renders findings as Markdown, for step summaries and comments: the verdict, then by rule.

Contributors' texts appear only in code spans, with zero-width spaces that break mentions, links and
images.
"""

import itertools
import re
from collections.abc import Iterator, Mapping

from geneb_ci.check.report import Report, Verdict
from geneb_ci.common.finding import Finding
from geneb_ci.render.formats import (
    WIDTH,
    by_rule,
    sentence,
    skipped_rules,
    sorted_findings,
    summary_line,
    verdict,
)
from geneb_ci.render.plain import visible
from reference_harness.formats.text import plural

CHARACTERS_MAX = 60_000  # GitHub's limit is 65,536
SPAN_MAX = 600  # characters of one code span: six lines of a comment

_TITLES = {
    Verdict.CLEAN: "passed",
    Verdict.WARNINGS: "passed, with warnings",
    Verdict.ERRORS: "changes needed",
    Verdict.NOT_CHECKED: "not checked",
}
_FOOTER = (
    "\n---\n\nTo explain a rule: `geneb-ci explain RULE`. To run this check on your own machine: "
    "`geneb-ci check PATH`.\n"
)
_CUT_MAX = 100  # characters reserved for the line that says how many findings were cut
# Mentions, references, tags, links and images. GitHub handles "@x" and "#1" even in code spans.
_LIVE = re.compile(
    r"[@#](?=\w)|<(?=[A-Za-z!/?])|\](?=[(\[])|!(?=\[)|:(?=//)|(?i:www)(?=\.)|(?i:gh)(?=-\d)"
)
_COMMIT = re.compile(r"\b[0-9a-f]{7}(?=[0-9a-f]{33}\b)")  # GitHub links commits
_MARKS = re.compile(r"[\\`*_~\[\]]")
_BREAK = "\u200b"


def code(text: str) -> str:
    """Return contributor text as a code span whose fence is longer than any backticks in it."""
    text = _LIVE.sub(rf"\g<0>{_BREAK}", visible(text, SPAN_MAX))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    # Text that begins or ends with a backtick needs a space next to the fence.
    pad = " " if not text.strip(" ") or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    """Return contributor text as a table cell; bars are escaped, even in a code span."""
    return code(text.replace("|", r"\x7c"))


def prose(text: str) -> str:
    """Return our own text with its `code` spans; with unbalanced backticks, all of it as code."""
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
    """Render at most CHARACTERS_MAX characters, cut between findings."""
    groups = by_rule(sorted_findings(report))
    title = report.proposal.title if report.proposal is not None else _TITLES[verdict(report)]
    header = f"## geneb-ci: {title}\n\n{summary_line(report)}.\n"
    if len(groups) > 1:
        header += (
            "\n" + " · ".join(f"{code(group[0].rule)} {len(group):,}" for group in groups) + "\n"
        )
    header += "".join(f"\n{prose(skipped.message)}.\n" for skipped in skipped_rules(report))
    footer = _FOOTER if report.findings else ""
    room = CHARACTERS_MAX - len(header) - len(footer) - _CUT_MAX
    body, omitted = fitting_blocks(_blocks(report, groups), room)
    cut_line = (
        f"\n**{omitted:,} more** are not listed; `geneb-ci check` lists all.\n" if omitted else ""
    )
    return f"{header}{body}{cut_line}{footer}"


def fitting_blocks(blocks: Iterator[tuple[str, str]], room: int) -> tuple[str, int]:
    """Return the text of the first blocks that fit in `room` characters, and the number of others.

    Each block is a pair of a heading, which may be "", and a text.
    """
    fitting: list[str] = []
    omitted = 0
    for heading, block in blocks:
        room -= len(heading) + len(block)
        if omitted or room < 0:
            omitted += 1
        else:
            fitting += (heading, block)
    return "".join(fitting), omitted


def _blocks(report: Report, groups: list[list[Finding]]) -> Iterator[tuple[str, str]]:
    """Yield heading and text of each file that could not be read, then of each finding."""
    heading = "\n### Could not be read\n\n"
    for refusal in report.unreadable:
        fix = f"\\\n  **Fix:** {prose(refusal.fix)}" if refusal.fix else ""
        yield heading, f"- {code(refusal.message)}{fix}\n"
        heading = ""
    yield from finding_blocks(groups)


def finding_blocks(
    groups: list[list[Finding]], rule_counts: Mapping[str, int] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield heading and text of each finding; each group has the findings of one rule.

    The heading is "" if the finding before has the same rule and fix. `rule_counts` is the number
    of findings per rule, in case a group does not contain all.
    """
    for group in groups:
        first_finding = group[0]
        total = (rule_counts or {}).get(first_finding.rule, len(group))
        heading = f"\n### {first_finding.severity.capitalize()}: {code(first_finding.rule)}"
        heading += f", {plural(total, 'place')}" if total > 1 else ""
        heading += f", the first {len(group)}\n" if total > len(group) else "\n"
        for fix, findings_with_fix in itertools.groupby(group, lambda finding: finding.fix):
            heading += f"\n**Fix:** {prose(fix)}\n\n" if fix else "\n"
            for finding in findings_with_fix:
                yield heading, _list_item(finding)
                heading = ""


def _list_item(finding: Finding) -> str:
    position = code(f"{finding.file}:{finding.line}:{finding.column}")
    pointer = f" at {code(finding.pointer)}" if finding.pointer else ""
    return f"- {code(sentence(finding))}\\\n  {position}{pointer}\n"

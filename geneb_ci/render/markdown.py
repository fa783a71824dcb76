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
    DEFAULT_WIDTH,
    finding_sentence,
    findings_by_rule,
    skipped_rules,
    sorted_findings,
    summary_line,
    verdict_of,
)
from geneb_ci.render.plain import visible
from reference_harness.formats.text import plural

CHARACTERS_MAX = 60_000  # GitHub's limit is 65,536
"""Maximum length of a report; GitHub's limit is 65,536 characters."""
CODE_SPAN_MAX = 600
"""Maximum characters of one code span: six lines of a comment."""

_TITLES = {
    Verdict.CLEAN: "passed",
    Verdict.WARNINGS: "passed, with warnings",
    Verdict.ERRORS: "changes needed",
    Verdict.NOT_CHECKED: "not checked",
}
"""By verdict: the first words of a report."""
_FOOTER = (
    "\n---\n\nTo explain a rule: `geneb-ci explain RULE`. To run this check on your own machine: "
    "`geneb-ci check PATH`.\n"
)
"""Last lines of a report."""
_CUT_LINE_MAX = 100
"""Characters reserved for the line that says how many findings were cut off."""
# Mentions, references, tags, links and images. GitHub handles "@x" and "#1" even in code spans.
_LIVE_PATTERN = re.compile(
    r"[@#](?=\w)|<(?=[A-Za-z!/?])|\](?=[(\[])|!(?=\[)|:(?=//)|(?i:www)(?=\.)|(?i:gh)(?=-\d)"
)
_COMMIT_PATTERN = re.compile(r"\b[0-9a-f]{7}(?=[0-9a-f]{33}\b)")
"""The beginning of a commit id, which GitHub makes a link."""
_MARKUP_CHARACTERS = re.compile(r"[\\`*_~\[\]]")
"""Characters that Markdown gives a meaning."""
_INVISIBLE_BREAK = "\u200b"
"""Zero-width space, which keeps GitHub from making a link."""


def code_span(text: str) -> str:
    """Return contributor text as a code span with more backticks around than any inside."""
    text = _LIVE_PATTERN.sub(rf"\g<0>{_INVISIBLE_BREAK}", visible(text, CODE_SPAN_MAX))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    # Text that begins or ends with a backtick needs a space next to the fence.
    pad = " " if not text.strip(" ") or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table_cell(text: str) -> str:
    """Return contributor text as a table cell; bars are escaped, even in a code span."""
    return code_span(text.replace("|", r"\x7c"))


def prose_text(text: str) -> str:
    """Return our own text with its `code` spans; with unbalanced backticks, all of it as code."""
    text = visible(text)
    if "``" in text or text.count("`") % 2:
        return code_span(text)
    parts = enumerate(text.split("`"))
    return "".join(code_span(part) if i % 2 else _escaped(part) for i, part in parts)


def _escaped(text: str) -> str:
    """Return text in which Markdown and GitHub give nothing a meaning."""
    for live in (_LIVE_PATTERN, _COMMIT_PATTERN):
        text = live.sub(rf"\g<0>{_INVISIBLE_BREAK}", text)
    text = _MARKUP_CHARACTERS.sub(r"\\\g<0>", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Render at most CHARACTERS_MAX characters, cut between findings."""
    groups = findings_by_rule(sorted_findings(report))
    title = report.proposal.title if report.proposal is not None else _TITLES[verdict_of(report)]
    header = f"## geneb-ci: {title}\n\n{summary_line(report)}.\n"
    if len(groups) > 1:
        header += (
            "\n"
            + " · ".join(f"{code_span(group[0].rule)} {len(group):,}" for group in groups)
            + "\n"
        )
    header += "".join(f"\n{prose_text(skipped.message)}.\n" for skipped in skipped_rules(report))
    footer = _FOOTER if report.findings else ""
    characters_left = CHARACTERS_MAX - len(header) - len(footer) - _CUT_LINE_MAX
    body, omitted = fitting_blocks(_blocks(report, groups), characters_left)
    cut_line = (
        f"\n**{omitted:,} more** are not listed; `geneb-ci check` lists all.\n" if omitted else ""
    )
    return f"{header}{body}{cut_line}{footer}"


def fitting_blocks(blocks: Iterator[tuple[str, str]], characters_max: int) -> tuple[str, int]:
    """Return the text of the first blocks that fit in a number of characters, and how many do not.

    Each block is a pair of a heading, which may be "", and a text.
    """
    fitting: list[str] = []
    omitted = 0
    for heading, block in blocks:
        characters_max -= len(heading) + len(block)
        if omitted or characters_max < 0:
            omitted += 1
        else:
            fitting += (heading, block)
    return "".join(fitting), omitted


def _blocks(report: Report, groups: list[list[Finding]]) -> Iterator[tuple[str, str]]:
    """Yield heading and text of each file that could not be read, then of each finding."""
    heading = "\n### Could not be read\n\n"
    for refusal in report.unreadable:
        fix = f"\\\n  **Fix:** {prose_text(refusal.fix)}" if refusal.fix else ""
        yield heading, f"- {code_span(refusal.message)}{fix}\n"
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
        heading = f"\n### {first_finding.severity.capitalize()}: {code_span(first_finding.rule)}"
        heading += f", {plural(total, 'place')}" if total > 1 else ""
        heading += f", the first {len(group)}\n" if total > len(group) else "\n"
        for fix, findings_with_fix in itertools.groupby(group, lambda finding: finding.fix):
            heading += f"\n**Fix:** {prose_text(fix)}\n\n" if fix else "\n"
            for finding in findings_with_fix:
                yield heading, _list_item(finding)
                heading = ""


def _list_item(finding: Finding) -> str:
    """Return a finding as an item of a list."""
    position = code_span(f"{finding.file}:{finding.line}:{finding.column}")
    pointer = f" at {code_span(finding.pointer)}" if finding.pointer else ""
    return f"- {code_span(finding_sentence(finding))}\\\n  {position}{pointer}\n"

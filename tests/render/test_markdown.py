"""Markdown, as a parser of CommonMark reads it: nothing of a contributor's leaves its code span."""

import re

import pytest
from hypothesis import example, given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from geneb_ci.check.runner import Report
from geneb_ci.render.formats import render
from geneb_ci.render.markdown import CHARACTERS_MAX, CODE_SPAN_MAX, code_span, prose_text
from geneb_ci.render.plain import visible
from tests.render.examples import score
from tests.render.hostile import BRIEF, reports, texts

LIVE = {
    "mention": r"@\w",
    "reference": r"#\w|(?i:gh)-\d",
    "tag": "<[A-Za-z!/?]",
    "image": r"!\[",
    "link": r"\][(\[]",
    "address": "://",
    "host": r"(?i)www\.",
}
BLOCKS = {"heading", "paragraph", "inline", "bullet_list", "list_item", "hr"}
INLINES = {"text", "code_inline", "hardbreak", "strong"}


def kind(token: Token) -> str:
    return token.type.removesuffix("_open").removesuffix("_close")


def inline(markdown: str) -> list[tuple[str, str]]:
    """The parts of a line between two words, as pairs of kind and content."""
    tokens = MarkdownIt("commonmark").parseInline(f"x{markdown}x")[0].children or []
    return [(token.type, token.content.replace("\u200b", "")) for token in tokens]


@BRIEF
@given(report=reports())
def test_nothing_pings_links_or_embeds(report):
    output = render("markdown", report)
    assert [name for name, pattern in LIVE.items() if re.search(pattern, output)] == []


@BRIEF
@given(report=reports())
def test_only_our_own_structure(report):
    tokens = MarkdownIt("commonmark").parse(render("markdown", report))
    assert {kind(token) for token in tokens} <= BLOCKS
    assert {kind(child) for token in tokens for child in token.children or ()} <= INLINES
    items = [token for token in tokens if token.type == "list_item_open"]
    assert len(items) == len(report.findings) + len(report.unreadable)


@given(text=texts)
@example("`")
@example(" `` ")
@example("   ")
@example("")
def test_a_code_span_cannot_be_left(text):
    parts = inline(code_span(text))
    assert [part for part, _ in parts] == ["text", "code_inline", "text"]
    assert (parts[0][1], parts[2][1]) == ("x", "x")
    assert parts[1][1].strip(" ") == visible(text, CODE_SPAN_MAX).strip(" ")


@given(text=texts)
@example("Add `a` and `b`.")
@example("`a``b`")
@example("<?x`")
@example("x")
def test_prose_is_shown_as_it_stands(text):
    parts = inline(prose_text(text))
    assert {part for part, _ in parts} <= {"text", "code_inline"}
    shown = "".join(content for _, content in parts)
    expected = visible(visible(text), CODE_SPAN_MAX)
    assert re.sub("[` ]", "", shown) == f"x{re.sub('[` ]', '', expected)}x"


def big(number: int) -> Report:
    report = Report(files=["submissions/GROVER.json"], rules=61)
    report.findings = [score(f"1.7{'@`' * (column % 50)}", column) for column in range(1, number)]
    return report


@pytest.mark.parametrize("number", [100, 400, 600, 5000])
def test_the_cap_is_kept_and_the_rest_is_counted(number):
    report = big(number)
    output = render("markdown", report)
    shown = output.count("\n- ")
    left = re.search(r"^\*\*([\d,]+) more\*\* are not listed; .*\.$", output, re.MULTILINE)
    assert len(output) <= CHARACTERS_MAX
    assert shown + (int(left[1].replace(",", "")) if left else 0) == len(report.findings)
    assert (left is None) == (number == 100)
    assert output.endswith("`geneb-ci check PATH`.\n")


def test_a_text_as_long_as_a_file_does_not_hide_the_verdict():
    report = Report(files=["a.json"], rules=61, findings=[score("9" * 10**6, 1)])
    assert render("markdown", report) == (
        "## geneb-ci: changes needed\n\n1 submission, 61 rules: 1 error.\n\n"
        "### Error: `score-out-of-range`\n\n"
        f"**Fix:** {report.findings[0].fix}\n\n"
        f"- `MCC is {'9' * (CODE_SPAN_MAX - 10)}...`\\\n"
        "  `submissions/GROVER.json:1:1` at `/results/full/H3K1ac/MCC`\n\n---\n\n"
        "To explain a rule: `geneb-ci explain RULE`. To run this check on your own machine: "
        "`geneb-ci check PATH`.\n"
    )

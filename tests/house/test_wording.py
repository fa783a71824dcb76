"""Messages, help texts, docstrings and comments use the field's usual words."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

# A word or phrase, as a regular expression, to what to write instead.
DISCOURAGED = {
    r"mend(s|ed|ing)?": "fix",
    r"cures?": "fix",
    r"surely": "significantly",
    r"(tell|tells|told) (them |it )?apart": "distinguish",
    r"(be|cannot be|is) told from": "be distinguished from",
    r"in vain": "without effect",
    r"by halves": "incomplete",
    r"such as it is": "as it is",
    r"hands? over|handed over": "pass, return",
    r"(hold|holds|held) (it |them |files |the rows )?against": "compare with, check against",
    r"bears? on": "applies to",
    r"heard": "flagged, considered",
    r"anew": "again",
    r"at hand": "available",
    r"unless said": "default: ...",
    r"for want of": "because of missing",
    r"stands? twice": "occurs twice, is duplicated",
    r"(to|can|cannot) be had": "be available",
    r"goes? on with|gone on with": "continue",
    r"what (lies|lay) (on|in|at)": "name the thing: the content of, the files in",
    r"without a word": "without an explanation",
    r"put right|put back": "fix, restore",
    r"is no concern of": "is ignored by",
    r"nobody's|somebody's": "name the role: a contributor's, a maintainer's",
    r"lacks? no": "has all",
    r"it takes none": "write who does what",
    r"that are none": "that do not exist",
    r"^Give (the|a|an|what|each|every)": "Return",
    r"^Say (the|what|which|why|how|that|whether|who)": "Return",
    r"^Tell (what|which|why|how|whether|a|the)": "Return",
}
UNCHANGED = ("reference_harness/extractors/",)
"""Their bytes are part of the digest that run records name for a built-in extractor."""
PACKAGES = ("geneb_ci", "reference_harness")
# Names of things, such as rule ids and JSON keys, are no prose.
PROSE = re.compile(r"\S\s+\S")
PATTERN = re.compile("|".join(rf"(?P<w{i}>(?<!\w){p}(?!\w))" for i, p in enumerate(DISCOURAGED)))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string and comment of a module."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if PROSE.search(node.value):
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def discouraged(text: str) -> list[str]:
    """Return each discouraged phrase in a text with what to write instead."""
    advice = list(DISCOURAGED.values())
    return [
        f"{match.group()!r}: write {advice[int(str(match.lastgroup)[1:])]!r}"
        for match in PATTERN.finditer(text)
        if match.lastgroup is not None
    ]


def modules() -> list[str]:
    """Return the modules that are held to the list, relative to the root."""
    found = (
        p.relative_to(ROOT).as_posix() for name in PACKAGES for p in (ROOT / name).rglob("*.py")
    )
    return sorted(name for name in found if not name.startswith(UNCHANGED))


def test_texts_use_plain_words() -> None:
    found = [
        f"{name}:{line}: {what}"
        for name in modules()
        for line, text in texts(ROOT / name)
        for what in discouraged(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mend the file", ["'mend': write 'fix'"]),
        ("Give the value.", ["'Give the': write 'Return'"]),
        ("we recommend to amend it", []),
        (
            "the file is held against the schema",
            ["'held against': write 'compare with, check against'"],
        ),
    ],
)
def test_a_discouraged_word_is_found(text: str, found: list[str]) -> None:
    assert discouraged(text) == found

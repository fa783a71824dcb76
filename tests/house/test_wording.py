"""Messages, help texts, docstrings and comments use the field's usual words."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import glossary
from tests.house.glossary import EVERYWHERE
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

WORDS = glossary.discouraged((ROOT / glossary.WORDS).read_text("utf-8"), EVERYWHERE)
BEGINNINGS = re.compile(
    r"(Give (the|a|an|what|each|every)|Say (the|what|which|why|how|that|whether|who)"
    r"|Tell (what|which|why|how|whether|a|the))\b"
)
"""First words of a docstring that is better begun with "Return"."""
UNCHANGED = ("reference_harness/extractors/",)
"""Their bytes are part of the digest that run records name for a built-in extractor."""
PACKAGES = ("geneb_ci", "reference_harness")
# Names of things, such as rule ids and JSON keys, are no prose.
PROSE = re.compile(r"\S\s+\S")


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
    begun = BEGINNINGS.match(text)
    first = [f"{begun.group()!r}: write 'Return'"] if begun else []
    return first + [
        f"{match.group()!r}: write {word.instead!r}"
        for word in WORDS
        for match in word.pattern.finditer(text)
    ]


def modules() -> list[str]:
    """Return the modules that are held to the list, relative to the root."""
    module_paths = (
        p.relative_to(ROOT).as_posix() for name in PACKAGES for p in (ROOT / name).rglob("*.py")
    )
    return sorted(name for name in module_paths if not name.startswith(UNCHANGED))


def test_texts_use_plain_words() -> None:
    discouraged_texts = [
        f"{name}:{line}: {what}"
        for name in modules()
        for line, text in texts(ROOT / name)
        for what in discouraged(text)
    ]
    assert not discouraged_texts, "\n".join(discouraged_texts)


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_a_discouraged_word_is_found(text: str, expected: list[str]) -> None:
    assert discouraged(text) == expected

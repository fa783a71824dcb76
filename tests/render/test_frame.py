"""A code frame: the caret stands under its character, whatever the characters' widths."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from geneb_ci.render.text import excerpt_around
from tests.each import each
from tests.render.hostile import texts


@each(
    ("text", "at", "width", "is_cut", "line", "caret"),
    [
        ('"MCC":1.7', 6, 40, False, '"MCC":1.7', 6),
        ('"MCC":1.7', 6, 40, True, '..."MCC":1.7', 9),
        ("0123456789abcdefghij", 10, 11, False, "...89abc...", 5),
        ("0123456789abcdefghij", 0, 11, False, "01234...", 0),
        ("0123456789abcdefghij", 20, 11, False, "...fghij", 8),
        ("漢字x", 2, 40, False, "漢字x", 4),
        ("a\x1bx", 2, 40, False, r"a\x1bx", 5),
        ("\t  x", 3, 40, False, "x", 0),
        ("\t  x", 1, 40, False, "  x", 0),
        ("a\tx", 2, 40, False, "a x", 2),
        ("\t  x", 3, 40, True, "...   x", 6),
        ("##[x", 3, 40, False, r"\x23#[x", 6),
        ("", 0, 40, False, "", 0),
    ],
)
def test_whole_frames(text, at, width, is_cut, line, caret):
    assert excerpt_around(text, at, width, is_cut=is_cut) == (line, caret)


@given(text=texts, data=st.data(), width=st.integers(20, 100), is_cut=st.booleans())
def test_it_fits(text, data, width, is_cut):
    line, caret = excerpt_around(text, data.draw(st.integers(0, len(text))), width, is_cut=is_cut)
    assert cell_len(line) <= width
    assert caret <= cell_len(line)

"""What no text of a contributor's can do, whatever the format."""

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from geneb_ci.common.finding import HIDING_CHARACTERS
from geneb_ci.render.formats import FORMATS, render
from geneb_ci.render.plain import printable_pieces, visible
from geneb_ci.render.text import WIDTH_MAX, WIDTH_MIN, escape
from tests.render.hostile import BRIEF, reports, texts

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def commands(output: str) -> list[str]:
    """Lines that a runner of GitHub Actions would take for a command, spaces aside."""
    return [line for line in output.split("\n") if line.lstrip().startswith("::") or "##[" in line]


@BRIEF
@given(report=reports())
def test_no_control_character_and_no_command(report):
    outputs = {name: render(name, report) for name in FORMATS}
    assert [name for name, output in outputs.items() if CONTROL.search(output)] == []
    assert [name for name, output in outputs.items() if not output.endswith("\n")] == []
    # What commands `github` writes, its own test reads.
    assert [n for n, output in outputs.items() if n != "github" and commands(output)] == []


@BRIEF
@given(report=reports())
def test_colour_adds_nothing_but_colour(report):
    coloured = render("text", report, color=True)
    assert SGR.sub("", coloured) == render("text", report)


@given(text=texts)
def test_a_piece_for_every_character(text):
    assert len(printable_pieces(text)) == len(text)
    assert "".join(printable_pieces(text)).isprintable()
    assert "##[" not in visible(text)
    assert "::" not in escape(text)


def test_no_character_of_unicode_hides_in_what_is_visible():
    """A verdict whose text held U+2800 was refused by its own reader, and with it a whole sweep."""
    points = {*range(0x40000), *range(0xE0000, 0xE1000)}  # others: none, or private
    points |= {start + n for start in range(0x40000, 0x110000, 0x10000) for n in (0, 1, 0xFFFF)}
    every = "".join(map(chr, sorted(points)))
    shown = visible(every, 10 * len(every))
    assert shown.isprintable()
    assert HIDING_CHARACTERS.search(shown) is None


@BRIEF
@given(report=reports(), width=st.sampled_from([0, 40, 60, 120, 500]))
def test_no_line_is_wider_than_asked(report, width):
    # A file name and a rule are never wrapped: they are to be copied.
    report.files, names = [], [(f.file, f.rule) for f in report.findings]
    long = {escape(text) for pair in names for text in pair}
    outputs = render("text", report, width=width) + render("full", report, width=width)
    for line in outputs.split("\n"):
        if not any(text and text in line for text in long):
            assert cell_len(line) <= min(max(width, WIDTH_MIN), WIDTH_MAX)

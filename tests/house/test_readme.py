"""The README is short, answers what newcomers ask, and shows what the program prints today."""

import html
import io
import re

import pytest
from PIL import Image

from tests.gate import gated
from tests.house.pages import LINK, without_blocks
from tests.paths import ROOT
from tools import pictures, recordings

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES_MAX = 120
"""Two screens: a reader decides within them whether to go on."""
BOARD_BYTES_MAX = 300_000
RECORDING_BYTES_MAX = 30_000
"""A screen of text; a report of several screens is read on the terminal."""
QUESTIONS = {
    "what is it": (None, r"checks, audits and publishes results for \[GENEB\]"),
    "for whom": (None, r"\*\*add my model\*\*.*\*\*choose a model\*\*.*\*\*run a leaderboard\*\*"),
    "how do I check a file": (None, r"\$ geneb-ci check submission\.json"),
    "what does audited mean": (None, r"\*audited\* \(an\s+audit agreed\)"),
    "how do I get it for my row": ("docs/reader/verified.md", r'form "Ask for an audit"'),
    "where is the board": (None, r"`geneb-ci serve` shows it"),
    "how do I add my model": (
        "docs/contributor/add-a-model.md",
        r"branch\s+`main`.*\$ geneb-harness run ",
    ),
}
"""Each with the page that the README links for it, or None, and what answers it there."""


def test_it_is_short():
    assert README.count("\n") <= LINES_MAX


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_answers(question):
    page, answer = QUESTIONS[question]
    linked = LINK.findall(without_blocks(README))
    assert page is None or page in linked, f"link {page}"
    text = README if page is None else (ROOT / page).read_text(encoding="utf-8")
    assert re.search(answer, text, re.DOTALL), f"{page or 'README.md'} does not say: {question}"


def test_it_leads_to_a_tutorial_for_each_reader():
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("tutorial.md")}
    assert pages == {match for match in LINK.findall(README) if "tutorial" in match}


BY_DAY = {"check"}
"""What a reader types first. The other recordings are made again nightly."""


@pytest.mark.parametrize("name", gated(recordings.RECORDINGS, *BY_DAY))
def test_a_recording_is_what_the_command_prints(name):
    stored_text = (recordings.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    compared = recordings.RECORDINGS[name].compared
    assert compared(stored_text) == compared(recordings.recorded(name)), (
        "run `make pictures`, and look"
    )


@pytest.mark.parametrize("name", recordings.RECORDINGS)
def test_a_recording_is_small_and_fits_its_terminal(name):
    stored_text = (recordings.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(stored_text) <= RECORDING_BYTES_MAX
    lines = [
        html.unescape(match) for match in re.findall(r"<text[^>]*>([^<]*)</text>", stored_text)
    ]
    assert lines
    assert [line for line in lines if len(line) > recordings.WIDTH] == []


@pytest.mark.parametrize("name", recordings.RECORDINGS)
def test_a_recording_asks_no_server_and_runs_nothing(name):
    stored_text = (recordings.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    drawn = re.sub(
        r"<text[^>]*>[^<]*</text>", "", stored_text
    )  # an address that is read is no link
    assert re.findall(r"https?://[^\s\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert not re.search("@import|@font-face|<script|<foreignObject", stored_text)


def test_the_picture_of_the_board_is_small():
    content = pictures.BOARD.read_bytes()
    assert len(content) <= BOARD_BYTES_MAX
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.size == (pictures.VIEWPORT["width"], pictures.VIEWPORT["height"])


def test_every_picture_is_shown_once_or_more_and_has_a_description():
    shown = [
        (text, name)
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for text, name in re.findall(
            r"!\[([^\]]+)\]\([\w./]*pictures/([^)]+)\)", path.read_text(encoding="utf-8")
        )
    ]
    assert {name for _, name in shown} == {path.name for path in recordings.FOLDER.iterdir()}
    assert all(len(text) > len(name) for text, name in shown)
    assert re.findall(r"docs/pictures/([^)]+)\)", README) == ["check.svg", "board.png"]

"""Seven readers of the board in the frame of a Space: what each wants, and the actions that get it.

An action is a choice, a click, or a text typed into a field.
"""

import csv
import io
from collections.abc import Callable

import pytest
from playwright.sync_api import FrameLocator

from tests.gate import gated
from tests.page.boards import advice
from tests.page.rows import display
from tests.page.test_frame import inside, outer  # noqa: F401 (a fixture)

ACTIONS_MAX = 4


class Reader:
    """Somebody who acts in the frame, and counts."""

    def __init__(self, board: FrameLocator) -> None:
        self.board = board
        self.actions = 0

    def choose(self, name: str, value: str) -> None:
        self.actions += 1
        self.board.locator(f"#{name}").select_option(value)

    def click(self, text: str) -> None:
        self.actions += 1
        self.board.locator("a, button, summary").get_by_text(text, exact=True).first.click()

    def sees(self, text: str) -> None:
        self.board.get_by_text(text).first.wait_for()


def biologist(reader: Reader) -> None:
    """He has 200 labelled sequences and a GPU of 16 GB."""
    reader.choose("examples", "hundreds")
    reader.choose("memory", "16")
    found = advice("hundreds", memory=16)
    reader.sees("nothing was measured in the gap")
    first = display(found.regimes[0].choices[0].model)
    assert reader.board.locator(".ranges tbody .model").first.inner_text() == first
    assert reader.board.locator(".ranges tbody .bars").count() == 2 * len(found.regimes[0].choices)


def plant_biologist(reader: Reader) -> None:
    """She works on plants."""
    reader.choose("species", "plants")
    reader.sees("Mean MCC over 10 tasks (plants), each counting alike")
    found = advice("full", "plants")
    first = display(found.regimes[0].choices[0].model)
    assert reader.board.locator(".ranges tbody .model").first.inner_text() == first
    assert reader.board.locator(".matching li").count() == len(found.tasks)


def reviewer(reader: Reader) -> None:
    """He wants two models on every task, as CSV."""
    for name in ("GROVER", "METAGENE-1"):
        reader.actions += 1
        reader.board.get_by_label(f"Compare {name}", exact=True).check()
    reader.actions += 1
    reader.board.locator("#views [data-view=compare]").click()
    with reader.board.owner.page.expect_download() as waiting:
        reader.click("Download every task as CSV")
    head, *rows = csv.reader(io.StringIO(waiting.value.path().read_text("utf-8")))
    assert len(rows) == 100
    models = [name for name in head if name in {"GROVER", "METAGENE-1"}]
    assert (head[:2], len(models)) == (["task", "category"], 2)


def doubter(reader: Reader) -> None:
    """A maintainer asks what is known against a row."""
    reader.click("Scores")
    reader.click("MutBERT")
    reader.click("What this means")
    reader.sees("Warnings and known defects")


def author(reader: Reader) -> None:
    """She cites a row: author, year, rank range, address."""
    reader.click("Scores")
    reader.click("GROVER")
    reader.click("Page to link to: links, citation, badge, code that loads it")
    reader.sees("GENEB leaderboard (2026). GROVER: rank ")
    reader.sees("@misc{geneb-grover")


def analyst(reader: Reader) -> None:
    """He wants all scores of a table as a file."""
    reader.click("Scores")
    with reader.board.owner.page.expect_download() as waiting:
        reader.click("Download these rows as CSV")
    assert len(list(csv.reader(io.StringIO(waiting.value.path().read_text("utf-8"))))) == 42


def commuter(reader: Reader) -> None:
    """She looks on a phone: the first model is there at once."""
    box = reader.board.locator(".ranges tbody .model").first.bounding_box()
    assert box is not None


READERS = (biologist, plant_biologist, reviewer, doubter, author, analyst, commuter)


@pytest.mark.parametrize("reads", gated(READERS, plant_biologist))
def test_a_reader_reaches_the_goal_in_four_actions(outer, reads: Callable[[Reader], None]):  # noqa: F811
    reader = Reader(inside(outer))
    reads(reader)
    assert reader.actions <= ACTIONS_MAX

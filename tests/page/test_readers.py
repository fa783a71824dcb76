"""Seven readers of the board in the frame of a Space: what each wants, and the actions that get it.

An action is a choice, a click, or a text typed into a field.
"""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator

from geneb_ci.common.types import Evidence
from tests.board.board import entries
from tests.page.boards import advice, table_files
from tests.page.rows import PROMOTER, display
from tests.page.site import ADDRESS, COMMIT, REPOSITORY, write_site
from tests.page.test_frame import INNER, inside, outer  # noqa: F401 (a fixture)

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
    row_advice = advice("hundreds", memory=16)
    reader.sees("nothing was measured in the gap")
    models = [choice.model for choice in row_advice.regimes[0].choices if choice.model != DISPUTED]
    assert reader.board.locator(".ranges tbody .model").first.inner_text() == display(models[0])
    assert reader.board.locator(".ranges tbody .bars").count() == 2 * len(models)


def plant_biologist(reader: Reader) -> None:
    """She works on plants."""
    reader.choose("species", "plants")
    reader.sees("Mean MCC over 10 tasks (plants), each counting alike")
    row_advice = advice("full", "plants")
    first = display(row_advice.regimes[0].choices[0].model)
    assert reader.board.locator(".ranges tbody .model").first.inner_text() == first
    assert reader.board.locator(".matching li").count() == len(row_advice.tasks)


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


def maintainer(reader: Reader) -> None:
    """He wants to know why a row is disputed: tasks, differences, signer, the signed record."""
    reader.click("Scores")
    reader.click(display(DISPUTED))
    score = DISPUTE["scores"][0]
    reader.sees(f"MCC of {PROMOTER}, full: claimed 0.7000, rerun 0.5000, tolerance 0.0200")
    reader.sees(f"audit {DISPUTE['record']}, signed by {DISPUTE['signer']}")
    reader.click("Table and signed records")
    row = reader.board.locator("#disputed ~ .wide tbody tr").first
    difference = score["claimed"] - score["rerun"]
    assert f"{difference:.4f}" in row.inner_text()
    link = reader.board.locator("#disputed ~ p a").first
    path = f"audits/{DISPUTED}/{DISPUTE['record']}.json"
    assert link.get_attribute("href") == f"{REPOSITORY}/blob/{COMMIT}/{path}"
    assert link.get_attribute("target") == "_blank"


def author(reader: Reader) -> None:
    """She cites a row: author, year, rank range, an address that stays."""
    reader.click("Scores")
    reader.click("GROVER")
    reader.click("Page to link to: links, citation, badge, code that loads it")
    reader.click("Cite")
    cited = reader.board.get_by_label("BibTeX").inner_text()
    assert cited.startswith("@misc{geneb-grover,")
    for part in (
        "author = {{GENEB leaderboard}}",
        "year = {2026}",
        f"howpublished = {{\\url{{{ADDRESS}/v/{COMMIT}/index.html}}}}",
    ):
        assert part in cited
    assert re.search(r"GROVER: rank \d+\D\d+ of 41 by macro MCC, full", cited)


def analyst(reader: Reader) -> None:
    """He wants every score as one table, in Parquet or CSV."""
    reader.click("Downloads")
    for name in table_files():
        # Its content is that of the folder: a browser saves nothing that a test answers.
        with reader.board.owner.page.expect_download() as waiting:
            reader.click(name)
        assert (waiting.value.suggested_filename, waiting.value.url) == (name, f"{INNER}/{name}")


def commuter(reader: Reader) -> None:
    """She looks on a phone: the first model is there at once, and the end is not far."""
    phone = {"width": 390, "height": 844}
    page = reader.board.owner.page
    page.set_viewport_size(phone)  # type: ignore[arg-type]
    reader.board.owner.evaluate("(frame, s) => Object.assign(frame, s)", phone)
    first = reader.board.locator(".ranges tbody .model").first
    first.wait_for()
    assert first.evaluate("(one) => one.getBoundingClientRect().bottom") <= phone["height"]
    tall = reader.board.locator("html").evaluate("(html) => html.scrollHeight")
    assert tall <= PHONE_TALL_MAX


PHONE_TALL_MAX = 6000
"""Pixels of the first page on a phone."""
READERS = (biologist, plant_biologist, reviewer, maintainer, author, analyst, commuter)
DISPUTED = "MutBERT"
DISPUTE: dict[str, Any] = {
    "record": "0a1b",
    "signer": "A. Signer",
    "date": "2026-11-20",
    "why": ["1 of 13 tasks differs"],
    "scores": [
        {"task": PROMOTER, "regime": "full", "metric": "MCC"}
        | {"claimed": 0.7, "rerun": 0.5, "tolerance": 0.02}
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write the board of the public rows, one of which is disputed, with all its pages."""
    root: Path = tmp_path_factory.mktemp("disputed")
    record = root / f"audits/{DISPUTED}/{DISPUTE['record']}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    rows = [
        replace(entry, evidence=Evidence.DISPUTED, disputes=(DISPUTE,))
        if entry.submission.model_id == DISPUTED
        else entry
        for entry in entries()
    ]
    write_site(root / "site", rows, root=root, audits=root / "audits")
    return root / "site"


@pytest.mark.nightly  # in the gate, what readers ask: test_questions.py
@pytest.mark.parametrize("reads", READERS)
def test_a_reader_reaches_the_goal_in_four_actions(outer, reads: Callable[[Reader], None]):  # noqa: F811
    reader = Reader(inside(outer))
    reads(reader)
    assert reader.actions <= ACTIONS_MAX

"""Every column of the board on the page: its heading, order, download, line on a model's page."""

import csv
import io
import json
import re
from typing import Any, get_args

import pytest

from geneb_ci.audit.trust.attestation import column_author
from geneb_ci.board.columns import COLUMNS, ValueKind
from geneb_ci.board.page import page_files, with_data, write_page
from geneb_ci.board.page_data import page_scripts
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.types import EVIDENCE_ORDER, Evidence
from tests.board.board import entries
from tests.gate import gated
from tests.page.boards import changed_part, name_of, value_in, values
from tests.page.rows import FULL, display
from tests.page.tab import opened
from tests.paths import ROOT

TABLE = [column for column in COLUMNS if column.table]
NARROW = {"width": 390, "height": 844}


def order(column: Any, row: dict[str, Any]) -> Any:
    """Return what a row is sorted by, in Python's own words."""
    value = row[column.key]
    if column.kind == "evidence":
        return EVIDENCE_ORDER.index(Evidence(value))
    return value.lower() if isinstance(value, str) else value


def test_the_page_has_every_kind_of_column(call):
    assert set(call("facts.kinds")) == set(get_args(ValueKind))


def test_the_page_knows_every_kind_of_evidence():
    """One script has them, and no other lists them."""
    scripts = {
        path.name: path.read_text("utf-8") for path in (ROOT / "leaderboard/src").rglob("*.js")
    }
    explained = re.findall(
        r'^  \["(\S+)", ', scripts.pop("evidence.js").partition("AUTHORSHIP")[0], re.MULTILINE
    )
    assert sorted(explained) == sorted(map(str, Evidence))
    assert [name for name, text in scripts.items() if '"reproduced"' in text] == []


def test_the_table_has_the_columns_in_their_order(tab):
    page = tab.go("#/table")
    heads = page.locator(".scores thead th button")
    assert [
        (text.strip("▼▲ \n"), heads.nth(index).get_attribute("title"))
        for index, text in enumerate(heads.all_inner_texts()[: len(TABLE)])
    ] == [(column.label, column.table.title) for column in TABLE if column.table]


@pytest.mark.parametrize("key", gated([column.key for column in TABLE], "authorship"))
def test_a_column_sorts(tab, key):
    (column,) = (column for column in TABLE if column.key == key)
    assert column.table is not None
    page = tab.go("#/table")
    head = page.locator(".scores thead th button").nth(TABLE.index(column))
    for direction in (column.table.first, {"up": "down", "down": "up"}[column.table.first]):
        head.click()
        text = "lowest first" if direction == "up" else "highest first"
        assert page.inner_text("#status").endswith(f", by {column.table.sort_label}, {text}")
        assert f"sort={column.table.sort}" in tab.address()
        rows = {row["disp"]: row for row in FULL if column.key in row}
        shown = [name for name in tab.names() if name in rows]
        keys = [order(column, rows[name]) for name in shown]
        assert keys == sorted(keys, reverse=direction == "down")
        # Rows without a value come last in either order.
        assert tab.names()[: len(shown)] == shown
        head = page.locator(".scores thead th button").nth(TABLE.index(column))


VISIBLE = "(cells) => cells.filter((cell) => cell.checkVisibility()).length"
SHOWN = """(cells) => cells.filter((cell) => getComputedStyle(cell).display !== "none")
  .reduce((sum, cell) => sum + cell.colSpan, 0)"""


LOOKS = ((1280, "screen"), (390, "screen"), (1280, "print"))


@pytest.mark.nightly  # in the gate, what a phone shows of each row: below, and in test_fits.py
@pytest.mark.parametrize(("width", "media"), LOOKS)
def test_every_row_of_the_table_is_as_wide_as_the_others(browser, board, width, media):
    """Also where columns are hidden: the names of categories stand above their tasks."""
    size = {"width": width, "height": 844}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=size) as tab:
        page = tab.go("#/table?columns=tasks")
        page.emulate_media(media="print" if media == "print" else "null")
        rows = (
            ".scores .above > *",
            ".scores thead tr:last-child > *",
            ".scores tbody tr:first-child > *",
        )
        widths = [page.locator(row).evaluate_all(SHOWN) for row in rows]
        hidden = 0 if (width, media) == (1280, "screen") else len(TABLE) - 1
        assert len(set(widths)) == 1
        assert widths[0] <= 3 + len(TABLE) + 2 + 100 - hidden


def test_a_download_has_the_columns(tab):
    page = tab.go("#/table")
    with page.expect_download() as waiting:
        page.click("#csv")
    head, *rows = csv.reader(io.StringIO(waiting.value.path().read_text("utf-8"), newline=""))
    expected = [column for column in COLUMNS if column.download]
    assert head[: len(expected)] == [column.download for column in expected]
    entry_of = {entry.submission.model_id: entry for entry in entries()}
    for row in rows:
        entry = entry_of[row[0]]
        for column, field in zip(expected, row, strict=False):
            if column.kind not in {"audit", "warnings", "defects"}:  # in words
                value = column.value(entry)
                text = json.dumps(value) if isinstance(value, bool) else str(value)
                assert field == ("" if value is None else text), column.key


def test_a_models_page_has_the_columns(tab):
    tab.go("#/model/space")
    listed = [c for c in COLUMNS if c.label and c.kind != "name"]
    assert tab.texts(".facts dt")[: len(listed)] == [column.label for column in listed]
    assert all(tab.texts(".facts dd"))
    by_label = dict(zip(tab.texts(".facts dt"), tab.texts(".facts dd"), strict=True))
    own = next(row for row in FULL if row["model"] == "space")
    for column in listed:
        value, source = own.get(column.key), f"\n{column_author(column.key)}"
        shown = by_label[column.label]
        if column.key in own:
            assert shown.endswith(source)
        if column.kind in {"id", "text"} and value is not None:
            assert shown == f"{value}{source}"
        if column.kind == "flag":
            assert shown == f"{column.words[0 if value else 1]}{source}"
        if column.kind == "count" and value is not None:
            assert shown == f"{value:,}{source}"
    size = f"{own['params']:,} parameters; 1.2 GB weights (fp16)\nas submitted"
    assert by_label["Size"] == size
    assert by_label["Scores attested by"] == "nobody but the submitter"


DONE = (
    "cells recomputed from published embeddings: 300/300, 9,300 embeddings computed again, "
    "2026-11-20; the scores shown were not compared"
)


@pytest.mark.nightly  # in the gate, the words: test_pure.py
def test_cells_that_were_recomputed_are_said_beside_evidence_that_they_do_not_raise(
    browser, tmp_path
):
    scripts = dict(page_scripts(values(), entries(), shipped_benchmark()))
    base = value_in(scripts[name_of("data", scripts)])
    (own,) = (model for model in base["models"] if model["model"] == "space")
    own["recomputed"] = DONE
    changed_part(scripts, "data", base)
    write_page(tmp_path, with_data(page_files(), scripts) | scripts)
    with opened(browser, f"{tmp_path.as_uri()}/index.html") as tab:
        page = tab.go("#/table?density=comfortable")
        (mark,) = (
            cell_locator
            for cell_locator in page.locator(".scores .trust").all()
            if "cells" in cell_locator.inner_text()
        )
        short = "not rerun; cells recomputed from published embeddings"
        assert mark.inner_text().split("\n") == ["checked", short]
        assert mark.get_attribute("title") == f"checked, not rerun; {DONE}"
        with page.expect_download() as waiting:
            page.click("#csv")
        rows = csv.DictReader(waiting.value.path().read_text("utf-8").splitlines())
        rows_by_model = {row["model"]: row for row in rows}
        assert (rows_by_model["space"]["evidence"], rows_by_model["space"]["recomputed"]) == (
            "checked",
            DONE,
        )
        tab.go("#/model/space")
        assert tab.texts(".facts .trust") == [f"checked, not rerun; {DONE}"]


def test_a_narrow_screen_says_the_columns_below_the_name(browser, board):
    with opened(browser, f"{board.as_uri()}/index.html", viewport=NARROW) as tab:
        page = tab.go("#/table")
        facts = page.locator(".scores .fact")
        rows = len(tab.names())
        assert facts.count() == (rows + 1) * (len(TABLE) - 1)
        assert facts.evaluate_all(VISIBLE) == 0
        lines = tab.texts(".scores .narrow")
        macro = values()["diagnostics.json"]["ranks"]["full"]["macro"]
        for name, line in zip(tab.names(), lines, strict=True):
            own = next(row for row in FULL if row["disp"] == name)
            parts = line.split(" · ")
            texts = [str(own[c.key]) for c in TABLE if c.kind == "text" and c.key in own]
            assert [part for part in parts if part in texts] == texts
            assert "checked, not rerun" in parts
            could = macro[own["model"]]["could_be_best"]
            assert (parts[-1] == "could be best") == could
            present = [column for column in TABLE if column.key in own]
            assert len(parts) == len(present) - 1 + could  # the name stands above
        assert display("space") in tab.names()
        seen = page.locator(".scores tbody tr").filter(has=page.locator(".narrow-mark a"))
        assert set(seen.locator(".name .model").all_inner_texts()) == {
            row["disp"] for row in FULL if "defects" in row or "warnings" in row
        }
        assert all(
            link_locator.is_visible() for link_locator in page.locator(".narrow-mark a").all()
        )

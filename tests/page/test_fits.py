"""The table fits: every category on one screen, cards on a phone, two sheets in print; no part of
the page that is missing or damaged leaves it waiting."""

import io
import re
import shutil
from pathlib import Path

import pypdfium2
import pytest

from geneb_ci.common.benchmark import shipped_benchmark
from tests.gate import gated
from tests.page.boards import name_of, script, value_in
from tests.page.tab import Tab, opened

SCORES = 2 + 13
SHEET, LETTER = int((297 - 20) / 25.4 * 96), int((279.4 - 20) / 25.4 * 96)
ALL_VISIBLE = """
(cells) => cells.filter((cell) => {
  const box = cell.getBoundingClientRect();
  return box.width > 0 && box.left >= 0 && box.right <= document.documentElement.clientWidth;
}).length
"""
OVERLAPS = """
(cells) => {
  const boxes = cells.map((cell) => cell.getBoundingClientRect()).filter((box) => box.width);
  return boxes.filter((a, i) => boxes.some((b, j) => i < j &&
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)).length;
}
"""
CUT = """
(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((c) => c.innerText)
"""


@pytest.mark.parametrize("intervals", gated(["sorted", "all"], "all"))
def test_every_category_is_on_the_screen(tab, intervals):
    page = tab.go(f"#/table?intervals={intervals}")
    for width in (1280, 1440, 1920, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        heads = page.locator(".scores thead .score")
        assert heads.evaluate_all(ALL_VISIBLE) == SCORES
        assert page.locator(".scores thead tr:last-child > *").evaluate_all(OVERLAPS) == 0
        row = page.locator(".scores tbody tr").first.locator("> *")
        assert row.evaluate_all(OVERLAPS) == 0
        assert page.locator(".scores :is(td.heat, th.name)").evaluate_all(CUT) == []


def test_head_and_first_column_stay_while_the_page_scrolls(browser, board):
    size = {"width": 1440, "height": 700}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=size) as tab:
        page = tab.go("#/table?columns=tasks")
        page.evaluate("scrollTo(1500, 1000)")
        assert page.evaluate("[scrollX, scrollY]") == [1500, 1000]
        head = page.locator(".scores thead").bounding_box()
        name = page.locator(".scores tbody .name").nth(25).bounding_box()
        controls = page.locator("#controls").bounding_box()
        assert head is not None
        assert name is not None
        assert controls is not None
        assert abs(head["y"]) < 1
        assert 0 <= name["x"] < 1
        assert controls["x"] >= 0


def test_a_phone_has_cards_with_every_score_named(browser, board):
    size = {"width": 390, "height": 844}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=size) as tab:
        page = tab.go("#/table")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        card = page.locator(".scores tbody tr").first
        labels = card.locator("td.heat").evaluate_all(
            "(cells) => cells.map((c) => getComputedStyle(c, '::before').content.slice(1, -1))"
        )
        assert labels == ["Macro", "Micro", *shipped_benchmark().category_order]
        assert card.locator("td.heat").evaluate_all(ALL_VISIBLE) == SCORES
        assert card.locator("> *").evaluate_all(OVERLAPS) == 0
        page.select_option("#sort", "category:lncRNA")
        assert "sort=category%3AlncRNA" in tab.address()


def test_compact_rows_are_lower(tab):
    page = tab.go("#/table")
    before = page.locator(".scores").bounding_box()
    page.locator("#display summary").click()
    page.select_option("#density", "comfortable")
    after = page.locator(".scores").bounding_box()
    assert before is not None
    assert after is not None
    assert "density=comfortable" in tab.address()
    assert before["height"] < 0.85 * after["height"]


def test_scores_begin_early_and_eleven_rows_are_seen(tab):
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    page = tab.go("#/table")
    boxes = page.locator(".scores tbody tr").evaluate_all(
        "(rows) => rows.map((row) => row.getBoundingClientRect()).map((b) => [b.top, b.bottom])"
    )
    assert boxes[0][0] <= 420
    assert sum(bottom <= 900 for _, bottom in boxes) >= 11


def letters_of(text: str) -> str:
    """Return letters and digits: a name may be broken, and a hyphen with it."""
    return "".join(filter(str.isalnum, text))


def test_print_takes_two_sheets_each_with_the_names_of_the_columns(tab):
    page = tab.go("#/table")
    raw = page.pdf(format="A4", prefer_css_page_size=True)
    sheets = [
        pdf_page.get_textpage().get_text_range()
        for pdf_page in pypdfium2.PdfDocument(io.BytesIO(raw))
    ]
    assert len(sheets) == 2
    for text in sheets:
        letters = "".join(text.split())
        assert "Rank" in letters
        assert "Model" in letters
        # What stands upright is read from the bottom.
        for name in ("Promoters", "Enhancers", "Regulatory"):
            assert name in letters or name[::-1] in letters
    printed = letters_of("".join(sheets))
    shown = [text for text in tab.names() if letters_of(text) in printed]
    assert len(shown) == len(tab.names())


@pytest.mark.nightly  # in the gate, two sheets with the names of the columns
def test_a_sheet_has_whole_columns_and_says_what_it_leaves_out(tab):
    page = tab.go("#/table?columns=tasks")
    raw = page.pdf(format="A4", prefer_css_page_size=True)
    (text, *_) = [o.get_textpage().get_text_range() for o in pypdfium2.PdfDocument(io.BytesIO(raw))]
    assert "A sheet has room for 32 of 102 columns." in " ".join(text.split())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": SHEET, "height": 700})
    assert page.locator(".scores").evaluate("(one) => one.getBoundingClientRect().right") <= SHEET
    assert page.locator(".scores tbody tr").first.locator("td.heat:visible").count() == 32
    heads = page.locator(".scores .above th:visible").all_inner_texts()
    assert heads == ["Histone Mod."]
    for letter in (SHEET, LETTER):
        page.set_viewport_size({"width": letter, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= letter


CUTS = ((34, [33]), (10, [10, 23]), (100, [33]))


@pytest.mark.nightly  # in the gate, two sheets with the names of the columns
@pytest.mark.parametrize(("first", "printed"), gated(CUTS, CUTS[1]))
def test_a_category_that_is_cut_spans_what_is_printed(browser, board, tmp_path, first, printed):
    shutil.copytree(board, tmp_path / "board")
    data = tmp_path / "board" / name_of("data", board)
    base = value_in(data.read_bytes())
    for index, task in enumerate(base["benchmark"]["tasks"]):
        task["category"] = int(index >= first)
    data.write_bytes(script("base", base))
    with opened(browser, f"{(tmp_path / 'board').as_uri()}/index.html") as tab:
        page = tab.go("#/table?columns=tasks")
        spans = page.locator(".scores .above th").evaluate_all("(all) => all.map((o) => o.colSpan)")
        assert sum(spans) == 100
        page.emulate_media(media="print")
        heads = page.locator(".scores .above th:visible")
        assert heads.evaluate_all("(all) => all.map((one) => one.colSpan)") == printed
        row = page.locator(".scores tbody tr").first.locator("td.heat:visible")
        assert row.count() == 2 + sum(printed)


def test_facts_of_the_model_registry_filter_and_are_searched(tab):
    page = tab.go("#/table")
    page.locator("#more summary").click()
    page.select_option("#facet-architecture", "Mamba")
    assert len(tab.names()) == 4
    assert page.inner_text("#status").startswith("4 of 41 models")
    page.select_option("#facet-pretraining", "human")
    assert all("Caduceus" in name for name in tab.names())
    page.click("#reset")
    assert len(tab.names()) == 41
    page.fill("#search", "striped hyena")
    assert len(tab.names()) == 0 or tab.names() == ["evo-1-131k"]
    page.fill("#search", "splcebert")
    assert tab.names() == ["SpliceBERT 1024nt"]
    page.fill("#search", "nucleotdie transformer 50m")
    assert tab.names()
    assert all("50m" in name for name in tab.names())


@pytest.mark.parametrize(
    ("searched", "places"),
    [
        ("", [0, 1, 2]),
        ("genom", [0, 2]),
        ("mamba genome", [2]),
        ("genmoe", [0, 2]),
        ("gnome", [0, 2]),
        ("xyz", []),
        ("bret", [1]),
        ("brt", []),
    ],
)
def test_a_search_forgives_a_slip(call, searched, places):
    texts = ["genome ocean bpe", "bert human", "genome mamba"]
    assert call("search.matching", texts, searched) == places


CONTENTS = {"broken": b"(globalThis.geneb??={})[;\n", "empty": b"", "missing": None}
PLACES = {
    "tasks-0": "#/table?columns=tasks%3ASplice+Sites",
    "matrices": "#/model/space",
    "history": "#/model/space",
    "vendor/d3.min.js": "#/plots",
}


def put(path: Path, content: bytes | None) -> None:
    """Write a file, or delete it where there is no content."""
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    """Copy what a board needs of its files to be opened, without the pages of models and tasks."""
    several = shutil.ignore_patterns("models", "tasks", "categories", "badges", "v")
    return Path(shutil.copytree(folder, tmp_path / "board", ignore=several))


def reported(tab: Tab, name: str) -> None:
    """Hold that the page says which part it lacks and what to do, and waits for nothing."""
    page = tab.page
    page.wait_for_selector("main .fault")
    text = page.inner_text("main .fault")
    assert re.search(rf"{re.escape(name)}.* (could not be loaded|is damaged)", text)
    assert "Reload the page." in text
    assert page.locator("main .fault a").get_attribute("href") == "scores/full-MCC.html"
    assert page.locator("main[aria-busy]").count() == 0
    tab.faults.clear()  # the browser's own, of the file


FAULTY = dict(zip(PLACES, ("broken", "empty", "missing", "missing"), strict=True))
"""One fault of each part, and each fault of one part or more."""


@pytest.mark.nightly  # in the gate: a part that cannot be had, in test_views.py
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({part: (fault,) for part, fault in FAULTY.items()}, id="one each"),
        pytest.param(dict.fromkeys(PLACES, CONTENTS), id="all", marks=pytest.mark.nightly),
    ],
)
def test_a_part_that_cannot_be_read_is_reported_with_what_to_do(browser, copied, faults):
    with opened(browser, f"{copied.as_uri()}/index.html") as tab:
        for part, view_address in PLACES.items():
            tab.load("#/about")
            name = part if "/" in part else name_of(part, copied)
            sound = (copied / name).read_bytes()
            for content in map(CONTENTS.get, faults[part]):
                put(copied / name, content)
                tab.go(view_address)
                reported(tab, name)
                tab.go("#/about")
            put(copied / name, sound)


@pytest.mark.nightly  # in the gate: a page without its data, in test_views.py
@pytest.mark.parametrize("fault", CONTENTS)
def test_data_that_cannot_be_read_are_reported_with_what_to_do(browser, copied, fault):
    name = name_of("data", copied)
    put(copied / name, CONTENTS[fault])
    with opened(browser, f"{copied.as_uri()}/index.html") as tab:
        tab.load("#/table")
        reported(tab, name)


@pytest.mark.parametrize("fault", gated(CONTENTS, "missing"))
def test_without_its_own_script_the_page_says_where_the_scores_are(browser, copied, fault):
    put(copied / "board.js", CONTENTS[fault])
    with opened(browser, f"{copied.as_uri()}/index.html") as tab:
        page = tab.page
        page.goto(tab.home)
        assert "If it does not, a file of this page is missing or damaged" in page.inner_text(
            "main"
        )
        page.click("main a[href='scores/full-MCC.html']")
        page.wait_for_load_state()
        assert page.locator(".all td.heat").count() == 41 * SCORES
        tab.faults.clear()

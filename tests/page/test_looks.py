"""How every view looks, from a phone to a large screen, light and dark, and printed.

Pictures are compared as thumbnails of shades, within a tolerance that another font or version of
the browser keeps and a missing or moved part does not. `pytest tests/page/test_looks.py
--update-golden` takes those again that are not within it: look at `make page-shots` first.
"""

import fcntl
import io
import json
import statistics
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image
from playwright.sync_api import Page

from geneb_ci.common.benchmark import shipped_benchmark
from tests.gate import gated
from tests.page.tab import STYLED, Tab, opened

GOLDEN = Path(__file__).with_name("golden") / "looks.json"
GOLDEN_BYTES_MAX = 1_000_000
SIDE = 24
"""Pixels of a thumbnail, in either direction."""
APART_MAX = 0.18
"""Difference over ink, of a thumbnail and the known one. Other anti-aliasing gives less than 0.1, a
serif font 0.06 to 0.22, all that is 60 pixels lower 0.25 and more: test_a_layout_that_breaks."""
HEIGHT = 900
VIEWS = {
    "overview": "index.html#/overview",
    "table": "index.html#/table",
    "tasks": "index.html#/table?columns=tasks%3ASplice+Sites&intervals=all",
    "plots": "index.html#/plots",
    "compare": "index.html#/compare?m=space&m=GROVER&m=MutBERT",
    "model": "index.html#/model/space",
    "findings": "index.html#/findings",
    "downloads": "index.html#/downloads",
    "about": "index.html#/about",
    "model page": "models/space.html",
    "task page": "tasks/leannmlindsey_GUE_mouse_0.html",
    "category page": "categories/splice-sites.html",
    "scores page": "scores/full-MCC.html",
    "marks page": "marks.html",
    "record page": "v/index.html",
}
IN_THE_GATE = ("overview", "table", "model page")
"""Views whose layouts are unlike, and a page that stands alone; test_access.py holds that no other
is wider than a phone."""
PHONE_AND_DESK = ((390, "light"), (1440, "light"))
BETWEEN_AND_BEYOND = ((768, "light"), (1440, "dark"), (1920, "light"), (2560, "light"))
"""Widths and colours at which a view is looked at. Those of the gate have the narrow and the wide
layout; axe looks at the contrast of each view in the dark."""
UNKNOWN = 1920
"""The width without a picture: overlaps and cuts alone are looked for."""
INDEX = "index.html"
# Texts of controls, headings, links of the head and names in charts that lie on one another.
OVERLAPS = """
() => {
  const selector = 'h1, h2, h3, .top a, .controls label, .controls button, summary, ' +
    '.scores thead th, .chart .name';
  const boxes = [...document.querySelectorAll(selector)]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => !element.closest('.skip'))
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, box]) => box.width > 1 && box.height > 1);
  const overlaps = [];
  boxes.forEach(([a, boxA], i) => boxes.slice(i + 1).forEach(([b, boxB]) => {
    if (a.contains(b) || b.contains(a)) return;
    const wide = Math.min(boxA.right, boxB.right) - Math.max(boxA.left, boxB.left);
    const high = Math.min(boxA.bottom, boxB.bottom) - Math.max(boxA.top, boxB.top);
    if (wide > 1 && high > 1) overlaps.push(`${a.textContent} / ${b.textContent}`);
  }));
  return overlaps;
}
"""
CUT = """
() => [...document.querySelectorAll('th, td, dt, dd, button, .segments span, summary, h1, h2, h3')]
  .filter((one) => one.checkVisibility() && getComputedStyle(one).overflowX !== 'visible' &&
    !one.classList.contains('unseen') && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.innerText)
"""
# Until a frame with the present size of the window is drawn.
LAID_OUT = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def golden(request) -> Any:
    """Give the thumbnails by name, and write those that were taken again.

    Other processes of the same run write theirs to the same file.
    """
    before: dict[str, str] = json.loads(GOLDEN.read_text())
    thumbnails = dict(before)
    yield thumbnails
    if request.config.getoption("--update-golden"):
        taken = {
            name: thumbnails[name] for name in thumbnails if thumbnails[name] != before.get(name)
        }
        with GOLDEN.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            whole = json.load(file) | taken
            file.seek(0)
            file.truncate()
            file.write(json.dumps(whole, indent=0, sort_keys=True) + "\n")


def thumbnail(picture: Image.Image) -> bytes:
    return picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX).tobytes()


def differs(taken: bytes, known: bytes) -> str:
    """Say how far a thumbnail is from the known one; "" within the tolerance.

    The difference is divided by the ink, what differs from the usual shade: most of a page is
    empty, and a mean over all of it would miss that the rest is gone.
    """
    apart = sum(abs(a - b) for a, b in zip(taken, known, strict=True))
    ink = (
        sum(abs(shade - statistics.median(shades)) for shades in (taken, known) for shade in shades)
        / 2
    )
    share = apart / max(ink, 1)
    return "" if share <= APART_MAX else f"differs by {share:.2f} of its ink"


def compared(name: str, picture: Image.Image, golden: dict[str, str], *, update: bool) -> str:
    taken = thumbnail(picture)
    difference = "not known, run with --update-golden"
    if name in golden:
        difference = differs(taken, bytes.fromhex(golden[name]))
    if difference and update:
        golden[name] = taken.hex()
        return ""
    return f"{name}: {difference}" if difference else ""


def go(tab: Tab, view: str) -> None:
    """Go to a view of the board, or to a page that stands alone."""
    name, _, address = VIEWS[view].partition("#")
    if name == INDEX:
        tab.go(f"#{address}")
    else:
        tab.page.goto(f"{tab.home.removesuffix(INDEX)}{name}")


def still(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide")))


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param(PHONE_AND_DESK, id="phone and desk"),
        pytest.param(BETWEEN_AND_BEYOND, id="other widths", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("view", gated(VIEWS, *IN_THE_GATE))
def test_a_view_looks_as_it_did_and_nothing_overlaps_or_is_cut(
    browser, folder, golden, request, view, looks
):
    update = request.config.getoption("--update-golden")
    wrong: list[str] = []
    with opened(browser, f"{folder.as_uri()}/{INDEX}") as tab:
        page = tab.page
        for width, scheme in looks:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            if (width, scheme) == looks[0]:
                go(tab, view)
            page.evaluate(LAID_OUT)
            where = f"{view} at {width}"
            wide = page.evaluate("document.documentElement.scrollWidth")
            # The table of tasks may be wider than the window.
            if wide > width and not (view in {"table", "tasks"} and width == 768):
                wrong.append(f"{where}: {wide} pixels wide")
            wrong += [f"{where}: overlap: {texts}" for texts in page.evaluate(OVERLAPS)]
            wrong += [f"{where}: cut: {text}" for text in page.evaluate(CUT)]
            if width != UNKNOWN:
                name = f"{view} {width} {scheme}"
                wrong.append(compared(name, still(page), golden, update=update))
    assert list(filter(None, wrong)) == []


@pytest.mark.nightly  # in the gate, what is printed by its text
@pytest.mark.parametrize(
    ("view", "sheets"),
    gated(
        [("table", 2), ("scores page", 2), ("overview", 2), ("model page", 6)],
        *(("table", 2), ("model page", 6)),
    ),
)
def test_print_looks_as_it_did(browser, folder, golden, request, view, sheets):
    update = request.config.getoption("--update-golden")
    with opened(browser, f"{folder.as_uri()}/{INDEX}") as tab:
        go(tab, view)
        raw = tab.page.pdf(format="A4", prefer_css_page_size=True)
    printed = pypdfium2.PdfDocument(io.BytesIO(raw))
    if view == "model page":  # what a screen opens and scrolls stands on paper
        text = "".join(sheet.get_textpage().get_text_range() for sheet in printed)
        letters = "".join(text.split())
        labels = [task.label for task in shipped_benchmark().tasks]
        assert [label for label in labels if "".join(label.split()) not in letters] == []
        assert "models/space.html)" in letters
    pictures = [sheet.render(scale=1).to_pil() for sheet in printed]
    wrong = [
        compared(f"{view} sheet {number}", picture, golden, update=update)
        for number, picture in enumerate(pictures)
    ]
    assert (len(pictures), list(filter(None, wrong))) == (sheets, [])


# What goes wrong with a layout, each as a rule of style; every one is seen in the pictures.
BROKEN = {
    "table": (
        ".scores * { all: revert }",
        ".scores .name { display: none }",
        ".heat { background: none; color: inherit }",
        "main { margin-top: 150px }",
    ),
    "overview": (".ranges { width: 500px }", ".ranges { display: none }"),
    "plots": (".controls { display: none }", "main { visibility: hidden }"),
    "about": ("html { font-size: 20px }", "body { max-width: 700px; min-width: 0 }"),
    "model page": (".top { display: none }", ".facts.long { columns: 1 }"),
}


@pytest.mark.nightly  # a test of the one above
@pytest.mark.parametrize("view", gated(BROKEN, "table"))
def test_a_layout_that_breaks_is_seen(browser, folder, golden, view):
    size = {"width": 1440, "height": HEIGHT}
    with opened(browser, f"{folder.as_uri()}/{INDEX}", viewport=size) as tab:
        go(tab, view)
        name = f"{view} 1440 light"
        unseen = []
        for rule in BROKEN[view]:
            strong = rule.replace(" }", " !important }").replace(";", " !important;")
            tab.page.evaluate(STYLED, strong)
            if compared(name, still(tab.page), golden, update=False) == "":
                unseen.append(rule)
        assert unseen == []
        tab.page.evaluate(STYLED, "")
        assert compared(name, still(tab.page), golden, update=False) == ""


def test_the_comparison_sees_what_is_missing_and_what_is_moved():
    page = Image.new("L", (1440, HEIGHT), 250)
    page.paste(30, (100, 200, 1300, 700))
    same = page.resize((1438, HEIGHT - 2))
    assert differs(thumbnail(page), thumbnail(same)) == ""
    moved = Image.new("L", page.size, 250)
    moved.paste(30, (100, 300, 1300, 800))
    empty = Image.new("L", page.size, 250)
    for other in (moved, empty):
        assert differs(thumbnail(page), thumbnail(other)) != ""


def test_the_references_are_small():
    assert GOLDEN.stat().st_size < GOLDEN_BYTES_MAX

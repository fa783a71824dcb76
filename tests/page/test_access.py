"""Everybody can use it: rules of axe-core, keyboard, screen reader, colours, phones, print."""

import re

import pytest

from geneb_ci.board.page import page_files
from tests.gate import gated
from tests.page.axe import LOOKS, violations
from tests.page.tab import WIDTHS, opened

VIEWS = [
    "#/overview",
    "#/table?m=space&size=100000000",
    "#/plots",
    "#/compare?m=space&m=GROVER&m=MutBERT&m=DNABERT-S",
    "#/findings",
    "#/model/space",
    "#/downloads",
    "#/about",
]
MORE = [
    "#/overview?kind=Chromatin+Acc.&examples=10shot",
    "#/table?columns=tasks%3ASplice+Sites&intervals=all&size=25000000",
    "#/table?q=nothing+is+called+so",
    "#/compare",
    "#/plots?plot=sizes&m=space",
    "#/plots?plot=curves&species=plants",
    "#/plots?plot=task&m=space&m=GROVER",
    "#/plots?plot=likeness&kind=Histone+Mod.",
    "#/model/nobody",
]
"""Views with another regime, filter or choice."""
CONTENTS = [view for view in VIEWS if view.startswith(("#/table", "#/plots"))]
"""Views whose contents are unlike: a table, and charts. The night has them all."""
FIGURE = "#/findings?figure=small-beats-large"
OPENED = """
async () => {
  document.querySelectorAll('details').forEach((one) => { one.open = true });
  await new Promise((resolve) => setTimeout(resolve));  // what is opened is filled by then
}
"""
A4_WIDE = int((297 - 2 * 10) / 25.4 * 96)  # pixels between the margins of print.css
TEXT_CONTRAST = 4.5  # WCAG 2.2, 1.4.3


def test_axe_finds_nothing(tab):
    """In the table, which has most kinds of elements; by night, in every view at any width."""
    page = tab.go(CONTENTS[0])
    page.evaluate(OPENED)
    assert violations(page) == []


@pytest.mark.nightly
@pytest.mark.parametrize("view_address", [*VIEWS, *MORE])
def test_axe_finds_nothing_at_any_width_in_any_colours(tab, view_address):
    page = tab.go(view_address)
    page.evaluate(OPENED)
    looks = [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]
    assert violations(page, looks, thorough=True) == []


BROKEN = (
    ("color-contrast", "(main) => { main.style.color = 'light-dark(#ddd, #333)' }"),
    ("button-name", "(main) => main.append(document.createElement('button'))"),
)


@pytest.mark.nightly  # a test of the one above
@pytest.mark.parametrize(("rule", "broken"), BROKEN)
def test_axe_sees_what_is_wrong(tab, rule, broken):
    page = tab.load("#/model/nobody")
    page.locator("main").evaluate(broken)
    violation_list = violations(page, thorough=True)
    assert {violation.split(": ")[1] for violation in violation_list} == {rule}
    seen = [f"{w} {s}" for w, s in LOOKS if s == "light" or rule == "color-contrast"]
    assert [violation.split(": ")[0] for violation in violation_list] == seen
    page.locator("main").evaluate("(main) => main.removeAttribute('style')")


# What the tab key has to reach: all that is seen and can be pressed, of buttons that exclude each
# other the chosen one, and of the parts of a chart the first. What has had the focus is marked.
CONTROLS = """
() => {
  const shown = [...document.querySelectorAll(
    'a[href], button:enabled, input, select, summary, [role=link]:not([tabindex="-1"])')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => one.type !== 'radio' || one.checked);
  shown.forEach((one, number) => { one.dataset.control = number; });
  globalThis.reached = new Set();
  addEventListener("focusin", ({ target }) => globalThis.reached.add(target.dataset.control));
  return shown.map((one) => one.outerHTML.slice(0, 90));
}
"""


@pytest.mark.nightly  # in the gate, the keyboard alone is enough for the table
@pytest.mark.parametrize("view_address", [*VIEWS, *MORE])
def test_the_tab_key_reaches_every_control(tab, view_address):
    few = view_address.replace("#/table?", "#/table?size=25000000&").replace("#/findings", FIGURE)
    page = tab.load(few.replace("&m=DNABERT-S", ""))
    controls = page.evaluate(CONTROLS)
    reached: set[str | None] = set()
    for _ in range(3):
        for _ in controls:
            page.keyboard.press("Tab")
        reached = set(page.evaluate("[...globalThis.reached]"))
        if len(reached - {None}) == len(controls):
            break
    missed = [text for number, text in enumerate(controls) if str(number) not in reached]
    assert missed == []


CHARTS = (("size", "plot=sizes&"), ("ranges", ""))


@pytest.mark.parametrize(("chart", "view_options"), gated(CHARTS, CHARTS[0]))
def test_arrow_keys_walk_through_a_chart_and_enter_opens_a_model(tab, chart, view_options):
    page = tab.go(f"#/plots?{view_options}size=100000000")
    parts = page.locator(f"#chart-{chart} .part")
    count = parts.count()
    page.locator(f"#chart-{chart} .part[tabindex='0']").focus()
    seen = []
    for _ in range(count):
        page_values = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert page.inner_text(f"#pointed-{chart}") == page_values
        seen.append(page_values)
        page.keyboard.press("ArrowRight")
    assert len(set(seen)) == count == 14
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == seen[-2]
    page.keyboard.press("Enter")
    tab.drawn()
    assert seen[-2].startswith(page.inner_text("h2") + ": ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scores_can_be_read_on_every_colour(browser, board, scheme):
    with opened(browser, f"{board.as_uri()}/index.html", color_scheme=scheme) as tab:
        page = tab.go("#/table")
        pairs = page.evaluate("""
            [...document.querySelectorAll('.ramp i')].map((step) => {
                const style = getComputedStyle(step);
                return [style.backgroundColor, style.color];
            })
        """)
        lights = [[luminance(colour) for colour in pair] for pair in pairs]
        assert len(lights) == 16
        for pair in lights:
            assert (max(pair) + 0.05) / (min(pair) + 0.05) >= TEXT_CONTRAST
        # Lightness alone tells the order, so no kind of colour vision is needed.
        backs = [back for back, _ in lights]
        assert backs == sorted(backs, reverse=scheme == "light")
        assert len(set(backs)) == 16


def luminance(colour: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)", after WCAG 2.2."""
    parts = [int(part) / 255 for part in colour.strip("rgb()").split(",")]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_keyboard_alone_is_enough(tab):
    page = tab.load("#/table")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert tab.address() == "/table"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Scores"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.focus") == "sort name"
    page.keyboard.press("Enter")
    assert page.locator("[aria-sort=ascending]").inner_text().startswith("Model")
    # What was pressed was drawn anew, and still has the focus.
    assert page.evaluate("document.activeElement.dataset.focus") == "sort name"
    page.keyboard.press("Space")
    assert page.locator("[aria-sort=descending]").inner_text().startswith("Model")
    page.focus("input[name=regime]:checked")
    page.keyboard.press("ArrowRight")
    assert "regime=10shot" in tab.address()
    assert page.evaluate("document.activeElement.value") == "10shot"
    for _ in range(20):
        page.keyboard.press("Tab")
        width = page.evaluate(
            "Number.parseFloat(getComputedStyle(document.activeElement).outlineWidth)"
            " || Number.parseFloat(getComputedStyle(document.activeElement.nextElementSibling"
            " ?? document.activeElement).outlineWidth)"
        )
        assert width >= 2


def test_a_screen_reader_is_told_what_changed(tab):
    page = tab.go("#/table")
    status = page.locator("[role=status]")
    assert (
        status.inner_text()
        == "41 of 41 models, full (all training examples), MCC, by Macro, highest first"
    )
    page.fill("#search", "caduceus")
    assert (
        status.inner_text()
        == "3 of 41 models, full (all training examples), MCC, by Macro, highest first"
    )
    assert (
        page.locator("table caption").inner_text() == "MCC by model, full (all training examples)"
    )
    assert page.locator(".scores").get_attribute("aria-rowcount") == "4"
    heads = page.locator(".scores tbody th[scope=row]")
    assert heads.count() == 3
    page.locator(".scores tbody .name .model").first.click()
    tab.drawn()
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize(
    "views", [VIEWS, pytest.param(MORE, marks=pytest.mark.nightly)], ids=("usual", "chosen")
)
def test_nothing_is_wider_than_a_phone(browser, board, views):
    size = {"width": 360, "height": 740}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=size) as tab:
        for view_address in views:
            page = tab.go(view_address)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert (view_address, width) == (view_address, 360)


def test_print_has_the_whole_table_and_no_controls(tab):
    page = tab.go("#/table")
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#csv").is_visible()
    box = page.locator(".scroller.tall")
    assert box.evaluate("(box) => box.scrollHeight <= box.clientHeight + 1")
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.nightly  # the gate prints the table and the page of a model: test_looks.py
def test_a_sheet_of_paper_is_wide_enough(browser, board):
    sheet = {"width": A4_WIDE, "height": 700}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=sheet) as tab:
        for path in ("#/table", "#/overview", "#/model/space", "#/plots"):
            page = tab.go(path)
            page.emulate_media(media="print")
            assert page.evaluate("document.documentElement.scrollWidth") <= A4_WIDE, path
            page.emulate_media(media="null")


def test_nothing_moves_of_itself():
    style = page_files()["board.css"].decode()
    assert re.findall(r"transition|animation|@keyframes|scroll-behavior", style) == []


def test_whoever_cannot_see_a_chart_has_its_figures(tab):
    page = tab.go("#/plots?m=space")
    for chart in page.locator("figure.plot").all():
        title = chart.locator("h3").inner_text()
        name = chart.locator("svg").get_attribute("aria-label")
        assert name is not None
        assert name.startswith(f"{title}: the figures stand in a table below")
        is_image = chart.locator("svg").get_attribute("role") == "img"
        assert is_image == (chart.locator("svg [role=link]").count() == 0)
        chart.locator("summary").click()
        chart.locator("table tbody tr").nth(14).wait_for()
        assert chart.locator("table caption").count() == 1

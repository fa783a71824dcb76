"""Everybody can use it: rules of axe-core, keyboard, screen reader, colours, phones, print."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.page.tab import opened

PLACES = [
    "#/overview",
    "#/overview?need=Chromatin+Acc.&regime=10shot",
    "#/table?m=space&size=100000000",
    "#/table?columns=tasks%3ASplice+Sites&intervals=all&size=25000000",
    "#/table?q=nothing+is+called+so",
    "#/plots",
    "#/compare?m=space&m=GROVER&m=MutBERT&m=DNABERT-S",
    "#/compare",
    "#/model/space",
    "#/model/nobody",
    "#/about",
]
# Nothing but colours differs in the dark, and these views have every colour.
DARK = [PLACES[0], PLACES[2], PLACES[5], PLACES[6], PLACES[10]]
TEXT_CONTRAST = 4.5  # WCAG 2.2, 1.4.3


@pytest.mark.parametrize(
    ("place", "scheme"), [(p, "light") for p in PLACES] + [(p, "dark") for p in DARK]
)
def test_axe_finds_nothing(browser, served, place, scheme):
    # axe-core reads stylesheets by requests of its own, which the page's policy would refuse.
    with opened(browser, served, color_scheme=scheme, bypass_csp=True) as tab:
        page = tab.go(place)
        for details in page.locator("main summary").all():
            details.click()
        rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
        results = Axe().run(page, options={"resultTypes": ["violations"]} | rules)
        assert results.violations_count == 0, results.generate_report()


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
    """Give the relative luminance of "rgb(r, g, b)", after WCAG 2.2."""
    parts = [int(part) / 255 for part in colour.strip("rgb()").split(",")]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_keyboard_alone_is_enough(tab):
    page = tab.go("#/table")
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
    for _ in range(40):
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
    assert status.inner_text() == "41 of 41 models, full, MCC, by Macro, highest first"
    page.fill("#search", "caduceus")
    assert status.inner_text() == "3 of 41 models, full, MCC, by Macro, highest first"
    assert page.locator("table caption").inner_text() == "MCC by model, full"
    assert page.locator(".scores").get_attribute("aria-rowcount") == "4"
    heads = page.locator(".scores tbody th[scope=row]")
    assert heads.count() == 3
    page.locator(".scores tbody .name a").first.click()
    tab.drawn()
    assert page.evaluate("document.activeElement.id") == "main"


def test_nothing_is_wider_than_a_phone(browser, board):
    size = {"width": 360, "height": 740}
    with opened(browser, f"{board.as_uri()}/index.html", viewport=size) as tab:
        for place in PLACES:
            page = tab.go(place)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert (place, width) == (place, 360)


def test_print_has_the_whole_table_and_no_controls(tab):
    page = tab.go("#/table")
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#csv").is_visible()
    box = page.locator(".scroller.tall")
    assert box.evaluate("(box) => box.scrollHeight <= box.clientHeight + 1")
    assert page.pdf().startswith(b"%PDF")


def test_evidence_stands_beside_every_level(tab):
    page = tab.go("#/table")
    assert set(tab.texts(".scores .trust small")) == {"authors' file", "not audited"}
    model = {"level": "verified", "audit": None}
    audit = {"tasks": 13, "of": 100, "sandbox": 2, "date": "2026-11-20", "agrees": True}
    say = "(model) => trustText(model)"
    assert page.evaluate(say, model | {"audit": audit}) == (
        "verified: audited 13/100, sandbox level 2, 2026-11-20"
    )
    failed = {"level": "disputed", "audit": audit | {"agrees": False}}
    assert page.evaluate(say, failed) == (
        "disputed: audit failed, 13/100, sandbox level 2, 2026-11-20"
    )

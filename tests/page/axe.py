"""Rules of axe-core in a page that is open: on a phone and a desk, light and dark."""

from collections.abc import Iterable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

DESK = 1440
LOOKS = ((390, "light"), (DESK, "light"), (DESK, "dark"))
"""The narrow and the wide layout; nothing but colours differs in the dark."""
MIDDLE = (768, "light")
"""The layout between the two; one view of each page has it."""
HEIGHT = 900
CONTRAST = "color-contrast"
# What is sent back is what is wrong, not the thousand things that are right.
RUN = """
(options) => axe.run(document, options).then(({ violations }) => violations.map(
  ({ id, help, nodes }) => `${id}: ${help}: ` +
    nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")))
"""
CUT = """
(rows) => document.querySelectorAll(`tbody tr:nth-child(n + ${rows + 1})`)
  .forEach((row) => row.remove())
"""
ROWS = 5
"""Rows of a table that are looked at: a hundredth is no other than these, and each takes time. The
colours of scores have a test of their own."""


def violations(
    page: Page, looks: Iterable[tuple[int, str]] = LOOKS, *, thorough: bool = False
) -> list[str]:
    """Return what axe-core finds wrong, each with the width and the colours where it does.

    In the dark the contrast alone is looked at. In the light it is half of the time, and looked at
    on a desk alone unless `thorough`. The rows of long tables are taken out of the page.
    """
    page.evaluate(CUT, ROWS)
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(Axe().axe_script)
    results = []
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        # What it would load are stylesheets, for a rule that is off, and the policy refuses them.
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if scheme == "dark":
            options["runOnly"] = [CONTRAST]
        elif width != DESK and not thorough:
            options["rules"] = {CONTRAST: {"enabled": False}}
        results += [f"{width} {scheme}: {text}" for text in page.evaluate(RUN, options)]
    return results

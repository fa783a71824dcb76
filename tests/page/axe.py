"""Rules of axe-core in a page that is open: at every width, light and dark, injected once."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

WIDTHS = (390, 768, 1440, 1920, 2560)
LAYOUTS = (390, 768, 1440)
HEIGHT = 900
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


def violations(page: Page) -> list[str]:
    """Return what axe-core finds wrong, each with the width and the colours where it does.

    Nothing but colours differs in the dark, and layouts in three ranges of widths: elsewhere the
    contrast alone is looked at. The rows of long tables are taken out of the page.
    """
    page.evaluate(CUT, ROWS)
    page.evaluate(Axe().axe_script)
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            options: dict[str, Any] = {"resultTypes": ["violations"]}
            if width not in LAYOUTS or scheme == "dark":
                options |= {"runOnly": ["color-contrast"], "preload": False}
            found += [f"{width} {scheme}: {one}" for one in page.evaluate(RUN, options)]
    return found

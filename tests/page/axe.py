"""Rules of axe-core in a page that is open: on a phone and a desk, light and dark."""

from collections.abc import Iterable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

PHONE, DESK, DARK = (390, "light"), (1440, "light"), (1440, "dark")
LOOKS = (PHONE, DESK, DARK)
"""The narrow and the wide layout; nothing but colours differs in the dark."""
HEIGHT = 900
CONTRAST = "color-contrast"
# What is sent back is what is wrong, not the thousand things that are right.
RUN = """
(options) => axe.run(document, options).then(({ violations }) => violations.map(
  ({ id, help, nodes }) => `${id}: ${help}: ` +
    nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")))
"""
CUT = """
(most) => document.querySelectorAll("tbody").forEach((body) => {
  const counts = {};
  [...body.rows].forEach((row) => {
    const kinds = [row, ...row.querySelectorAll("*")].map(
      (one) => `${one.tagName} ${[...one.classList].filter((name) => !/[0-9]/.test(name))}`);
    const kind = [...new Set(kinds)].sort().join();
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (counts[kind] > most) row.remove();
  });
})
"""
ROWS = 2
"""Rows of each kind in a table that are looked at: a third has the same elements with the same
classes, and each takes time. The colours of scores, whose classes are numbered, have a test of
their own."""


def violations(
    page: Page, looks: Iterable[tuple[int, str]] = LOOKS, *, thorough: bool = False
) -> list[str]:
    """Return what axe-core finds wrong, each with the width and the colours where it does.

    In the dark the contrast alone is looked at. In the light it is half of the time, and looked at
    on a desk alone unless `thorough`. Rows of a table that are like two before them are
    taken out of the page.
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
        elif (width, scheme) != DESK and not thorough:
            options["rules"] = {CONTRAST: {"enabled": False}}
        results += [f"{width} {scheme}: {text}" for text in page.evaluate(RUN, options)]
    return results

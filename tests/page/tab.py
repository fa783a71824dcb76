"""A tab of a browser that remembers every complaint and every address it asked for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Page

from geneb_ci.cli.board import server

PATIENCE_MS = 60_000  # a view takes a tenth of a second; a busy machine may stand still
WIDTHS = (390, 768, 1440, 1920, 2560)
"""Pixels: a phone, a tablet, and three kinds of desk."""
# Addresses that ask nobody: the page's own downloads and its icon.
INWARD = ("data:", "blob:", "about:")


class Tab:
    """One page, and what went wrong in it."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        page.set_default_timeout(PATIENCE_MS)
        self.faults: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self.faults.append(f"failed: {request.url}"))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", self._refused)

    def _refused(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, place: str = "#/overview") -> Page:
        """Open a place of the board afresh, and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.home}{place}")
        self.drawn()
        return self.page

    def drawn(self) -> None:
        self.page.wait_for_selector("main:not([aria-busy]) > :is(h2, .fault)", state="attached")

    def choose(self, name: str, value: str) -> None:
        """Press one of several buttons that exclude each other."""
        self.page.check(f"input[name={name}][value='{value}']", force=True)
        self.drawn()

    def address(self) -> str:
        """Return the part of the address that holds the state."""
        return self.page.url.partition("#")[2]

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]

    def names(self) -> list[str]:
        """Return the models of the table, in order."""
        return self.texts(".scores tbody .name .model")

    def sound(self) -> None:
        """Hold that nothing complained and nobody else was asked."""
        folder = self.home.rpartition("/")[0]
        outward = [a for a in self.asked if not a.startswith((folder, *INWARD))]
        assert (self.faults, outward) == ([], [])


@contextmanager
def opened(browser: Browser, home: str, **options: Any) -> Iterator[Tab]:
    """Open a tab, and hold at the end that it stayed sound."""
    with browser.new_context(**options) as context:
        tab = Tab(context.new_page(), home)
        yield tab
        tab.sound()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder as `geneb-ci serve` does, and give its address."""
    with server(folder, 0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_address[1]}/"
        finally:
            running.shutdown()
            thread.join()

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
        self._listeners = {
            "console": lambda message: self.faults.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.faults.append(f"error: {error}"),
            "requestfailed": lambda request: self.faults.append(f"failed: {request.url}"),
            "request": lambda request: self.asked.append(request.url),
            "dialog": self._refused,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    def let_go(self) -> None:
        """Leave the page to the next tab."""
        self.page.goto("about:blank")
        self.page.unroute_all()
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

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


_idle: dict[Browser, list[Page]] = {}
"""Pages of sound tabs: a new one costs as much as all that is then done in it."""
SIZE = {"width": 1280, "height": 720}
"""Of a window, where a test names none."""


@contextmanager
def opened(
    browser: Browser,
    home: str,
    viewport: Any = SIZE,
    color_scheme: Any = "light",
    **options: Any,
) -> Iterator[Tab]:
    """Open a tab, and hold at the end that it stayed sound.

    A board on disk is opened in the page of a former tab, unless `options` of the context are
    named: nothing of a file is cached, and the board keeps nothing in the browser.
    """
    is_new = bool(options) or not home.startswith("file:")
    idle = _idle.setdefault(browser, [])
    page = browser.new_context(**options).new_page() if is_new or not idle else idle.pop()
    page.set_viewport_size(viewport)
    page.emulate_media(media="null", color_scheme=color_scheme, reduced_motion="null")
    page.context.set_offline(False)
    tab = Tab(page, home)
    try:
        yield tab
        tab.sound()
    except BaseException:
        is_new = True
        raise
    finally:
        if is_new:
            page.context.close()
        else:
            tab.let_go()
            idle.append(page)


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

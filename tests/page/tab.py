"""A tab of a browser that remembers every complaint and every requested address."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Page

from geneb_ci.cli.board import server
from tests.loopback import answering

PATIENCE_MS = 60_000  # a view takes a tenth of a second; a busy machine may stand still
WIDTHS = (390, 768, 1440, 1920, 2560)
"""Pixels: a phone, a tablet, and three kinds of desk."""
# Another address of an open board, as a link or a bookmark takes there. A reader who comes anew has
# scrolled nowhere and opened nothing. False where it is the address already.
WALK = """
(address) => new Promise((arrived) => {
  document.querySelectorAll("details[open]").forEach((one) => { one.open = false });
  document.activeElement?.blur();
  scrollTo(0, 0);
  const before = location.hash;
  addEventListener("hashchange", () => arrived(true), { once: true });
  location.hash = address;
  if (location.hash === before) arrived(false);
})
"""
# Whether the page is printed, and whether it is dark. To ask is cheaper than to set both again: a
# page is laid out anew. Nothing shows that a test asked for a screen: none may.
LOOK = "['print', '(prefers-color-scheme: dark)'].map((query) => matchMedia(query).matches)"
# One more sheet of style, which the policy of the page does not refuse.
STYLED = """
(text) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [sheet];
}
"""
# Addresses that ask nobody: the page's own downloads and its icon.
INWARD = ("data:", "blob:", "about:")


class Tab:
    """One page, and what went wrong in it."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        page.set_default_timeout(PATIENCE_MS)
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._listeners = {
            "console": lambda message: self.faults.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.faults.append(f"error: {error}"),
            "requestfailed": lambda request: self.faults.append(f"failed: {request.url}"),
            "request": lambda request: self.requests.append(request.url),
            "dialog": self._refused,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    def let_go(self) -> None:
        """Leave the page to the next tab."""
        self.page.unroute_all()
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _refused(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, path: str = "#/overview") -> Page:
        """Go to a place of the board, which may be open already, and wait until it is drawn.

        What is drawn for the width of the window is drawn anew.
        """
        is_open = self.page.url.partition("#")[0] == self.home
        if not (is_open and self.page.evaluate(WALK, path)):
            return self.load(path)
        self.drawn()
        return self.page

    def load(self, path: str = "#/overview") -> Page:
        """Open a place of the board afresh, and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.home}{path}")
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
        outward = [a for a in self.requests if not a.startswith((folder, *INWARD))]
        assert (self.faults, outward) == ([], [])


_idle: dict[Browser, list[Page]] = {}
"""Pages of sound tabs, the latest last. A new one costs as much as all that is then done in it, and
half of that is to load the board."""
IDLE_MAX = 3
SIZE = {"width": 1280, "height": 720}
"""Of a window, where a test names none."""


def _idle_page(browser: Browser, home: str) -> Page:
    """Return a page that is at `home` if there is one, or else another that nobody uses."""
    idle = _idle.setdefault(browser, [])
    for index, page in enumerate(idle):
        if page.url.partition("#")[0] == home:
            return idle.pop(index)
    return browser.new_context().new_page() if len(idle) < IDLE_MAX else idle.pop(0)


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
    page = browser.new_context(**options).new_page() if is_new else _idle_page(browser, home)
    page.set_viewport_size(viewport)
    if page.evaluate(LOOK) != [False, color_scheme == "dark"]:
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
            _idle[browser].append(page)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder as `geneb-ci serve` does, and give its address."""
    with answering(server(folder, 0)) as address:
        yield f"{address}/"

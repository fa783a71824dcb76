"""One browser, one board and one server for all tests of the page."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from tests.page.boards import crowd, public
from tests.page.site import write_site
from tests.page.tab import Tab, opened, serving
from tests.paths import ROOT

CHROMIUM = Path("/usr/bin/chromium")
CALL = """
async ([part, name, given]) => (await import(`/src/pure/${part}.js`))[name](...given)
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium; without it a test fails in CI and is skipped elsewhere."""
    if not CHROMIUM.exists():
        message = f"{CHROMIUM} is missing: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    # The sandbox of Chromium does not run as root; what is shown here is our own page.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        except Error as error:
            pytest.fail(f"Chromium does not start: {error.message}")
        yield found
        found.close()


@pytest.fixture(scope="session")
def board(tmp_path_factory) -> Path:
    """Write the board of the public rows."""
    folder: Path = tmp_path_factory.mktemp("board")
    public(folder)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Write the board of the public rows with all its pages, as a publish does."""
    made: Path = tmp_path_factory.mktemp("site")
    write_site(made)
    return made


@pytest.fixture(scope="session")
def crowded(tmp_path_factory) -> Path:
    """Write a board of 1,025 models."""
    folder: Path = tmp_path_factory.mktemp("crowd")
    assert crowd(folder) == 1025
    return folder


@pytest.fixture(scope="session")
def served(board) -> Iterator[str]:
    """Serve the board as `geneb-ci serve` does, and give its address."""
    with serving(board) as home:
        yield home


@pytest.fixture(params=["disk", "server"])
def anywhere(request, browser, board, served) -> Iterator[Tab]:
    """Open a tab on the board, once from disk and once from a server."""
    home = f"{board.as_uri()}/index.html" if request.param == "disk" else served
    with opened(browser, home) as tab:
        yield tab


@pytest.fixture
def tab(browser, board) -> Iterator[Tab]:
    """Open a tab on the board from disk."""
    with opened(browser, f"{board.as_uri()}/index.html") as tab:
        yield tab


@pytest.fixture(scope="session")
def call(browser) -> Iterator[Callable[..., object]]:
    """Call a function of a module below src/pure in the browser."""
    with serving(ROOT / "leaderboard") as home, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{home}src/main.css")

        def called(place: str, *arguments: object) -> object:
            part, name = place.split(".")
            return page.evaluate(CALL, [part, name, list(arguments)])

        yield called

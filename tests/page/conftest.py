"""One browser, one board and one server for all tests of the page."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error

from geneb_ci.board.rows import board_file_bytes
from geneb_ci.common.files import write_files
from tests.page.boards import crowd, values
from tests.page.site import write_site
from tests.page.tab import Tab, opened, serving
from tests.paths import ROOT
from tools.browser import launched

CALL = """
async ([part, name, given]) => (await import(`/src/pure/${part}.js`))[name](...given)
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the browser; where none is installed a test fails in CI and is skipped elsewhere."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(launched())
        except FileNotFoundError as error:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
        except Error as error:
            pytest.fail(f"The browser does not start: {error.message}")
        yield running


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Write the board of the public rows with all its pages, as a publish does."""
    made: Path = tmp_path_factory.mktemp("site")
    write_site(made)
    write_files(made, {name: board_file_bytes(name, value) for name, value in values().items()})
    return made


@pytest.fixture(scope="session")
def board(folder) -> Path:
    """Return the same: a tab that is open on the board stays there for the next test."""
    made: Path = folder
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


@pytest.fixture(params=[pytest.param("disk", marks=pytest.mark.nightly), "server"])
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
def evaluated(browser) -> Iterator[Callable[..., Any]]:
    """Evaluate a function that may import the modules below src/pure."""
    with serving(ROOT / "leaderboard") as home, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{home}src/main.css")
        yield page.evaluate


@pytest.fixture(scope="session")
def call(evaluated) -> Callable[..., object]:
    """Call a function of a module below src/pure in the browser."""

    def called(path: str, *arguments: object) -> object:
        part, name = path.split(".")
        return evaluated(CALL, [part, name, list(arguments)])

    return called

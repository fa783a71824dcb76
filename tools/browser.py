"""The browser that draws the page for tests, benches and pictures."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

COMMANDS = ("chromium-headless-shell", "chromium")
"""The shell draws the same and takes half the time; where there is none, Chromium will do."""
ARGUMENTS = ("--num-raster-threads=1",)
"""The picture stays the same; on a small one more threads wait for one another."""


def command() -> str | None:
    """Return the path of the browser's program, or None where none is installed."""
    return next(filter(None, map(shutil.which, COMMANDS)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """Yield a running browser, and close it afterwards.

    Raises FileNotFoundError where no browser is installed, and playwright's Error where it does not
    start.
    """
    path = command()
    if path is None:
        raise FileNotFoundError(f"no browser is installed: apt-get install {COMMANDS[0]}")
    # Chromium's own sandbox does not run as root; only pages of ours are shown.
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()

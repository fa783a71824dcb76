"""Starts the browser that renders the page for tests, benchmarks and pictures."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

COMMANDS = ("chromium-headless-shell", "chromium")
"""Programs in order of preference: both draw the same, but the shell takes half the time."""
ARGUMENTS = ("--num-raster-threads=1",)
"""One drawing thread: more do not change the picture, and on small pages they only wait."""


def command() -> str | None:
    """Return the path of the browser's program, or None if none is installed."""
    return next(filter(None, map(shutil.which, COMMANDS)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """Yield a running browser, and close it afterwards.

    Raises FileNotFoundError if no browser is installed, and playwright's Error if it does not
    start.
    """
    path = command()
    if path is None:
        raise FileNotFoundError(f"no browser is installed: apt-get install {COMMANDS[0]}")
    # Chromium's own sandbox does not work for root. Only our own pages are opened.
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()

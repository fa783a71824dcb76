"""`make pictures`: writes the pictures in docs/pictures, which are tracked by git.

The board is drawn by Chromium from the public rows of tests/public; the terminals come from
tools/recordings.py. Another version of Chromium or of its fonts draws other pixels, so a test
compares the recordings byte by byte, but of the board only the format of the picture.
"""

import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from tests.page.boards import public
from tests.page.tab import opened
from tools import recordings
from tools.browser import launched

BOARD = recordings.FOLDER / "board.png"
VIEW = "#/table?intervals=none"
SIZE = {"width": 1280, "height": 1600}
VIEWPORT = {"width": 1280, "height": 753}
"""Pixels of the picture: the table with its heading and its first rows."""
MARGIN = 16
COLOURS = 256
"""The size of a full palette. Without dithering text stays sharp, and the file below 150 kB."""


def main() -> None:
    """Draw the board and record the terminals."""
    recordings.main()
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        public(Path(folder))
        with opened(
            browser,
            f"{Path(folder).as_uri()}/index.html",
            viewport=SIZE,
            color_scheme="light",
            reduced_motion="reduce",
        ) as tab:
            page = tab.go(VIEW)
            top = page.locator("main h2 ~ * h3, main h2").last.bounding_box()
            top_edge = top["y"] - MARGIN if top else 0
            clip: Any = {"x": 0, "y": top_edge, **VIEWPORT}
            page.screenshot(path=BOARD, animations="disabled", clip=clip)
    with Image.open(BOARD) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(BOARD, optimize=True)


if __name__ == "__main__":
    main()

"""The formats by name; each is imported when it is asked for, so that none pays for another."""

import importlib
from typing import Protocol, cast

from geneb_ci.check.runner import Report
from geneb_ci.common.errors import UsageProblem

WIDTH = 100  # characters of a line where nobody knows the width of the terminal


class Renderer(Protocol):
    """What each format's module offers as `render`.

    Only `text` heeds `color` and `width`. The output ends with one newline, and it is safe in a log
    of GitHub Actions: no control character but the newline, no workflow command but our own.
    """

    def __call__(self, report: Report, *, color: bool = False, width: int = WIDTH) -> str:
        """Return the whole output."""


FORMATS: dict[str, str] = {
    "text": "geneb_ci.render.text",
    "json": "geneb_ci.render.findings_json",
    "sarif": "geneb_ci.render.sarif",
    "github": "geneb_ci.render.annotations",
    "markdown": "geneb_ci.render.markdown",
    "junit": "geneb_ci.render.junit",
}
"""Name on the command line to the module that renders it."""


def renderer(name: str) -> Renderer:
    """Import the renderer of a format. Raises UsageProblem for a name that is none."""
    if name not in FORMATS:
        raise UsageProblem(f"{name!r} is not a format", f"use one of {', '.join(FORMATS)}")
    return cast("Renderer", importlib.import_module(FORMATS[name]).render)


def render(name: str, report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render a report in the format of that name."""
    return renderer(name)(report, color=color, width=width)

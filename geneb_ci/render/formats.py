"""Output formats by name; a renderer is imported when it is used."""

import importlib
from typing import Protocol, cast

from geneb_ci.check.runner import Report
from geneb_ci.common.errors import UsageProblem

WIDTH = 100  # columns, if the width of the terminal is unknown


class Renderer(Protocol):
    """The function `render` of each format's module.

    Only `text` uses `color` and `width`. The output ends with a newline and is safe in a log of
    GitHub Actions: no control characters except newlines, and no workflow commands of others.
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
"""Name of the format to its module."""


def renderer(name: str) -> Renderer:
    """Import and return the renderer of a format. Raises UsageProblem for an unknown name."""
    if name not in FORMATS:
        raise UsageProblem(f"{name!r} is not a format", f"use one of {', '.join(FORMATS)}")
    return cast("Renderer", importlib.import_module(FORMATS[name]).render)


def render(name: str, report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render a report in the format of that name."""
    return renderer(name)(report, color=color, width=width)

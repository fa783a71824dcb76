"""Output formats by name; a renderer is imported when it is used."""

import importlib
from typing import NamedTuple, Protocol, cast

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


class Format(NamedTuple):
    """One format of `geneb-ci check --format`."""

    module: str
    """Below geneb_ci.render; it has a function `render`, a Renderer."""
    suffix: str
    """Of its files, without the dot."""
    what: str
    """For whom it is, in the help of the command."""


FORMATS: dict[str, Format] = {
    "text": Format("text", "txt", "for a terminal"),
    "json": Format("findings_json", "json", "for programs: schemas/findings-1.0.schema.json"),
    "sarif": Format("sarif", "sarif", "for code scanning and editors"),
    "github": Format("annotations", "txt", "annotations of a GitHub Actions run"),
    "markdown": Format("markdown", "md", "for a step summary or a comment"),
    "junit": Format("junit", "xml", "for test reports of CI systems"),
}
"""Name on the command line to how it is rendered; help, README and tests follow this table."""


def renderer(name: str) -> Renderer:
    """Import and return the renderer of a format. Raises UsageProblem for an unknown name."""
    if name not in FORMATS:
        raise UsageProblem(f"{name!r} is not a format", f"use one of {', '.join(FORMATS)}")
    module = importlib.import_module(f"geneb_ci.render.{FORMATS[name].module}")
    return cast("Renderer", module.render)


def render(name: str, report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render a report in the format of that name."""
    return renderer(name)(report, color=color, width=width)

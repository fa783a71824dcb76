"""Render a report for a terminal like `text`, but never summarised."""

from geneb_ci.check.report import Report
from geneb_ci.render.formats import WIDTH
from geneb_ci.render.text import rendered


def render(report: Report, *, color: bool = False, width: int = WIDTH) -> str:
    """Render every finding, by file, then by rule."""
    return rendered(report, color=color, width=width, is_whole=True)

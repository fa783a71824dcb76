"""Render a report for a terminal like `text`, but never summarised."""

from geneb_ci.check.report import Report
from geneb_ci.render.formats import DEFAULT_WIDTH
from geneb_ci.render.text import report_text


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:
    """Render every finding, by file, then by rule."""
    return report_text(report, color=color, width=width, is_whole=True)

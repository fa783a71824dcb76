"""impossible-dates: a date of the run is invalid, or the run ended before it began."""

from collections.abc import Iterator
from datetime import datetime

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "impossible-dates"


def check(context: Context) -> Iterator[Fault]:
    """Report invalid dates and dates in the wrong order; they are not compared with the clock."""
    began, ended = (_moment(context.text("run", key)) for key in ("started_at", "finished_at"))
    for key, moment in (("started_at", began), ("finished_at", ended)):
        text = context.text("run", key)
        if text and moment is None and not context.is_reported("run", key):
            yield Fault(
                ID,
                ("run", key),
                f"{key} {quoted(text)} is not a date",
                quoted(text),
                "a date and time in UTC",
            )
    if began and ended and ended < began:
        yield Fault(
            ID,
            ("run", "finished_at"),
            "finished_at is before started_at",
            quoted(context.text("run", "finished_at")),
            f"after {quoted(context.text('run', 'started_at'))}",
        )


def _moment(text: str) -> datetime | None:
    """Return a time with its time zone; None if it is invalid or has no time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The dates of the run are invalid or in the wrong order.",
    why="Dates tie a run to versions of data and weights; wrong dates suggest an edited record.",
    fix="Copy both dates from the run record, in UTC.",
    check=check,
)

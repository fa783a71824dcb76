"""Time limits of waiting for a maintainer, and time spans in words."""

import datetime as dt

OVERDUE_AFTER = dt.timedelta(days=7)
"""Time after which a waiting pull request, or an audit without a record, is overdue."""


def duration(seconds: int | None) -> str:
    """Return a time span in its largest unit: "5 min", "7 h", "12 d"; "?" if it is not known."""
    if seconds is None:
        return "?"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"

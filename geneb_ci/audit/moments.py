"""Moments of an audit: UTC, to the second, as texts and as seconds since 1970."""

from datetime import UTC, datetime

from geneb_ci.errors import UsageProblem

FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def seconds_of(moment: str) -> int:
    """Give the seconds since 1970 of a moment. Raises UsageProblem when it is none."""
    try:
        found = datetime.strptime(moment, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        found = None
    # strptime takes the digits of every script and leaves out zeros; there is one way to write it.
    if found is None or not moment.isascii() or found.strftime(FORMAT) != moment:
        raise UsageProblem(
            f"{moment!r} is not a moment", "write it in UTC, to the second: 2026-11-20T08:30:00Z"
        )
    return int(found.timestamp())


def moment_of(seconds: int) -> str:
    """Write seconds since 1970 as a moment."""
    return datetime.fromtimestamp(seconds, UTC).strftime(FORMAT)

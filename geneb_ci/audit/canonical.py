"""Canonical JSON and its digest, times as text, and the names of the steps of a draw."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import rfc8785

from geneb_ci.common.errors import UsageProblem

COMMITMENT_STEP = "commitment"
"""Step of a draw: the digest of the commitment."""
ROUND_STEP = "round"
"""Step of a draw: the round of the beacon that follows the commitment."""
SIGNATURE_STEP = "signature"
"""Step of a draw: the signature of this round, or the value that replaces it."""
SEED_STEP = "seed"
"""Step of a draw: the seed, from commitment and signature."""
TICKETS_STEP = "tickets"
"""Step of a draw: a hash of seed and task for each task, by which the tasks are ordered."""
SAMPLE_STEP = "sample"
"""Step of a draw: the tasks with the smallest tickets."""
DRAW_STEPS = (COMMITMENT_STEP, ROUND_STEP, SIGNATURE_STEP, SEED_STEP, TICKETS_STEP, SAMPLE_STEP)
"""Names of the steps of a draw, in order; each step is computed from the one before."""


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value (RFC 8785), as UTF-8.

    Raises TypeError for floats, which programs write differently, and for keys that are not ASCII
    text; ValueError for other values that JSON does not have, for text that UTF-8 cannot encode,
    and for integers beyond 2**53, which some readers of JSON round.
    """
    _refuse_unsupported(value)
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        msg = f"this value has no canonical JSON: {error}"
        raise ValueError(msg) from error


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a value, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _refuse_unsupported(value: Any) -> None:
    """Raise TypeError for a float or a key that is not ASCII text, at any depth of a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str) or not key.isascii():
                msg = f"canonical JSON has ASCII keys, found {key!r}"
                raise TypeError(msg)
            _refuse_unsupported(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_unsupported(inner)
    elif isinstance(value, float):
        msg = f"canonical JSON here has no floats, found {value!r}"
        raise TypeError(msg)


TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
"""The only notation of times in the files of an audit: UTC, to the second."""


def seconds_of(moment: str) -> int:
    """Return the seconds since 1970 of a time such as 2026-11-20T08:30:00Z.

    Raises UsageProblem for any other text.
    """
    try:
        time = datetime.strptime(moment, TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        time = None
    # strptime also accepts digits of other scripts and missing zeros; only one notation is valid.
    if time is None or not moment.isascii() or time.strftime(TIME_FORMAT) != moment:
        raise UsageProblem(
            f"{moment!r} is not a time", "write it in UTC, to the second: 2026-11-20T08:30:00Z"
        )
    return int(time.timestamp())


def checked_moment(moment: str) -> str:
    """Return a time that `seconds_of` accepts, or raise ValueError: a validator of pydantic."""
    try:
        seconds_of(moment)
    except UsageProblem as error:
        raise ValueError(error.message) from error
    return moment


def moment_of(seconds: int) -> str:
    """Return seconds since 1970 as a time such as 2026-11-20T08:30:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime(TIME_FORMAT)


def current_moment() -> str:
    """Return the time by the clock of this machine, such as 2026-11-20T08:30:00Z."""
    return datetime.now(UTC).strftime(TIME_FORMAT)

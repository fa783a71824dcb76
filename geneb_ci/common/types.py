"""Types that several formats share, and the first error of a value that does not fit them."""

import enum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb_ci.common.finding import quoted

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""A time in UTC, to the second."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Signed = Annotated[float, Field(ge=-1, le=1)]
"""A score from -1 to 1: MCC."""
Unit = Annotated[float, Field(ge=0, le=1)]
"""A score from 0 to 1: accuracy and macro-F1."""


class StrictModel(BaseModel):
    """Base of all models of files: no unknown fields, no type coercion, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class Scores(StrictModel):
    """Three metrics of one task in one regime, each a mean over the seeds."""

    MCC: Signed
    """Matthews correlation coefficient, -1 to 1."""
    Acc: Unit
    """Accuracy, 0 to 1."""
    F1: Unit
    """Macro-averaged F1, 0 to 1."""


class TrustLevel(enum.StrEnum):
    """How far a row can be trusted, in upstream's words."""

    # The only list of the levels: schemas and page have it from here, by tools/generate.py.
    SELF_REPORTED = "self-reported"
    VERIFIED = "verified"
    REPRODUCED = "reproduced"
    OFFICIAL = "official"
    DISPUTED = "disputed"
    STALE = "stale"


LEVEL_MEANING = {
    TrustLevel.SELF_REPORTED: "passes every check; not independently rerun",
    TrustLevel.VERIFIED: "an audit reran tasks drawn after the submission was fixed, and agrees",
    TrustLevel.REPRODUCED: "audits by two signers cover every task of every audited regime",
    TrustLevel.OFFICIAL: "the file of the benchmark's authors",
    TrustLevel.STALE: "the evidence is for another version of harness, benchmark or data",
    TrustLevel.DISPUTED: "an audit failed",
}
"""One line for readers of the board, in the order in which the page explains the levels."""
TRUST_ORDER = (
    TrustLevel.SELF_REPORTED,
    TrustLevel.VERIFIED,
    TrustLevel.REPRODUCED,
    TrustLevel.OFFICIAL,
)
"""From least to most trust; a row of another level, such as `stale`, meets none of them."""


def first_error(error: ValidationError, top: str = "the document") -> str:
    """Return "place: message" of the first validation error, on one line of printable ASCII.

    The place is the path of keys to the value, joined by "/"; `top` names the whole value. Keys
    may be a contributor's: they are escaped and cut.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(map(str, first["loc"]))
    return f"{quoted(place)[1:-1] or top}: {first['msg']}"

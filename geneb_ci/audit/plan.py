"""Plans: which tasks an audit reruns, and why these; plans and commitments as files."""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from geneb_ci.audit.commitment import Commitment, check_commitment
from geneb_ci.audit.steps import COMMITMENT, StepMismatch
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.types import Hex64, Moment, Name, Positive, StrictModel, first_error
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.kind import FileKind, other_kind_of, require_file

Reason = Literal["drawn", "earlier", "targeted"]
"""Why a task is rerun. Only drawn ones carry the guarantee; earlier ones were drawn for an earlier
version of the submission; targeted ones are named by the plausibility scores."""


class DrandBeacon(StrictModel):
    """A round of the public drand beacon, proved by its signature."""

    kind: Literal["drand"]
    chain: Hex64
    round: Positive
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    """BLS12-381 signature on G1, compressed, over SHA-256 of the round as 8 bytes, big-endian."""


class FallbackBeacon(StrictModel):
    """The fallback for an outage of the beacon: HMAC under a key whose digest was published."""

    kind: Literal["hmac"]
    key_sha256: Hex64
    """Published at the start of the key's epoch."""
    key: Hex64 | None
    """Revealed at the end of the epoch; null before."""
    value: Hex64
    """HMAC-SHA256 of the commitment."""
    why: Annotated[str, Field(min_length=1)]


Beacon = Annotated[DrandBeacon | FallbackBeacon, Field(discriminator="kind")]


class Ticket(StrictModel):
    """A task's place in the draw."""

    task: Name
    ticket: Hex64


class EarlierDraw(StrictModel):
    """A draw for an earlier version of the same submission: its sample is audited again."""

    commitment: Hex64
    drawn: Annotated[list[Name], Field(min_length=1)]


class Chosen(StrictModel):
    """A task to rerun."""

    task: Name
    reason: Reason


class Plan(StrictModel):
    """One audit, before it runs."""

    schema_version: Literal["1.0"]
    commitment: Commitment
    commitment_sha256: Hex64
    committed_at: Moment
    """t0: when the commitment became public, by the clock of the server that shows it."""
    beacon: Beacon
    seed: Hex64
    """SHA-256 of protocol, commitment and beacon value."""
    tickets: Annotated[list[Ticket], Field(min_length=1)]
    """Every task, smallest ticket first."""
    earlier: list[EarlierDraw]
    chosen: Annotated[list[Chosen], Field(min_length=1)]
    """Tasks to rerun: drawn in order of ticket, then earlier ones, then targeted ones."""

    @property
    def drawn(self) -> list[str]:
        """Ids of the guaranteed sample."""
        return [one.task for one in self.chosen if one.reason == "drawn"]


_M = TypeVar("_M", bound=BaseModel)


class Committed(StrictModel):
    """What `audit commit` writes: a commitment beside its digest."""

    commitment: Commitment
    sha256: Hex64


def encoded(value: BaseModel) -> str:
    """Return indented JSON with a final newline, the same bytes each time."""
    return json.dumps(value.model_dump(), indent=2, ensure_ascii=False) + "\n"


def committed_text(commitment: Commitment) -> str:
    """Return the file of a commitment: the commitment and its digest."""
    return encoded(Committed(commitment=commitment, sha256=commitment.sha256))


def read_commitment(path: Path) -> Commitment:
    """Read what `audit commit` wrote.

    Raises NothingChecked when it cannot be read, StepMismatch when the digest is not its own or
    nothing can be drawn from it.
    """
    found = _read(path, Committed, FileKind.COMMITMENT)
    if found.commitment.sha256 != found.sha256:
        raise StepMismatch(
            COMMITMENT,
            f"{path}: the commitment has digest {found.commitment.sha256}, the file says "
            f"{found.sha256}",
            "take the file as it was published, or commit again",
        )
    check_commitment(found.commitment, found.sha256)
    return found.commitment


def read_plan(path: Path) -> Plan:
    """Read a plan, without recomputing it. Raises NothingChecked when it cannot be read."""
    return _read(path, Plan, FileKind.PLAN)


def _read(path: Path, model: type[_M], kind: FileKind) -> _M:
    require_file(path, kind)
    raw, what = read_bytes(path), kind.title.partition(" ")[2]
    if isinstance(raw, Fault):
        raise NothingChecked(f"{path}: not a {what}: {raw.message}", kind.fix)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        other = other_kind_of(raw, kind) or f"not a {what}: {first_error(error)}"
        raise NothingChecked(f"{path}: {other}", kind.fix) from error

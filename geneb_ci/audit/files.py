"""Commitments and plans as files: read from what somebody hands over, written in one way."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from geneb_ci.audit.commitment import Commitment, Hex64, Part
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.steps import COMMITMENT, StepMismatch
from geneb_ci.errors import NothingChecked
from geneb_ci.read.bytes import read_bytes
from geneb_ci.read.fault import Fault

_M = TypeVar("_M", bound=BaseModel)


class Committed(Part):
    """What `audit commit` writes: a commitment beside its digest."""

    commitment: Commitment
    sha256: Hex64


def encoded(value: BaseModel) -> str:
    """Write a file: as people read it, and the same bytes each time."""
    return json.dumps(value.model_dump(), indent=2, ensure_ascii=False) + "\n"


def committed_text(commitment: Commitment) -> str:
    """Write a commitment beside its digest."""
    return encoded(Committed(commitment=commitment, sha256=commitment.sha256))


def read_commitment(path: Path) -> Commitment:
    """Read what `audit commit` wrote.

    Raises NothingChecked when it cannot be read, StepMismatch when the digest is not its own.
    """
    found = _read(path, Committed, "commitment: `geneb-ci audit commit` writes one")
    if found.commitment.sha256 != found.sha256:
        raise StepMismatch(
            COMMITMENT,
            f"{path}: its digest is {found.commitment.sha256}, and the file says {found.sha256}",
            "take the file as it was published, or commit anew",
        )
    return found.commitment


def read_plan(path: Path) -> Plan:
    """Read a plan, without recomputing it. Raises NothingChecked when it cannot be read."""
    return _read(path, Plan, "plan: `geneb-ci audit plan` writes one")


def _read(path: Path, model: type[_M], what: str) -> _M:
    raw = read_bytes(path)
    if isinstance(raw, Fault):
        raise NothingChecked(f"{path}: {raw.message}", f"name a {what}")
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(map(str, first["loc"])) or "the document"
        raise NothingChecked(f"{path}: {place}: {first['msg']}", f"name a {what}") from error

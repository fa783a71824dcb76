"""Plans, which list what an audit reruns and why; files of plans and commitments."""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import pydantic_core
from pydantic import BaseModel, Field, ValidationError

from geneb_ci.audit.canonical import COMMITMENT_STEP
from geneb_ci.audit.commitment import Commitment, check_commitment
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault
from geneb_ci.receipt.draw import EmbeddingCounts
from geneb_ci.submission.reading import FileKind, read_bytes, refusal_of, require_file
from reference_harness.formats.base import Hex64, Moment, Name, Positive, StrictModel, first_error

Reason = Literal["drawn", "earlier", "targeted"]
"""The reason for the rerun of a task: it is in the guaranteed sample, it was drawn for an earlier
version of the submission, or the plausibility rules name it."""


class DrandBeacon(StrictModel):
    """A round of the public drand beacon with its signature."""

    kind: Literal["drand"]
    chain: Hex64
    """Id of the drand chain."""
    round: Positive
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    """BLS12-381 signature on G1, compressed, over SHA-256 of the round as 8 bytes, big-endian."""


class FallbackBeacon(StrictModel):
    """The fallback for an outage of the beacon: HMAC under a key whose digest was published."""

    kind: Literal["hmac"]
    key_sha256: Hex64
    """Digest of the key, published before the key is used."""
    key: Hex64 | None
    """The key, if it is revealed; null while it is secret."""
    value: Hex64
    """HMAC-SHA256 of the commitment."""
    why: Annotated[str, Field(min_length=1)]
    """The reason for a draw without the public beacon."""


class PracticeBeacon(StrictModel):
    """A value that anybody can compute beforehand, only for the practice benchmark."""

    kind: Literal["practice"]
    round: Positive
    """The round of drand that would have decided."""
    value: Hex64
    """SHA-256 of "geneb-ci practice beacon" and the round as 8 bytes, big-endian."""


Beacon = Annotated[DrandBeacon | FallbackBeacon | PracticeBeacon, Field(discriminator="kind")]
"""The random value from which the seed of a draw follows, by its kind."""


class Ticket(StrictModel):
    """A task with its ticket, the hash that decides the order in which tasks are drawn."""

    task: Name
    ticket: Hex64
    """SHA-256 of the seed, 0x00 and the id of the task."""


class EarlierDraw(StrictModel):
    """An earlier draw for the same method, whose sample is audited again."""

    commitment: Hex64
    """Digest of the commitment of that draw."""
    drawn: Annotated[list[Name], Field(min_length=1)]
    """Ids of the drawn tasks."""


class ChosenTask(StrictModel):
    """A task to rerun, and why."""

    task: Name
    reason: Reason


class BasePlan(StrictModel):
    """The members of every plan: the commitment, and the seed that decides the draw."""

    schema_version: Literal["1.0"]
    commitment: Commitment
    commitment_sha256: Hex64
    committed_at: Moment
    """Time at which the commitment became public, by the clock of the server that shows it."""
    beacon: Beacon
    seed: Hex64
    """SHA-256 of protocol, commitment and beacon value."""


class TaskPlan(BasePlan):
    """The plan of an audit of tasks."""

    tickets: Annotated[list[Ticket], Field(min_length=1)]
    """The tickets of all tasks, smallest first."""
    earlier: list[EarlierDraw]
    """The earlier draws, in order of time."""
    chosen: Annotated[list[ChosenTask], Field(min_length=1)]
    """Tasks to rerun: drawn in order of ticket, then earlier ones, then targeted ones."""

    @property
    def drawn(self) -> list[str]:
        """Ids of the guaranteed sample."""
        return [choice.task for choice in self.chosen if choice.reason == "drawn"]


class EarlierEmbeddings(StrictModel):
    """An earlier draw of embeddings for the same method, which is repeated."""

    commitment: Hex64
    """Digest of the commitment of that draw."""
    seed: Hex64
    """Seed of that draw, which decides its embeddings."""


class EmbeddingPlan(BasePlan):
    """The plan of an audit by receipt, which draws embeddings instead of tasks."""

    root: Hex64
    """Merkle root of the receipt."""
    rows: EmbeddingCounts
    """Numbers of embeddings to draw."""
    earlier: list[EarlierEmbeddings]
    """The earlier draws, in order of time."""


AnyPlan = TaskPlan | EmbeddingPlan
"""The plan of an audit of tasks or by receipt."""
_M = TypeVar("_M", bound=BaseModel)


class CommitmentFile(StrictModel):
    """The file that `audit commit` writes: a commitment and its digest."""

    commitment: Commitment
    sha256: Hex64
    """Digest of the commitment."""


def json_text_of(content: BaseModel) -> str:
    """Return a model as the text of a JSON file: indented, with a final newline."""
    return json.dumps(content.model_dump(), indent=2, ensure_ascii=False) + "\n"


def commitment_text(commitment: Commitment) -> str:
    """Return the text of the file with a commitment and its digest."""
    return json_text_of(CommitmentFile(commitment=commitment, sha256=commitment.sha256))


def read_commitment(path: Path) -> Commitment:
    """Read the file that `audit commit` wrote.

    Raises NothingChecked when it cannot be read, StepMismatch when the digest is wrong or nothing
    can be drawn from the commitment.
    """
    file_kind = FileKind.COMMITMENT
    file = _parsed_file(path, _required_bytes(path, file_kind), CommitmentFile, file_kind)
    if file.commitment.sha256 != file.sha256:
        raise StepMismatch(
            COMMITMENT_STEP,
            f"{path}: the commitment has the digest {file.commitment.sha256}, expected "
            f"{file.sha256}",
            "use the file as it was published, or make a new commitment",
        )
    check_commitment(file.commitment, file.sha256)
    return file.commitment


def read_any_plan(path: Path) -> AnyPlan:
    """Read a plan of tasks or of embeddings, without verifying it.

    Raises NothingChecked when it cannot be read.
    """
    raw = _required_bytes(path, FileKind.PLAN)
    if FileKind.EMBEDDING_PLAN.fits(_json_value(raw)):
        return _parsed_file(path, raw, EmbeddingPlan, FileKind.EMBEDDING_PLAN)
    return _parsed_file(path, raw, TaskPlan, FileKind.PLAN)


def _json_value(raw: bytes) -> object:
    """Return the parsed JSON of a file; None for any other file."""
    try:
        return pydantic_core.from_json(raw)
    except ValueError:
        return None


def _required_bytes(path: Path, file_kind: FileKind) -> bytes:
    """Return the bytes of a file. Raises NothingChecked if the file has no usable bytes."""
    require_file(path, file_kind)
    raw = read_bytes(path)
    if isinstance(raw, Fault):
        kind_name = file_kind.title.partition(" ")[2]
        raise NothingChecked(f"{path}: not a {kind_name}: {raw.message}", file_kind.fix)
    return raw


def _parsed_file(path: Path, raw: bytes, model_class: type[_M], file_kind: FileKind) -> _M:
    """Return the content of a file as a model. Raises NothingChecked for another kind of file."""
    try:
        return model_class.model_validate_json(raw)
    except ValidationError as error:
        kind_name = file_kind.title.partition(" ")[2]
        refusal = refusal_of(raw, file_kind, f"not a {kind_name}: {first_error(error)}")
        raise NothingChecked(f"{path}: {refusal.message}", refusal.fix) from error

"""What happens in an audit, signed: commitment, start and abort, beside the record and withdrawal.

Each is a DSSE envelope around an in-toto statement about the submission, as a record is. The same
content and key produce the same bytes.
"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationError

from geneb_ci.audit.commitment import Commitment, check_commitment
from geneb_ci.audit.envelope import (
    RESTORE,
    STATEMENT,
    parse_envelope,
    sign_payload,
    strict_json,
)
from geneb_ci.audit.keys import Keys, TrustedKey, checked, signer_of
from geneb_ci.audit.outcome import STATEMENT_TYPE, StatementSubject
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.record import (
    ABORTED,
    COMMITTED,
    ID_DIGITS,
    STARTED,
    SignedRecord,
    audit_id_of,
    check_model_id,
    payload_of,
)
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.common.types import Moment, StrictModel, first_error
from geneb_ci.sandbox.launch import SandboxFacts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MESSAGE_MAX = 500
"""Characters of the message of an abort: the reason, without the log of the extractor."""
_CUT = "..."


class EntryKind(StrEnum):
    """Kinds of entries of the log, in the order in which one batch is added."""

    COMMITMENT = "commitment"
    START = "start"
    ABORT = "abort"
    RESULT = "result"
    WITHDRAWAL = "withdrawal"
    REVOCATION = "revocation"


class Started(StrictModel):
    """A draw that was made, before its tasks are rerun."""

    schema_version: Literal["1.0"]
    plan: Plan


class RunFacts(NamedTuple):
    """Where in a run the extractor ended it."""

    stage: Literal["embedding", "scoring"]
    task: str
    sandbox: SandboxFacts
    started_at: str
    finished_at: str


class Aborted(StrictModel):
    """A run that ended without scores because of the extractor."""

    schema_version: Literal["1.0"]
    plan: Plan
    stage: Literal["embedding", "scoring"]
    task: str
    """The task that was running; "" where none was."""
    kind: Literal["failed", "limit", "result"]
    """The extractor ended with an error, exceeded a limit, or returned no valid embeddings."""
    message: Annotated[str, Field(max_length=MESSAGE_MAX)]
    """What was wrong, in printable ASCII; the extractor chose parts of it."""
    sandbox: SandboxFacts
    started_at: Annotated[Moment, AfterValidator(checked)]
    finished_at: Annotated[Moment, AfterValidator(checked)]


class _Statement(StrictModel):
    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    """The submission."""


class CommitmentStatement(_Statement):
    """An in-toto statement (v1): what an audit of a submission commits to."""

    predicateType: Literal["urn:geneb-ci:commitment:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: Commitment


class StartStatement(_Statement):
    """An in-toto statement (v1): the tasks of an audit are drawn."""

    predicateType: Literal["urn:geneb-ci:start:1.0"]  # noqa: N815
    predicate: Started


class AbortStatement(_Statement):
    """An in-toto statement (v1): a run of an audit ended without scores."""

    predicateType: Literal["urn:geneb-ci:aborted:1.0"]  # noqa: N815
    predicate: Aborted


EventStatement = CommitmentStatement | StartStatement | AbortStatement
_STATEMENTS: dict[EntryKind, tuple[type[EventStatement], str, str]] = {
    EntryKind.COMMITMENT: (CommitmentStatement, "urn:geneb-ci:commitment:1.0", COMMITTED),
    EntryKind.START: (StartStatement, "urn:geneb-ci:start:1.0", STARTED),
    EntryKind.ABORT: (AbortStatement, "urn:geneb-ci:aborted:1.0", ABORTED),
}


class AuditEvent(NamedTuple):
    """A signed event whose signature and structure are valid; its draw is not recomputed."""

    kind: EntryKind
    signer: TrustedKey
    sha256: str
    """Of the signed bytes, as the log has it."""
    commitment: Commitment
    plan: Plan | None = None
    aborted: Aborted | None = None


def signed_event(
    predicate: Commitment | Started | Aborted, key: "Ed25519PrivateKey"
) -> SignedRecord:
    """Sign a commitment, a start or an abort. The same content and key produce the same bytes."""
    if isinstance(predicate, Commitment):
        kind, commitment = EntryKind.COMMITMENT, predicate
    else:
        kind = EntryKind.START if isinstance(predicate, Started) else EntryKind.ABORT
        commitment = predicate.plan.commitment
    model, predicate_type, suffix = _STATEMENTS[kind]
    statement = model.model_validate(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {
                    "name": f"{commitment.model_id}.json",
                    "digest": {"sha256": commitment.submission_sha256},
                }
            ],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )
    payload = payload_of(statement)
    name = commitment.sha256[:ID_DIGITS] if kind is EntryKind.COMMITMENT else audit_id_of(payload)
    place = Path(commitment.model_id) / f"{name}{suffix}"
    return SignedRecord(name, sign_payload(payload, key), place)


def kind_of(name: str) -> EntryKind:
    """Return the kind of a file of the folder of audits, by the end of its name."""
    found = (kind for kind, (_, _, suffix) in _STATEMENTS.items() if name.endswith(suffix))
    return next(found, EntryKind.RESULT)


def parse_event(raw: bytes, place: str, keys: Keys) -> AuditEvent:
    """Parse a signed event, given with its path below the folder of audits.

    Raises StepMismatch, of the step "envelope", "signer" or "statement".
    """
    kind = kind_of(place)
    found = parse_envelope(raw)
    signer = signer_of(found, keys)
    try:
        statement = _STATEMENTS[kind][0].model_validate(strict_json(found.payload, STATEMENT))
    except ValidationError as error:
        raise StepMismatch(STATEMENT, first_error(error), RESTORE) from error
    predicate = statement.predicate
    commitment = predicate if isinstance(predicate, Commitment) else predicate.plan.commitment
    check_model_id(commitment.model_id)
    subject, sha256 = statement.subject[0], hashlib.sha256(found.payload).hexdigest()
    name = commitment.sha256 if kind is EntryKind.COMMITMENT else sha256
    due = f"{commitment.model_id}/{name[:ID_DIGITS]}{_STATEMENTS[kind][2]}"
    if place != due or (subject.name, subject.digest.get("sha256")) != (
        f"{commitment.model_id}.json",
        commitment.submission_sha256,
    ):
        raise StepMismatch(STATEMENT, f"the file is at {place}, expected {due}", RESTORE)
    check_commitment(commitment, commitment.sha256)
    if isinstance(predicate, Commitment):
        return AuditEvent(kind, signer, sha256, commitment)
    aborted = predicate if isinstance(predicate, Aborted) else None
    return AuditEvent(kind, signer, sha256, commitment, predicate.plan, aborted)


def bounded(message: str) -> str:
    """Return a message of an extractor as one line of printable ASCII of bounded length."""
    text = json.dumps(" ".join(message.split()), ensure_ascii=True)[1:-1].replace("\x7f", "\\u007f")
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - len(_CUT)]}{_CUT}"

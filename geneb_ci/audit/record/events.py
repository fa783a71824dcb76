"""Signed statements other than records: the commitment, start and abort of an audit; withdrawals.

Each is a DSSE envelope around an in-toto statement about the submission, like a record. The same
content and key produce the same bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationError

from geneb_ci.audit.canonical import checked_moment
from geneb_ci.audit.commitment import Commitment, check_commitment
from geneb_ci.audit.compare.outcome import Heads, StatementSubject, is_absent
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import (
    RESTORE_FIX,
    STATEMENT_STEP,
    parse_envelope,
    sign_payload,
    strict_json,
)
from geneb_ci.audit.record.keys import Keys, Signer, check_revoked, check_validity, signer_of
from geneb_ci.audit.record.statement import (
    ABORTED_SUFFIX,
    COMMITTED_SUFFIX,
    ID_DIGITS,
    STARTED_SUFFIX,
    WITHDRAWN_SUFFIX,
    SignedRecord,
    audit_id_of,
    check_model_id,
    payload_of,
    statement_value,
)
from geneb_ci.audit.sampling.plan import AnyPlan
from geneb_ci.common.errors import UsageProblem
from geneb_ci.sandbox.launch import SandboxFacts
from reference_harness.formats.base import Hex40, Moment, Name, Positive, StrictModel, first_error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


ABORT_MESSAGE_MAX = 500
"""Largest number of characters of the error message in an abort."""
_ELLIPSIS = "..."


class StatementKind(StrEnum):
    """Kinds of signed statements, and the revocation of a key, which statements name like one."""

    COMMITMENT = "commitment"
    START = "start"
    ABORT = "abort"
    RESULT = "result"
    """An audit record."""
    WITHDRAWAL = "withdrawal"
    REVOCATION = "revocation"
    """The revocation of a key, in keys.json."""


class AuditStart(StrictModel):
    """The statement that a draw was made and its rerun begins."""

    schema_version: Literal["1.0"]
    plan: AnyPlan
    shown_on: Hex40 | None = Field(default=None, exclude_if=is_absent)
    """Git commit on GitHub whose status geneb/audit-commit contains the digest of the
    commitment."""
    pull: Positive | None = Field(default=None, exclude_if=is_absent)
    """Number of the pull request whose comment shows this draw, if a label started the audit."""


class AbortedRun(NamedTuple):
    """A run that the extractor ended without scores, as its signed abort describes it."""

    stage: Literal["embedding", "scoring"]
    """The stage of the run that was not finished."""
    task: str
    """The task that was running, or ""."""
    sandbox: SandboxFacts
    started_at: str
    finished_at: str


class AuditAbort(StrictModel):
    """The statement that the extractor ended a run without scores."""

    schema_version: Literal["1.0"]
    plan: AnyPlan
    stage: Literal["embedding", "scoring"]
    """The stage of the run that was not finished."""
    task: str
    """The task that was running, or ""."""
    kind: Literal["failed", "limit", "result"]
    """Whether the extractor failed with an error, exceeded a limit, or returned an invalid
    result."""
    message: Annotated[str, Field(max_length=ABORT_MESSAGE_MAX)]
    """The error message in printable ASCII, parts of which the extractor chose."""
    sandbox: SandboxFacts
    started_at: Annotated[Moment, AfterValidator(checked_moment)]
    finished_at: Annotated[Moment, AfterValidator(checked_moment)]


class _Statement(StrictModel):
    """The members that the statements of a commitment, start and abort have in common."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    """The submission."""
    heads: Heads | None = Field(default=None, exclude_if=is_absent)
    """The newest statements at the time of signing; left out in earlier ones."""


class CommitmentStatement(_Statement):
    """An in-toto statement (v1): the commitment of an audit."""

    predicateType: Literal["urn:geneb-ci:commitment:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: Commitment


class StartStatement(_Statement):
    """An in-toto statement (v1): the sample of an audit is drawn."""

    predicateType: Literal["urn:geneb-ci:start:1.0"]  # noqa: N815
    predicate: AuditStart


class AbortStatement(_Statement):
    """An in-toto statement (v1): a run of an audit ended without scores."""

    predicateType: Literal["urn:geneb-ci:aborted:1.0"]  # noqa: N815
    predicate: AuditAbort


EventStatement = CommitmentStatement | StartStatement | AbortStatement
"""The statement of a commitment, start or abort."""
_STATEMENT_FORMATS: dict[StatementKind, tuple[type[EventStatement], str, str]] = {
    StatementKind.COMMITMENT: (
        CommitmentStatement,
        "urn:geneb-ci:commitment:1.0",
        COMMITTED_SUFFIX,
    ),
    StatementKind.START: (StartStatement, "urn:geneb-ci:start:1.0", STARTED_SUFFIX),
    StatementKind.ABORT: (AbortStatement, "urn:geneb-ci:aborted:1.0", ABORTED_SUFFIX),
}
"""By kind: the class of its statements, their predicate type, and the suffix of their files."""


class AuditEvent(NamedTuple):
    """A commitment, start or abort whose signature and structure are valid."""

    kind: StatementKind
    signer: Signer
    sha256: str
    """Digest of the signed bytes."""
    commitment: Commitment
    """The commitment itself, or that of the plan."""
    plan: AnyPlan | None = None
    """The plan of a start or an abort; None for a commitment."""
    abort: AuditAbort | None = None
    """The content of an abort; None for another event."""
    signed_after: str = ""
    """Time from which the certificate of a bundle is valid, so that the bundle was signed later; ""
    if a key signed."""
    heads: Mapping[str, str] | None = None
    """SHA-256 of each head, a newest statement, that the event names, by path; None in events of
    earlier versions."""
    shown_on: str = ""
    """In a start, the git commit whose status contains the digest of the commitment; else ""."""
    pull: int | None = None
    """In a start, the number of the pull request whose comment shows the draw; else None."""


def signed_event(
    predicate: Commitment | AuditStart | AuditAbort,
    key: "Ed25519PrivateKey",
    heads: Mapping[str, str] | None = None,
) -> SignedRecord:
    """Return a signed commitment, start or abort that names the statements in `heads`.

    The same content, key and heads produce the same bytes.
    """
    payload, path = event_payload_and_path(predicate, heads)
    statement_id = path.name.partition(".")[0]
    return SignedRecord(statement_id, sign_payload(payload, key), path)


def event_payload_and_path(
    predicate: Commitment | AuditStart | AuditAbort, heads: Mapping[str, str] | None = None
) -> tuple[bytes, Path]:
    """Return the bytes to sign for a commitment, start or abort, and the path of its file."""
    if isinstance(predicate, Commitment):
        kind, commitment = StatementKind.COMMITMENT, predicate
    else:
        kind = StatementKind.START if isinstance(predicate, AuditStart) else StatementKind.ABORT
        commitment = predicate.plan.commitment
    model, predicate_type, suffix = _STATEMENT_FORMATS[kind]
    statement = model.model_validate(
        statement_value(
            f"{commitment.model_id}.json",
            commitment.submission_sha256,
            predicate_type,
            predicate,
            heads,
        )
    )
    payload = payload_of(statement)
    statement_id = (
        commitment.sha256[:ID_DIGITS] if kind is StatementKind.COMMITMENT else audit_id_of(payload)
    )
    path = Path(commitment.model_id) / f"{statement_id}{suffix}"
    return payload, path


def parse_event(raw: bytes, path: str, keys: Keys) -> AuditEvent:
    """Parse a signed event; `path` is its path below the folder of audits.

    Raises StepMismatch, of the step "envelope", "signer" or "statement".
    """
    kind = next(
        kind for kind, (_, _, suffix) in _STATEMENT_FORMATS.items() if path.endswith(suffix)
    )
    envelope = parse_envelope(raw)
    signer = signer_of(envelope, keys)
    try:
        statement = _STATEMENT_FORMATS[kind][0].model_validate(
            strict_json(envelope.payload, STATEMENT_STEP)
        )
    except ValidationError as error:
        raise StepMismatch(STATEMENT_STEP, first_error(error), RESTORE_FIX) from error
    predicate = statement.predicate
    commitment = predicate if isinstance(predicate, Commitment) else predicate.plan.commitment
    check_model_id(commitment.model_id)
    subject, sha256 = statement.subject[0], hashlib.sha256(envelope.payload).hexdigest()
    statement_id = commitment.sha256 if kind is StatementKind.COMMITMENT else sha256
    expected_path = f"{commitment.model_id}/{statement_id[:ID_DIGITS]}{_STATEMENT_FORMATS[kind][2]}"
    if path != expected_path:
        raise StepMismatch(
            STATEMENT_STEP, f"the file is at {path}, expected {expected_path}", RESTORE_FIX
        )
    if (subject.name, subject.digest.get("sha256")) != (
        f"{commitment.model_id}.json",
        commitment.submission_sha256,
    ):
        raise StepMismatch(
            STATEMENT_STEP,
            "the statement's subject is not the submission that its commitment names",
            RESTORE_FIX,
        )
    check_commitment(commitment, commitment.sha256)
    signed_after = envelope.bundle[1].valid_from if envelope.bundle is not None else ""
    event = AuditEvent(
        kind, signer, sha256, commitment, signed_after=signed_after, heads=statement.heads
    )
    if isinstance(predicate, Commitment):
        return event
    if isinstance(predicate, AuditAbort):
        return event._replace(plan=predicate.plan, abort=predicate)
    shown_on = predicate.shown_on or ""
    return event._replace(plan=predicate.plan, shown_on=shown_on, pull=predicate.pull)


def bounded_message(message: str) -> str:
    """Return a message as a line of printable ASCII, cut to `ABORT_MESSAGE_MAX` characters."""
    line = json.dumps(" ".join(message.split()), ensure_ascii=True)[1:-1].replace("\x7f", "\\u007f")
    return (
        line
        if len(line) <= ABORT_MESSAGE_MAX
        else f"{line[: ABORT_MESSAGE_MAX - len(_ELLIPSIS)]}{_ELLIPSIS}"
    )


WITHDRAWAL_TYPE: Literal["urn:geneb-ci:withdrawal:1.0"] = "urn:geneb-ci:withdrawal:1.0"
"""Predicate type of the in-toto statement of a withdrawal."""
REASON_MAX = 1000
"""Largest number of characters of the reason for a withdrawal: a paragraph."""


class Withdrawal(StrictModel):
    """The withdrawal of an audit, which then no longer counts."""

    schema_version: Literal["1.0"]
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX)]
    """The reason, for readers of the board."""
    withdrawn_at: Annotated[Moment, AfterValidator(checked_moment)]


class WithdrawalStatement(StrictModel):
    """An in-toto statement (v1) that withdraws one audit record."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    """Path of the record, `<model_id>/<audit_id>.json`, and SHA-256 of its payload."""
    predicateType: Literal["urn:geneb-ci:withdrawal:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: Withdrawal
    heads: Heads | None = Field(default=None, exclude_if=is_absent)
    """The newest statements when it was signed; left out in earlier ones."""


class WithdrawnAudit(StrictModel):
    """A withdrawn audit, with the reason that its withdrawal states."""

    audit_id: Name
    reason: str
    withdrawn_at: Moment
    signer: str
    """The person who signed the withdrawal, not necessarily the record."""


def withdrawal_of(
    model_id: str,
    record: bytes,
    reason: str,
    now: str,
    key: "Ed25519PrivateKey",
    heads: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bytes of the file with the signed withdrawal of a record.

    `record` has the bytes of the record's file; `now` is the time of signing, `heads` the
    statements that the withdrawal names. Raises
    StepMismatch when the record is not an envelope or the reason has invalid characters, and
    UsageProblem when the reason is empty or too long.
    """
    payload = parse_envelope(record).payload
    try:
        statement = WithdrawalStatement.model_validate(
            statement_value(
                f"{model_id}/{audit_id_of(payload)}.json",
                hashlib.sha256(payload).hexdigest(),
                WITHDRAWAL_TYPE,
                {"schema_version": "1.0", "reason": reason, "withdrawn_at": now},
                heads,
            )
        )
    except ValidationError as error:
        raise UsageProblem(
            f"the withdrawal cannot be written: {first_error(error)}",
            f"pass --reason with 1 to {REASON_MAX} characters",
        ) from error
    content = payload_of(statement)
    strict_json(content, STATEMENT_STEP)
    return sign_payload(content, key)


def withdrawal_heads(payload: bytes) -> dict[str, str] | None:
    """Return the heads in the signed bytes of a withdrawal; None if they are missing or invalid."""
    try:
        return WithdrawalStatement.model_validate(strict_json(payload, STATEMENT_STEP)).heads
    except (ValidationError, StepMismatch):
        return None


def read_withdrawal(
    path: Path,
    raw: bytes,
    keys: Keys,
    record: bytes | None,
    log_index: int | None = None,
    *,
    precedes_compromise: bool = False,
) -> WithdrawnAudit:
    """Return a withdrawal, after comparing it with the record beside it.

    `raw` and `record` are the bytes of the two files; `record` is None if the file is missing.
    `log_index` and `precedes_compromise` are as in `check_revoked`. Raises RevokedKey if the key
    that signed the withdrawal was revoked before; StepMismatch, of the step "envelope", "signer" or
    "statement", if the withdrawal is invalid or the record is missing.
    """
    envelope = parse_envelope(raw)
    signer = signer_of(envelope, keys)
    check_revoked(signer, log_index, precedes_compromise=precedes_compromise)
    try:
        statement = WithdrawalStatement.model_validate(
            strict_json(envelope.payload, STATEMENT_STEP)
        )
    except ValidationError as error:
        raise StepMismatch(STATEMENT_STEP, first_error(error)) from error
    check_validity(signer, statement.predicate.withdrawn_at, "this withdrawal was signed")
    audit_id = path.name.removesuffix(WITHDRAWN_SUFFIX)
    if record is None:
        raise StepMismatch(
            STATEMENT_STEP,
            f"the withdrawn record is missing: {path.parent.name}/{audit_id}.json",
            "restore it from the main branch: records are never deleted",
        )
    subject = statement.subject[0]
    digest = hashlib.sha256(parse_envelope(record).payload).hexdigest()
    if subject.name != f"{path.parent.name}/{audit_id}.json" or (
        subject.digest.get("sha256") != digest or audit_id != digest[:ID_DIGITS]
    ):
        raise StepMismatch(
            STATEMENT_STEP,
            f"the withdrawal names {subject.name}, but the record beside it has another path or "
            "digest",
            RESTORE_FIX,
        )
    predicate = statement.predicate
    return WithdrawnAudit(
        audit_id=audit_id,
        reason=predicate.reason,
        withdrawn_at=predicate.withdrawn_at,
        signer=signer.owner,
    )

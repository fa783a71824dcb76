"""Audit records: an outcome as a signed in-toto statement, and its path in the repository."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from geneb_ci.audit.canonical import seconds_of
from geneb_ci.audit.compare.embedding_outcome import (
    EMBEDDING_PREDICATE_TYPE,
    AnyOutcome,
    EmbeddingOutcome,
    EmbeddingStatement,
)
from geneb_ci.audit.compare.outcome import PREDICATE_TYPE, STATEMENT_TYPE, Statement
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import (
    ENVELOPE_STEP,
    RESTORE_FIX,
    STATEMENT_STEP,
    key_id,
    parse_envelope,
    sign_payload,
    strict_json,
)
from geneb_ci.audit.record.keys import Keys, Signer, check_validity, signer_of, trusted_keys
from geneb_ci.audit.sampling.beacon import DELAY_SECONDS
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.submission.reading import files_in, is_folder, read_bytes
from reference_harness.formats.base import first_error
from reference_harness.formats.submission_terms import MODEL_ID_MAX, MODEL_ID_PATTERN
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WITHDRAWN_SUFFIX = ".withdrawn.json"
"""Suffix of the withdrawal of a record, which replaces `.json` in the name of the record."""
COMMITTED_SUFFIX, STARTED_SUFFIX, ABORTED_SUFFIX = (
    ".committed.json",
    ".started.json",
    ".aborted.json",
)
EVENT_SUFFIXES = (COMMITTED_SUFFIX, STARTED_SUFFIX, ABORTED_SUFFIX)
"""Suffixes of signed statements before a record, or instead of one."""
RERUN_SUFFIX = ".rows.npz"
"""Suffix of the file of rerun embeddings beside the record of an audit by receipt."""
ID_DIGITS = 16
"""Number of hex digits of an audit id: 64 bits are unique among the audits of one model."""


class SignedRecord(NamedTuple):
    """A signed record, or another signed statement, before it is written."""

    audit_id: str
    """The id of a record; of another statement, the first part of its file name."""
    content: bytes
    """The bytes of the signed file."""
    path: Path
    """Path below the folder of audits."""


class Record(NamedTuple):
    """A record whose signature and structure are valid; nothing else is verified yet."""

    audit_id: str
    signer: Signer
    outcome: AnyOutcome
    """The outcome of the audit: its comparisons and the verdict."""
    sha256: str
    """Digest of the signed bytes."""
    heads: Mapping[str, str] | None = None
    """SHA-256 of each head, a newest statement of its time, that the record names, by path; None in
    earlier records."""


def payload_of(statement: BaseModel) -> bytes:
    """Return the bytes of a statement to sign: JSON with sorted keys and without spaces."""
    return json.dumps(
        statement.model_dump(by_alias=True),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    ).encode()


def audit_id_of(payload: bytes) -> str:
    """Return the id of an audit: the first digits of the SHA-256 of the signed bytes."""
    return hashlib.sha256(payload).hexdigest()[:ID_DIGITS]


def statement_value(
    file_name: str,
    sha256: str,
    predicate_type: str,
    predicate: object,
    heads: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Return an in-toto statement about a file as a dict, which is not validated yet."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": file_name, "digest": {"sha256": sha256}}],
        "predicateType": predicate_type,
        "predicate": predicate,
        "heads": None if heads is None else dict(heads),
    }


def payload_and_path_of(
    outcome: AnyOutcome, heads: Mapping[str, str] | None = None
) -> tuple[bytes, Path]:
    """Return the bytes to sign for an outcome, and the path of its record below the audits.

    `heads` are the statements that the record names. Raises UsageProblem if the record could not be
    read again.
    """
    commitment = outcome.plan.commitment
    is_by_receipt = isinstance(outcome, EmbeddingOutcome)
    statement = (EmbeddingStatement if is_by_receipt else Statement).model_validate(
        statement_value(
            f"{commitment.model_id}.json",
            commitment.submission_sha256,
            EMBEDDING_PREDICATE_TYPE if is_by_receipt else PREDICATE_TYPE,
            outcome,
            heads,
        )
    )
    payload = payload_of(statement)
    try:
        statement_in(payload)
    except StepMismatch as error:
        raise UsageProblem(
            f"the outcome cannot be recorded: {error.message}", "run the audit again"
        ) from error
    return payload, Path(commitment.model_id) / f"{audit_id_of(payload)}.json"


def record_of(
    outcome: AnyOutcome, key: "Ed25519PrivateKey", heads: Mapping[str, str] | None = None
) -> SignedRecord:
    """Return the signed record of an outcome. Equal arguments give equal bytes.

    Raises what `payload_and_path_of` raises.
    """
    payload, path = payload_and_path_of(outcome, heads)
    return SignedRecord(audit_id_of(payload), sign_payload(payload, key), path)


def check_can_record(signer: "Ed25519PrivateKey", layout: Layout, folder: Path) -> None:
    """Raise UsageProblem if the key is not trusted, or `folder` cannot be written.

    This is checked before a rerun, which may take hours.
    """
    public_key = signer.public_key().public_bytes_raw()
    if key_id(public_key) not in trusted_keys(layout):
        raise UsageProblem(
            f"the key {key_id(public_key)[:16]}... is not trusted, so nobody would accept its "
            "record",
            "add this key to leaderboard/policy/keys.json of the main branch first, or pass "
            "--unsigned",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageProblem(
            f"{folder}: no record can be written to this folder: {error.strerror}",
            "name another folder with --output DIR, or pass --unsigned",
        ) from error


def statement_in(payload: bytes) -> Statement | EmbeddingStatement:
    """Return the statement in the signed bytes of a record.

    Raises StepMismatch, of the step "statement".
    """
    parsed = strict_json(payload, STATEMENT_STEP)
    is_by_receipt = (
        isinstance(parsed, dict) and parsed.get("predicateType") == EMBEDDING_PREDICATE_TYPE
    )
    statement: Statement | EmbeddingStatement
    try:
        statement = (EmbeddingStatement if is_by_receipt else Statement).model_validate(parsed)
    except ValidationError as error:
        raise StepMismatch(STATEMENT_STEP, first_error(error), RESTORE_FIX) from error
    commitment, subject = statement.predicate.plan.commitment, statement.subject[0]
    model_id = commitment.model_id
    check_model_id(model_id)
    _check_moments(statement.predicate)
    if subject.name != f"{model_id}.json":
        raise StepMismatch(
            STATEMENT_STEP,
            f"the statement's subject is {quoted(subject.name)}, expected {model_id}.json by its "
            "commitment",
            RESTORE_FIX,
        )
    outcome, pin = statement.predicate, commitment.benchmark
    for fact, stated, committed in (
        ("submission", subject.digest.get("sha256"), commitment.submission_sha256),
        ("benchmark", outcome.benchmark_sha256, pin.sha256),
        ("dataset revision", outcome.dataset_revision, pin.revision),
    ):
        if stated != committed:
            raise StepMismatch(
                STATEMENT_STEP,
                f"the statement's {fact} is {stated}, expected {committed} by its commitment",
                RESTORE_FIX,
            )
    return statement


def check_model_id(model_id: str) -> None:
    """Refuse a malformed model id, before it becomes part of a path.

    Raises StepMismatch, of the step "statement".
    """
    if not re.fullmatch(MODEL_ID_PATTERN, model_id) or len(model_id) > MODEL_ID_MAX:
        raise StepMismatch(
            STATEMENT_STEP,
            f"{quoted(model_id)} is not a model id, expected up to {MODEL_ID_MAX} of the "
            "characters A-Z a-z 0-9 . _ -",
            RESTORE_FIX,
        )


def _check_moments(outcome: AnyOutcome) -> None:
    """Refuse malformed times of an audit, and times in the wrong order."""
    try:
        started_at, finished_at = seconds_of(outcome.started_at), seconds_of(outcome.finished_at)
        committed_at = seconds_of(outcome.plan.committed_at)
    except UsageProblem as error:
        raise StepMismatch(STATEMENT_STEP, error.message, RESTORE_FIX) from error
    # A rerun cannot begin before the draw, which follows the commitment by `DELAY_SECONDS`.
    if not committed_at + DELAY_SECONDS <= started_at <= finished_at:
        raise StepMismatch(
            STATEMENT_STEP,
            f"timestamps out of order: committed_at {outcome.plan.committed_at}, started_at "
            f"{outcome.started_at}, finished_at {outcome.finished_at}; expected committed_at + "
            f"{DELAY_SECONDS} s <= started_at <= finished_at",
            RESTORE_FIX,
        )


def parse_record(raw: bytes, keys: Keys) -> Record:
    """Return the record in the bytes of a file: envelope, signer and statement are checked in turn.

    Raises StepMismatch, of the first of these steps that fails.
    """
    envelope = parse_envelope(raw)
    signer = signer_of(envelope, keys)
    statement = statement_in(envelope.payload)
    outcome = statement.predicate
    check_validity(signer, outcome.finished_at, "this audit ended")
    sha256 = hashlib.sha256(envelope.payload).hexdigest()
    return Record(audit_id_of(envelope.payload), signer, outcome, sha256, statement.heads)


def read_record(path: Path) -> bytes:
    """Read the bytes of a record.

    Raises StepMismatch, of the step "envelope", where it is too large or not a regular file, and
    NothingChecked when it cannot be opened.
    """
    raw = read_bytes(path)
    if not isinstance(raw, bytes):
        raise StepMismatch(ENVELOPE_STEP, raw.message, RESTORE_FIX)
    return raw


def check_path(path: Path, record: Record) -> None:
    """Raise StepMismatch for a record of the repository whose path is not that of its content."""
    record_path = f"{path.parent.name}/{path.name}"
    expected_path = f"{record.outcome.plan.commitment.model_id}/{record.audit_id}.json"
    if record_path != expected_path:
        raise StepMismatch(
            STATEMENT_STEP,
            f"the record is at {record_path}, expected {expected_path}",
            f"move it to {expected_path}",
        )


def record_files(audits: Path) -> list[Path]:
    """Return the paths of the records below a folder, `<model_id>/<audit_id>.json`, in order.

    Raises NothingChecked when a folder cannot be listed.
    """
    return [
        path
        for path in _signed_files(audits)
        if not path.name.endswith((WITHDRAWN_SUFFIX, *EVENT_SUFFIXES))
    ]


def named_records(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of records: `paths` themselves, and the records in folders among them.

    Raises NothingChecked for a folder without any.
    """
    records: list[Path] = []
    for path in paths:
        records_of_path = record_files(path) if is_folder(path) else [path]
        if not records_of_path:
            raise NothingChecked(
                f"{path}: the folder contains no <model_id>/<audit_id>.json",
                "name a record, or a folder such as leaderboard/audits",
            )
        records += records_of_path
    return records


def event_files(audits: Path) -> list[Path]:
    """Return the paths of the commitments, starts and aborts below a folder, in order."""
    return [path for path in _signed_files(audits) if path.name.endswith(EVENT_SUFFIXES)]


def withdrawal_files(audits: Path) -> list[Path]:
    """Return the paths of withdrawals below a folder: `<model_id>/<audit_id>.withdrawn.json`."""
    return [path for path in _signed_files(audits) if path.name.endswith(WITHDRAWN_SUFFIX)]


def _signed_files(audits: Path) -> list[Path]:
    """Return the paths of all files of models below the folder of audits, in order."""
    if not audits.exists():
        return []
    try:
        folders = [entry.name for entry in os.scandir(audits) if is_folder(Path(entry.path))]
    except OSError as error:
        raise NothingChecked(
            f"{audits}: cannot be listed: {error.strerror}", "check its permissions"
        ) from error
    return sorted(path for name in folders for path in files_in(audits / name))

"""Withdrawals: a maintainer takes an audit back, with a reason, signed as records are."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from geneb_ci.audit.envelope import (
    RESTORE,
    STATEMENT,
    parse_envelope,
    sign_payload,
    strict_json,
)
from geneb_ci.audit.keys import Keys, check_revoked, check_validity, checked, signer_of
from geneb_ci.audit.outcome import STATEMENT_TYPE, StatementSubject
from geneb_ci.audit.record import ID_DIGITS, WITHDRAWN, audit_id_of, payload_of, read_record
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.types import Moment, Name, StrictModel, first_error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WITHDRAWAL_TYPE: Literal["urn:geneb-ci:withdrawal:1.0"] = "urn:geneb-ci:withdrawal:1.0"

REASON_MAX = 1000  # characters: a paragraph


class Withdrawal(StrictModel):
    """Why an audit no longer counts."""

    schema_version: Literal["1.0"]
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX)]
    """What was wrong with the audit, for readers of the board."""
    withdrawn_at: Annotated[Moment, AfterValidator(checked)]


class WithdrawalStatement(StrictModel):
    """An in-toto statement (v1) about one audit record."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[StatementSubject], Field(min_length=1, max_length=1)]
    """The record: `<model_id>/<audit_id>.json`, and the sha256 of its payload."""
    predicateType: Literal["urn:geneb-ci:withdrawal:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: Withdrawal


class Withdrawn(StrictModel):
    """An audit that was withdrawn."""

    audit_id: Name
    reason: str
    withdrawn_at: Moment


def withdrawal_of(
    model_id: str, record: bytes, reason: str, now: str, key: "Ed25519PrivateKey"
) -> bytes:
    """Return the signed withdrawal of a record, given by its bytes.

    `now` is a time. Raises StepMismatch when the record is not an envelope, or for characters in
    the reason that are not allowed; UsageProblem for a reason that is empty or too long.
    """
    payload = parse_envelope(record).payload
    name = f"{model_id}/{audit_id_of(payload)}.json"
    try:
        statement = WithdrawalStatement.model_validate(
            {
                "_type": STATEMENT_TYPE,
                "subject": [
                    {"name": name, "digest": {"sha256": hashlib.sha256(payload).hexdigest()}}
                ],
                "predicateType": WITHDRAWAL_TYPE,
                "predicate": {"schema_version": "1.0", "reason": reason, "withdrawn_at": now},
            }
        )
    except ValidationError as error:
        raise UsageProblem(
            f"the withdrawal cannot be written: {first_error(error)}",
            f"pass --reason with 1 to {REASON_MAX} characters",
        ) from error
    content = payload_of(statement)
    strict_json(content, STATEMENT)
    return sign_payload(content, key)


def read_withdrawal(
    path: Path, keys: Keys, record: bytes | None, index: int | None = None
) -> Withdrawn:
    """Read a withdrawal, and compare it with the record beside it, given by its bytes.

    `index` is its entry in the log. Raises RevokedKey where its key was revoked and the log did not
    have it before, StepMismatch, of the steps "envelope", "signer" or "statement"; also where the
    record is None, which means that there is no such file.
    """
    found = parse_envelope(read_record(path))
    key = signer_of(found, keys)
    check_revoked(key, index)
    try:
        statement = WithdrawalStatement.model_validate(strict_json(found.payload, STATEMENT))
    except ValidationError as error:
        raise StepMismatch(STATEMENT, first_error(error)) from error
    check_validity(key, statement.predicate.withdrawn_at, "this withdrawal was signed")
    audit_id = path.name.removesuffix(WITHDRAWN)
    if record is None:
        raise StepMismatch(
            STATEMENT,
            "the record that is withdrawn is not there",
            "restore it from the main branch: records are never deleted",
        )
    subject = statement.subject[0]
    digest = hashlib.sha256(parse_envelope(record).payload).hexdigest()
    if subject.name != f"{path.parent.name}/{audit_id}.json" or (
        subject.digest.get("sha256") != digest or audit_id != digest[:ID_DIGITS]
    ):
        raise StepMismatch(
            STATEMENT, f"it withdraws {subject.name}, which is another record", RESTORE
        )
    predicate = statement.predicate
    return Withdrawn(
        audit_id=audit_id, reason=predicate.reason, withdrawn_at=predicate.withdrawn_at
    )

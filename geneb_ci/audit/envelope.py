"""Signed envelopes: DSSE v1 with one Ed25519 signature, and one way to write each.

Specification: github.com/secure-systems-lab/dsse, protocol.md and envelope.md, version 1.0.2. What
is signed is what is parsed: `parse_envelope` returns the bytes that the signature covers.
"""

import base64
import binascii
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from geneb_ci.audit.steps import StepMismatch
from geneb_ci.common.errors import BrokenInstallation
from geneb_ci.common.types import Hex64, StrictModel, first_error
from geneb_ci.submission.document import parse_document
from geneb_ci.submission.kind import FileKind, other_kind

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"

ENVELOPE, SIGNER, STATEMENT = "envelope", "signer", "statement"
"""The first steps of a verification. A plan has a step "signature": that is the beacon's."""

RESTORE = "restore the file from the main branch, or sign the outcome again"
_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class Signature(StrictModel):
    """Who signed, and the signature."""

    keyid: Hex64
    """SHA-256 of the raw public key."""
    sig: _Base64


class Envelope(StrictModel):
    """A DSSE envelope with exactly one signature: none can be added, none goes unchecked."""

    payload: _Base64
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815 (DSSE's own name)
    signatures: Annotated[list[Signature], Field(min_length=1, max_length=1)]


class ParsedEnvelope(NamedTuple):
    """Content of an envelope whose signature is not verified yet."""

    payload: bytes
    keyid: str
    signature: bytes


def key_id(public_key: bytes) -> str:
    """Return the id of a raw public key: its SHA-256, as hex digits."""
    return hashlib.sha256(public_key).hexdigest()


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_payload(payload: bytes, key: "Ed25519PrivateKey") -> bytes:
    """Return the envelope of a payload, signed; the same bytes each time."""
    public = key.public_key().public_bytes_raw()
    signature = key.sign(pae(PAYLOAD_TYPE, payload))
    return _encoded(payload, key_id(public), signature)


def _encoded(payload: bytes, keyid: str, signature: bytes) -> bytes:
    value = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
    }
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def parse_envelope(raw: bytes) -> ParsedEnvelope:
    """Parse an envelope, without verifying its signature.

    Raises StepMismatch, of the step "envelope", unless the bytes are exactly those that
    `sign_payload` writes for this payload, key and signature.
    """
    value = strict_json(raw, ENVELOPE)
    try:
        envelope = Envelope.model_validate(value)
        payload = base64.b64decode(envelope.payload, validate=True)
        signature = base64.b64decode(envelope.signatures[0].sig, validate=True)
    except ValidationError as error:
        raise StepMismatch(ENVELOPE, *_not_an_envelope(value, error)) from error
    except binascii.Error as error:
        raise StepMismatch(ENVELOPE, f"invalid base64: {error}", RESTORE) from error
    found = ParsedEnvelope(payload, envelope.signatures[0].keyid, signature)
    if _encoded(*found) != raw:
        raise StepMismatch(ENVELOPE, "the JSON is not written as this program writes it", RESTORE)
    return found


def _not_an_envelope(value: object, error: ValidationError) -> tuple[str, str]:
    """Return message and fix for a file that is no envelope."""
    if FileKind.RECORD.fits(value):
        return first_error(error), RESTORE
    message = (
        other_kind(value, FileKind.RECORD) or f"this is not an audit record: {first_error(error)}"
    )
    return message, FileKind.RECORD.fix


def strict_json(raw: bytes, step: str) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    """Parse JSON as strictly as submissions: bounded size and depth, no duplicate key.

    Raises StepMismatch of the given step.
    """
    document = parse_document(raw, Path(step), step, spans=False)
    if document.faults:
        message, fix = document.faults[0].message, RESTORE
        if step == ENVELOPE and not raw.lstrip().startswith(b"{"):
            message, fix = f"this is not an audit record: {message}", FileKind.RECORD.fix
        raise StepMismatch(step, message, fix)
    return document.value


def is_signed_by(found: ParsedEnvelope, public_key: bytes) -> bool:
    """Whether the signature is that of a raw public key, over this payload and its type.

    Raises BrokenInstallation when cryptography is not installed.
    """
    return is_ed25519(found.signature, pae(PAYLOAD_TYPE, found.payload), public_key)


def is_ed25519(signature: bytes, message: bytes, public_key: bytes) -> bool:
    """Whether a signature is that of a raw Ed25519 key over a message.

    Raises BrokenInstallation when cryptography is not installed.
    """
    try:  # it costs 30 ms to import
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ModuleNotFoundError as error:
        raise BrokenInstallation(
            "cryptography, which verifies signatures, is not installed",
            "pip install 'geneb-ci[records]'",
        ) from error

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True

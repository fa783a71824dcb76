"""Signed envelopes: DSSE v1 with one Ed25519 signature, or the same in a Sigstore bundle.

Specification: github.com/secure-systems-lab/dsse, protocol.md and envelope.md, version 1.0.2.
`parse_envelope` returns the bytes that the signature covers, so that exactly these are parsed. An
envelope signed by a key has a single valid notation; a bundle may be written in any way.

A bundle (v0.3) contains a DSSE envelope, the certificate of the key that signed it and the proof
that a transparency log has the signature. The certificate is valid for minutes and names the
workflow.
"""

import base64
import binascii
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from geneb_ci.audit.canonical import digest, moment_of
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.common.errors import BadConfiguration, BrokenInstallation
from geneb_ci.submission.document import parse_document
from geneb_ci.submission.reading import FileKind, other_kind
from reference_harness.formats.base import Hex64, StrictModel, first_error
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.recognition import disguise_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from sigstore.verify import Verifier


TRUSTED_ROOT_FILE = "trusted_root.json"
"""File of the policy with the certificate authorities and logs that verify bundles."""

TRUSTED_ROOT_BYTES_MAX = 1_000_000
"""Largest size of the trusted root, in bytes: that of the public Sigstore instance has 7 kB."""
CACHED_ROOTS_MAX = 16
"""Largest number of trusted roots in memory: a board has one, a ledger reads those of many
commits."""
SIGSTORE_MESSAGE_MAX = 300
"""Largest number of characters of an error message of sigstore: the longest useful one contains two
identities."""
SIGSTORE_NOT_INSTALLED = "sigstore, which verifies what a workflow signed, is not installed"
SIGSTORE_INSTALL_FIX = "pip install 'geneb-ci[sigstore]'"

_ISSUER_OID = "1.3.6.1.4.1.57264.1.8"
_REPOSITORY_OID = "1.3.6.1.4.1.57264.1.12"
"""Ids of the extensions of a certificate with the issuer and the repository:
github.com/sigstore/fulcio/blob/main/docs/oid-info.md."""

_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class InvalidBundle(ValueError):  # noqa: N818 (named after what is wrong)
    """A bundle that cannot be read, or whose signature, certificate or proof is invalid."""


class Workflow(NamedTuple):
    """The workflow that signed a bundle, as named by its certificate."""

    issuer: str
    """Address of the issuer of the identity: https://token.actions.githubusercontent.com."""
    workflow: str
    """File of the workflow and its branch: https://github.com/O/R/.github/workflows/F@REF."""
    repository: str
    """Repository that the workflow ran in: https://github.com/O/R."""

    @property
    def id(self) -> str:
        """SHA-256 of issuer, workflow and repository, used like the id of a key."""
        return digest(self._asdict())


class _BundlePart(StrictModel):
    """A part of a bundle; sigstore later verifies the members that are not declared here."""

    model_config = ConfigDict(extra="allow")


class _Certificate(StrictModel):
    """The certificate in a bundle, in DER."""

    rawBytes: _Base64  # noqa: N815 (the format's own name)


class _VerificationMaterial(_BundlePart):
    """The part of a bundle by which its signature is verified."""

    certificate: _Certificate


class _BundledSignature(_BundlePart):
    """The signature in the envelope of a bundle."""

    sig: _Base64


class _BundledEnvelope(StrictModel):
    """The envelope in a bundle, whose signature names no key."""

    payload: _Base64
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815
    signatures: Annotated[list[_BundledSignature], Field(min_length=1, max_length=1)]


class _Bundle(StrictModel):
    """A Sigstore bundle of version 0.3."""

    mediaType: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"]  # noqa: N815
    verificationMaterial: _VerificationMaterial  # noqa: N815
    dsseEnvelope: _BundledEnvelope  # noqa: N815


class BundleParts(NamedTuple):
    """The content of a bundle before verification."""

    payload: bytes
    """The signed bytes."""
    signature: bytes
    workflow: Workflow
    """The workflow that the certificate names."""
    valid_from: str
    """Time from which the certificate is valid; the bundle was signed minutes later at most."""


def is_bundle(parsed: object) -> bool:
    """Whether a parsed file is a Sigstore bundle, of any version."""
    return isinstance(parsed, dict) and "mediaType" in parsed and "verificationMaterial" in parsed


def bundle_parts_of(document: Any) -> BundleParts:
    """Return the parts of a bundle from its parsed JSON. Raises InvalidBundle."""
    try:
        bundle = _Bundle.model_validate(document)
        payload = base64.b64decode(bundle.dsseEnvelope.payload, validate=True)
        signature = base64.b64decode(bundle.dsseEnvelope.signatures[0].sig, validate=True)
        certificate = base64.b64decode(
            bundle.verificationMaterial.certificate.rawBytes, validate=True
        )
    except ValidationError as error:
        raise InvalidBundle(f"not a bundle that can be verified: {first_error(error)}") from error
    except binascii.Error as error:
        raise InvalidBundle(
            f"payload, signature or certificate is not valid base64: {error}"
        ) from error
    return BundleParts(payload, signature, *_workflow_in(certificate))


def _workflow_in(der: bytes) -> tuple[Workflow, str]:
    """Return the workflow that a DER certificate names, and the time from which it is valid."""
    try:  # it costs 30 ms to import
        from cryptography import x509
        from cryptography.hazmat import asn1
    except ImportError as error:
        raise BrokenInstallation(SIGSTORE_NOT_INSTALLED, SIGSTORE_INSTALL_FIX) from error
    try:
        certificate = x509.load_der_x509_certificate(der)
        alternative_names = list(
            certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        )
        issuer, repository = (
            asn1.decode_der(
                str, certificate.extensions.get_extension_for_oid(oid).value.public_bytes()
            )
            for oid in map(x509.ObjectIdentifier, (_ISSUER_OID, _REPOSITORY_OID))
        )
        valid_from = moment_of(int(certificate.not_valid_before_utc.timestamp()))
    except Exception as error:  # a parser of untrusted bytes may raise anything
        raise InvalidBundle(
            f"the certificate names no workflow: {_ascii_message_of(error)}"
        ) from error
    if len(alternative_names) != 1 or not isinstance(
        alternative_names[0], x509.UniformResourceIdentifier
    ):
        raise InvalidBundle(
            "the certificate names no workflow: expected one URI as subject alternative name"
        )
    return Workflow(issuer, alternative_names[0].value, repository), valid_from


def verify_bundle(raw: bytes, bundle_parts: BundleParts, root: Path) -> None:
    """Refuse an invalid bundle, given by its bytes and parts; `root` is the trusted root's file.

    Checks the signature, the certificate chain at the time of signing, the certificate's signed
    timestamp (SCT), the log's inclusion proof and checkpoint, and that the certificate was valid at
    the time of signing. Raises InvalidBundle if one of these checks fails, BadConfiguration if the
    root cannot be used, and BrokenInstallation if sigstore is not installed.
    """
    verifier = _verifier(root, file_stamp(root))
    from sigstore.errors import Error  # half a second
    from sigstore.models import Bundle
    from sigstore.verify import policy

    workflow = bundle_parts.workflow
    expected_identity = policy.AllOf(
        [
            policy.Identity(identity=workflow.workflow, issuer=None),
            policy.OIDCIssuerV2(workflow.issuer),
            policy.OIDCSourceRepositoryURI(workflow.repository),
        ]
    )
    try:
        _, payload = verifier.verify_dsse(Bundle.from_json(raw), expected_identity)
    except Error as error:
        raise InvalidBundle(_ascii_message_of(error)) from error
    except Exception as error:  # the library parses untrusted bytes
        raise InvalidBundle(f"{type(error).__name__}: {_ascii_message_of(error)}") from error
    if payload != bundle_parts.payload:
        raise InvalidBundle("the signed bytes are not those of the envelope")


def _ascii_message_of(error: Exception) -> str:
    """Return the message of an error of sigstore as ASCII, since the signer chose parts of it."""
    cause = error.__cause__ or error.__context__ or error
    message = (
        first_error(cause) if isinstance(cause, ValidationError) else " ".join(str(error).split())
    )
    return json.dumps(message.replace("\x7f", " "))[1:-1][:SIGSTORE_MESSAGE_MAX]


def file_stamp(path: Path) -> tuple[int, int, int]:
    """Return inode, size and time of change of a file, for caches; zeros if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)  # reading it says why
    return (status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=CACHED_ROOTS_MAX)
def _verifier(root: Path, _stamp: tuple[int, int, int]) -> "Verifier":
    """Return the verifier that trusts the file `root`, whose `file_stamp` is `_stamp`."""
    try:
        from sigstore.models import TrustedRoot  # a second
        from sigstore.verify import Verifier
    except ImportError as error:
        raise BrokenInstallation(SIGSTORE_NOT_INSTALLED, SIGSTORE_INSTALL_FIX) from error
    fix = "restore the file from the main branch"
    try:
        read_regular(root, TRUSTED_ROOT_BYTES_MAX, links=False)  # the library sets no limits
        return Verifier(trusted_root=TrustedRoot.from_file(str(root)))
    except NotReadable as error:
        raise BadConfiguration(f"{root}: {error.reason}", fix) from error
    except Exception as error:  # the library raises many errors for an invalid file
        message = f"{root}: this is not a trusted root of Sigstore: {_ascii_message_of(error)}"
        raise BadConfiguration(message, fix) from error


PAYLOAD_TYPE: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"
"""Type of every signed payload: an in-toto statement as JSON."""

ENVELOPE_STEP, SIGNER_STEP, STATEMENT_STEP = "envelope", "signer", "statement"
"""Names of the first steps of a verification. The later step "signature" verifies the beacon."""

RESTORE_FIX = "restore the file from the main branch, or run the audit again"
"""The fix of an error in a signed file of the repository."""


class Signature(StrictModel):
    """A signature and the id of its key."""

    keyid: Hex64
    """SHA-256 of the raw public key."""
    sig: _Base64


class Envelope(StrictModel):
    """A DSSE envelope with exactly one signature."""

    payload: _Base64
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815 (DSSE's own name)
    signatures: Annotated[list[Signature], Field(min_length=1, max_length=1)]


class ParsedEnvelope(NamedTuple):
    """The content of an envelope before its signature is verified."""

    payload: bytes
    """The signed bytes."""
    keyid: str
    """Id of the key, or of the workflow that the certificate of a bundle names."""
    signature: bytes
    bundle: tuple[bytes, BundleParts] | None = None
    """The bytes and parts of a bundle; None if a key signed."""


def key_id(public_key: bytes) -> str:
    """Return the id of a public key, given by its bytes: their SHA-256, as hex digits."""
    return hashlib.sha256(public_key).hexdigest()


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that the signature of a payload covers, as DSSE defines them."""
    type_bytes = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(type_bytes), type_bytes, len(payload), payload)


def sign_payload(payload: bytes, key: "Ed25519PrivateKey") -> bytes:
    """Return the bytes of a signed envelope of a payload; equal arguments give equal bytes."""
    public = key.public_key().public_bytes_raw()
    signature = key.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload))
    return _envelope_bytes(payload, key_id(public), signature)


def _envelope_bytes(payload: bytes, keyid: str, signature: bytes) -> bytes:
    """Return the bytes of an envelope in the only notation that `parse_envelope` accepts."""
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
    }
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


def parse_envelope(raw: bytes) -> ParsedEnvelope:
    """Parse an envelope or a bundle, without verifying its signature.

    Raises StepMismatch, of the step "envelope", unless the bytes are a bundle of version 0.3, or
    exactly those that `sign_payload` writes for this payload, key and signature.
    """
    document = strict_json(raw, ENVELOPE_STEP)
    if is_bundle(document):
        try:
            parts = bundle_parts_of(document)
        except InvalidBundle as error:
            raise StepMismatch(ENVELOPE_STEP, str(error), RESTORE_FIX) from error
        return ParsedEnvelope(parts.payload, parts.workflow.id, parts.signature, (raw, parts))
    try:
        envelope = Envelope.model_validate(document)
        payload = base64.b64decode(envelope.payload, validate=True)
        signature = base64.b64decode(envelope.signatures[0].sig, validate=True)
    except ValidationError as error:
        raise StepMismatch(ENVELOPE_STEP, *_non_envelope_error(document, error)) from error
    except binascii.Error as error:
        raise StepMismatch(
            ENVELOPE_STEP, f"payload or signature is not valid base64: {error}", RESTORE_FIX
        ) from error
    parsed = ParsedEnvelope(payload, envelope.signatures[0].keyid, signature)
    if _envelope_bytes(parsed.payload, parsed.keyid, parsed.signature) != raw:
        raise StepMismatch(
            ENVELOPE_STEP,
            "the envelope is not written as geneb-ci writes it, byte for byte",
            RESTORE_FIX,
        )
    return parsed


def _non_envelope_error(document: object, error: ValidationError) -> tuple[str, str]:
    """Return the message and the fix of the error for a file that is not an envelope."""
    if FileKind.RECORD.fits(document):
        return first_error(error), RESTORE_FIX
    refusal = other_kind(document, FileKind.RECORD)
    if refusal is not None:
        return refusal.message, refusal.fix
    return f"this is not an audit record: {first_error(error)}", FileKind.RECORD.fix


def strict_json(raw: bytes, step: str) -> Any:
    """Parse JSON with bounded size and depth and without duplicate keys, as submissions are parsed.

    Raises StepMismatch, of the step `step`.
    """
    document = parse_document(raw, Path(step), step)
    if document.faults:
        fault = document.faults[0]
        message, fix = fault.message, fault.fix or RESTORE_FIX
        if step == ENVELOPE_STEP and not raw.lstrip().startswith(b"{"):
            message = f"this is not an audit record: {message}"
            fix = FileKind.RECORD.fix if disguise_of(raw) is None else fault.fix
        raise StepMismatch(step, message, fix)
    return document.value


def is_signed_by(envelope: ParsedEnvelope, public_key: bytes) -> bool:
    """Whether the signature of an envelope is valid for a raw public key.

    Raises BrokenInstallation when cryptography is not installed.
    """
    return is_valid_ed25519(
        envelope.signature, pre_authentication_encoding(PAYLOAD_TYPE, envelope.payload), public_key
    )


def is_valid_ed25519(signature: bytes, message: bytes, public_key: bytes) -> bool:
    """Whether a signature of a message is valid for a raw Ed25519 public key.

    Raises BrokenInstallation when cryptography is not installed.
    """
    try:  # it costs 30 ms to import
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (
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

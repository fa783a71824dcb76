"""The keys that a repository trusts, and the private key of a maintainer."""

import base64
import functools
import operator
import os
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from geneb_ci.audit.canonical import checked_moment
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import (
    RESTORE_FIX,
    SIGNER_STEP,
    TRUSTED_ROOT_FILE,
    BundleParts,
    InvalidBundle,
    ParsedEnvelope,
    Workflow,
    file_stamp,
    is_signed_by,
    key_id,
    strict_json,
    verify_bundle,
)
from geneb_ci.audit.record.old_log import LogKeys
from geneb_ci.common.config import Layout, setting_in_errors
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from geneb_ci.common.shipped import shipped
from reference_harness.formats.base import Count, Hex64, Moment, Name, StrictModel, all_errors
from reference_harness.formats.files import NotReadable, path_exists, read_regular, read_text
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEYS_FILE = "keys.json"
"""File of the policy with the keys and workflows that may sign audits."""
KEY_VARIABLE = "GENEB_AUDIT_KEY_FILE"
"""Environment variable that names the file of the private key."""

KEYS_FOLDER = "keys"
"""Folder of a board's clone that contains private keys; git ignores it."""

KEYS_BYTES_MAX = 1_000_000
"""Largest size of keys.json, in bytes: an entry has 300, so that 3,000 keys fit."""
KEY_BYTES_MAX = 20_000
"""Largest size of the file of a private key, in bytes: an Ed25519 key in PEM has 119, and some
tools write text around it."""
CACHED_FILES_MAX = 16
"""Largest number of parsed keys.json in memory: a command reads one, a ledger those of many
commits."""
_PUBLIC_KEY_BYTES = 32  # of Ed25519, RFC 8032
Address = Annotated[str, Field(pattern=r"^https://[!-~]+$", max_length=500)]
"""An address in a certificate, compared character by character."""
_PERMISSIONS_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The bits of a file's mode by which other users may use the file."""


class TrustedSigner(StrictModel):
    """A person or a workflow that may sign audits, and when its signatures are valid."""

    owner: Name
    """The responsible person; entries with the same owner count as one signer."""
    valid_from: Moment
    """Audits that ended earlier are not accepted."""
    valid_until: Moment | None = None
    """Audits that ended later are not accepted; set when a key is replaced."""
    revoked_at: Moment | None = None
    """Time at which the key was found to be compromised. Nothing that it signed counts, whatever
    the date, since the thief of a key chooses the dates; but see `revoked_after`."""
    revoked_from: Count | None = Field(default=None, exclude_if=operator.not_)
    """Number of entries of an old log at a time when the key was safe: these entries still count,
    since nobody can add to them."""
    revoked_after: list[Hex64] = Field(default=[], exclude_if=operator.not_)
    """SHA-256 of each head at a time when the key was safe. These statements and their predecessors
    still count, since nobody can add a predecessor."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        """Refuse malformed or contradicting times, and exceptions without a revocation."""
        for moment in (self.valid_from, self.valid_until, self.revoked_at):
            if moment is not None:
                checked_moment(moment)
        if self.valid_until is not None and self.valid_until < self.valid_from:
            raise ValueError(
                f"valid_until {self.valid_until} is before valid_from {self.valid_from}: no audit "
                "could be accepted"
            )
        for member in ("revoked_from", "revoked_after"):
            if getattr(self, member) and self.revoked_at is None:
                raise ValueError(f"{member} is given without revoked_at")
        return self


class TrustedKey(TrustedSigner):
    """A maintainer's public key."""

    keyid: Hex64
    """SHA-256 of the raw public key."""
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]
    """The raw Ed25519 key, 32 bytes in base64."""

    @property
    def raw(self) -> bytes:
        """The 32 bytes of the public key."""
        return base64.b64decode(self.public_key, validate=True)

    @property
    def title(self) -> str:
        """The name of this signer in messages."""
        return f"key {self.keyid[:16]}..."

    @model_validator(mode="after")
    def _check_keyid(self) -> Self:
        """Refuse a public key that is malformed, or whose digest is not `keyid`."""
        if (
            len(self.raw) != _PUBLIC_KEY_BYTES
            or base64.b64encode(self.raw).decode() != self.public_key
        ):
            raise ValueError("public_key is not the base64 of 32 bytes")
        if key_id(self.raw) != self.keyid:
            raise ValueError(f"keyid is not {key_id(self.raw)}, the sha256 of public_key")
        return self


class TrustedWorkflow(TrustedSigner):
    """A workflow that signs under its own identity, in Sigstore bundles."""

    issuer: Address
    """Address of the issuer of the identity: https://token.actions.githubusercontent.com."""
    workflow: Address
    """File and branch of the workflow: https://github.com/O/R/.github/workflows/audit.yml@refs/heads/main."""
    repository: Address
    """The repository that the workflow has to run in: https://github.com/O/R."""
    _root: Path = PrivateAttr(Path(TRUSTED_ROOT_FILE))

    @property
    def keyid(self) -> str:
        """SHA-256 of the canonical JSON of issuer, workflow and repository."""
        return Workflow(self.issuer, self.workflow, self.repository).id

    @property
    def title(self) -> str:
        """The name of this signer in messages."""
        return f"workflow {self.workflow}"

    @property
    def root(self) -> Path:
        """The file of the trusted root with which the bundles of this workflow are verified."""
        return self._root

    def with_root(self, root: Path) -> Self:
        """Return the same workflow with another file of the trusted root."""
        workflow = self.model_copy()
        workflow._root = root  # noqa: SLF001 (of this class)
        return workflow


class KeyFile(StrictModel):
    """The keys and workflows that may sign audits: keys.json of the base branch."""

    note: str = ""
    """A text for readers of the file."""
    keys: list[TrustedKey]
    workflows: list[TrustedWorkflow] = Field(default=[], exclude_if=operator.not_)
    """Workflows whose Sigstore bundles count like records signed by keys."""
    log: LogKeys | None = Field(default=None, exclude_if=operator.not_)
    """An old log of audits, which is no longer extended."""

    @model_validator(mode="after")
    def _check_no_duplicates(self) -> Self:
        """Refuse a key or workflow that is listed more than once."""
        for signer_kind, signers in (("key", self.keys), ("workflow", self.workflows)):
            for keyid, count in Counter(signer.keyid for signer in signers).items():
                if count > 1:
                    raise ValueError(f"the {signer_kind} {keyid} is listed {count} times")
        return self


Signer = TrustedKey | TrustedWorkflow
"""A key or workflow of keys.json."""
Keys = Mapping[str, Signer]
"""Trusted keys and workflows by their keyid."""


def trusted_keys(layout: Layout) -> Keys:
    """Return the trusted keys of a repository, or the shipped ones if it has no policy.

    A policy without keys.json trusts no key. Without a trusted root of its own, bundles are
    verified with the shipped one. Raises BadConfiguration when the policy cannot be used.
    """
    file = _key_file(layout)
    if file is None:
        return {}
    signers: list[Signer] = list(file.keys)
    if file.workflows:
        policy_file = layout.policy / TRUSTED_ROOT_FILE if layout.policy is not None else None
        root = (
            policy_file
            if policy_file is not None and path_exists(policy_file)
            else shipped("policy", TRUSTED_ROOT_FILE)
        )
        signers += [workflow.with_root(root) for workflow in file.workflows]
    return {signer.keyid: signer for signer in signers}


def log_keys(layout: Layout) -> LogKeys | None:
    """Return the keys of the old log of a repository; None if its policy names none.

    Raises BadConfiguration when the policy cannot be used.
    """
    file = _key_file(layout)
    return file.log if file is not None else None


def _key_file(layout: Layout) -> KeyFile | None:
    """Return keys.json of a policy, or the shipped one; None for a policy without this file."""
    path = shipped("policy", KEYS_FILE) if layout.policy is None else layout.policy / KEYS_FILE
    if not path_exists(path):
        return None
    with setting_in_errors(layout, "policy"):
        return _parsed_key_file(path, file_stamp(path))


@functools.lru_cache(maxsize=CACHED_FILES_MAX)
def _parsed_key_file(path: Path, _stamp: tuple[int, int, int]) -> KeyFile:
    """Return the content of keys.json, a file whose `file_stamp` is `_stamp`."""
    fix = "restore the file from the main branch"
    try:
        raw = read_text(path, KEYS_BYTES_MAX, links=False)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: {error.reason}", fix) from error
    try:
        return KeyFile.model_validate(strict_json(raw, KEYS_FILE))
    except StepMismatch as error:
        raise BadConfiguration(f"{path}: {error.message}", fix) from error
    except ValidationError as error:
        raise BadConfiguration(f"{path}: {all_errors(error)}", fix) from error


class RevokedKey(StepMismatch):
    """A signature that no longer counts, because its key was compromised."""


def signer_of(envelope: ParsedEnvelope, keys: Keys) -> Signer:
    """Return the listed key or workflow that signed an envelope, even if it was revoked.

    Raises StepMismatch, of the step "signer"; for a bundle also what `verify_bundle` raises.
    """
    signer = keys.get(envelope.keyid)
    if envelope.bundle is not None:
        return _listed_workflow(*envelope.bundle, signer, keys)
    if not isinstance(signer, TrustedKey):
        raise StepMismatch(
            SIGNER_STEP,
            f"the key {envelope.keyid[:16]}... is not among the {_signer_count(keys, TrustedKey)} "
            "trusted keys",
            f"ask a maintainer to add this key to leaderboard/policy/{KEYS_FILE} of the main "
            "branch",
        )
    if not is_signed_by(envelope, signer.raw):
        raise StepMismatch(
            SIGNER_STEP,
            f"the signature is not that of the {signer.title} over this payload",
            RESTORE_FIX,
        )
    return signer


def _listed_workflow(
    raw: bytes, bundle_parts: BundleParts, signer: Signer | None, keys: Keys
) -> Signer:
    """Return the workflow that signed a bundle, if it is the `signer` listed in keys.json.

    Raises StepMismatch otherwise, or if the bundle is invalid.
    """
    if not isinstance(signer, TrustedWorkflow):
        workflow = bundle_parts.workflow
        raise StepMismatch(
            SIGNER_STEP,
            f"the workflow {quoted(workflow.workflow)} in {quoted(workflow.repository)} signed the "
            f"bundle, according to {quoted(workflow.issuer)}; this workflow is not among the "
            f"{_signer_count(keys, TrustedWorkflow)} trusted workflows",
            "ask a maintainer to add this workflow to `workflows` of "
            f"leaderboard/policy/{KEYS_FILE}",
        )
    try:
        verify_bundle(raw, bundle_parts, signer.root)
    except InvalidBundle as error:
        raise StepMismatch(
            SIGNER_STEP, f"the bundle of the {signer.title} is not valid: {error}", RESTORE_FIX
        ) from error
    check_validity(signer, bundle_parts.valid_from, "this bundle was signed")
    return signer


def _signer_count(keys: Keys, signer_class: type[TrustedSigner]) -> int:
    """Return the number of trusted keys, or of trusted workflows."""
    return sum(isinstance(signer, signer_class) for signer in keys.values())


def check_revoked(
    signer: Signer, log_index: int | None, *, precedes_compromise: bool = False
) -> None:
    """Refuse a statement by a revoked key or workflow, unless it was signed while the key was safe.

    `log_index` is the index of the statement's entry in an old log, or None; `precedes_compromise`
    is whether the statement is among the heads of `revoked_after` and their predecessors. Raises
    RevokedKey, of the step "signer".
    """
    if signer.revoked_at is None or precedes_compromise:
        return
    if log_index is None or signer.revoked_from is None or log_index >= signer.revoked_from:
        exceptions = []
        if signer.revoked_from is not None:
            exceptions.append(f"entries of the log before number {signer.revoked_from}")
        if signer.revoked_after:
            exceptions.append("the statements in revoked_after and those before them")
        exceptions_text = f"; of its statements only {' and '.join(exceptions)} still count"
        raise RevokedKey(
            SIGNER_STEP,
            f"the {signer.title} was revoked at {signer.revoked_at}"
            f"{exceptions_text if exceptions else ''}",
            "run the audit again: this record no longer counts, and the new audit must rerun what "
            "this record drew",
        )


def check_validity(signer: Signer, moment: str, event_text: str) -> None:
    """Raise StepMismatch, of the step "signer", unless a signer was valid at a time.

    `event_text` is what happened at that time, such as "this audit ended".
    """
    if not signer.valid_from <= moment <= (signer.valid_until or moment):
        until = signer.valid_until or "now"
        raise StepMismatch(
            SIGNER_STEP,
            f"the {signer.title} is valid from {signer.valid_from} to {until}, but {event_text} at "
            f"{moment}",
            "sign with a key that was valid then",
        )


def new_key(path: Path, owner: str, now: str) -> TrustedKey:
    """Write a new private key with mode 0600, and return the entry of its public key.

    `now` becomes `valid_from`. Raises UsageProblem when the path exists, or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization  # costs 30 ms to import
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
    )

    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageProblem(
            f"{path}: cannot be written: {error.strerror}",
            "name a file that does not exist: a key is never overwritten"
            if isinstance(error, FileExistsError)
            else "name a file in a folder that you can write to: --output FILE",
        ) from error
    with os.fdopen(handle, "wb") as stream:
        stream.write(pem)
    return key_entry_of(key.public_key().public_bytes_raw(), owner, now)


def key_entry_of(raw: bytes, owner: str, now: str) -> TrustedKey:
    """Return the entry in keys.json of a public key of 32 bytes, valid from the time `now`."""
    return TrustedKey(
        keyid=key_id(raw),
        public_key=base64.b64encode(raw).decode(),
        owner=owner,
        valid_from=now,
    )


def private_key(path: Path | None) -> "Ed25519PrivateKey":
    """Return the private key in a file, by default the one that GENEB_AUDIT_KEY_FILE names.

    Raises UsageProblem when there is none, when others may read it, or when it is not an Ed25519
    key in PEM without a password.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
    )

    file = str(path) if path is not None else os.environ.get(KEY_VARIABLE, "")
    if not file:
        key_files = sorted(Path(KEYS_FOLDER).glob("*.pem"))
        advice = f"pass --key {key_files[0] if key_files else 'FILE'}"
        raise UsageProblem(
            "there is no private key to sign with",
            f"{advice}, or set {KEY_VARIABLE}=FILE; `geneb-ci audit keygen` makes a key",
        )
    try:
        raw = read_regular(Path(file), KEY_BYTES_MAX)
        mode = Path(file).stat().st_mode
    except NotReadable as error:
        raise UsageProblem(f"{file}: {error.reason}", "check the path of the key") from error
    if mode & _PERMISSIONS_OF_OTHERS:
        raise UsageProblem(
            f"{file}: other users can read this key: mode {stat.S_IMODE(mode):04o}, expected 0600",
            f"chmod 600 {file}",
        )
    try:
        key = serialization.load_pem_private_key(raw, None)
    except (ValueError, TypeError) as error:
        raise UsageProblem(
            f"{file}: this is not a private key in PEM without a password",
            "make one with `geneb-ci audit keygen`",
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageProblem(
            f"{file}: this is not an Ed25519 key", "make one with `geneb-ci audit keygen`"
        )
    return key

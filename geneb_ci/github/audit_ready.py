"""Check that an audit by a workflow has a machine, a key and a token before anything is rerun."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.envelope import key_id
from geneb_ci.audit.record.keys import (
    KEY_VARIABLE,
    KEYS_FILE,
    TrustedKey,
    private_key,
    trusted_keys,
)
from geneb_ci.audit.rerun.credentials import KEY_TEXT_ENV
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import GitHub, connect
from geneb_ci.github.errors import GitHubTokenRefused, MissingScope, NotFound
from reference_harness.formats.files import member_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WRITER_VARIABLE = "AUDIT_TOKEN"
"""Secret with the token of the job that opens pull requests with records.

The job that signs records has the secret `KEY_TEXT_ENV` instead.
"""
AUDIT_APP, AUDIT_APP_KEY = "AUDIT_APP", "AUDIT_APP_KEY"
"""Variable and secret of the board's App, with which the workflow gets the App's tokens."""
FLAVOR, RUNNER = "AUDIT_FLAVOR", "AUDIT_RUNNER"
"""Variables that select where audits run: a machine of the Hub, or a self-hosted runner."""
PROBED_LEVEL = "AUDIT_PROBED"
"""Variable with the sandbox level in Jobs of the Hub, set after `geneb-ci doctor --hub-job`."""
AUDIT_ENVIRONMENT = "geneb-audit"
"""Environment on GitHub with the secrets of the jobs that sign records and propose them."""
VERDICT_ENVIRONMENT, VERDICT_KEY = "geneb-verdict", "VERDICT_APP_KEY"
"""Environment of the job that sets the status of verdicts, and its secret with the App's key."""
_SECRET_PLACE = "as the secret {} of the environment " + AUDIT_ENVIRONMENT
"""Part of a fix that says where to store a secret."""


def require_machine() -> None:
    """Raise AuditRefused if the workflow names no machine; a rerun would wait a day for one.

    The workflow sets both variables. If neither is set, a person runs the audit on this machine.
    """
    machine_names = [os.environ[name] for name in (FLAVOR, RUNNER) if name in os.environ]
    if machine_names and not any(machine_names):
        raise AuditRefused(
            f"nothing can run this audit: neither {FLAVOR} nor {RUNNER} is set",
            f"set the variable {FLAVOR} of the repository to a machine of the Hub such as l4x1, or "
            f"{RUNNER} to the name of a machine that registers as a runner; or audit the row on "
            "your own machine: geneb-ci audit FILE",
        )


@contextlib.contextmanager
def signing_key(path: Path | None) -> Iterator["Ed25519PrivateKey"]:
    """Yield the private key in the file at `path`, or else the key in the secret `AUDIT_KEY`.

    Raises UsageProblem if the key is missing or invalid.
    """
    key_text = os.environ.get(KEY_TEXT_ENV, "")
    if path is not None or (not key_text and os.environ.get(KEY_VARIABLE)):
        yield private_key(path)
        return
    fix = "store the private key of an entry of keys.json " + _SECRET_PLACE.format(KEY_TEXT_ENV)
    if not key_text:
        raise UsageProblem(f"{KEY_TEXT_ENV} is not set: there is no key to sign with", fix)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key.pem"
        file.touch(mode=0o600)
        file.write_text(key_text.strip() + "\n", encoding="utf-8")
        try:
            signer = private_key(file)
        except UsageProblem as error:
            message = f"{KEY_TEXT_ENV} is not an Ed25519 private key in PEM without a password"
            raise UsageProblem(message, fix) from error
    yield signer


def require_trusted_key(signer: "Ed25519PrivateKey", layout: Layout) -> None:
    """Raise UsageProblem if a record signed by this key would not count on main now."""
    keyid = key_id(signer.public_key().public_bytes_raw())
    trusted_key = trusted_keys(layout).get(keyid)
    if not isinstance(trusted_key, TrustedKey):
        message = f"{KEYS_FILE} of main does not have the key to sign with, {keyid[:16]}..."
        fix = f"merge the entry of this key into leaderboard/policy/{KEYS_FILE}, or use another key"
    elif trusted_key.valid_until is not None or trusted_key.revoked_at is not None:
        message = f"the key to sign with, {keyid[:16]}..., has expired or was revoked"
        fix = f"use another key that leaderboard/policy/{KEYS_FILE} of main has"
    else:
        return
    stored_text = _SECRET_PLACE.format(KEY_TEXT_ENV)
    raise UsageProblem(message, f"{fix}; a workflow reads the key {stored_text}")


def pull_request_client(repository: str | None, own_account_id: int | None = None) -> GitHub | None:
    """Return a client that may open pull requests; None if the secret `AUDIT_TOKEN` is not set.

    One request. Raises UsageProblem if the token is refused or may not write.
    """
    token = os.environ.get(WRITER_VARIABLE, "")
    if not token:
        return None
    writer = connect(repository, {**os.environ, "GH_TOKEN": token}, own_account_id)
    fix = (
        "make an App: geneb-ci init --app; or store a token that may write Contents and Pull "
        "requests, and that lasts for more than an hour, "
        f"{_SECRET_PLACE.format(WRITER_VARIABLE)}; or delete "
        "that secret: the signed record is then attached to a comment"
    )
    try:
        answer = writer.connection.get("").body
    except (GitHubTokenRefused, MissingScope, NotFound) as error:
        writer.connection.close()
        raise UsageProblem(
            f"GitHub refuses the token in {WRITER_VARIABLE}: {error.message}", fix
        ) from error
    if member_at(answer, "permissions", "push") is False:
        writer.connection.close()
        raise UsageProblem(f"the token in {WRITER_VARIABLE} may not write to this repository", fix)
    return writer

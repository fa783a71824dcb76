"""Checks that an audit by a workflow has a machine, a key and a token, before anything is rerun."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
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
from geneb_ci.audit.rerun.credentials import KEY_TEXT
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import GitHub, connect
from geneb_ci.github.errors import GitHubTokenRefused, MissingScope, NotFound
from reference_harness.formats.files import member_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

WRITER = "AUDIT_TOKEN"
"""Secret of the job that proposes; the one that signs has `KEY_TEXT`."""
APP, APP_KEY = "AUDIT_APP", "AUDIT_APP_KEY"
"""Variable and secret of an App of the board, from which the workflow mints the second of them."""
FLAVOR, RUNNER = "AUDIT_FLAVOR", "AUDIT_RUNNER"
"""Variables that name where the workflow reruns: a machine of the Hub, or a runner of its own."""
PROBED = "AUDIT_PROBED"
"""Variable that a maintainer sets after `doctor --hub-job` passed: the level of the sandbox."""
ENVIRONMENT = "geneb-audit"
VERDICT_ENVIRONMENT, VERDICT_KEY = "geneb-verdict", "VERDICT_APP_KEY"
"""Environment of the job that sets the status of verdicts, and the key of its App there."""
_SECRET = "as the secret {} of the environment " + ENVIRONMENT


def require_machine(environment: Mapping[str, str] = os.environ) -> None:
    """Raise AuditRefused where the workflow names no machine, so that a rerun would wait a day.

    The workflow sets both variables. If neither is set, a person runs the audit on this machine.
    """
    machine_names = [environment[name] for name in (FLAVOR, RUNNER) if name in environment]
    if machine_names and not any(machine_names):
        raise AuditRefused(
            f"nothing can run this audit: neither {FLAVOR} nor {RUNNER} is set",
            f"set the variable {FLAVOR} of the repository to a machine of the Hub such as l4x1, or "
            f"{RUNNER} to the name of a machine that registers as a runner; or audit the row on "
            "your own machine: geneb-ci audit FILE",
        )


@contextlib.contextmanager
def signing_key(path: Path | None) -> Iterator["Ed25519PrivateKey"]:
    """Yield the key of a file, or the one whose text is the secret `AUDIT_KEY`.

    Raises UsageProblem, which names what is missing or wrong.
    """
    text = os.environ.get(KEY_TEXT, "")
    if path is not None or (not text and os.environ.get(KEY_VARIABLE)):
        yield private_key(path)
        return
    how = "store the text of a private key of keys.json " + _SECRET.format(KEY_TEXT)
    if not text:
        raise UsageProblem(f"{KEY_TEXT} is not set: there is no key to sign with", how)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "key.pem"
        file.touch(mode=0o600)
        file.write_text(text.strip() + "\n", encoding="utf-8")
        try:
            key = private_key(file)
        except UsageProblem as error:
            what = f"{KEY_TEXT} is not an Ed25519 private key in PEM without a password"
            raise UsageProblem(what, how) from error
    yield key


def require_trusted(signer: "Ed25519PrivateKey", layout: Layout) -> None:
    """Raise UsageProblem unless a record that this key signs now counts on main."""
    keyid = key_id(signer.public_key().public_bytes_raw())
    entry = trusted_keys(layout).get(keyid)
    if not isinstance(entry, TrustedKey):
        what = f"{KEY_TEXT} is the key {keyid[:16]}..., which {KEYS_FILE} of main does not have"
    elif entry.valid_until is not None or entry.revoked_at is not None:
        what = f"{KEY_TEXT} is the key {keyid[:16]}..., which ended or was revoked"
    else:
        return
    fix = f"merge its entry into leaderboard/policy/{KEYS_FILE}, or store another key "
    raise UsageProblem(what, fix + _SECRET.format(KEY_TEXT))


def writer_of(repository: str | None, author: int | None = None) -> GitHub | None:
    """Return a client with the token that opens pull requests; None where `AUDIT_TOKEN` is not set.

    One request. Raises UsageProblem for a token that is refused, or that may not write.
    """
    token = os.environ.get(WRITER, "")
    if not token:
        return None
    writer = connect(repository, {**os.environ, "GH_TOKEN": token}, author)
    how = (
        "make an App: geneb-ci init --app; or store a token that may write Contents and Pull "
        f"requests, and that does not end within the hour {_SECRET.format(WRITER)}, or delete it: "
        "without one the signed record is attached"
    )
    try:
        answer = writer.wire.get("").body
    except (GitHubTokenRefused, MissingScope, NotFound) as error:
        writer.wire.close()
        raise UsageProblem(f"GitHub refuses the token in {WRITER}: {error.message}", how) from error
    if member_at(answer, "permissions", "push") is False:
        writer.wire.close()
        raise UsageProblem(f"the token in {WRITER} may not write to this repository", how)
    return writer

"""A repository that keeps a log of its audits, and steps of an audit in it."""

import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.log.append import Batch, batch_of, extended_log
from geneb_ci.audit.log.checkpoint import ED25519, NoteKey
from geneb_ci.audit.log.entries import FORMAT, AuditLog, LogEntry
from geneb_ci.audit.record.events import AuditAbort, AuditStart, signed_event
from geneb_ci.audit.record.keys import TrustedKey, log_keys
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.sampling.beacon import DELAY, QUICKNET
from geneb_ci.audit.sampling.plan import DrandBeacon, Plan
from geneb_ci.common.config import find_layout
from tests.audit.examples import ROUNDS
from tests.audit.recorded import (
    FIRST,
    entry,
    key,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)

ORIGIN = "example.org/audits"
LOG_KEY = key("log")
VKEY = NoteKey(ORIGIN, ED25519, LOG_KEY.public_key().public_bytes_raw()).text
BEFORE = DELAY // QUICKNET.period
"""Rounds between the entry of a commitment and the round that decides its draw."""


def kept(root: Path, raw: bytes | None = None, keys: list[dict[str, Any]] | None = None) -> Path:
    """Write a repository whose policy names a log."""
    repository(root, raw, keys)
    set_keys(root, keys if keys is not None else [entry()])
    return root


def set_keys(root: Path, keys: list[dict[str, Any]], log: dict[str, Any] | None = None) -> None:
    """Write the keys of the policy, with those of the log."""
    value = {"keys": keys, "log": log or {"origin": ORIGIN, "keys": [VKEY]}}
    for one in keys:
        TrustedKey.model_validate(one)
    (root / "leaderboard/policy/keys.json").write_text(json.dumps(value), encoding="utf-8")
    find_layout.cache_clear()


def signed(
    root: Path, what: Commitment | AuditStart | AuditAbort, of: Ed25519PrivateKey | None = None
) -> Path:
    """Sign a commitment, a start or an abort, and write it where it belongs."""
    made = signed_event(what, of or key())
    path = root / "leaderboard/audits" / made.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.content)
    find_layout.cache_clear()
    return path


def read(root: Path) -> AuditRepository:
    """Read the repository from its files."""
    find_layout.cache_clear()
    return AuditRepository(find_layout(root))


def log_of(root: Path) -> AuditLog:
    """Return the log as it is now."""
    logged = read(root).logged
    assert logged is not None
    return logged.log


def extend(root: Path, number: int) -> Batch:
    """Append to the log at a round of the beacon; its signature is not looked at here."""
    found = read(root)
    assert found.logged is not None
    signature = ROUNDS.get(number, hashlib.sha384(b"%d" % number).hexdigest())
    beacon = DrandBeacon(kind="drand", chain=QUICKNET.hash, round=number, signature=signature)
    batch = batch_of(found, found.logged, beacon)
    write(root, found, batch)
    return batch


def write(root: Path, found: AuditRepository, batch: Batch) -> None:
    """Write the files of a log with more entries, signed by its key."""
    assert found.logged is not None
    audits = root / "leaderboard/audits"
    for folder, files in extended_log(batch, found.logged, LOG_KEY, audits).items():
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    find_layout.cache_clear()


def forced(root: Path, *entries: LogEntry) -> None:
    """Append entries as whoever has the log's key could, checked by nobody."""
    write(root, read(root), Batch(entries, ()))


def entry_of(kind: str, file: str, sha256: str, number: int, **changes: Any) -> LogEntry:
    """Make up an entry."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "file": file,
        "statement": sha256,
        "signer": entry()["keyid"],
        "commitment": None,
        "identity": None,
        "round": number,
        "signature": "0" * 96,
    }
    return LogEntry.model_validate(fields | changes)


def begun(root: Path, plan: Plan, number: int = FIRST) -> Plan:
    """Commit, draw and start, each an entry of the log."""
    signed(root, plan.commitment)
    extend(root, number - BEFORE)
    signed(root, AuditStart(schema_version="1.0", plan=plan))
    extend(root, number)
    return plan


def audited(
    root: Path, raw: bytes, number: int = FIRST, shift: float = 0.0, **changes: Any
) -> Path:
    """Make a whole audit, with its entries; gives the record."""
    plan = begun(root, plan_for(raw, number, **changes), number)
    path = put(root, outcome_of(plan, raw, shift))
    extend(root, number + 1)
    return path


def aborted(plan: Plan, message: str = "CUDA out of memory", at: int = 0) -> AuditAbort:
    """Return the abort of a run of a plan."""
    outcome = outcome_of(plan, submission_bytes())
    return AuditAbort(
        schema_version="1.0",
        plan=plan,
        stage="embedding",
        task=plan.chosen[0].task,
        kind="failed",
        message=message,
        sandbox=outcome.sandbox,
        started_at=outcome.started_at,
        finished_at=moment_of(1_700_000_000 + at),
    )


def key_file(root: Path) -> Path:
    """Write the private key of the log."""
    from cryptography.hazmat.primitives import serialization

    path = root / "log.pem"
    path.write_bytes(
        LOG_KEY.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    assert log_keys(find_layout(root)) is not None
    return path

"""What an audit signs beside the record, what it reads of the log and adds to it, and its draw."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.audit.canonical import AuditRefused, seconds_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.log.append import Batch, batch_of, extended_log, recent_round
from geneb_ci.audit.log.check import check_committed, check_kept, committed_index
from geneb_ci.audit.log.checkpoint import LogKeys
from geneb_ci.audit.log.entries import LogBroken
from geneb_ci.audit.record.events import (
    AuditAbort,
    AuditStart,
    RunFacts,
    bounded,
    parse_event,
    signed_event,
)
from geneb_ci.audit.record.keys import log_keys, log_signer, trusted_keys
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import COMMITTED, SignedRecord, read_record
from geneb_ci.audit.sampling.plan import Plan, RowPlan, read_commitment
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import (
    ExtractorRefused,
    LimitExceeded,
    NothingChecked,
    ResultRefused,
    UsageProblem,
)
from geneb_ci.common.files import write_files
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OF_THE_MACHINE = "host_floor_mib"
"""The limit that other programs of the machine reach: the submission is not the reason."""


def check_moment(committed_at: str | None) -> None:
    """Refuse a time of publication that is none. Raises UsageProblem."""
    if committed_at is None:
        return
    try:
        seconds_of(committed_at)
    except UsageProblem as error:
        raise UsageProblem(f"--committed-at {error.message}", error.fix) from error


def keeps_log(layout: Layout) -> bool:
    """Whether the policy of a place names a log."""
    return log_keys(layout) is not None


def audits_of(layout: Layout) -> Path:
    """Return the folder of audits of a place, whether or not it exists."""
    return layout.audits or layout.root / "leaderboard" / "audits"


def kept_log(layout: Layout) -> LogKeys:
    """Return the keys of the log of a place. Raises NothingChecked where its policy names none."""
    keys = log_keys(layout)
    if keys is None:
        raise NothingChecked(
            "no log of audits is kept here: leaderboard/policy/keys.json names none",
            "make a key of a log with `geneb-ci audit keygen --log NAME --output log.pem`, and add "
            "what it prints to keys.json on the main branch",
        )
    return keys


def append_to_log(
    layout: Layout, key: Path | None, relays: tuple[str, ...], beacon_file: Path | None = None
) -> tuple[Batch, int]:
    """Add what is signed and not in the log; return that, and how many entries there are then.

    Raises what `log_signer`, `recent_round` and `batch_of` do.
    """
    keys, repository = kept_log(layout), AuditRepository(layout)
    signer, logged = log_signer(key, keys), repository.logged
    audits = layout.audits or layout.root / "leaderboard" / "audits"
    if logged is None:
        raise LogBroken("it cannot be read")
    batch = batch_of(repository, logged, recent_round(time.time(), beacon_file, relays))
    if batch.entries:
        for folder, files in extended_log(batch, logged, signer, audits).items():
            write_files(folder, files)
        find_layout.cache_clear()  # the folder of audits may be new
    return batch, len(logged.log.entries) + len(batch.entries)


def check_record_options(key: Path | None, output: Path | None, *, unsigned: bool) -> None:
    """Refuse options of a record where none is written. Raises UsageProblem."""
    named = [name for name, value in (("--key", key), ("--output", output)) if value is not None]
    if unsigned and named:
        raise UsageProblem(
            f"--unsigned writes no record, and {named[0]} is for a record",
            f"leave out --unsigned to sign a record, or leave out {' and '.join(named)}",
        )


def read_committed(path: Path, layout: Layout) -> Commitment:
    """Read a commitment: what `audit commit` wrote, or its signed form among the audits.

    Raises what `read_commitment` and `parse_event` do.
    """
    if not path.name.endswith(COMMITTED):
        return read_commitment(path)
    name = f"{path.resolve().parent.name}/{path.name}"
    event = parse_event(read_record(path), name, trusted_keys(layout))
    return event.commitment


def logged_time(commitment: Commitment, layout: Layout, typed: str | None) -> str | None:
    """Return when a commitment was made: by its entry in the log, or as it was given.

    Raises UsageProblem where both would say it, AuditRefused where a log is kept and does not have
    the commitment.
    """
    if not keeps_log(layout):
        return typed
    if typed is not None:
        raise UsageProblem(
            "--committed-at is typed, and the log of this repository has the time of a commitment",
            "leave out --committed-at",
        )
    time = time_in_log(commitment, layout)
    if time is None:
        raise AuditRefused(
            f"the commitment {commitment.sha256[:16]}... is not in the log, which gives its time",
            "sign it with `geneb-ci audit commit FILE --key KEY`, and have the log extended: "
            "geneb-ci audit log append",
        )
    return time


def known_time(commitment: Commitment, layout: Layout, given: str | None) -> str | None:
    """Return the time of a commitment by the log; None where it has to be added first.

    Raises UsageProblem where a time was typed.
    """
    if given is not None:
        return logged_time(commitment, layout, given)
    return time_in_log(commitment, layout)


def time_in_log(commitment: Commitment, layout: Layout) -> str | None:
    """Return the time of a commitment by its entry in the log; None without one.

    Raises LogBroken.
    """
    logged = AuditRepository(layout).logged
    if logged is None:
        return None
    check_kept(commitment.model_id, logged)
    index = committed_index(commitment.sha256, logged)
    return None if index is None else logged.log.entries[index].not_before


def check_in_log(plan: Plan | RowPlan, layout: Layout) -> None:
    """Refuse, before hours of work, a plan whose record the log would not take.

    Raises StepMismatch, of the step "log".
    """
    logged = AuditRepository(layout).logged
    if logged is not None:
        check_kept(plan.commitment.model_id, logged)
        check_committed(plan, logged)


def commit_in_log(
    commitment: Commitment,
    layout: Layout,
    signer: "Ed25519PrivateKey | None",
    log_key: Path | None,
    relays: tuple[str, ...],
    say: Say,
    again: str,
) -> str:
    """Sign a commitment and append it, as far as there are keys; return what to do next.

    `again` is the command that draws.
    """
    digest = f"commitment {commitment.sha256}"
    if signer is None:
        return f"{digest}\nnext: sign it, for the log: run this again with --key KEY"
    signed = signed_event(commitment, signer)
    was_signed = (audits_of(layout) / signed.path).exists()
    path = _write_signed(signed, audits_of(layout), say)
    if log_key is None and was_signed:
        return (
            f"{digest}: signed before, and the log that is here does not have it yet\n"
            f"next: see that {os.path.relpath(path)} is on the main branch and that its log was\n"
            "  extended (the workflow audit-log, or geneb-ci audit log append); pull, then:\n"
            f"  {again}"
        )
    if log_key is None:
        return (
            f"{digest}\nnext: commit {os.path.relpath(path)} to the main branch, where the log is "
            "extended by\n  geneb-ci audit log append; then draw:\n"
            f"  {again}"
        )
    _, size = append_to_log(layout, log_key, relays)
    return f"{digest}: entry {size - 1} of the log or before; next:\n  {again}"


def sign_start(plan: Plan | RowPlan, signer: "Ed25519PrivateKey", audits: Path, say: Say) -> None:
    """Write the signed start of a plan, unless it is there."""
    _write_signed(signed_event(AuditStart(schema_version="1.0", plan=plan), signer), audits, say)


def sign_abort(
    error: ExtractorRefused,
    plan: Plan | RowPlan,
    signer: "Ed25519PrivateKey",
    audits: Path,
    say: Say,
) -> None:
    """Write the signed abort of a run that the extractor ended, and say so in the advice."""
    at = error.at
    if not isinstance(at, RunFacts) or getattr(error, "limit", "") == OF_THE_MACHINE:
        return
    aborted = AuditAbort.model_validate(
        {
            "schema_version": "1.0",
            "plan": plan,
            "kind": _kind(error),
            "message": bounded(error.message),
            **at._asdict(),
        }
    )
    path = _write_signed(signed_event(aborted, signer), audits, say)
    error.fix += (
        f"; this run is recorded as aborted: commit {os.path.relpath(path)} to the main branch; "
        "its draw counts for the next audit"
    )


def _kind(error: ExtractorRefused) -> str:
    if isinstance(error, LimitExceeded):
        return "limit"
    return "result" if isinstance(error, ResultRefused) else "failed"


def _write_signed(signed: SignedRecord, audits: Path, say: Say) -> Path:
    path = audits / signed.path
    if not path.exists():
        write_files(path.parent, {path.name: signed.content})
        say(f"wrote {path}")
    return path

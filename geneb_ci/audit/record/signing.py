"""Signs commitments, starts and aborts, and collects the heads that a new statement names."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.audit.canonical import seconds_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.record.events import (
    AuditAbort,
    AuditEvent,
    AuditStart,
    RunFacts,
    StatementKind,
    bounded_message,
    parse_event,
    signed_event,
)
from geneb_ci.audit.record.keys import trusted_keys
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import COMMITTED_SUFFIX, ID_DIGITS, SignedRecord, read_record
from geneb_ci.audit.sampling.plan import EmbeddingPlan, TaskPlan, read_commitment
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import (
    ExtractorRefused,
    LimitExceeded,
    ResultRefused,
    UsageProblem,
)
from geneb_ci.common.files import write_files
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MACHINE_LIMIT = "host_floor_mib"
"""Name of the limit that other programs of the machine can exceed: then no abort is signed."""


def check_committed_at(committed_at: str | None) -> None:
    """Refuse a value of --committed-at that is not a time. Raises UsageProblem."""
    if committed_at is None:
        return
    try:
        seconds_of(committed_at)
    except UsageProblem as error:
        raise UsageProblem(f"--committed-at {error.message}", error.fix) from error


def check_shown_on(commit: str | None, committed_at: str | None) -> None:
    """Refuse --shown-on without a commit id or without --committed-at. Raises UsageProblem."""
    if commit is None:
        return
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise UsageProblem(
            f"--shown-on {commit!r} is not a commit", "pass all 40 hex digits of its id"
        )
    if committed_at is None:
        raise UsageProblem(
            "--shown-on is given without the time of the commit's status",
            "add --committed-at TIME, as GitHub shows it",
        )


def audits_of(layout: Layout) -> Path:
    """Return the folder of audits of a repository, whether or not it exists."""
    return layout.audits or layout.root / "leaderboard" / "audits"


def check_record_options(key: Path | None, output: Path | None, *, unsigned: bool) -> None:
    """Refuse options about a record with --unsigned, which writes none. Raises UsageProblem."""
    options = [name for name, value in (("--key", key), ("--output", output)) if value is not None]
    if unsigned and options:
        raise UsageProblem(
            f"--unsigned writes no record, and {options[0]} is for a record",
            f"leave out --unsigned to sign a record, or leave out {' and '.join(options)}",
        )


def read_any_commitment(path: Path, layout: Layout) -> Commitment:
    """Read a commitment, as `audit commit` wrote it or in its signed form among the audits.

    Raises what `read_commitment` and `parse_event` raise.
    """
    if not path.name.endswith(COMMITTED_SUFFIX):
        return read_commitment(path)
    name = f"{path.resolve().parent.name}/{path.name}"
    event = parse_event(read_record(path), name, trusted_keys(layout))
    return event.commitment


def heads_here(repository: AuditRepository, *names: str) -> dict[str, str]:
    """Return the statements that a new statement names: the heads, and `names` if they exist."""
    history = repository.history
    return history.heads | {
        name: history.digests[name] for name in names if name in history.digests
    }


def heads_after(plan: TaskPlan | EmbeddingPlan, repository: AuditRepository) -> dict[str, str]:
    """Return the statements that a record or an abort names: the heads and starts of its plan."""
    starts = (
        f"{path.parent.name}/{path.name}"
        for path, event in repository.events.items()
        if isinstance(event, AuditEvent)
        and event.kind is StatementKind.START
        and event.plan == plan
    )
    return heads_here(repository, *starts)


def sign_commitment(
    commitment: Commitment, signer: "Ed25519PrivateKey", layout: Layout, audits: Path, say: Say
) -> Path:
    """Write the signed commitment, unless it exists; return its path."""
    path = audits / commitment.model_id / f"{commitment.sha256[:ID_DIGITS]}{COMMITTED_SUFFIX}"
    if not path.exists():
        heads = heads_here(AuditRepository(layout))
        _write(signed_event(commitment, signer, heads), audits, say)
    return path


def sign_start(
    plan: TaskPlan | EmbeddingPlan,
    signer: "Ed25519PrivateKey",
    layout: Layout,
    audits: Path,
    say: Say,
    shown_on: str | None = None,
    pull: int | None = None,
) -> Path:
    """Write the signed start of a plan, unless it exists; return its path.

    `shown_on` is the git commit whose status shows the commitment, `pull` the number of the pull
    request whose comment shows the draw.
    """
    repository = AuditRepository(layout)
    for path, event in repository.events.items():
        if not isinstance(event, AuditEvent) or event.kind is not StatementKind.START:
            continue
        name = f"{path.parent.name}/{path.name}"
        counts = repository.history.is_valid(name, repository.history.files[name])
        if counts and event.plan == plan and shown_on in {None, event.shown_on}:
            return path
    start = AuditStart(schema_version="1.0", plan=plan, shown_on=shown_on, pull=pull)
    heads = heads_here(repository, committed_name(plan))
    return _write(signed_event(start, signer, heads), audits, say)


def committed_name(plan: TaskPlan | EmbeddingPlan) -> str:
    """Return the name of the signed commitment of a plan."""
    return f"{plan.commitment.model_id}/{plan.commitment_sha256[:ID_DIGITS]}{COMMITTED_SUFFIX}"


def sign_abort(
    error: ExtractorRefused,
    plan: TaskPlan | EmbeddingPlan,
    signer: "Ed25519PrivateKey",
    layout: Layout,
    audits: Path,
    say: Say,
) -> None:
    """Write the signed abort of a run that the extractor ended; name its file in the error's fix.

    Nothing is written if the error has no facts of a run, or if other programs may have caused it.
    """
    run_facts = error.run_facts
    if not isinstance(run_facts, RunFacts) or getattr(error, "limit", "") == MACHINE_LIMIT:
        return
    aborted = AuditAbort.model_validate(
        {
            "schema_version": "1.0",
            "plan": plan,
            "kind": _abort_kind(error),
            "message": bounded_message(error.message),
            **run_facts._asdict(),
        }
    )
    heads = heads_after(plan, AuditRepository(layout))
    path = _write(signed_event(aborted, signer, heads), audits, say)
    error.fix += (
        f"; this run is recorded as aborted: commit {os.path.relpath(path)} to the main branch; "
        "its draw counts for the next audit"
    )


def _abort_kind(error: ExtractorRefused) -> str:
    if isinstance(error, LimitExceeded):
        return "limit"
    return "result" if isinstance(error, ResultRefused) else "failed"


def _write(signed: SignedRecord, audits: Path, say: Say) -> Path:
    path = audits / signed.path
    if not path.exists():
        write_files(path.parent, {path.name: signed.content})
        find_layout.cache_clear()  # the folder of audits may be new
        say(f"wrote {path}")
    return path

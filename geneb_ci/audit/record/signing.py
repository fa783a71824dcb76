"""Signs commitments, starts, aborts and records, each of which names the heads of its time."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.audit.canonical import seconds_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import RerunResult
from geneb_ci.audit.compare.outcome import JOINT, TOLERANCE, AuditOutcome, objections_to_outcome
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.envelope import key_id
from geneb_ci.audit.record.events import (
    AbortedRun,
    AuditAbort,
    AuditEvent,
    AuditStart,
    StatementKind,
    bounded_message,
    parse_event,
    signed_event,
)
from geneb_ci.audit.record.keys import trusted_keys
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import (
    COMMITTED_SUFFIX,
    ID_DIGITS,
    RERUN_SUFFIX,
    Record,
    SignedRecord,
    read_record,
    record_of,
)
from geneb_ci.audit.sampling.plan import AnyPlan, read_commitment
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import (
    ExtractorRefused,
    LimitExceeded,
    ResultRefused,
    UsageProblem,
)
from geneb_ci.common.files import write_files
from geneb_ci.models.registry import ModelRegistry
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MACHINE_LIMIT = "host_floor_mib"
"""Name of the limit of memory that other programs can exceed, too, so that no abort is signed."""


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


def audits_folder_of(layout: Layout) -> Path:
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
    statement_name = f"{path.resolve().parent.name}/{path.name}"
    event = parse_event(read_record(path), statement_name, trusted_keys(layout))
    return event.commitment


def heads_for_statement(repository: AuditRepository, *names: str) -> dict[str, str]:
    """Return the statements that a new statement names: the heads, and those of `names` that exist.

    The result maps the name of each statement to its digest.
    """
    history = repository.history
    return history.heads | {
        name: history.digests[name] for name in names if name in history.digests
    }


def heads_for_record(plan: AnyPlan, repository: AuditRepository) -> dict[str, str]:
    """Return the statements that a record or abort names: the starts of its plan, and the heads."""
    starts = (
        f"{path.parent.name}/{path.name}"
        for path, event in repository.events.items()
        if isinstance(event, AuditEvent)
        and event.kind is StatementKind.START
        and event.plan == plan
    )
    return heads_for_statement(repository, *starts)


def signed_commitment_name(plan: AnyPlan) -> str:
    """Return the name of the signed commitment from which a plan was drawn."""
    return f"{plan.commitment.model_id}/{plan.commitment_sha256[:ID_DIGITS]}{COMMITTED_SUFFIX}"


@dataclass(frozen=True)
class Signing:
    """Writes the signed files of an audit; writes none if there is no key."""

    layout: Layout
    key: "Ed25519PrivateKey | None"
    audits: Path
    """Folder below which signed files are written."""
    say: Say
    shown_on: str | None = None
    """The git commit on GitHub whose status shows the digest of the commitment."""

    def sign_commitment(self, commitment: Commitment) -> Path | None:
        """Write the signed commitment, unless it exists; return its path, or None without a key."""
        if self.key is None:
            return None
        name = f"{commitment.sha256[:ID_DIGITS]}{COMMITTED_SUFFIX}"
        path = self.audits / commitment.model_id / name
        if not path.exists():
            heads = heads_for_statement(AuditRepository(self.layout))
            self._write(signed_event(commitment, self.key, heads))
        return path

    def sign_start(self, plan: AnyPlan, pull: int | None = None) -> Path | None:
        """Sign that a rerun begins, so that later audits repeat its draw even if it is ended.

        Returns the path of the signed start, which may exist already, or None without a key. `pull`
        is the number of the pull request whose comment shows the draw.
        """
        if self.key is None:
            return None
        repository, shown_on = AuditRepository(self.layout), self.shown_on
        for path, event in repository.events.items():
            if not isinstance(event, AuditEvent) or event.kind is not StatementKind.START:
                continue
            name = f"{path.parent.name}/{path.name}"
            is_counted = repository.history.is_valid(name, repository.history.files[name])
            if is_counted and event.plan == plan and shown_on in {None, event.shown_on}:
                return path
        start = AuditStart(schema_version="1.0", plan=plan, shown_on=shown_on, pull=pull)
        heads = heads_for_statement(repository, signed_commitment_name(plan))
        return self._write(signed_event(start, self.key, heads))

    def sign_abort(self, error: ExtractorRefused, plan: AnyPlan) -> None:
        """Sign that the extractor ended a rerun, so that later audits repeat its draw.

        The error's fix then names the signed file. Nothing is written if the error describes no
        run, or if other programs may have caused it.
        """
        aborted_run = error.aborted_run
        is_by_machine = getattr(error, "limit", "") == MACHINE_LIMIT
        if self.key is None or not isinstance(aborted_run, AbortedRun) or is_by_machine:
            return
        abort = AuditAbort.model_validate(
            {
                "schema_version": "1.0",
                "plan": plan,
                "kind": _abort_kind(error),
                "message": bounded_message(error.message),
                **aborted_run._asdict(),
            }
        )
        heads = heads_for_record(plan, AuditRepository(self.layout))
        path = self._write(signed_event(abort, self.key, heads))
        error.fix += (
            f"; this run is recorded as aborted: commit {os.path.relpath(path)} to the main "
            "branch; the next audit of this model reruns what this run drew"
        )

    def sign_record(self, rerun_result: RerunResult) -> Path | None:
        """Write the signed record and the rerun embeddings that it names; return its path.

        Returns None without a key. Raises AuditRefused where scores differ and the model registry
        has no known run for the row.
        """
        refuse_unknown_run(rerun_result, self.layout)
        if self.key is None:
            return None
        folder = self.audits / rerun_result.outcome.plan.commitment.model_id
        existing_files = {*folder.glob("*.json")}
        path = write_record(rerun_result, self.key, self.layout, self.audits)
        message = f"wrote {path}" + (
            f", and {path.stem}{RERUN_SUFFIX}" * bool(rerun_result.embeddings)
        )
        self.say(f"{path}: signed by an earlier call" if path in existing_files else message)
        return path

    def _write(self, signed: SignedRecord) -> Path:
        """Write a signed statement unless it exists; return its path."""
        path = self.audits / signed.path
        if not path.exists():
            write_files(path.parent, {path.name: signed.content})
            find_layout.cache_clear()  # the folder of audits may be new
            self.say(f"wrote {path}")
        return path


def _abort_kind(error: ExtractorRefused) -> str:
    """Return the value of `AuditAbort.kind` for the error that ended a run."""
    if isinstance(error, LimitExceeded):
        return "limit"
    return "result" if isinstance(error, ResultRefused) else "failed"


def write_record(
    rerun_result: RerunResult, key: "Ed25519PrivateKey", layout: Layout, audits: Path
) -> Path:
    """Write the signed record of an outcome below a folder, and the embeddings that it names.

    The record names the newest statements of the repository and the start of its plan. Returns its
    path. If a record of this outcome by this key exists, returns the path of that record and writes
    nothing. Raises UsageProblem when the record would be too large to be read.
    """
    plan, repository = rerun_result.outcome.plan, AuditRepository(layout)
    signer_id = key_id(key.public_key().public_bytes_raw())
    for path in repository.files:
        earlier = repository.record_at(path)
        if not isinstance(earlier, Record) or not path.is_relative_to(audits.resolve()):
            continue
        if (earlier.outcome, earlier.signer.keyid) == (rerun_result.outcome, signer_id):
            return path
    heads = heads_for_record(plan, repository)
    record = record_of(rerun_result.outcome, key, heads)
    path = audits / record.path
    files = {path.name: record.content}
    if rerun_result.embeddings is not None:
        files = {f"{record.audit_id}{RERUN_SUFFIX}": rerun_result.embeddings, **files}
    write_files(path.parent, files)
    return path


def refuse_unknown_run(rerun_result: RerunResult, layout: Layout) -> None:
    """Raise AuditRefused if only scores differ and the model registry says the run is unknown.

    Such scores are no evidence against the row. Other objections concern the code that was run.
    """
    outcome = rerun_result.outcome
    if not isinstance(outcome, AuditOutcome) or outcome.plan.commitment.entry is None:
        return
    read_entry = ModelRegistry(layout).entry(outcome.plan.commitment.model_id)
    reasons = objections_to_outcome(outcome)
    has_only_scores = {reason.defence for reason in reasons} <= {TOLERANCE, JOINT}
    if (
        read_entry is None
        or read_entry.entry.run_unknown is None
        or not reasons
        or not has_only_scores
    ):
        return
    candidates = "; ".join(candidate.what for candidate in read_entry.entry.candidates)
    raise AuditRefused(
        f"{outcome.plan.commitment.model_id}: the scores differ, but nothing is recorded against "
        "the row, because the model registry does not know how it was run: "
        f"{read_entry.entry.run_unknown}",
        "describe another run in the model's entry of the registry and audit again; try first: "
        f"{candidates}",
    )

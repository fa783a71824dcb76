"""The stages of `geneb-ci audit FILE`: commitment, cost, digest, draw, rerun, signed record."""

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from geneb_ci.audit import cost
from geneb_ci.audit.canonical import AuditRefused
from geneb_ci.audit.commit import commit, read_submission, subject_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.signing import (
    DrawOptions,
    append_to_log,
    audits_of,
    check_moment,
    commit_in_log,
    drawn_plan,
    keeps_log,
    known_time,
    sign_abort,
    sign_start,
    time_in_log,
)
from geneb_ci.audit.record.statement import check_can_record, record_of
from geneb_ci.audit.rerun.prepare import Machine, Ready, ready
from geneb_ci.audit.rerun.tasks import check_outcome, outcome_of
from geneb_ci.audit.rerun.workspace import Work, open_work
from geneb_ci.audit.sampling.beacon_source import BeaconSource
from geneb_ci.audit.sampling.embedding_draw import recompute_any
from geneb_ci.audit.sampling.plan import (
    Plan,
    RowPlan,
    committed_text,
    encoded,
    read_commitment,
    read_plan,
)
from geneb_ci.common.config import Layout, cache_folder
from geneb_ci.common.errors import Exit, ExtractorRefused, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.submission.reading import FileKind, require_file
from reference_harness.formats.text import Say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

COMMITMENT, PLAN, OUTCOME = "commitment.json", "plan.json", "outcome.json"
SHOWN = "shown"
"""File of the work folder: the digest was shown, to be published. A dry run does not write it."""
TO_BE_LOGGED = "to be logged"
"""State of an audit whose signed commitment waits for the log."""
OPTION_OF_COMMIT = "--extractor"
"""Option that `audit commit` has and `audit FILE` has not."""
DIGITS = 16  # hex digits of a commitment that name its folder
AnyDrawn = TypeVar("AnyDrawn", Plan, RowPlan)


@dataclass(frozen=True, kw_only=True)
class FileAudit:
    """One audit of a file: what it shall do."""

    file: Path
    machine: Machine
    source: BeaconSource
    commitment: Path | None = None
    """What `audit commit` wrote, where the run has to be declared."""
    committed_at: str | None = None
    earlier: tuple[Path, ...] = ()
    work: Path | None = None
    key: Path | None = None
    unsigned: bool = False
    output: Path | None = None
    dry_run: bool = False
    log_key: Path | None = None
    """Private key of the log, where this machine is its only writer."""
    again: str = ""
    """The command that runs this audit, without --committed-at."""
    rows: str | None = None
    """The sample of an audit by receipt; None: tasks are audited."""
    receipt: Path | None = None
    """Folder of the receipt; None: it is fetched."""
    near: Path | None = None
    """Folder of other receipts, a folder for each model; None: they are fetched."""


class AuditProgress(NamedTuple):
    """How far an audit came."""

    exit_code: Exit
    state: str
    commitment: str = ""
    """The digest, where it is to be published now."""
    next: str = ""
    """The command that continues then."""
    cost: str = ""
    """Lines of text, where nothing was rerun."""
    outcome: AuditOutcome | None = None


def default_work(commitment: Commitment, kind: str = "audits") -> Path:
    """Return the folder of an audit below the user's cache."""
    return cache_folder(kind) / commitment.model_id / commitment.sha256[:DIGITS]


def audited(request: FileAudit, layout: Layout, say: Say, show: Say) -> AuditProgress:
    """Carry one audit as far as it goes now; what is finished is kept for the next call.

    `say` gets progress, `show` what is to be read afterwards. Raises what `commit`, `ready`,
    `drawn_plan` and `outcome_of` do, and AuditRefused when something is not what it was when the
    audit began.
    """
    started = time.monotonic()
    check_moment(request.committed_at)
    commitment = commitment_of(request)
    audits = request.output or audits_of(layout)
    is_logged = keeps_log(layout) and not request.unsigned
    committed_at = (
        known_time(commitment, layout, request.committed_at) if is_logged else request.committed_at
    )
    signer = None if request.unsigned or request.dry_run else private_key(request.key)
    if signer is not None:
        check_can_record(signer, layout, audits / commitment.model_id)
    folder = request.work or default_work(commitment)
    if request.work is None and request.committed_at is not None:
        refuse_other(commitment, folder)
    with open_work(folder) as work:
        plan = begun(work, commitment, committed_at, read_plan)
        outcome = _kept_outcome(work, plan, commitment, layout)
        if outcome is None:
            with ready(
                commitment, subject_of(commitment, layout), layout, request.machine, work, say
            ) as here:  # fmt: skip
                setup = time.monotonic() - started
                costs = _show_cost(here, plan, setup, say, show)
                if request.dry_run:
                    return AuditProgress(Exit.CLEAN, "dry run", cost=costs)
                if plan is None:
                    publish = in_log if is_logged else by_hand
                    at = committed_at or publish(request, here, layout, signer, say, show)
                    if isinstance(at, AuditProgress):
                        return at._replace(cost=costs)
                    plan = _drawn(request, at, here, layout, say)
                    _show_cost(here, plan, setup, say, show)
                outcome = _finished(plan, here, signer, audits, say, in_log=is_logged)
        if request.dry_run:
            show("this audit is finished: nothing is left to run\n")
            return AuditProgress(Exit.CLEAN, "finished")
        if signer is not None:
            _recorded(outcome, signer, audits, work, say)
            if request.log_key is not None and is_logged:
                append_to_log(layout, request.log_key, request.source.relay)
    agrees = outcome.verdict == "agrees"
    return AuditProgress(Exit.CLEAN if agrees else Exit.ERRORS, outcome.verdict, outcome=outcome)


def in_log(
    request: FileAudit,
    here: Ready,
    layout: Layout,
    signer: "Ed25519PrivateKey | None",
    say: Say,
    show: Say,
) -> str | AuditProgress:
    """Sign the commitment for the log; return its time, where it is added here and now."""
    commitment = here.commitment
    next_steps = commit_in_log(
        commitment, layout, signer, request.log_key, request.source.relay, say, request.again
    )
    time = time_in_log(commitment, layout)
    if time is not None:
        return time
    show(f"{next_steps}\n")
    return AuditProgress(Exit.CLEAN, TO_BE_LOGGED, commitment.sha256, request.again)


def by_hand(
    request: FileAudit,
    here: Ready,
    layout: Layout,  # noqa: ARG001 (as in_log)
    signer: "Ed25519PrivateKey | None",  # noqa: ARG001
    say: Say,  # noqa: ARG001
    show: Say,
) -> AuditProgress:
    """Show the digest that is to be published, where no log is kept."""
    commitment = here.commitment
    here.work.keep(SHOWN, commitment.sha256 + "\n")
    again = f"{request.again} --committed-at 2026-11-20T08:30:00Z"
    drawn = f"{commitment.policy.drawn} of {len(commitment.tasks)} tasks"
    show(_next(commitment, again, drawn if request.rows is None else "rows of its receipt"))
    return AuditProgress(Exit.CLEAN, "to be published", commitment.sha256, again)


def _recorded(
    outcome: AuditOutcome, signer: "Ed25519PrivateKey", audits: Path, work: Work, say: Say
) -> None:
    record = record_of(outcome, signer)
    path = audits / record.path
    write_files(path.parent, {path.name: record.content})
    say(
        f"wrote {path}\n"
        f"next: commit it to the main branch: {_git(path)}\n"
        f"  once it is there, {work.folder} can be removed"
    )


def commitment_of(request: FileAudit) -> Commitment:
    """Read the commitment, or commit to the file. Raises AuditRefused and what both do."""
    file = request.file
    require_file(file, FileKind.SUBMISSION, "audit")
    if request.commitment is not None:
        commitment, own = read_commitment(request.commitment), read_submission(file).document.sha256
        if own != commitment.submission_sha256:
            raise AuditRefused(
                f"{file}: sha256 {own}; {request.commitment} commits to the submission of "
                f"{commitment.model_id} with sha256 {commitment.submission_sha256}",
                "name the submission that was committed to, or commit to this one: "
                f"`geneb-ci audit commit {file} --output C.json`",
            )
        return commitment
    try:
        return commit(file, tolerance_digest())
    except (UsageProblem, AuditRefused) as error:
        if OPTION_OF_COMMIT in error.fix:
            error.fix += (
                f"\n  {OPTION_OF_COMMIT} is an option of `geneb-ci audit commit {file} --output "
                f"C.json`; then run `geneb-ci audit {file} --commitment C.json`"
            )
        raise


def _kept_outcome(
    work: Work, plan: Plan | None, commitment: Commitment, layout: Layout
) -> AuditOutcome | None:
    """Return the outcome that this audit kept, if there is one; one from elsewhere is none.

    Raises AuditRefused when it does not follow from the plan and the scores of the folder.
    """
    if not work.has_result(OUTCOME):
        return None
    outcome, path = work.read_as(OUTCOME, AuditOutcome), work.folder / OUTCOME
    if outcome is None or plan is None:
        raise AuditRefused(
            f"{path}: its plan, {work.folder / PLAN}, is not there",
            f"put the plan back, or remove {path} and run the command again",
        )
    check_outcome(outcome, path, plan, subject_of(commitment, layout), work)
    return outcome


def begun(
    work: Work, commitment: Commitment, committed_at: str | None, read: Callable[[Path], AnyDrawn]
) -> AnyDrawn | None:
    """Keep the commitment of a new audit; return the plan of one that was drawn, as `read`.

    Raises AuditRefused when the folder has another commitment or draw.
    """
    if work.read(COMMITMENT) is None:
        work.keep(COMMITMENT, committed_text(commitment))
    earlier = read_commitment(work.folder / COMMITMENT)
    if earlier != commitment:
        raise AuditRefused(
            f"{work.folder}: the audit began with another {_difference(earlier, commitment)}",
            "check out what it began with, or name another folder: --work DIR; if its tasks are "
            f"drawn, add --earlier {work.folder / PLAN}",
        )
    if work.read(PLAN) is None:
        return None
    plan = read(work.folder / PLAN)
    recompute_any(plan)
    if plan.commitment != commitment or committed_at not in {None, plan.committed_at}:
        raise AuditRefused(
            f"{work.folder / PLAN}: drawn for commitment {plan.commitment_sha256[:DIGITS]}... as "
            f"of {plan.committed_at}, not for {commitment.sha256[:DIGITS]}... as of {committed_at}",
            "leave out --committed-at: a commitment has one draw",
        )
    return plan


def refuse_other(commitment: Commitment, folder: Path) -> None:
    """Refuse a time of publication for a commitment other than the one that was shown.

    Raises AuditRefused.
    """
    if _was_published(folder):
        return
    for path in sorted(folder.parent.glob(f"*/{COMMITMENT}")):
        if not _was_published(path.parent):
            continue
        published = read_commitment(path)
        raise AuditRefused(
            f"commitment {commitment.sha256} was never shown here; {published.sha256} was, "
            f"with another {_difference(published, commitment)}",
            "check out what was committed to, or run the command without --committed-at and "
            "publish the new digest",
        )


def _was_published(folder: Path) -> bool:
    """Whether a folder's digest was shown to be published, or its tasks are drawn."""
    return any((folder / name).exists() for name in (SHOWN, PLAN))


def _difference(first: Commitment, second: Commitment) -> str:
    """Name the parts in which two commitments differ."""
    values, other_values = first.model_dump(), second.model_dump()
    names = {"submission_sha256": "submission", "model_id": "model"}
    return ", ".join(
        names.get(name, name) for name in values if values[name] != other_values.get(name)
    )


def _show_cost(here: Ready, plan: Plan | None, setup: float, say: Say, show: Say) -> str:
    """Measure, show and return what is left to pay; refuse what this machine cannot carry."""
    commitment = here.commitment
    if plan is None:
        tasks, weights = commitment.tasks, cost.expected(commitment)
        drawn = commitment.policy.drawn
    else:
        weights = cost.left_of(plan, here)
        tasks, drawn = list(weights), len(weights)
    if not weights:
        return ""  # all is embedded
    sampled = cost.measured(here, weights, say)
    expected = cost.cost_of(here, sampled, weights, setup)
    text = cost.cost_text(expected, here, drawn=plan is not None)
    show(text)
    cost.refuse_too_large(here, sampled, tasks, drawn)
    return text


def _next(commitment: Commitment, again: str, drawn: str) -> str:
    return (
        f"commitment {commitment.sha256}\n"
        f"{commitment.model_id}: {drawn} will be drawn\n"
        "next: publish this digest where a server that you do not control shows it with a time: "
        "as commit\n"
        "  status geneb/audit-commit, or in the ledger. Then continue with that time, in UTC:\n"
        f"  {again}\n"
    )


def _drawn(request: FileAudit, committed_at: str, here: Ready, layout: Layout, say: Say) -> Plan:
    others = [] if request.work else _begun_here(here.work.folder, here.commitment, say)
    plan = drawn_plan(
        here.commitment,
        committed_at,
        layout,
        request.source,
        DrawOptions(earlier=(*request.earlier, *others)),
        say,
    )
    here.work.keep(PLAN, encoded(plan))
    say(f"drawn: {', '.join(choice.task for choice in plan.chosen)}")
    return plan


def _begun_here(folder: Path, commitment: Commitment, say: Say) -> list[Path]:
    """Return the plans in this cache for the model, without a record or with: all are rerun too.

    A plan for another benchmark is of another repository, and left out.
    """
    plans = []
    for path in sorted({*folder.parent.glob(f"*/{PLAN}")} - {folder / PLAN}):
        benchmark = read_plan(path).commitment.benchmark
        if benchmark.sha256 == commitment.benchmark.sha256:
            plans.append(path)
        else:
            say(f"{path}: a draw for another benchmark, {benchmark.name}: left out")
    return plans


def _finished(
    plan: Plan,
    here: Ready,
    signer: "Ed25519PrivateKey | None",
    audits: Path,
    say: Say,
    *,
    in_log: bool,
) -> AuditOutcome:
    if signer is not None and in_log:
        sign_start(plan, signer, audits, say)
    try:
        outcome = outcome_of(plan, here, time.time, say)
    except ExtractorRefused as error:
        if signer is not None:
            sign_abort(error, plan, signer, audits, say)
        error.fix += (
            f"\n  this draw has no record: what is finished is kept in {here.work.folder}; run the "
            "same command again,\n  or pass the plan to the next audit: "
            f"--earlier {here.work.folder / PLAN}"
        )
        raise
    here.work.keep_result(OUTCOME, encoded(outcome))
    return outcome


def _git(path: Path) -> str:
    name = os.path.relpath(path)
    return shlex.join(["git", "add", name]) + " && " + shlex.join(["git", "commit", name])

"""An audit from a submission to its signed record: commit, draw, rerun, compare, sign.

`audit_file` is the whole of it, `geneb-ci audit FILE`. `draw_plan`, `rerun_plan` and `write_record`
are its steps, which the five commands, the jobs of GitHub and the queue call as well.

What is drawn from what: the seed follows from the commitment and a value of the beacon that comes
after it. A `Sample` draws by it from the tasks of the submission (`TaskSample`), or from the
embeddings of its receipt (`EmbeddingSample`).

What is compared with what: of a drawn task, the claimed scores with those of a rerun, each within
its tolerance. Of a receipt, every claimed cell with the one that all committed embeddings give,
exactly, and drawn embeddings with those of a rerun, each within the tolerance of its column. Of
both, decoys, variants, a fresh set and tests of all deviations together can object as well.
`Sample.rerun` does it, with `rerun.tasks` or `rerun.embeddings` and the rules in `compare`;
`geneb_ci/audit/defences.py` lists what is against which attack.

Which level follows: none here. The signed record holds the outcome, and
`geneb_ci/audit/trust/level.py:decide` computes the level of a row from all of its records.
"""

import contextlib
import json
import os
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commit import (
    AuditSubject,
    SubmissionFile,
    commit,
    read_submission,
    subject_of,
)
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, RerunResult
from geneb_ci.audit.compare.outcome import JOINT, TOLERANCE, AuditOutcome, objections
from geneb_ci.audit.compare.tolerance import COPIES_MIN, tolerance_digest
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.envelope import key_id
from geneb_ci.audit.record.keys import KEY_VARIABLE, private_key
from geneb_ci.audit.record.repository import AuditRepository, earlier_plans
from geneb_ci.audit.record.signing import (
    audits_of,
    check_moment,
    heads_after,
    sign_abort,
    sign_commitment,
    sign_start,
)
from geneb_ci.audit.record.statement import RERUN, Record, check_can_record, record_of
from geneb_ci.audit.rerun.fresh import read_fresh_commitment
from geneb_ci.audit.rerun.prepare import CUDA, Machine, PreparedRerun, ready
from geneb_ci.audit.rerun.workspace import OPTION_OF, Work, open_work
from geneb_ci.audit.samples import (
    OUTCOME,
    CommittedSubmission,
    EmbeddingSample,
    Sample,
    TaskSample,
    sample_of,
)
from geneb_ci.audit.sampling.beacon import DELAY, QUICKNET
from geneb_ci.audit.sampling.beacon_source import BeaconSource, beacon_of
from geneb_ci.audit.sampling.embedding_draw import recompute_any
from geneb_ci.audit.sampling.plan import (
    EmbeddingPlan,
    TaskPlan,
    committed_text,
    encoded,
    read_any_plan,
    read_commitment,
)
from geneb_ci.common.config import Layout, cache_folder, is_practice
from geneb_ci.common.errors import Exit, ExtractorRefused, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.sandbox.levels import DEFAULT
from reference_harness.formats.files import read_json
from reference_harness.formats.text import Say, next_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

COMMITMENT, PLAN = "commitment.json", "plan.json"
TYPED = "command.json"
"""File of the work folder: where the command of the last call was typed, and its words."""
SHOWN = "shown"
"""File of the work folder: the digest was shown, to be published. A dry run does not write it."""
TO_BE_PUBLISHED = "to be published"
"""State of an audit whose commitment waits to be published."""
LOOK = "geneb-ci next --as maintainer"
"""Says whether a commitment is to be committed, published or drawn, and what follows a record."""
OPTION_OF_COMMIT = "--extractor"
"""Option that `audit commit` has and `audit FILE` has not."""
DIGITS = 16
"""Hex digits of a commitment that name its folder."""
EXAMPLE_TIME = "2026-11-20T08:30:00Z"

_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """The options of `audit FILE`: what to audit, how, and where to keep and sign the outcome."""

    file: Path
    sample: Sample[Any] = field(default_factory=TaskSample)
    machine: Machine
    source: BeaconSource
    commitment: Path | None = None
    """The file that `audit commit` wrote, where the run has to be declared."""
    committed_at: str | None = None
    work: Path | None = None
    key: Path | None = None
    unsigned: bool = False
    output: Path | None = None
    dry_run: bool = False
    shown_on: str | None = None
    """Commit on GitHub whose status shows the commitment, with that time."""
    command: str = ""
    """The command that runs this audit, without --committed-at."""
    has_remote: bool = True
    """Whether the clone has a remote, whose server can show the commitment."""


class AuditProgress(NamedTuple):
    """State of an audit after a call, and the command that continues it."""

    exit_code: Exit
    state: str
    commitment: str = ""
    """The digest, where the caller has to publish it before the audit goes on."""
    next: str = ""
    cost: str = ""
    """Lines of text, where nothing was rerun."""
    outcome: AnyOutcome | None = None
    record: Path | None = None
    """The signed record, where there is one."""


@dataclass(frozen=True)
class Signing:
    """Where an audit writes what it signs, and with which key; without one it signs nothing."""

    layout: Layout
    key: "Ed25519PrivateKey | None"
    audits: Path
    say: Say
    shown_on: str | None = None
    """Commit whose status shows the commitment."""

    def start(self, plan: TaskPlan | EmbeddingPlan) -> None:
        """Sign that a drawn sample is about to be rerun, so that its draw is not forgotten."""
        if self.key is not None:
            sign_start(plan, self.key, self.layout, self.audits, self.say, self.shown_on)

    def abort(self, error: ExtractorRefused, plan: TaskPlan | EmbeddingPlan) -> None:
        """Sign that the extractor ended a rerun, so that its draw is not forgotten."""
        if self.key is not None:
            sign_abort(error, plan, self.key, self.layout, self.audits, self.say)

    def record(self, result: RerunResult) -> Path | None:
        """Write the signed record, and what it needs beside it; return its path.

        Raises AuditRefused where scores differ and nobody knows what made the row.
        """
        refuse_unknown_run(result, self.layout)
        if self.key is None:
            return None
        folder = self.audits / result.outcome.plan.commitment.model_id
        earlier = {*folder.glob("*.json")}
        path = write_record(result, self.key, self.layout, self.audits)
        written = f"wrote {path}" + (f", and {path.stem}{RERUN}" * bool(result.embeddings))
        self.say(f"{path}: signed by an earlier call" if path in earlier else written)
        return path


def audit_file(request: AuditRequest, layout: Layout, say: Say, show: Say) -> AuditProgress:
    """Do every step of one audit that can be done now; the next call continues from there.

    `say` gets progress, `show` what is to be read afterwards. Raises what the steps do, and
    AuditRefused when something is not what it was when the audit began.
    """
    began = time.monotonic()
    check_moment(request.committed_at)
    request.source.check()
    sample = request.sample

    # Commit: one digest of submission, code, weights, benchmark and policy.
    submission = read_submission(request.file)
    commitment = commitment_of(request, submission)
    request.source.check_benchmark(commitment.benchmark.sha256)
    subject = subject_of(commitment, layout, submission)
    sample.check(submission, subject.benchmark, say)
    signing = signing_of(request, commitment, layout, say)
    folder = request.work or default_work(commitment, sample.cache)
    if request.work is None and request.committed_at is not None:
        refuse_other(commitment, folder)

    with open_work(folder) as work:
        plan = begin_audit(work, commitment, request.committed_at, sample)
        if not request.dry_run:
            work.keep(TYPED, json.dumps([str(Path.cwd()), *shlex.split(request.command)]) + "\n")
        result = finished_outcome(work, plan, subject, sample)
        if result is not None:
            refuse_other_settings(request, work)
        if result is None:
            with ready(commitment, subject, layout, request.machine, work, say) as prepared:
                setup = time.monotonic() - began
                cost = _shown_cost(request, prepared, plan, setup, say, show)
                if request.dry_run:
                    return AuditProgress(Exit.CLEAN, "dry run", next=request.command, cost=cost)
                if plan is None:
                    # Draw: the sample follows from the commitment and a beacon after it.
                    draw = _published_and_drawn(request, submission, prepared, signing, show)
                    if isinstance(draw, AuditProgress):
                        return draw._replace(cost=cost)
                    plan = draw
                    _shown_cost(request, prepared, plan, setup, say, show, before=cost)
                # Rerun and compare.
                advice = (
                    f"\n  this draw has no record: what is finished is kept in {work.folder}; run "
                    "the same command again,\n  or pass the plan to the next audit: "
                    f"--earlier {work.folder / PLAN}"
                )
                result = rerun_drawn(plan, sample, prepared, signing, advice)
                work.keep_result(OUTCOME, encoded(result.outcome))
        if request.dry_run:
            show("this audit is finished: nothing is left to run\n")
            return AuditProgress(Exit.CLEAN, "finished")

        # Sign.
        path = signing.record(result)
        if path is not None:
            say(
                "commit it to the main branch, with what it names; once it is there, "
                f"{work.folder} can be removed"
            )
    agrees = result.outcome.verdict == "agrees"
    code = Exit.CLEAN if agrees else Exit.ERRORS
    return AuditProgress(code, result.outcome.verdict, outcome=result.outcome, record=path)


def draw_plan(
    commitment: Commitment,
    committed_at: str,
    submission: SubmissionFile | None,
    sample: Sample[_P],
    layout: Layout,
    source: BeaconSource,
    say: Say,
) -> _P:
    """Draw the sample of a commitment that became public at a time; waits for the beacon's round.

    The plan also has what earlier audits of the same method drew: that is rerun again. A second
    draw of one commitment is refused. Raises what `earlier_plans`, the sample and `beacon_of` do.
    """
    repository = AuditRepository(layout)
    repository.history.check_here(commitment.model_id)
    repository.history.check_undrawn(commitment)
    committed = CommittedSubmission(commitment, submission, repository)
    near = sample.near(committed, say)
    plans = earlier_plans(sample.kind, commitment, committed_at, repository, sample.earlier, near)
    drawing = sample.drawing(committed, plans, near)
    beacon = beacon_of(commitment, committed_at, source, repository.inputs.policy, say)
    return drawing(committed_at, beacon)


def rerun_plan(
    plan: TaskPlan | EmbeddingPlan,
    signing: Signing,
    machine: Machine,
    *,
    work: Path | None = None,
    receipt: Path | None = None,
    advice: str = "",
) -> RerunResult:
    """Rerun a plan, compare, and return the outcome.

    What is finished is kept in the folder `work`, from which the next call continues; without one
    it is lost when this ends. `receipt` is the folder of the receipt of a plan of embeddings.
    Raises StepMismatch when the plan does not recompute, AuditRefused when something here is not
    what was committed to, SandboxUnavailable or SandboxLeaks, ExtractorFailed, LimitExceeded or
    ResultRefused for the extractor, NothingChecked for what is missing, UsageProblem for options
    that contradict the submission.
    """
    recompute_any(plan)
    sample: Sample[Any] = sample_of(plan, receipt)
    AuditRepository(signing.layout).history.check_here(plan.commitment.model_id)
    subject = subject_of(plan.commitment, signing.layout)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(open_work(work)) if work is not None else None
        prepared = stack.enter_context(
            ready(plan.commitment, subject, signing.layout, machine, folder, signing.say)
        )
        return rerun_drawn(plan, sample, prepared, signing, advice)


def rerun_drawn(
    plan: _P, sample: Sample[_P], prepared: PreparedRerun, signing: Signing, advice: str = ""
) -> RerunResult:
    """Rerun a drawn sample and compare it; sign its start, and an abort by the extractor.

    Raises what the sample does; where the extractor ended the run, `advice` says how to go on.
    """
    signing.start(plan)
    try:
        return sample.rerun(plan, prepared, time.time, signing.say)
    except ExtractorRefused as error:
        signing.abort(error, plan)
        error.fix += advice
        raise


def write_record(
    result: RerunResult, key: "Ed25519PrivateKey", layout: Layout, audits: Path
) -> Path:
    """Write the signed record of an outcome below a folder, and the embeddings that it names.

    It names the newest statements of the repository, and the start of its plan. Returns its path;
    one of the same outcome and key that is there is not written again. Raises UsageProblem when it
    could not be read back.
    """
    plan, repository = result.outcome.plan, AuditRepository(layout)
    own_key = key_id(key.public_key().public_bytes_raw())
    for path in repository.files:
        earlier = repository.parsed(path)
        if not isinstance(earlier, Record) or not path.is_relative_to(audits.resolve()):
            continue
        if (earlier.outcome, earlier.signer.keyid) == (result.outcome, own_key):
            return path
    heads = heads_after(plan, repository)
    record = record_of(result.outcome, key, heads)
    path = audits / record.path
    files = {path.name: record.content}
    if result.embeddings is not None:
        files = {f"{record.audit_id}{RERUN}": result.embeddings, **files}
    write_files(path.parent, files)
    return path


def refuse_unknown_run(result: RerunResult, layout: Layout) -> None:
    """Refuse a record that scores differ, where the registry says the run of the row is unknown.

    Other objections concern the code that was run, so they are recorded all the same.
    """
    outcome = result.outcome
    if not isinstance(outcome, AuditOutcome) or outcome.plan.commitment.entry is None:
        return
    read_entry = ModelRegistry(layout).entry(outcome.plan.commitment.model_id)
    reasons = objections(outcome.tasks, outcome.decoys, outcome.variants, outcome.fresh)
    only_scores = {reason.defence for reason in reasons} <= {TOLERANCE, JOINT}
    if read_entry is None or read_entry.entry.run_unknown is None or not reasons or not only_scores:
        return
    candidates = "; ".join(candidate.what for candidate in read_entry.entry.candidates)
    raise AuditRefused(
        f"{outcome.plan.commitment.model_id}: the scores differ, which is no evidence against the "
        f"row: {read_entry.entry.run_unknown}",
        f"describe another run in the entry and audit again; to be tried first: {candidates}",
    )


def signing_of(request: AuditRequest, commitment: Commitment, layout: Layout, say: Say) -> Signing:
    """Return key and folder for the record. Raises UsageProblem for a key that is not trusted."""
    audits = request.output or audits_of(layout)
    key = None if request.unsigned or request.dry_run else private_key(request.key)
    if key is not None:
        check_can_record(key, layout, audits / commitment.model_id)
    return Signing(layout, key, audits, say, request.shown_on)


def commitment_of(request: AuditRequest, submission: SubmissionFile) -> Commitment:
    """Return the commitment of `request.commitment`, or else a new one to its file.

    Raises AuditRefused for a commitment to another submission, and what `commit` does.
    """
    file = request.file
    if request.commitment is not None:
        commitment, digest = read_commitment(request.commitment), submission.document.sha256
        if digest != commitment.submission_sha256:
            raise AuditRefused(
                f"{file}: sha256 {digest}; {request.commitment} commits to the submission of "
                f"{commitment.model_id} with sha256 {commitment.submission_sha256}",
                "name the submission that was committed to, or commit to this one: "
                f"`geneb-ci audit commit {file} --output C.json`",
            )
        return commitment
    try:
        return commit(submission, tolerance_digest())
    except (UsageProblem, AuditRefused) as error:
        if OPTION_OF_COMMIT in error.fix:
            error.fix += (
                f"\n  {OPTION_OF_COMMIT} is an option of `geneb-ci audit commit {file} --output "
                f"C.json`; then run `geneb-ci audit {file} --commitment C.json`"
            )
        raise


def publish(
    request: AuditRequest, prepared: PreparedRerun, signing: Signing, show: Say
) -> str | AuditProgress:
    """Sign the commitment and show how the caller publishes it; return the state that asks for it.

    For practice nothing is published, and the result is the time of the commitment.
    """
    commitment = prepared.commitment
    if request.source.practice:
        signing.say("practice: the digest is published nowhere, and anybody can foresee the draw")
        return practice_time()
    merge, shown = "", ""
    if signing.key is not None:
        path = sign_commitment(commitment, signing.key, signing.layout, signing.audits, signing.say)
        merge = f"merge {os.path.relpath(path)} into the main branch;\n"
        shown = " --shown-on COMMIT"
    shown_before = prepared.work.read(SHOWN) is not None
    prepared.work.keep(SHOWN, commitment.sha256 + "\n")
    again = f"{request.command} --committed-at {EXAMPLE_TIME}{shown}"
    state = AuditProgress(Exit.CLEAN, TO_BE_PUBLISHED, commitment.sha256, again)
    # It commits as this audit does, unless the run was declared to `audit commit`.
    on_github = shlex.join(["geneb-ci", "audit", "publish", str(request.file)])
    command = on_github if request.commitment is None else again
    practice = ""
    if is_practice(commitment.benchmark.sha256):
        offline = f"{request.command} --practice"
        practice = f"or, for practice, at once and offline: {offline}\n"
        if not request.has_remote:
            command = offline
    show(
        f"commitment {commitment.sha256}\n"
        f"{commitment.model_id}: {request.sample.drawn_text(commitment)} will be drawn\n"
    )
    if shown_before:
        show(
            "nothing was drawn: this digest was shown before, and when it became public is not "
            f"said: --committed-at is missing, as in `{again}`\n{practice}"
            f"{next_line(LOOK)}\n"
        )
        return state
    show(
        f"{merge}publish this digest where a server that you do not control shows it with a time: "
        "as commit status geneb/audit-commit, or in the ledger; then continue with that time, in "
        f"UTC:\n  {again}\n{practice}{next_line(command)}\n"
    )
    return state


def practice_time() -> str:
    """Return the latest time of a commitment whose round is due now."""
    return moment_of(int(time.time()) - DELAY - QUICKNET.period)


def default_work(commitment: Commitment, kind: str) -> Path:
    """Return the folder of an audit below the user's cache."""
    return cache_folder(kind) / commitment.model_id / commitment.sha256[:DIGITS]


def begin_audit(
    work: Work, commitment: Commitment, committed_at: str | None, sample: Sample[_P]
) -> _P | None:
    """Write the commitment into the work folder; return the plan that is there, None before a draw.

    Raises AuditRefused when the folder has another commitment or draw.
    """
    if work.read(COMMITMENT) is None:
        work.keep(COMMITMENT, committed_text(commitment))
    earlier = read_commitment(work.folder / COMMITMENT)
    if earlier != commitment:
        raise AuditRefused(
            f"{work.folder}: the audit began with another {_difference(earlier, commitment)}",
            "check out what it began with, or name another folder: --work DIR; if its sample is "
            f"drawn, add --earlier {work.folder / PLAN}",
        )
    if work.read(PLAN) is None:
        return None
    plan = read_any_plan(work.folder / PLAN)
    if not isinstance(plan, sample.kind):
        drawn = sample_of(plan).name
        raise AuditRefused(
            f"{work.folder / PLAN}: this audit drew {drawn}, expected {sample.name}",
            f"pass --sample {drawn}, or name another folder: --work DIR",
        )
    recompute_any(plan)
    if plan.commitment != commitment or committed_at not in {None, plan.committed_at}:
        raise AuditRefused(
            f"{work.folder / PLAN}: drawn for commitment {plan.commitment_sha256[:DIGITS]}... as "
            f"of {plan.committed_at}, not for {commitment.sha256[:DIGITS]}... as of {committed_at}",
            "leave out --committed-at: a commitment has one draw",
        )
    return plan


def finished_outcome(
    work: Work, plan: _P | None, subject: AuditSubject, sample: Sample[_P]
) -> RerunResult | None:
    """Return the outcome that an earlier call left in the work folder; None where there is none.

    Raises AuditRefused when it does not follow from the plan and the folder.
    """
    if plan is not None:
        return sample.finished_outcome(plan, subject, work)
    if not work.has_result(OUTCOME):
        return None
    raise AuditRefused(
        f"{work.folder / OUTCOME}: its plan, {work.folder / PLAN}, is not there",
        f"put the plan back, or remove {work.folder / OUTCOME} and run the command again",
    )


def refuse_other_settings(request: AuditRequest, work: Work) -> None:
    """Refuse options that a finished audit did not have, since its outcome would hide them.

    What an option has by default is not asked for. Raises AuditRefused, and NothingChecked for a
    commitment to a fresh set that cannot be read.
    """
    machine, begun = request.machine, work.settings()
    fresh = machine.fresh_commitment and read_fresh_commitment(machine.fresh_commitment).sha256
    asked = {
        "fresh": fresh,
        "level": machine.level if machine.level != DEFAULT else None,
        "device": CUDA if machine.gpu else None,
        "noise": machine.noise,
        "copies": machine.copies if machine.copies != COPIES_MIN else None,
    }
    for name, value in asked.items():
        if value in {None, getattr(begun, name)}:
            continue
        option, had = OPTION_OF[name], getattr(begun, name)
        words = ["geneb-ci", "audit", "run", str(work.folder / PLAN)]
        words += ["--fresh", str(machine.fresh)] if name == "fresh" else []
        given = machine.fresh_commitment if name == "fresh" else value
        words += ["--gpu"] if name == "device" else [option, str(given)]
        words += ["--unsigned"] if request.key is None else ["--key", str(request.key)]
        receipt = getattr(request.sample, "receipt", None)
        words += ["--receipt", str(receipt)] if receipt is not None else []
        raise AuditRefused(
            f"this audit is finished, with {name} {had or 'none'}; asked for is {value}"
            if name != "fresh"
            else f"this audit is finished, and its fresh set is not {machine.fresh_commitment}",
            f"leave out {option}, or rerun the same draw with it: {shlex.join(words)}",
        )


def refuse_other(commitment: Commitment, folder: Path) -> None:
    """Refuse `--committed-at` where another commitment of the model was shown, and not this one.

    The time would be that of the other's publication. Raises AuditRefused.
    """
    if _was_published(folder):
        return
    for path in sorted(folder.parent.glob(f"*/{COMMITMENT}")):
        if not _was_published(path.parent):
            continue
        published = read_commitment(path)
        raise AuditRefused(
            f"--committed-at is the time of commitment {published.sha256}, which was shown here; "
            f"the files now make commitment {commitment.sha256}, with another "
            f"{_difference(published, commitment)}",
            "check out what was committed to, or run the command without --committed-at and "
            "publish the new digest",
        )


def published_command(commitment: Commitment, file: Path, committed_at: str, shown_on: str) -> str:
    """Return the command that continues an audit whose commitment is public since a time.

    It has the options of the call that showed the digest, where that was typed in this folder.
    """
    words = ["geneb-ci", "audit", str(file)]
    for sample in (TaskSample, EmbeddingSample):
        folder = default_work(commitment, sample.cache)
        if (folder / SHOWN).exists() and not (folder / PLAN).exists():
            words = typed_in(folder, Path.cwd()) or words
    if "--key" not in words and "--unsigned" not in words and not os.environ.get(KEY_VARIABLE):
        words += ["--key", "KEY.pem"]
    return shlex.join([*words, "--committed-at", committed_at, "--shown-on", shown_on])


def typed_in(work: Path, folder: Path) -> list[str]:
    """Return the words of the last command of a work folder; none where typed elsewhere."""
    raw = Work(work).read(TYPED)
    typed: list[str] = [] if raw is None else read_json(raw, is_own=True)
    return typed[1:] if typed[:1] == [str(folder.resolve())] else []


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


def _shown_cost(
    request: AuditRequest,
    prepared: PreparedRerun,
    plan: TaskPlan | EmbeddingPlan | None,
    setup: float,
    say: Say,
    show: Say,
    before: str = "",
) -> str:
    """Return the remaining cost, and show it where its figures differ from those shown before.

    "" where all is embedded.
    """
    cost: str = request.sample.cost(prepared, plan, setup, say)
    if cost and cost.partition("\n")[2] != before.partition("\n")[2]:
        show(cost)
    return cost


def _published_and_drawn(
    request: AuditRequest,
    submission: SubmissionFile,
    prepared: PreparedRerun,
    signing: Signing,
    show: Say,
) -> TaskPlan | EmbeddingPlan | AuditProgress:
    """Publish the commitment, unless that is done; draw, and keep the plan before any rerun.

    Returns the plan, or the state of the audit where the caller has to publish the commitment.
    """
    committed_at = request.committed_at
    if committed_at is None:
        published = publish(request, prepared, signing, show)
        if isinstance(published, AuditProgress):
            return published
        committed_at = published
    sample, work = request.sample, prepared.work
    if request.work is None:
        plans = _plans_here(work.folder, prepared.commitment, sample.kind, signing.say)
        sample = sample.with_earlier(plans)
    plan: TaskPlan | EmbeddingPlan = draw_plan(
        prepared.commitment,
        committed_at,
        submission,
        sample,
        signing.layout,
        request.source,
        signing.say,
    )
    work.keep(PLAN, encoded(plan))
    signing.say(f"drawn: {sample.drawn_names(plan)}")
    return plan


def _plans_here(
    folder: Path, commitment: Commitment, kind: type[TaskPlan | EmbeddingPlan], say: Say
) -> Iterable[Path]:
    """Yield the paths of all other plans for the model in this cache, signed as records or not.

    What they drew is rerun as well: a draw cannot be thrown away. A plan for another benchmark is
    of another repository, and left out.
    """
    for path in sorted({*folder.parent.glob(f"*/{PLAN}")} - {folder / PLAN}):
        plan = read_any_plan(path)
        if not isinstance(plan, kind):
            continue
        benchmark = plan.commitment.benchmark
        if benchmark.sha256 == commitment.benchmark.sha256:
            yield path
        else:
            say(f"{path}: a draw for another benchmark, {benchmark.name}: left out")

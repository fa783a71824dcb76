"""An audit from a submission to its signed record: commit, draw, rerun, compare, sign.

`audit_file` does all of it for `geneb-ci audit FILE`. The five commands, the jobs on GitHub and the
queue also call its steps: `draw_plan`, `rerun_plan` and, of `record.signing`, `write_record`.

The seed of the draw is computed from the commitment and a later value of the beacon. With that
seed, a `TaskSample` draws tasks of the submission, an `EmbeddingSample` embeddings of its receipt.
`Sample.rerun` then compares

    this claim                   with this value                        within
    score of a drawn task        score of the rerun                     tolerance of the cell
    each cell of the receipt     cell computed from all its embeddings  nothing: they must be equal
    drawn embedding              embedding of the rerun                 tolerance of the column

An audit of either sample also differs if its decoys, variants, fresh set or joint tests object;
`geneb_ci/audit/defences.py` lists which defence finds which attack. The trust level of a row is not
decided here: `geneb_ci/audit/trust/level.py:decide` computes it from all signed records of the row.
"""

import contextlib
import json
import os
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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
from geneb_ci.audit.compare.tolerance import COPIES_MIN
from geneb_ci.audit.cost import NO_COST, CostText
from geneb_ci.audit.errors import AuditRefused, EntryIncomplete, EntryMissing
from geneb_ci.audit.record.keys import KEY_VARIABLE, private_key
from geneb_ci.audit.record.repository import AuditRepository, earlier_plans
from geneb_ci.audit.record.signing import (
    Signing,
    audits_folder_of,
    check_committed_at,
)
from geneb_ci.audit.record.statement import check_can_record
from geneb_ci.audit.rerun.fresh import read_fresh_commitment
from geneb_ci.audit.rerun.prepare import CUDA, Machine, PreparedRerun, prepared_rerun
from geneb_ci.audit.rerun.workspace import OPTION_BY_SETTING, WorkFolder, open_work_folder
from geneb_ci.audit.samples import (
    OUTCOME_FILE,
    CommittedSubmission,
    EmbeddingSample,
    Sample,
    TaskSample,
    sample_of,
)
from geneb_ci.audit.sampling.beacon import DELAY_SECONDS, QUICKNET
from geneb_ci.audit.sampling.beacon_source import BeaconSource, beacon_of
from geneb_ci.audit.sampling.embedding_draw import check_any_plan
from geneb_ci.audit.sampling.plan import (
    AnyPlan,
    EmbeddingPlan,
    TaskPlan,
    commitment_text,
    json_text_of,
    read_any_plan,
    read_commitment,
)
from geneb_ci.common.config import Layout, cache_folder, is_practice
from geneb_ci.common.errors import Exit, ExtractorRefused
from geneb_ci.sandbox.levels import DEFAULT_LEVEL
from reference_harness.formats.files import read_json
from reference_harness.formats.text import Say, next_line

COMMITMENT_FILE, PLAN_FILE = "commitment.json", "plan.json"
"""Files of the work folder with the commitment and, after the draw, the plan."""
COMMAND_FILE = "command.json"
"""File of the work folder with the last command: the folder that it ran in, and its words."""
SHOWN_FILE = "shown"
"""File of the work folder that exists once the user was shown the digest, and has to publish it. A
dry run does not write this file."""
TO_BE_PUBLISHED = "to be published"
"""State of an audit whose commitment the user has to publish next."""
NEXT_COMMAND = "geneb-ci next --as maintainer"
"""The command that shows the next step of an audit, such as publishing its commitment."""
WORK_FOLDER_DIGITS = 16
"""Number of hex digits of the digest of a commitment in the name of its work folder."""
EXAMPLE_TIME = "2026-11-20T08:30:00Z"
"""Placeholder in printed commands for the time of publication, which the user has to fill in."""

_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """The options of `audit FILE`: what to audit, how, and where to write the outcome."""

    file: Path
    """The submission."""
    sample: Sample[Any] = field(default_factory=TaskSample)
    machine: Machine
    """The sandbox, the device and the limits of the rerun."""
    source: BeaconSource
    """The options that decide where the beacon's value comes from."""
    commitment: Path | None = None
    """The file that `audit commit` wrote for a submission of format 1.0 with a declared run."""
    committed_at: str | None = None
    """The time at which the digest was published, in UTC; None before that."""
    work: Path | None = None
    """The work folder; None: one in the user's cache."""
    key: Path | None = None
    """The file of the private key; None: the one that GENEB_AUDIT_KEY_FILE names."""
    unsigned: bool = False
    """Whether to end without a signed record."""
    output: Path | None = None
    """The folder below which the record is written; None: the audits of the repository."""
    dry_run: bool = False
    """Whether to end with the cost estimate, before the draw or the rerun."""
    shown_on: str | None = None
    """The git commit on GitHub whose status shows the digest since `committed_at`."""
    command: str = ""
    """The words of the command that runs this audit, without --committed-at."""
    has_remote: bool = True
    """Whether the clone has a remote repository, on whose server the digest can be published."""


class AuditProgress(NamedTuple):
    """State of an audit after a call, and the command that continues it."""

    exit_code: Exit
    """The exit code of the command `audit FILE`."""
    state: str
    """The verdict after a rerun; else "dry run", "finished" or `TO_BE_PUBLISHED`."""
    commitment: str = ""
    """The digest of the commitment, if it has to be published before the audit can continue."""
    next: str = ""
    """The command that continues the audit."""
    cost: str = ""
    """The cost estimate as lines of text; "" after a rerun."""
    outcome: AnyOutcome | None = None
    """The outcome of the rerun; None before it."""
    record: Path | None = None
    """Path of the signed record; None if there is none."""


def audit_file(request: AuditRequest, layout: Layout, say: Say, show: Say) -> AuditProgress:
    """Do each step of an audit that is possible now; the next call does those that remain.

    `say` prints a line of progress, `show` a part of the result. Raises what the steps raise, and
    AuditRefused when a file differs from what it was when the audit began.
    """
    started_at = time.monotonic()
    check_committed_at(request.committed_at)
    request.source.check()
    sample = request.sample

    # Commit: one digest of submission, code, weights, benchmark and policy.
    submission = read_submission(request.file)
    commitment = commitment_of(request, submission)
    request.source.check_benchmark(commitment.benchmark.sha256)
    subject = subject_of(commitment, layout, submission)
    sample.check(submission, subject.benchmark, say)
    signing = signing_of(request, commitment, layout, say)
    folder = request.work or default_work_folder(commitment, sample.cache_name)
    if request.work is None and request.committed_at is not None:
        refuse_time_of_other_commitment(commitment, folder)

    with open_work_folder(folder) as work:
        plan = begin_audit(work, commitment, request.committed_at, sample)
        if not request.dry_run:
            work.write_text(
                COMMAND_FILE, json.dumps([str(Path.cwd()), *shlex.split(request.command)]) + "\n"
            )
        rerun_result = saved_result(work, plan, subject, sample)
        if rerun_result is not None:
            refuse_other_settings(request, work)
        if rerun_result is None:
            with prepared_rerun(
                commitment, subject, layout, request.machine, work, say
            ) as prepared:
                setup_seconds = time.monotonic() - started_at
                cost = sample.cost(prepared, plan, setup_seconds, say)
                show_new_cost(cost, NO_COST, show)
                if request.dry_run:
                    progress = AuditProgress(Exit.CLEAN, "dry run", next=request.command)
                    return progress._replace(cost=cost.text)
                if plan is None:
                    # Draw: the sample follows from the commitment and a later beacon value.
                    if request.committed_at is None and not request.source.practice:
                        progress = ask_for_publication(request, prepared, signing, show)
                        return progress._replace(cost=cost.text)
                    plan = draw_and_keep_plan(request, submission, prepared, signing)
                    show_new_cost(sample.cost(prepared, plan, setup_seconds, say), cost, show)
                # Rerun and compare.
                advice = advice_after_abort(work)
                rerun_result = rerun_drawn(plan, sample, prepared, signing, advice)
                work.write_result(OUTCOME_FILE, json_text_of(rerun_result.outcome))
        if request.dry_run:
            show("this audit is finished: nothing is left to run\n")
            return AuditProgress(Exit.CLEAN, "finished")

        # Sign.
        path = signing.sign_record(rerun_result)
        if path is not None:
            say(
                "commit the record and the files that it names to the main branch; then "
                f"{work.folder} can be removed"
            )
    agrees = rerun_result.outcome.verdict == "agrees"
    exit_code = Exit.CLEAN if agrees else Exit.ERRORS
    return AuditProgress(
        exit_code, rerun_result.outcome.verdict, outcome=rerun_result.outcome, record=path
    )


def draw_plan(
    commitment: Commitment,
    committed_at: str,
    submission: SubmissionFile | None,
    sample: Sample[_P],
    layout: Layout,
    source: BeaconSource,
    say: Say,
) -> _P:
    """Draw the sample of a commitment that was published at `committed_at`; wait for the beacon.

    The plan also contains what earlier audits of the same method drew, which is rerun again. A
    second draw of one commitment is refused. Raises what `earlier_plans`, the sample and
    `beacon_of` raise.
    """
    repository = AuditRepository(layout)
    repository.history.check_no_losses(commitment.model_id)
    repository.history.check_no_undrawn(commitment)
    committed_submission = CommittedSubmission(commitment, submission, repository)
    near_roots = sample.reasons_by_near_root(committed_submission, say)
    plans = earlier_plans(
        sample.plan_class, commitment, committed_at, repository, sample.earlier_plans, near_roots
    )
    draw = sample.prepared_draw(committed_submission, plans, near_roots)
    beacon = beacon_of(commitment, committed_at, source, repository.inputs.policy, say)
    return draw(committed_at, beacon)


def rerun_plan(
    plan: AnyPlan,
    signing: Signing,
    machine: Machine,
    *,
    work: Path | None = None,
    receipt: Path | None = None,
    advice: str = "",
) -> RerunResult:
    """Rerun the sample of a plan, compare it with the claims, and return the outcome.

    What is finished is kept in the folder `work`, from which the next call continues; without
    `work` it is deleted at the end. `receipt` is the folder of the receipt, for a plan of
    embeddings. Raises StepMismatch when the plan differs if computed again, AuditRefused when a
    file is not what was committed to, SandboxUnavailable or SandboxLeaks for the sandbox,
    ExtractorFailed, LimitExceeded or ResultRefused for the extractor, NothingChecked when a file is
    missing, UsageProblem for options that contradict the submission.
    """
    check_any_plan(plan)
    sample: Sample[Any] = sample_of(plan, receipt)
    AuditRepository(signing.layout).history.check_no_losses(plan.commitment.model_id)
    subject = subject_of(plan.commitment, signing.layout)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(open_work_folder(work)) if work is not None else None
        prepared = stack.enter_context(
            prepared_rerun(plan.commitment, subject, signing.layout, machine, folder, signing.say)
        )
        return rerun_drawn(plan, sample, prepared, signing, advice)


def rerun_drawn(
    plan: _P, sample: Sample[_P], prepared: PreparedRerun, signing: Signing, advice: str = ""
) -> RerunResult:
    """Sign that the rerun begins, rerun the drawn sample, and return the outcome.

    Raises what `Sample.rerun` raises. If the extractor ended the run, the abort is signed, and
    `advice` is added to the fix of the error.
    """
    signing.sign_start(plan)
    try:
        return sample.rerun(plan, prepared, signing.say)
    except ExtractorRefused as error:
        signing.sign_abort(error, plan)
        error.fix += advice
        raise


def signing_of(request: AuditRequest, commitment: Commitment, layout: Layout, say: Say) -> Signing:
    """Return the key and the folder for the signed files of an audit.

    Raises UsageProblem for a key that is not trusted.
    """
    audits = request.output or audits_folder_of(layout)
    signing_key = None if request.unsigned or request.dry_run else private_key(request.key)
    if signing_key is not None:
        check_can_record(signing_key, layout, audits / commitment.model_id)
    return Signing(layout, signing_key, audits, say, request.shown_on)


def commitment_of(request: AuditRequest, submission: SubmissionFile) -> Commitment:
    """Return the commitment in `request.commitment`, or else a new one to `request.file`.

    Raises AuditRefused for a commitment to another submission, and what `commit` raises.
    """
    file = request.file
    if request.commitment is not None:
        commitment, digest = read_commitment(request.commitment), submission.document.sha256
        if digest != commitment.submission_sha256:
            raise AuditRefused(
                f"{file}: its sha256 is {digest}, expected {commitment.submission_sha256} of the "
                f"submission of {commitment.model_id} that {request.commitment} commits to",
                "name the submission that was committed to, or commit to this one: "
                f"`geneb-ci audit commit {file} --output C.json`",
            )
        return commitment
    try:
        return commit(submission)
    except (EntryMissing, EntryIncomplete) as error:
        error.fix += (
            f"\n  --extractor is an option of `geneb-ci audit commit {file} --output C.json`; then "
            f"run `geneb-ci audit {file} --commitment C.json`"
        )
        raise


def ask_for_publication(
    request: AuditRequest, prepared: PreparedRerun, signing: Signing, show: Say
) -> AuditProgress:
    """Sign the commitment, show how to publish its digest, and return the progress of the audit."""
    commitment = prepared.commitment
    merge_line, shown_option = "", ""
    path = signing.sign_commitment(commitment)
    if path is not None:
        merge_line = f"merge {os.path.relpath(path)} into the main branch;\n"
        shown_option = " --shown-on COMMIT"
    was_shown_before = prepared.work.read(SHOWN_FILE) is not None
    prepared.work.write_text(SHOWN_FILE, commitment.sha256 + "\n")
    continue_command = f"{request.command} --committed-at {EXAMPLE_TIME}{shown_option}"
    progress = AuditProgress(Exit.CLEAN, TO_BE_PUBLISHED, commitment.sha256, continue_command)
    # `audit publish` makes the same commitment, unless `audit commit` made it from a declared run.
    publish_command = shlex.join(["geneb-ci", "audit", "publish", str(request.file)])
    command = publish_command if request.commitment is None else continue_command
    practice_line = ""
    if is_practice(commitment.benchmark.sha256):
        practice_command = f"{request.command} --practice"
        practice_line = f"or, for practice, at once and offline: {practice_command}\n"
        if not request.has_remote:
            command = practice_command
    show(
        f"commitment {commitment.sha256}\n"
        f"{commitment.model_id}: {request.sample.future_draw_text(commitment)} will be drawn\n"
    )
    if was_shown_before:
        show(
            "nothing was drawn: --committed-at is missing, the time at which this digest was "
            f"published; run `{continue_command}`\n{practice_line}"
            f"{next_line(NEXT_COMMAND)}\n"
        )
        return progress
    show(
        f"{merge_line}publish this digest where a server outside of your control timestamps it: as "
        "commit status geneb/audit-commit, or in the ledger; then continue with that time, in "
        f"UTC:\n  {continue_command}\n{practice_line}{next_line(command)}\n"
    )
    return progress


def practice_time() -> str:
    """Return the latest commitment time whose beacon round has already been published."""
    return moment_of(int(time.time()) - DELAY_SECONDS - QUICKNET.period)


def default_work_folder(commitment: Commitment, cache_name: str) -> Path:
    """Return the work folder of a commitment in the folder `cache_name` of the user's cache."""
    return cache_folder(cache_name) / commitment.model_id / commitment.sha256[:WORK_FOLDER_DIGITS]


def begin_audit(
    work: WorkFolder, commitment: Commitment, committed_at: str | None, sample: Sample[_P]
) -> _P | None:
    """Keep the commitment in the work folder; return the plan there, or None before the draw.

    Raises AuditRefused when the folder contains another commitment or draw.
    """
    if work.read(COMMITMENT_FILE) is None:
        work.write_text(COMMITMENT_FILE, commitment_text(commitment))
    first_commitment = read_commitment(work.folder / COMMITMENT_FILE)
    if first_commitment != commitment:
        raise AuditRefused(
            f"{work.folder}: the audit began with another "
            f"{_differing_parts(first_commitment, commitment)}",
            "check out the files it began with, or begin another audit in another folder: --work "
            f"DIR, with --earlier {work.folder / PLAN_FILE} if this one has drawn its sample",
        )
    if work.read(PLAN_FILE) is None:
        return None
    plan = read_any_plan(work.folder / PLAN_FILE)
    if not isinstance(plan, sample.plan_class):
        drawn_sample = sample_of(plan).name
        raise AuditRefused(
            f"{work.folder / PLAN_FILE}: this audit drew {drawn_sample}, expected {sample.name}",
            f"pass --sample {drawn_sample}, or name another folder: --work DIR",
        )
    check_any_plan(plan)
    plan_file = work.folder / PLAN_FILE
    if plan.commitment != commitment:
        raise AuditRefused(
            f"{plan_file}: drawn for commitment {plan.commitment_sha256[:WORK_FOLDER_DIGITS]}..., "
            f"expected the commitment of {COMMITMENT_FILE} beside it, "
            f"{commitment.sha256[:WORK_FOLDER_DIGITS]}...",
            "restore the plan of this audit, or begin another audit in another folder: --work DIR",
        )
    if committed_at not in {None, plan.committed_at}:
        raise AuditRefused(
            f"{plan_file}: drawn for the commitment of {plan.committed_at}, "
            f"got --committed-at {committed_at}",
            "leave out --committed-at: a commitment has one draw",
        )
    return plan


def saved_result(
    work: WorkFolder, plan: _P | None, subject: AuditSubject, sample: Sample[_P]
) -> RerunResult | None:
    """Return the result of a rerun that an earlier call finished in the work folder, or None.

    Raises AuditRefused when it does not follow from the plan and the files of the folder.
    """
    if not work.has_result(OUTCOME_FILE):
        return None
    if plan is not None:
        return sample.saved_result(plan, subject, work)
    raise AuditRefused(
        f"{work.folder / OUTCOME_FILE}: its plan, {work.folder / PLAN_FILE}, is missing",
        f"restore the plan, or remove {work.folder / OUTCOME_FILE} and run the command again",
    )


def refuse_other_settings(request: AuditRequest, work: WorkFolder) -> None:
    """Refuse options with which a finished audit was not run, since its outcome ignores them.

    Options with their default value are ignored. Raises AuditRefused, and NothingChecked for a
    commitment to a fresh set that cannot be read.
    """
    machine, settings = request.machine, work.settings()
    fresh_sha256 = (
        machine.fresh_commitment and read_fresh_commitment(machine.fresh_commitment).sha256
    )
    requested_settings = {
        "fresh": fresh_sha256,
        "level": machine.level if machine.level != DEFAULT_LEVEL else None,
        "device": CUDA if machine.gpu else None,
        "noise": machine.noise,
        "copies": machine.copies if machine.copies != COPIES_MIN else None,
    }
    for setting, value in requested_settings.items():
        if value in {None, getattr(settings, setting)}:
            continue
        option, used_value = OPTION_BY_SETTING[setting], getattr(settings, setting)
        used = f"without {option}" if used_value is None else f"with {option} {used_value}"
        words = ["geneb-ci", "audit", "run", str(work.folder / PLAN_FILE)]
        words += ["--fresh", str(machine.fresh)] if setting == "fresh" else []
        argument = machine.fresh_commitment if setting == "fresh" else value
        words += [option, str(argument)]
        words += ["--unsigned"] if request.key is None else ["--key", str(request.key)]
        receipt = getattr(request.sample, "receipt_folder", None)
        words += ["--receipt", str(receipt)] if receipt is not None else []
        raise AuditRefused(
            f"this audit is finished; it ran {used}, this call has {option} {value}"
            if setting != "fresh"
            else "this audit is finished; its fresh set is not the one that "
            f"{machine.fresh_commitment} commits to",
            f"leave out {option} to keep the result, or rerun the same draw with {option}: "
            f"{shlex.join(words)}",
        )


def refuse_time_of_other_commitment(commitment: Commitment, folder: Path) -> None:
    """Refuse `--committed-at` if the user was shown another commitment of the model, not this one.

    The option would then be the time at which that other commitment was published. Raises
    AuditRefused.
    """
    if _was_shown_or_drawn(folder):
        return
    for path in sorted(folder.parent.glob(f"*/{COMMITMENT_FILE}")):
        if not _was_shown_or_drawn(path.parent):
            continue
        shown_commitment = read_commitment(path)
        raise AuditRefused(
            f"--committed-at is the time of commitment {shown_commitment.sha256}, shown by an "
            f"earlier call; since then, {_differing_parts(shown_commitment, commitment)} changed, "
            f"which gives commitment {commitment.sha256}",
            "check out the files of that commitment, or run the command without --committed-at and "
            "publish the new digest",
        )


def published_command(commitment: Commitment, file: Path, committed_at: str, shown_on: str) -> str:
    """Return the command that continues an audit whose commitment was published at `committed_at`.

    The command has the options of the call that showed the digest, if that ran in this folder.
    """
    words = ["geneb-ci", "audit", str(file)]
    for sample in (TaskSample, EmbeddingSample):
        folder = default_work_folder(commitment, sample.cache_name)
        if (folder / SHOWN_FILE).exists() and not (folder / PLAN_FILE).exists():
            words = words_of_last_command(folder, Path.cwd()) or words
    if "--key" not in words and "--unsigned" not in words and not os.environ.get(KEY_VARIABLE):
        words += ["--key", "KEY.pem"]
    return shlex.join([*words, "--committed-at", committed_at, "--shown-on", shown_on])


def words_of_last_command(work: Path, folder: Path) -> list[str]:
    """Return the words of the last command of a work folder; [] if it was not run in `folder`."""
    raw = WorkFolder(work).read(COMMAND_FILE)
    words: list[str] = [] if raw is None else read_json(raw, is_own=True)
    return words[1:] if words[:1] == [str(folder.resolve())] else []


def _was_shown_or_drawn(folder: Path) -> bool:
    """Whether the commitment in a work folder was shown for publishing, or its sample drawn."""
    return any((folder / name).exists() for name in (SHOWN_FILE, PLAN_FILE))


def _differing_parts(first: Commitment, second: Commitment) -> str:
    """Return as text the fields in which two commitments differ: "weights, policy"."""
    first_parts, second_parts = first.model_dump(), second.model_dump()
    short_names = {"submission_sha256": "submission", "model_id": "model"}
    differing = (name for name in first_parts if first_parts[name] != second_parts.get(name))
    return ", ".join(short_names.get(name, name) for name in differing)


def show_new_cost(cost: CostText, shown_before: CostText, show: Say) -> None:
    """Show a cost, unless it is empty or has the same figures as the cost `shown_before`."""
    if cost.figures not in {"", shown_before.figures}:
        show(cost.text)


def advice_after_abort(work: WorkFolder) -> str:
    """Return how to continue after the extractor ended the rerun, to be added to an error's fix."""
    return (
        f"\n  this draw has no record: what is finished is kept in {work.folder}; run the same "
        f"command again,\n  or pass the plan to the next audit: --earlier {work.folder / PLAN_FILE}"
    )


def draw_and_keep_plan(
    request: AuditRequest, submission: SubmissionFile, prepared: PreparedRerun, signing: Signing
) -> AnyPlan:
    """Draw the sample and keep its plan in the work folder, before any rerun; return the plan."""
    committed_at = request.committed_at
    if committed_at is None:
        signing.say("practice: the digest is published nowhere, and anybody can foresee the draw")
        committed_at = practice_time()
    sample, work = request.sample, prepared.work
    if request.work is None:
        plans = _other_cached_plans(
            work.folder, prepared.commitment, sample.plan_class, signing.say
        )
        sample = sample.with_earlier_plans(plans)
    plan: AnyPlan = draw_plan(
        prepared.commitment,
        committed_at,
        submission,
        sample,
        signing.layout,
        request.source,
        signing.say,
    )
    work.write_text(PLAN_FILE, json_text_of(plan))
    signing.say(f"drawn: {sample.drawn_sample_text(plan)}")
    return plan


def _other_cached_plans(
    folder: Path, commitment: Commitment, plan_class: type[AnyPlan], say: Say
) -> Iterable[Path]:
    """Yield the files of all other plans for the model in the user's cache, recorded or not.

    Their samples are rerun as well, so that a contributor or auditor cannot discard a draw. A plan
    for another benchmark belongs to another repository and is left out.
    """
    for path in sorted({*folder.parent.glob(f"*/{PLAN_FILE}")} - {folder / PLAN_FILE}):
        plan = read_any_plan(path)
        if not isinstance(plan, plan_class):
            continue
        benchmark = plan.commitment.benchmark
        if benchmark.sha256 == commitment.benchmark.sha256:
            yield path
        else:
            say(f"{path}: left out, because this draw is for another benchmark, {benchmark.name}")

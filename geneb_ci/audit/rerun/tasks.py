"""Reruns a plan of tasks: embeds in a sandbox, scores outside of it, and compares with the claims.

The sandbox contains the extractor, its weights, and the sequences of one task after another, in
random order with decoys among them. It contains no labels, claims, task names or seeds. Finished
parts of a task are kept in the folder of the audit.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.canonical import current_moment
from geneb_ci.audit.commit import AuditSubject
from geneb_ci.audit.compare import tasks as compare
from geneb_ci.audit.compare.outcome import (
    AuditedTask,
    AuditOutcome,
    Decoys,
    HarnessFacts,
    objections_to_outcome,
    objections_to_tasks,
    verdict_from_reasons,
)
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.events import AbortedRun
from geneb_ci.audit.rerun.fetching import InstalledPackages
from geneb_ci.audit.rerun.few_shot import FewShotResult, few_shot_result, few_shot_text
from geneb_ci.audit.rerun.honesty import (
    FreshResult,
    VariantResult,
    fresh_result,
    fresh_text,
    precision_of,
    precision_text,
    task_decisions,
    variant_result,
    variant_text,
    varied_sequence_count,
)
from geneb_ci.audit.rerun.prepare import (
    PreparedRerun,
    attempt_notes,
    usage_note,
    weight_notes,
)
from geneb_ci.audit.rerun.scoring import (
    RESCORED_FILE,
    merged_rescorings,
    read_rescored,
)
from geneb_ci.audit.rerun.task_embedding import TaskRuns
from geneb_ci.audit.rerun.workspace import (
    EMBEDDED,
    EmbeddedTask,
    WorkFolder,
)
from geneb_ci.audit.sampling.plan import TaskPlan
from geneb_ci.common.errors import ExtractorRefused
from reference_harness.formats.rescored import Rescored
from reference_harness.formats.text import Say


def rerun_tasks(plan: TaskPlan, prepared: PreparedRerun, say: Say) -> AuditOutcome:
    """Rerun the tasks of a valid plan, one after another, and return the outcome.

    Raises what `workflow.rerun_plan` raises.
    """
    started_at = prepared.work.start_time(current_moment())
    run = TaskRuns(plan, prepared, say)
    try:
        rescoring, embedded = run.results()
    except ExtractorRefused as error:
        facts = prepared.facts_of_sandbox(run.embedded.values())
        error.aborted_run = AbortedRun(*run.current_stage, facts, started_at, current_moment())
        raise
    prepared.check_weights()
    benchmark = prepared.subject.benchmark
    comparisons = _task_comparisons(plan, prepared.subject, rescoring)
    decoys = _pooled_decoys(embedded)
    memorisation = memorisation_results(plan, prepared.work, prepared.subject, rescoring)
    variants, fresh, few_shot = memorisation
    precision = precision_of(prepared.settings.noise, run.repeatabilities)
    notes = [
        *compare.tolerance_notes(comparisons, rescoring),
        compare.device_note(
            prepared.subject.device, prepared.settings.device, prepared.settings.noise
        ),
        *([variant_text(variants)] if variants is not None else []),
        *([fresh_text(fresh)] if fresh is not None else []),
        *([few_shot_text(few_shot)] if few_shot is not None else []),
        *([precision_text(precision)] if precision is not None else []),
        *weight_notes(prepared.weight_digests),
        *_environment_notes(prepared.packages, rescoring.packages),
        *attempt_notes(embedded.values()),
        usage_note(embedded.values(), sum(task.computed for task in embedded.values())),
    ]
    return AuditOutcome(
        schema_version="1.0",
        plan=plan,
        tasks=comparisons,
        decoys=decoys,
        variants=variants,
        fresh=fresh,
        few_shot=few_shot,
        verdict=verdict_from_reasons(objections_to_tasks(comparisons, decoys, *memorisation)),
        sandbox=prepared.facts_of_sandbox(embedded.values(), rescoring),
        noise=run.noise,
        precision=precision,
        harness=HarnessFacts(
            # The version of the protocol; the release of the harness is among the packages.
            version=benchmark.harness_version,
            commit=rescoring.harness.commit,
            dirty=rescoring.harness.dirty,
        ),
        benchmark_sha256=rescoring.benchmark.sha256,
        dataset_revision=rescoring.dataset.revision,
        packages={"geneb-ci": rescoring.harness.version, **rescoring.packages},
        notes=notes,
        started_at=started_at,
        finished_at=current_moment(),
    )


def check_outcome(
    outcome: AuditOutcome, path: Path, plan: TaskPlan, subject: AuditSubject, work: WorkFolder
) -> None:
    """Refuse an outcome at `path` that does not follow from the plan and the saved scores.

    Raises AuditRefused, which names the part that differs.
    """
    fix = f"remove {path} and run the command again: only what is missing is computed"
    tasks = [choice.task for choice in plan.chosen]
    folders = {task: work.task_folder(task) for task in tasks}
    missing_results = [
        folder / name
        for folder in folders.values()
        for name in (EMBEDDED, RESCORED_FILE)
        if not work.has_result(folder / name)
    ]
    if missing_results:
        raise AuditRefused(
            f"{path}: this outcome was made from {missing_results[0]}, which is missing, or which "
            "this audit did not write",
            fix,
        )
    rescoring = merged_rescorings(
        [read_rescored(folder / RESCORED_FILE) for folder in folders.values()]
    )
    embedded = {
        task: work.read_as(folder / EMBEDDED, EmbeddedTask) for task, folder in folders.items()
    }
    decoys = _pooled_decoys({task: entry for task, entry in embedded.items() if entry is not None})
    memorisation = memorisation_results(plan, work, subject, rescoring)
    is_same_by_part = {
        "plan": outcome.plan == plan,
        "comparison": outcome.tasks == _task_comparisons(plan, subject, rescoring),
        "result of the decoys": outcome.decoys == decoys,
        "result of the variants, the fresh set and the few-shot probes": memorisation
        == (outcome.variants, outcome.fresh, outcome.few_shot),
        "verdict": outcome.verdict == verdict_from_reasons(objections_to_outcome(outcome)),
    }
    wrong_parts = [name for name, is_same in is_same_by_part.items() if not is_same]
    if wrong_parts:
        raise AuditRefused(
            f"{path}: the {wrong_parts[0]} of this outcome does not follow from the plan and the "
            "scores in its folder",
            fix,
        )


class MemorisationResults(NamedTuple):
    """The results that show whether the extractor memorised sequences of the benchmark."""

    variants: VariantResult | None
    """Decisions on variants of test and training sequences."""
    fresh: FreshResult | None
    """Decisions on the fresh set; None if the audit has none."""
    few_shot: FewShotResult | None
    """Scores of few-shot probes fitted on other sequences."""


def memorisation_results(
    plan: TaskPlan, work: WorkFolder, subject: AuditSubject, rescoring: Rescored
) -> MemorisationResults:
    """Return the results of variants, fresh set and few-shot probes, from the scores of all tasks.

    All are None if no further sequences were embedded.
    """
    settings = work.settings()
    decisions = {
        name: scores.decisions for name, scores in rescoring.tasks.items() if scores.decisions
    }
    if not decisions:
        return MemorisationResults(None, None, None)
    variants = variant_result(
        {name: task_decisions(task_scores) for name, task_scores in decisions.items()},
        settings.nonce,
        varied_sequence_count(len(plan.chosen)),
        reverse=subject.reverse_complement,
    )
    fresh = fresh_result(decisions, settings.fresh) if settings.fresh is not None else None
    few_shot = few_shot_result(
        {name: task_scores.few_shot for name, task_scores in decisions.items()},
        {name: task_scores.varied for name, task_scores in decisions.items()},
    )
    return MemorisationResults(variants, fresh, few_shot)


def _task_comparisons(
    plan: TaskPlan, subject: AuditSubject, rescoring: Rescored
) -> list[AuditedTask]:
    """Return the comparison of the claims with the rerun, for each task of a plan."""
    claims = compare.audited_claims(subject.document, subject.benchmark, plan.commitment.regimes)
    return compare.compare_claims(claims, rescoring, plan.chosen, subject.benchmark)


def _environment_notes(
    packages: InstalledPackages | None, scorer_packages: Mapping[str, str]
) -> list[str]:
    """Return a note on the lock, and on packages that the scorer has in other versions."""
    if packages is None:
        return []
    lock_note = f"environment: lock with sha256 {packages.lock_sha256}"
    differing_versions = {
        name: version
        for name, version in packages.versions().items()
        if scorer_packages.get(name, version) != version
    }
    if not differing_versions:
        return [lock_note]
    package_list = ", ".join(
        f"{name} {version}" for name, version in sorted(differing_versions.items())
    )
    return [f"{lock_note}; it embedded with {package_list}; `packages` are those that scored"]


def _pooled_decoys(embedded: dict[str, EmbeddedTask]) -> Decoys:
    """Return the result of the decoys of all tasks: flagged if that of any task is."""
    decoys_by_task = {
        task: facts.decoys for task, facts in embedded.items() if facts.decoys is not None
    }
    tasks_by_detail: dict[str, list[str]] = {}
    for task, decoys in decoys_by_task.items():
        tasks_by_detail.setdefault(decoys.detail, []).append(task)
    details = (f"{', '.join(tasks)}: {detail}" for detail, tasks in tasks_by_detail.items())
    return Decoys(
        order_dependent=any(decoys.order_dependent for decoys in decoys_by_task.values()),
        memorised=any(decoys.memorised for decoys in decoys_by_task.values()),
        detail="; ".join(details),
    )

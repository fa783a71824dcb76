"""Rules on coverage: every task and metric occurs once, or is declared missing."""

from collections.abc import Iterator, Sequence

from geneb_ci.check.rule import Context, Rule, reading_rule
from geneb_ci.common.finding import (
    NAME_SEARCHES_MAX,
    Fault,
    Severity,
    first_and_more,
    member_hint,
    renaming_fix,
)
from geneb_ci.submission.structure import version_of
from reference_harness.formats.text import plural, quoted


def missing_regime(context: Context) -> Iterator[Fault]:
    """Report each regime without scores that is not declared missing as a whole."""
    results = context.member("results")
    if not isinstance(results, dict):
        return
    regimes = context.benchmark.regimes
    unknown_names = [name for name in results if name not in regimes]
    for regime in regimes:
        if regime not in results and set(context.benchmark.task_ids) - set(context.gaps(regime)):
            yield Fault(
                MISSING_REGIME.id,
                ("results",),
                f'no scores for the regime "{regime}"',
                "no scores",
                f"scores of {len(context.benchmark.tasks)} tasks",
                fix=renaming_fix(unknown_names, [regime], ""),
            )


MISSING_REGIME = Rule(
    id="missing-regime",
    severity=Severity.ERROR,
    what="A regime of the benchmark has no scores.",
    why="Leaving out the regime in which a model is weak would make it look better than it is.",
    fix="Run every regime of benchmark.json: `geneb-harness run` does so without --regimes.",
    check=missing_regime,
)


_TABLES = ("results", "evidence", "gaps")
"""Members whose keys are regimes; each regime is a table whose keys are tasks."""


def unknown_regime(context: Context) -> Iterator[Fault]:
    """Report each regime, in any table, that the benchmark does not have."""
    regimes = context.benchmark.regimes
    for table in _TABLES:
        regime_names = context.table(table)
        for name in regime_names:
            if name not in regimes:
                yield Fault(
                    UNKNOWN_REGIME.id,
                    (table, name),
                    f"{quoted(name)} is not a regime{member_hint(name, regimes, regime_names)}",
                    quoted(name),
                    first_and_more(regimes),
                    on_key=True,
                )


UNKNOWN_REGIME = Rule(
    id="unknown-regime",
    severity=Severity.ERROR,
    what="The benchmark does not have this regime.",
    why="Programs ignore unknown names, so the scores would be lost.",
    fix='Use the names of regimes in benchmark.json, such as "full", "10shot" and "1shot".',
    check=unknown_regime,
)


def missing_task(context: Context) -> Iterator[Fault]:
    """Report the tasks that have neither scores nor a reason in `gaps`.

    Regimes that lack the same tasks are reported together.
    """
    task_ids = context.benchmark.task_ids
    regimes_by_missing: dict[tuple[str, ...], list[str]] = {}
    for regime in context.benchmark.regimes:
        tasks = context.member("results", regime)
        if isinstance(tasks, dict):
            gaps = context.gaps(regime)
            missing_tasks = tuple(
                task for task in task_ids if task not in tasks and task not in gaps
            )
            regimes_by_missing.setdefault(missing_tasks, []).append(regime)
    for missing_tasks, regimes in regimes_by_missing.items():
        if missing_tasks:
            noun = "task has" if len(missing_tasks) == 1 else "tasks have"
            regime_names = ", ".join(map(quoted, regimes))
            has_evidence = all(
                set(missing_tasks) <= context.table("evidence", name).keys() for name in regimes
            )
            yield Fault(
                MISSING_TASK.id,
                ("results", regimes[0]),
                f"{len(missing_tasks)} {noun} no scores in {regime_names}"
                f"{', but evidence' if has_evidence else ''}: "
                f"{first_and_more(list(missing_tasks), LISTED_TASKS_MAX)}",
                f"{len(task_ids) - len(missing_tasks)} of {len(task_ids)} tasks",
                plural(len(task_ids), "task"),
                on_key=True,
                fix=_RESTORE_FIX
                if has_evidence
                else _renamed_tasks(context, regimes[0], missing_tasks),
            )


def _renamed_tasks(context: Context, regime: str, missing_tasks: Sequence[str]) -> str:
    """Return the fix of missing tasks that may be in the regime by another name."""
    task_names = context.table("results", regime)
    unknown_names = [task for task in task_names if task not in context.benchmark.by_id]
    return renaming_fix(unknown_names, missing_tasks, MISSING_TASK.fix)


LISTED_TASKS_MAX = 3
"""Maximum number of missing tasks that a message names."""
_RESTORE_FIX = (
    'Restore the scores: each is the mean of the values under "per_seed" of its evidence. If a '
    'task is left out on purpose, delete its evidence and write the reason under "gaps".'
)


MISSING_TASK = Rule(
    id="missing-task",
    severity=Severity.ERROR,
    what="Tasks of the benchmark have no scores in a regime.",
    why="A mean over some tasks is not comparable with a mean over all tasks.",
    fix=(
        "Run the same `geneb-harness run` command again, with --resume and without --tasks: a run "
        "writes a submission of its own tasks only. If a task cannot be run, write the reason "
        'under "gaps" (format 1.1); the regime is then not ranked.'
    ),
    check=missing_task,
)


def unknown_task(context: Context) -> Iterator[Fault]:
    """Report each task, in any table and known regime, that the benchmark does not have."""
    tasks_by_id = context.benchmark.by_id
    hint_count = 0
    for table in _TABLES:
        for regime in context.benchmark.regimes:
            task_names = context.table(table, regime)
            for name in task_names:
                if name in tasks_by_id:
                    continue
                hint_count += 1
                hint = (
                    member_hint(name, tasks_by_id, task_names)
                    if hint_count <= NAME_SEARCHES_MAX
                    else ""
                )
                yield Fault(
                    UNKNOWN_TASK.id,
                    (table, regime, name),
                    f"{quoted(name)} is not a task of {context.benchmark.name}{hint}",
                    quoted(name),
                    f"one of the {len(tasks_by_id)} task ids of benchmark.json",
                    on_key=True,
                )


UNKNOWN_TASK = Rule(
    id="unknown-task",
    severity=Severity.ERROR,
    what="The benchmark does not have this task.",
    why="Programs ignore unknown names: a misspelt task becomes a missing cell.",
    fix="Use the task ids of benchmark.json: `geneb-harness tasks` lists them.",
    check=unknown_task,
)


def declared_gap(context: Context) -> Iterator[Fault]:
    """Report each regime that will not be ranked because cells are declared missing."""
    for regime in context.benchmark.regimes:
        gaps = [task for task in context.gaps(regime) if task in context.benchmark.by_id]
        if gaps:
            yield Fault(
                DECLARED_GAP.id,
                ("gaps", regime),
                f'"{regime}" declares {plural(len(gaps), "missing cell")}: {first_and_more(gaps)}',
                plural(len(gaps), "missing cell"),
                "no missing cell in a ranked regime",
                on_key=True,
            )


DECLARED_GAP = Rule(
    id="declared-gap",
    severity=Severity.WARNING,
    what="A regime has cells that are declared missing.",
    why="Means over fewer tasks are not comparable, so this regime is not ranked.",
    fix='Run the tasks and remove them from "gaps". If they cannot be run, leave "gaps" as it is.',
    check=declared_gap,
)


def needless_gap(context: Context) -> Iterator[Fault]:
    """Report each cell that is both scored and declared missing."""
    for regime in context.benchmark.regimes:
        scored = context.table("results", regime)
        for task in context.gaps(regime):
            if task in scored:
                yield Fault(
                    NEEDLESS_GAP.id,
                    ("gaps", regime, task),
                    f'{quoted(task)} is declared missing, but "results" has its scores',
                    'an entry in "gaps" and scores',
                    "only one of them",
                    on_key=True,
                )


NEEDLESS_GAP = Rule(
    id="needless-gap",
    severity=Severity.ERROR,
    what="A cell is declared missing although its scores are there.",
    why="One of the two statements is wrong, and only the contributor knows which.",
    fix='Delete the entry in "gaps", or the scores.',
    check=needless_gap,
)


REASON_LENGTH_MIN = 10
"""Minimum length of the reason for a missing cell: "n/a", "oom" or "-" explains nothing."""


def gap_without_reason(context: Context) -> Iterator[Fault]:
    """Report each declared missing cell whose reason is shorter than `REASON_LENGTH_MIN`."""
    for regime in context.benchmark.regimes:
        for task, reason in context.gaps(regime).items():
            if isinstance(reason, str) and len(reason.strip()) < REASON_LENGTH_MIN:
                yield Fault(
                    GAP_WITHOUT_REASON.id,
                    ("gaps", regime, task),
                    f"{quoted(task)} is declared missing with the reason {quoted(reason)}",
                    quoted(reason),
                    f"a sentence of at least {REASON_LENGTH_MIN} characters",
                )


GAP_WITHOUT_REASON = Rule(
    id="gap-without-reason",
    severity=Severity.ERROR,
    what="A cell is declared missing without a reason.",
    why="Without a reason, a task that could not be run looks like one that was left out.",
    fix='State the reason, such as "sequences of 200 kb do not fit the memory of one GPU".',
    check=gap_without_reason,
)


def missing_evidence(context: Context) -> Iterator[Fault]:
    """Report, once per regime, scored tasks that the member `evidence` lacks; not in format 1.0."""
    if version_of(context.document.value) in {None, "1.0"} or context.member("evidence") is None:
        return
    for regime in context.benchmark.regimes:
        evidence = context.table("evidence", regime)
        scored = (t for t in context.table("results", regime) if t in context.benchmark.by_id)
        tasks_without_evidence = [task for task in scored if task not in evidence]
        if tasks_without_evidence:
            yield Fault(
                MISSING_EVIDENCE.id,
                ("evidence", regime) if evidence else ("evidence",),
                f"evidence is missing for {plural(len(tasks_without_evidence), 'cell')} of "
                f'"{regime}": '
                f"{first_and_more(tasks_without_evidence)}",
                f"evidence for {plural(len(evidence), 'cell')}",
                f"evidence for {plural(len(evidence) + len(tasks_without_evidence), 'cell')}",
                on_key=True,
            )


MISSING_EVIDENCE = Rule(
    id="missing-evidence",
    severity=Severity.ERROR,
    what="Scores of format 1.1 have no evidence.",
    why="Anyone can check a mean against its per-seed values; without them nobody can.",
    fix=(
        "Write the file with `geneb-harness run --submission FILE`, or use format 1.0, which has "
        "no evidence."
    ),
    check=missing_evidence,
)


def evidence_without_scores(context: Context) -> Iterator[Fault]:
    """Report each task that is declared missing and listed under `evidence`, but has no scores.

    Tasks that are not declared missing are reported by `missing-task` or `missing-regime`.
    """
    for regime in context.benchmark.regimes:
        scored, gaps = context.table("results", regime), context.gaps(regime)
        for task in context.table("evidence", regime):
            if task in gaps and task not in scored:
                yield Fault(
                    EVIDENCE_WITHOUT_SCORES.id,
                    ("evidence", regime, task),
                    f"{quoted(task)} is declared missing, but has evidence",
                    'evidence and an entry in "gaps"',
                    "only one of them",
                    on_key=True,
                )


EVIDENCE_WITHOUT_SCORES = Rule(
    id="evidence-without-scores",
    severity=Severity.ERROR,
    what="Evidence is given for a cell that is declared missing.",
    why="The scores were lost or removed: the row does not show what was measured.",
    fix='Restore the scores and delete the entry in "gaps", or delete the evidence.',
    check=evidence_without_scores,
)


def wrong_seed_count(context: Context) -> Iterator[Fault]:
    """Report each list of scores under `per_seed` whose length is not the number of seeds."""
    seeds = len(context.benchmark.protocol.seeds)
    for regime in context.benchmark.regimes:
        for task in context.table("evidence", regime):
            for metric, seed_scores in context.table("evidence", regime, task, "per_seed").items():
                is_checked = metric in context.benchmark.metrics and isinstance(seed_scores, list)
                if is_checked and len(seed_scores) != seeds:
                    yield Fault(
                        WRONG_SEED_COUNT.id,
                        ("evidence", regime, task, "per_seed", metric),
                        f"{metric} has {plural(len(seed_scores), 'value')} for {seeds} seeds",
                        plural(len(seed_scores), "value"),
                        plural(seeds, "value"),
                    )


WRONG_SEED_COUNT = Rule(
    id="wrong-seed-count",
    severity=Severity.ERROR,
    what="Evidence has more or fewer values than the benchmark has seeds.",
    why="The protocol's score is the mean over all seeds; a mean over some of them can be chosen.",
    fix="Report one value per seed of benchmark.json, in its order, even if all are equal.",
    check=wrong_seed_count,
)


REPORTED = (
    reading_rule(
        "coverage",
        "missing-metric",
        what="A cell lacks one of the metrics.",
        why="A mean over fewer tasks is not comparable, and the checks need all three metrics.",
        fix="Add the metric; compute MCC, Acc and F1 from the same predictions.",
    ),
    reading_rule(
        "coverage",
        "unknown-metric",
        what="The benchmark does not have this metric.",
        why="Programs ignore names that they do not know, so the score would be lost.",
        fix="Use exactly MCC, Acc and F1.",
    ),
)
"""Rules that the reader of the file reports; only their texts are here."""

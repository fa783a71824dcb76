"""Measure false alarms and power of an audit's comparison; `--write` puts the tables in the docs.

    python -m benchmarks.bench_tolerance --work FOLDER --write

Claims and reruns are real: the same sequences through the same extractor, in other batches or with
numeric noise added. Embeddings and rescorings are kept in FOLDER; the tables are made of them.
"""

import argparse
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tolerance_noise import measured_noise, single_flips
from benchmarks.tolerance_sets import GROUPS, Claims, Group, GroupFolder
from geneb_ci.audit.compare.joint import ClaimDifference, joint_test
from geneb_ci.audit.compare.outcome import (
    AuditedTask,
    cells_by_joint_test,
    claim_difference,
    mean_biases,
)
from geneb_ci.audit.compare.tasks import audited_claims, compare_claims
from geneb_ci.audit.rerun.scoring import read_rescored
from geneb_ci.audit.sampling.plan import ChosenTask
from geneb_ci.common.benchmark import load_benchmark
from reference_harness.engine.worker_pool import Pool
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.rescored import Rescored
from reference_harness.probe.metrics import ConfusionMatrix, scores_of
from reference_harness.run.task_job import ScoredRegime
from tests.paths import ROOT

PAGE = ROOT / "docs/research/tolerance.md"
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"
SEED = 20_261_121
JOINT_BEGIN, JOINT_END = "<!-- bench joint -->\n", "<!-- /bench joint -->"
TESTS = 9
"""Joint tests of an audit: three regimes, three metrics."""
SIZES = (13, 100)
"""Numbers of tasks of the audits that are made of honest cells."""
RESAMPLED = 500
"""Number of audits of each size."""
RAISES = (0.005, 0.01, 0.02, 0.03, 0.05)
Document = dict[str, Any]
ScoredTasks = dict[str, dict[str, ScoredRegime]]


class Audits(NamedTuple):
    """The claims of contributors with each set of embeddings, and the rescored values of auditors
    with some of them."""

    group: Group
    benchmark: Benchmark
    claimed: dict[str, ScoredTasks]
    rescored: dict[str, Rescored]
    matrices: dict[str, Path]


def gathered_audits(work: GroupFolder) -> Audits:
    """Return all audits, computing embeddings and scores that the folder does not have yet."""
    claimed, rescored, matrices = {}, {}, {}
    with Pool[Claims](2) as pool:
        for number, (name, path) in enumerate(work.embeddings()):
            claimed[name] = work.claims(path, pool)
            matrices[name] = path
            if number < work.group.audited:
                rescored[name] = read_rescored(work.rescored(path))
    shipped = "benchmark-mini.json" if work.group.mini else "benchmark.json"
    return Audits(
        work.group, load_benchmark(ROOT / "schemas" / shipped), claimed, rescored, matrices
    )


def document(row: ScoredTasks, version: str) -> Document:
    """Return the members of a row's submission that an audit reads."""
    regimes = list(next(iter(row.values())))
    submission: Document = {
        "schema_version": version,
        "results": {
            regime: {task: row[task][regime].regime.scores.model_dump() for task in row}
            for regime in regimes
        },
    }
    if version == "1.1":
        submission["evidence"] = {
            regime: {task: _evidence(row[task][regime]) for task in row} for regime in regimes
        }
    return submission


def _evidence(cell: ScoredRegime) -> Document:
    return {
        "per_seed": cell.regime.per_seed.model_dump(),
        "predictions_sha256": cell.regime.predictions_sha256,
    }


def audited_tasks(
    submission: Document, rescored: Rescored, group: Group, benchmark: Benchmark
) -> list[AuditedTask]:
    chosen_tasks = [ChosenTask(task=task, reason="drawn") for task in group.tasks]
    return compare_claims(
        audited_claims(submission, benchmark, benchmark.regimes), rescored, chosen_tasks, benchmark
    )


def false_alarms(audits: Audits) -> tuple[int, list[str], dict[str, list[float]]]:
    """Run each honest audit; return their number, their alarms, and differences over tolerances."""
    audit_count, alarms = 0, []
    limit_shares: defaultdict[str, list[float]] = defaultdict(list)
    for auditor, rescored in audits.rescored.items():
        for contributor, row in audits.claimed.items():
            if contributor == auditor:
                continue
            audit_count += 1
            for task in audited_tasks(
                document(row, "1.1"), rescored, audits.group, audits.benchmark
            ):
                for name, comparison in task.regimes.items():
                    limit_shares[name].append(
                        abs(comparison.claimed.MCC - comparison.rescored.MCC)
                        / comparison.tolerance.MCC
                    )
                    if comparison.verdict == "differs":
                        alarms.append(f"{contributor} by {auditor}: {task.task} {name}")
    return audit_count, alarms, limit_shares


def joint_alarms(audits: Audits) -> str:
    """Return the row of a group: how often the joint tests reject honest cells.

    Larger audits are made of cells drawn from all honest audits of the group.
    """
    rng = random.Random(SEED)
    cells: defaultdict[tuple[str, str], list[ClaimDifference]] = defaultdict(list)
    count = flagged_count = 0
    for auditor, rescored in audits.rescored.items():
        for contributor, row in audits.claimed.items():
            if contributor == auditor:
                continue
            tasks = audited_tasks(document(row, "1.1"), rescored, audits.group, audits.benchmark)
            count += 1
            flagged_count += any(
                comparison.is_significant for comparison in mean_biases(tasks).values()
            )
            for (regime, kind), cells_of_metric in cells_by_joint_test(tasks).items():
                cells[regime, kind] += [
                    claim_difference(comparison, "MCC", TESTS) for comparison in cells_of_metric
                ]
    shares: list[str] = []
    alarm_counts = [0 for _ in SIZES]
    for differences in cells.values():
        square_sum = math.fsum(
            (comparison.value - (comparison.centre or 0.0)) ** 2 for comparison in differences
        )
        share = math.sqrt(
            square_sum / math.fsum(comparison.deviation**2 for comparison in differences)
        )
        alarms = [
            sum(
                joint_test(rng.choices(differences, k=size), TESTS).is_significant
                for _ in range(RESAMPLED)
            )
            for size in SIZES
        ]
        shares.append(f"{share:.2f}")
        alarm_counts = [sum(pair) for pair in zip(alarm_counts, alarms, strict=True)]
    return (
        f"| {audits.group.name} | {flagged_count} of {count} | {sum(map(len, cells.values()))} "
        f"| {', '.join(shares)} | {' | '.join(map(str, alarm_counts))} |"
    )


def joint_table(all_audits: list[Audits]) -> list[str]:
    sizes = " | ".join(f"of {3 * RESAMPLED} of {size} tasks" for size in SIZES)
    lines = [
        f"| embeddings | honest audits flagged | cells | rms / s: full, 10shot, 1shot | {sizes} |",
        "|---|---:|---:|---|---:|---:|",
    ]
    for audits in all_audits:
        lines.append(joint_alarms(audits))
        print(lines[-1], flush=True)
    return lines


def raised_matrix(
    matrix: ConfusionMatrix, raise_size: float, rng: np.random.RandomState
) -> ConfusionMatrix | None:
    """Return a matrix with random corrections that raise MCC by about `raise_size`; None if no
    corrections are enough."""
    changed = matrix.copy()
    raised_mcc = scores_of(matrix).MCC + raise_size
    nearest = changed
    while raised_mcc > scores_of(changed).MCC:
        wrong = changed * (1 - np.eye(len(changed), dtype=np.int64))
        if not wrong.sum():
            return None
        cell = int(rng.choice(wrong.size, p=(wrong / wrong.sum()).ravel()))
        row, column = divmod(cell, len(changed))
        previous = changed.copy()
        changed[row, column] -= 1
        changed[row, row] += 1
        nearest = min(
            previous, changed, key=lambda candidate: abs(scores_of(candidate).MCC - raised_mcc)
        )
    return nearest


def forged_scores(
    matrices: list[list[list[int]]], raise_size: float, rng: np.random.RandomState
) -> Any:
    """Return mean scores of possible matrices, raised alike in every seed; None if impossible."""
    raised_matrices = [
        raised_matrix(np.array(seed_matrix), raise_size, rng) for seed_matrix in matrices
    ]
    if any(seed_matrix is None for seed_matrix in raised_matrices):
        return None
    columns = zip(
        *(scores_of(seed_matrix) for seed_matrix in raised_matrices if seed_matrix is not None),
        strict=True,
    )
    return dict(zip(("MCC", "Acc", "F1"), (float(np.mean(c)) for c in columns), strict=True))


class ForgeryTrial(NamedTuple):
    """One forged cell in one audit."""

    regime: str
    by: float
    is_detected: bool


def forgery_trials(audits: Audits) -> Iterator[ForgeryTrial]:
    """Forge one regime of every task in an honest claim of other embeddings, audit it, and yield
    a trial for each task, as tasks are judged separately."""
    rng = np.random.RandomState(SEED)
    for auditor, rescored in audits.rescored.items():
        names = [name for name in audits.claimed if name != auditor]
        for number, contributor in enumerate(names):
            row = audits.claimed[contributor]
            for regime in audits.benchmark.regimes:
                submission = document(row, "1.1")
                raise_by_task = {}
                for task_index, task in enumerate(audits.group.tasks):
                    raise_size = RAISES[(number + task_index) % len(RAISES)]
                    cell = row[task][regime].regime
                    fits = slice(None if regime in rescored.few_shot_k else 1)
                    if scores_claimed := forged_scores(cell.confusion[fits], raise_size, rng):
                        submission["results"][regime][task] = scores_claimed
                        raise_by_task[task] = raise_size
                verdicts = _verdicts(submission, audits, rescored)
                for task, raise_size in raise_by_task.items():
                    yield ForgeryTrial(regime, raise_size, verdicts[task] == "differs")


def _verdicts(submission: Document, audits: Audits, rescored: Rescored) -> dict[str, str]:
    tasks = audited_tasks(submission, rescored, audits.group, audits.benchmark)
    return {task.task: task.verdict for task in tasks}


def tables(all_audits: list[Audits]) -> list[str]:
    lines = [
        "| embeddings | tasks | honest audits | cells | disputed | nearest: full, 10shot, 1shot |",
        "|---|---:|---:|---:|---:|---|",
    ]
    total = 0
    for audits in all_audits:
        count, alarms, limit_shares = false_alarms(audits)
        total += count
        largest_shares = ", ".join(
            f"{max(limit_shares[r]):.2f}" for r in ("full", "10shot", "1shot")
        )
        cells = sum(map(len, limit_shares.values()))
        tasks, disputed = len(audits.group.tasks), len({w.partition(":")[0] for w in alarms})
        lines.append(
            f"| {audits.group.name} | {tasks} | {count} | {cells} | {disputed} | {largest_shares} |"
        )
        print(lines[-1], alarms[:5], flush=True)
    lines += ["", f"{total} honest audits.", ""]
    lines += [
        "| embeddings | deviation | largest | flips in other batches | flips in plain copies |",
        "|---|---:|---:|---|---|",
        *(
            measured_noise(audits.group, audits.matrices, audits.claimed, audits.rescored)
            for audits in all_audits
            if len(audits.group.batches) > 1
        ),
        "",
        *single_flips(SEED),
        "",
    ]
    raise_columns = " | ".join(f"+{raise_size}" for raise_size in RAISES)
    lines += [
        f"| embeddings; full, 10shot, 1shot | trials | {raise_columns} |",
        f"|---|---:|{'---:|' * len(RAISES)}",
    ]
    all_trials: defaultdict[tuple[str, float], list[ForgeryTrial]] = defaultdict(list)
    for audits in all_audits:
        trials_by_raise: defaultdict[tuple[str, float], list[ForgeryTrial]] = defaultdict(list)
        for trial in forgery_trials(audits):
            trials_by_raise[trial.regime, trial.by].append(trial)
            all_trials[trial.regime, trial.by].append(trial)
        lines.append(_power_row(audits.group.name, trials_by_raise))
        print(lines[-1], flush=True)
    return [*lines, _power_row("all", all_trials)]


def _power_row(name: str, trials_by_raise: dict[tuple[str, float], list[ForgeryTrial]]) -> str:
    """Return the row of a group: per cent that differ, by raise, in each of three regimes."""
    columns = []
    sizes = []
    for raise_size in RAISES:
        shares = []
        for regime in ("full", "10shot", "1shot"):
            trials = trials_by_raise.get((regime, raise_size), [])
            detected_count = sum(trial.is_detected for trial in trials)
            shares.append(f"{100 * detected_count / len(trials):.0f}" if trials else "-")
            sizes.append(len(trials))
        columns.append(", ".join(shares))
    return f"| {name} | {min(sizes)} | {' | '.join(columns)} |"


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    parser.add_argument("--joint", action="store_true", help="the joint tests alone")
    parser.add_argument("--groups", nargs="*", type=int, default=list(range(len(GROUPS))))
    options = parser.parse_args()
    all_audits = []
    for number in options.groups:
        start = time.perf_counter()
        all_audits.append(gathered_audits(GroupFolder(options.work, GROUPS[number])))
        print(f"{GROUPS[number].name}: {time.perf_counter() - start:.0f} s", flush=True)
    if not options.joint:
        _write_table(BEGIN, END, tables(all_audits), options.write)
    _write_table(JOINT_BEGIN, JOINT_END, joint_table(all_audits), options.write)


def _write_table(begin: str, end: str, lines: list[str], write: bool) -> None:
    table = "\n".join(lines) + "\n"
    if write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(begin)
        PAGE.write_text(before + begin + table + end + after_begin.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

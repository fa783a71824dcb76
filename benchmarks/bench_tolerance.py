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
from benchmarks.tolerance_sets import GROUPS, Group, Work
from geneb_ci.audit.compare.joint import Difference, joint_test
from geneb_ci.audit.compare.outcome import AuditedTask, compared_cells, difference, mean_biases
from geneb_ci.audit.compare.tasks import claims, compare
from geneb_ci.audit.rerun.scoring import read_rescored
from geneb_ci.audit.sampling.plan import ChosenTask
from geneb_ci.common.benchmark import load_benchmark
from reference_harness.engine.local import Pool
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.rescored import Rescored
from reference_harness.job import ScoredRegime
from reference_harness.metrics import Confusion, scores
from reference_harness.rescore_job import BaseResult
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
Row = dict[str, dict[str, ScoredRegime]]


class Audits(NamedTuple):
    """What contributors with each embedding claim, and what auditors with some of them find."""

    group: Group
    benchmark: Benchmark
    claimed: dict[str, Row]
    rescored: dict[str, Rescored]
    matrices: dict[str, Path]


def gather(work: Work) -> Audits:
    """Return all audits; embeddings and scores that the folder has are not computed again."""
    claimed, rescored, matrices = {}, {}, {}
    with Pool[BaseResult](2) as pool:
        for number, (name, path) in enumerate(work.embeddings()):
            claimed[name] = work.claims(path, pool)
            matrices[name] = path
            if number < work.group.audited:
                rescored[name] = read_rescored(work.rescored(path))
    shipped = "benchmark-mini.json" if work.group.mini else "benchmark.json"
    return Audits(
        work.group, load_benchmark(ROOT / "schemas" / shipped), claimed, rescored, matrices
    )


def document(row: Row, version: str) -> Document:
    """Return the submission of a row, as far as an audit reads it."""
    regimes = list(next(iter(row.values())))
    made: Document = {
        "schema_version": version,
        "results": {
            regime: {task: row[task][regime].regime.scores.model_dump() for task in row}
            for regime in regimes
        },
    }
    if version == "1.1":
        made["evidence"] = {
            regime: {task: _evidence(row[task][regime]) for task in row} for regime in regimes
        }
    return made


def _evidence(cell: ScoredRegime) -> Document:
    return {
        "per_seed": cell.regime.per_seed.model_dump(),
        "predictions_sha256": cell.regime.predictions_sha256,
    }


def audit(made: Document, found: Rescored, group: Group, bench: Benchmark) -> list[AuditedTask]:
    chosen = [ChosenTask(task=task, reason="drawn") for task in group.tasks]
    return compare(claims(made, bench, bench.regimes), found, chosen, bench)


def false_alarms(audits: Audits) -> tuple[int, list[str], dict[str, list[float]]]:
    """Run each honest audit; return their number, differences, and how near each limit was."""
    count, wrong = 0, []
    nearest: defaultdict[str, list[float]] = defaultdict(list)
    for auditor, found in audits.rescored.items():
        for contributor, row in audits.claimed.items():
            if contributor == auditor:
                continue
            count += 1
            for task in audit(document(row, "1.1"), found, audits.group, audits.benchmark):
                for name, one in task.regimes.items():
                    nearest[name].append(
                        abs(one.claimed.MCC - one.rescored.MCC) / one.tolerance.MCC
                    )
                    if one.verdict == "differs":
                        wrong.append(f"{contributor} by {auditor}: {task.task} {name}")
    return count, wrong, nearest


def joint_alarms(audits: Audits) -> str:
    """Return the row of a group: how often the joint tests reject honest cells.

    Larger audits are made of cells drawn from all honest audits of the group.
    """
    rng = random.Random(SEED)
    cells: defaultdict[tuple[str, str], list[Difference]] = defaultdict(list)
    count = flagged = 0
    for auditor, found in audits.rescored.items():
        for contributor, row in audits.claimed.items():
            if contributor == auditor:
                continue
            tasks = audit(document(row, "1.1"), found, audits.group, audits.benchmark)
            count += 1
            flagged += any(one.is_significant for one in mean_biases(tasks).values())
            for (regime, kind), inside in compared_cells(tasks).items():
                cells[regime, kind] += [difference(one, "MCC", TESTS) for one in inside]
    shares: list[str] = []
    wrong = [0 for _ in SIZES]
    for here in cells.values():
        square = math.fsum((one.value - (one.centre or 0.0)) ** 2 for one in here)
        share = math.sqrt(square / math.fsum(one.deviation**2 for one in here))
        alarms = [
            sum(
                joint_test(rng.choices(here, k=size), TESTS).is_significant
                for _ in range(RESAMPLED)
            )
            for size in SIZES
        ]
        shares.append(f"{share:.2f}")
        wrong = [sum(pair) for pair in zip(wrong, alarms, strict=True)]
    return (
        f"| {audits.group.name} | {flagged} of {count} | {sum(map(len, cells.values()))} "
        f"| {', '.join(shares)} | {' | '.join(map(str, wrong))} |"
    )


def joint_table(everything: list[Audits]) -> list[str]:
    sizes = " | ".join(f"of {3 * RESAMPLED} of {size} tasks" for size in SIZES)
    lines = [
        f"| embeddings | honest audits flagged | cells | rms / s: full, 10shot, 1shot | {sizes} |",
        "|---|---:|---:|---|---:|---:|",
    ]
    for one in everything:
        lines.append(joint_alarms(one))
        print(lines[-1], flush=True)
    return lines


def raised(matrix: Confusion, by: float, rng: np.random.RandomState) -> Confusion | None:
    """Return a matrix with random corrections that raise MCC by about `by`, or None."""
    now = matrix.copy()
    wanted = scores(matrix).MCC + by
    best = now
    while wanted > scores(now).MCC:
        wrong = now * (1 - np.eye(len(now), dtype=np.int64))
        if not wrong.sum():
            return None
        cell = int(rng.choice(wrong.size, p=(wrong / wrong.sum()).ravel()))
        row, column = divmod(cell, len(now))
        before = now.copy()
        now[row, column] -= 1
        now[row, row] += 1
        best = min(before, now, key=lambda one: abs(scores(one).MCC - wanted))
    return best


def forged(matrices: list[list[list[int]]], by: float, rng: np.random.RandomState) -> Any:
    """Return the mean triple of matrices that exist, raised alike in every seed."""
    made = [raised(np.array(one), by, rng) for one in matrices]
    if any(one is None for one in made):
        return None
    columns = zip(*(scores(one) for one in made if one is not None), strict=True)
    return dict(zip(("MCC", "Acc", "F1"), (float(np.mean(c)) for c in columns), strict=True))


class Trial(NamedTuple):
    """One forged cell in one audit."""

    regime: str
    by: float
    caught: bool


def trials(audits: Audits) -> Iterator[Trial]:
    """Forge one regime of every task, on top of an honest claim of other embeddings, and audit.

    Tasks are judged apart, so one audit is a trial for each.
    """
    rng = np.random.RandomState(SEED)
    for auditor, found in audits.rescored.items():
        names = [name for name in audits.claimed if name != auditor]
        for number, contributor in enumerate(names):
            row = audits.claimed[contributor]
            for regime in audits.benchmark.regimes:
                made = document(row, "1.1")
                done = {}
                for place, task in enumerate(audits.group.tasks):
                    by = RAISES[(number + place) % len(RAISES)]
                    cell = row[task][regime].regime
                    cut = slice(None if regime in found.few_shot_k else 1)
                    if scores_claimed := forged(cell.confusion[cut], by, rng):
                        made["results"][regime][task] = scores_claimed
                        done[task] = by
                verdicts = _verdicts(made, audits, found)
                for task, by in done.items():
                    yield Trial(regime, by, verdicts[task] == "differs")


def _verdicts(made: Document, audits: Audits, found: Rescored) -> dict[str, str]:
    said = audit(made, found, audits.group, audits.benchmark)
    return {one.task: one.verdict for one in said}


def tables(everything: list[Audits]) -> list[str]:
    lines = [
        "| embeddings | tasks | honest audits | cells | disputed | nearest: full, 10shot, 1shot |",
        "|---|---:|---:|---:|---:|---|",
    ]
    total = 0
    for one in everything:
        count, wrong, near = false_alarms(one)
        total += count
        said = ", ".join(f"{max(near[r]):.2f}" for r in ("full", "10shot", "1shot"))
        cells = sum(map(len, near.values()))
        tasks, disputed = len(one.group.tasks), len({w.partition(":")[0] for w in wrong})
        lines.append(f"| {one.group.name} | {tasks} | {count} | {cells} | {disputed} | {said} |")
        print(lines[-1], wrong[:5], flush=True)
    lines += ["", f"{total} honest audits.", ""]
    lines += [
        "| embeddings | deviation | largest | flips in other batches | flips in plain copies |",
        "|---|---:|---:|---|---|",
        *(
            measured_noise(one.group, one.matrices, one.claimed, one.rescored)
            for one in everything
            if len(one.group.batches) > 1
        ),
        "",
        *single_flips(SEED),
        "",
    ]
    head = " | ".join(f"+{by}" for by in RAISES)
    lines += [
        f"| embeddings; full, 10shot, 1shot | trials | {head} |",
        f"|---|---:|{'---:|' * len(RAISES)}",
    ]
    everywhere: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
    for one in everything:
        found: defaultdict[tuple[str, float], list[Trial]] = defaultdict(list)
        for trial in trials(one):
            found[trial.regime, trial.by].append(trial)
            everywhere[trial.regime, trial.by].append(trial)
        lines.append(_power(one.group.name, found))
        print(lines[-1], flush=True)
    return [*lines, _power("all", everywhere)]


def _power(name: str, found: dict[tuple[str, float], list[Trial]]) -> str:
    """Return the row of a group: per cent that differ, by raise, in each of three regimes."""
    columns = []
    sizes = []
    for by in RAISES:
        shares = []
        for regime in ("full", "10shot", "1shot"):
            here = found.get((regime, by), [])
            caught = sum(trial.caught for trial in here)
            shares.append(f"{100 * caught / len(here):.0f}" if here else "-")
            sizes.append(len(here))
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
    everything = []
    for number in options.groups:
        started = time.perf_counter()
        everything.append(gather(Work(options.work, GROUPS[number])))
        print(f"{GROUPS[number].name}: {time.perf_counter() - started:.0f} s", flush=True)
    if not options.joint:
        _put(BEGIN, END, tables(everything), options.write)
    _put(JOINT_BEGIN, JOINT_END, joint_table(everything), options.write)


def _put(begin: str, end: str, lines: list[str], write: bool) -> None:
    table = "\n".join(lines) + "\n"
    if write:
        before, rest = PAGE.read_text(encoding="utf-8").split(begin)
        PAGE.write_text(before + begin + table + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

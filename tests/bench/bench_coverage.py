"""How often intervals hold the true score; `--write` puts the table in docs/uncertainty.md.

python -m tests.bench.bench_coverage --trials 1000 --write
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from geneb_ci.board.noise import noise_of
from geneb_ci.board.rows import category_means, mean
from geneb_ci.board.uncertainty import estimate, standings, weights_of
from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from tests.bench import simulate
from tests.bench.simulate import Simulated
from tests.paths import ROOT, SUBMISSIONS

TRIALS = 1000
DRAWS = 1000
SEED = 20_261_120
RANK_TRIALS = 100
PAGE = ROOT / "docs/uncertainty.md"
ASSUMED = "few-shot, means only, fits as alike as assumed (r = 0.5)"
ALIKE = "few-shot, means only, the same sequences hard for all fits (r = 0.76)"
BY_SEED = "few-shot, `per_seed`, over all training draws (r = 0.5)"
# The share of sequences that are as hard for every fit with which errors in MCC correlate by 0.5;
# a share of 0.14 gives 0.11, and 1 gives 0.76, as fits differ in their rates.
SHARED = 0.66
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"

Make = Callable[[dict[str, Any], np.random.Generator], Simulated]


def real_rows() -> list[dict[str, Any]]:
    """Return the results of the public rows."""
    return [json.loads(path.read_bytes())["results"] for path in sorted(SUBMISSIONS.glob("*.json"))]


def two_class_tasks(benchmark: Benchmark) -> Benchmark:
    """Leave out the tasks of more classes."""
    tasks = [task for task in benchmark.tasks if task.test_class_counts]
    # Read anew: a copy would keep what the original has computed of its tasks.
    return Benchmark.model_validate(
        benchmark.model_copy(update={"tasks": tasks}).model_dump(by_alias=True)
    )


def hits(
    one: Simulated, regime: str, benchmark: Benchmark, *, tasks: bool
) -> Iterator[tuple[str, bool]]:
    """Say of each score of a row, or of all but its tasks, whether its interval holds the truth."""
    noise = noise_of(one.row, regime, benchmark, DRAWS)
    told = one.row.results[regime]
    found = {task: told[task].MCC for task in benchmark.task_ids}
    true = dict(zip(benchmark.task_ids, one.truth, strict=True))
    alone = np.eye(len(true))
    for weights, task in zip(alone, benchmark.tasks, strict=True) if tasks else ():
        kind = "task, two classes" if task.test_class_counts else "task, more classes"
        held = estimate(found[task.id], weights, noise)
        yield kind, held.low <= true[task.id] <= held.high
    scores, truths = summary(found, benchmark), summary(true, benchmark)
    kinds = ["macro", "micro", *["category"] * len(benchmark.categories)]
    for kind, score, truth, weights in zip(
        kinds, scores, truths, weights_of(benchmark), strict=True
    ):
        held = estimate(score, weights, noise)
        yield kind, held.low <= truth <= held.high


def summary(scores: dict[str, float], benchmark: Benchmark) -> list[float]:
    """Return macro, micro and the categories, in the order of the weights."""
    means = category_means(scores, benchmark)
    return [mean(means.values()), mean(scores.values()), *means.values()]


def coverage(
    make: Make, regime: str, benchmark: Benchmark, trials: int, tasks_every: int = 1
) -> dict[str, tuple[int, int]]:
    """Return how many intervals of each kind held the truth, of how many.

    Those of tasks are looked at in every `tasks_every`th trial: each has a hundred of them.
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    held: Counter[str] = Counter()
    made: Counter[str] = Counter()
    rows = real_rows()
    for trial in range(trials):
        one = make(rows[trial % len(rows)], rng)
        for kind, hit in hits(one, regime, benchmark, tasks=trial % tasks_every == 0):
            held[kind] += hit
            made[kind] += 1
    return {kind: (held[kind], made[kind]) for kind in made}


def rank_coverage(benchmark: Benchmark, trials: int) -> tuple[int, int]:
    """Return how many rank intervals of macro MCC held the true rank, of how many."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    rows, weights = real_rows(), weights_of(benchmark)[0]
    held = made = 0
    for _ in range(trials):
        estimates, true = {}, {}
        for row in rows:
            one = simulate.full(row["full"], benchmark, rng)
            told = one.row.results["full"]
            found = {task: told[task].MCC for task in benchmark.task_ids}
            noise = noise_of(one.row, "full", benchmark, DRAWS)
            name = one.row.model_id
            estimates[name] = estimate(summary(found, benchmark)[0], weights, noise)
            true[name] = float(weights @ np.array(one.truth))
        order = sorted(true, key=lambda name: -true[name])
        stood = standings(estimates)
        for rank, name in enumerate(order, 1):
            held += stood[name].rank_low <= rank <= stood[name].rank_high
            made += 1
    return held, made


def cases(benchmark: Benchmark) -> dict[str, tuple[str, Benchmark, Make]]:
    """Name what is simulated."""
    two = two_class_tasks(benchmark)

    def few(shared: float, *, by_seed: bool) -> tuple[str, Benchmark, Make]:
        return (
            "10shot",
            two,
            lambda row, rng: simulate.few_shot(row["10shot"], two, rng, shared, by_seed=by_seed),
        )

    return {
        "full": (
            "full",
            benchmark,
            lambda row, rng: simulate.full(row["full"], benchmark, rng),
        ),
        ASSUMED: few(SHARED, by_seed=False),
        "few-shot, means only, fits as alike as k-mers' (r = 0.11)": few(0.14, by_seed=False),
        ALIKE: few(1.0, by_seed=False),
        BY_SEED: few(SHARED, by_seed=True),
    }


def main() -> None:
    """Simulate, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--trials", type=int, default=TRIALS)
    options = parser.parse_args()
    kinds = ("task, two classes", "task, more classes", "category", "macro", "micro")
    lines = [f"| rows | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    print("\n".join(lines))
    for name, (regime, part, make) in cases(shipped_benchmark()).items():
        found = coverage(make, regime, part, options.trials)
        shares = [
            f"{100 * found[kind][0] / found[kind][1]:.1f} %" if kind in found else ""
            for kind in kinds
        ]
        lines.append(f"| {name} | {' | '.join(shares)} |")
        print(lines[-1], flush=True)
    held, made = rank_coverage(shipped_benchmark(), options.trials * RANK_TRIALS // TRIALS)
    table = "\n".join(lines) + (
        f"\n\n{options.trials} rows each, drawn from the public rows in turn, {DRAWS} draws, seed "
        f"{SEED}.\nOf {made:,} rank intervals of macro MCC in the full regime, "
        f"{100 * held / made:.1f} % held the true rank.\n"
    )
    print(table.rpartition("\n\n")[2])
    if options.write:
        _write(PAGE, table)


def _write(page: Path, table: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

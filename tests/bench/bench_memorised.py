"""How often variants and fresh sets flag honest extractors and memorisers, as tables for the docs.

    python -m tests.bench.bench_memorised --work FOLDER --write

What was measured is kept in FOLDER, a file for each extractor and set; the tables are made of it.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reference_harness import benchmark, mini
from reference_harness.data import Folder
from reference_harness.rescored import Decisions
from reference_harness.tasks import TaskData
from tests.adversary.cheats import KEYS, Memoriser
from tests.adversary.measure import Case, both_splits, decisions_of
from tests.adversary.models import ConvolutionExtractor, honest, trained
from tests.bench.tolerance_sets import REAL
from tests.paths import REAL_TASKS

ROWS = 308
"""Rows varied a task: those of an audit that draws 13."""
MINI_SEEDS = (mini.SEED, 11, 12, 13)
FRESH_SEED = 7_000
"""Added to the seed of a set: that of its fresh sequences."""
REAL_TRAIN_MAX, REAL_NAME = 2_000, "six real tasks"
"""Training rows kept of a real task: the canonical probe of 1,024 columns then takes seconds."""
TEST_EPOCHS = 60
REPEATS = 20
"""Audits of each memoriser, each with other variants: a rate of 95 % is 19 of 20."""


class Trial(NamedTuple):
    """One extractor on one set of tasks."""

    name: str
    tasks: str
    honest: bool
    seed: int
    decisions: list[Decisions]


def mini_cases(seed: int) -> list[Case]:
    return [
        Case(mini.generate(task, seed), both_splits(mini.generate(task, seed + FRESH_SEED)))
        for task in mini.TASKS
    ]


def real_cases() -> list[Case]:
    bench = benchmark.geneb()
    source = Folder(REAL_TASKS, bench)
    loaded = (source.load(bench.task(name)) for name in REAL)
    return [
        Case(TaskData(one.id, one.train.head(REAL_TRAIN_MAX), one.test), None) for one in loaded
    ]


def measured(
    work: Path, name: str, tasks: str, make: Callable[[], Any], cases: list[Case], *, seed: int = 0
) -> list[Decisions]:
    """Return the decisions of every task, from the folder where they are there."""
    path = work / f"{name}-{tasks}-{seed}.json".replace(" ", "_").replace(",", "")
    if not path.exists():
        started, extractor = time.perf_counter(), make()
        found = [decisions_of(extractor, case, f"audit {seed}", ROWS) for case in cases]
        path.write_text(json.dumps([one.model_dump() for one in found]), encoding="utf-8")
        print(f"{name}, {tasks}, {seed}: {time.perf_counter() - started:.0f} s", flush=True)
    return [Decisions.model_validate(one) for one in json.loads(path.read_text(encoding="utf-8"))]


def trials(work: Path, repeats: int) -> Iterator[Trial]:
    sets = {f"mini {seed}": mini_cases(seed) for seed in MINI_SEEDS}
    real = {REAL_NAME: real_cases()} if REAL_TASKS.is_dir() else {}
    for tasks, cases in (sets | real).items():
        for name, make in honest().items():
            yield Trial(name, tasks, True, 0, measured(work, name, tasks, make, cases))
    tasks, cases = next(iter(sets.items()))
    data = [case.data for case in cases]
    cheats: dict[str, Callable[[], Any]] = {
        name: functools.partial(Memoriser, data, keys) for name, keys in KEYS.items()
    }
    cheats["trained on the test set"] = lambda: ConvolutionExtractor(
        trained(data, ("train", "test"), TEST_EPOCHS)
    )
    for name, make in cheats.items():
        for seed in range(repeats):
            found = measured(work, name, tasks, make, cases, seed=seed)
            yield Trial(name, tasks, False, seed, found)


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for one in trials(options.work, options.repeats):
        rows = [sum(d.kinds[k].rows for d in one.decisions) for k in one.decisions[0].kinds]
        net = [
            sum(d.kinds[k].worse - d.kinds[k].better for d in one.decisions)
            for k in one.decisions[0].kinds
        ]
        print(one.name, one.tasks, one.seed, [round(n / r, 4) for n, r in zip(net, rows)])


if __name__ == "__main__":
    main()

"""Measure the largest raise of a forger who divides the risk of detection over several methods.

    OPENBLAS_CORETYPE=Haswell python -m benchmarks.bench_levers --work FOLDER --write

Tasks: record scores within the tolerances and on tasks that are not drawn, training sequences moved
by the extractor, further draws. Receipts: embeddings altered at will, those sequences, and what the
bench of receipts finds of every lever within the tolerances. Measurements are kept in FOLDER.
"""

import argparse
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_adversary import POOLS, REGIMES, cells
from benchmarks.bench_embedding_power import published_rows
from benchmarks.bench_memorised import MOVER_KEYS, measured_decisions, mini_cases, real_cases
from benchmarks.bench_receipt_forger import SEEDS, SHOTS, planted_gains
from reference_harness import mini
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.rescored import Decisions
from tests.adversary import forger, receipt_forger
from tests.adversary.cheats import KEYS, MovedTraining
from tests.adversary.forger import TASKS, UNDETECTED, Cell
from tests.adversary.levers import (
    Division,
    Mover,
    Option,
    best_division,
    moved_bounds,
    moved_options,
    record_bounds,
    record_options,
    undetected_each,
)
from tests.adversary.measure import Case, few_shot_indices
from tests.paths import ROOT

PAGE = ROOT / "docs/research/adversary.md"
BEGIN, END = "<!-- bench levers -->\n", "<!-- /bench levers -->"
SAMPLE_SIZES = (5, 13, 25, 100)
STANDARD_SIZE = 13
"""Number of tasks that the shipped policy draws, and whose sequences an audit by receipt varies."""
DRAW_COUNTS = (2, 4)
"""Numbers of draws of a forger who submits again."""
SHARES = (0.025, 0.05, 0.1, 0.2, 0.4)
"""Shares of the way that training sequences are moved."""
SMALL_SHARE = 0.05
"""Largest of these shares before audits of all tasks, which find larger moves."""
TRIALS, STEPS = 100, 10
"""Trials and steps of each of the many searches for record scores: a third of
`bench_adversary`'s."""
TASK_SETS: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    "real tasks": ("float32", real_cases),
    "GENEB-mini": ("float32, mini", lambda: mini_cases(mini.SEED)),
}
"""The pool of cells and the tasks of each set."""


class MeasuredTasks(NamedTuple):
    """Measurements of one set of tasks, saved in a folder."""

    work: Path
    name: str
    honest: list[Decisions]
    movers: dict[float, list[Mover]]
    """By the share of the way that they move training sequences."""

    def stored_result(self, name: str, make: Callable[[], object]) -> list[Any]:
        """Return a result from the folder, computed if it is not there."""
        path = self.work / f"{name} {self.name}.json".replace(" ", "_").replace(",", "")
        if not path.exists():
            path.write_text(json.dumps(make()), encoding="utf-8")
        result: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return result

    def moved(self, regime: str, drawn: int, varied_tasks: int) -> list[Option]:
        """Return the raises of a regime by moved training sequences, with the chances of each."""
        movers = [
            mover
            for share, movers_of_share in self.movers.items()
            for mover in movers_of_share
            if drawn < TASKS or share <= SMALL_SHARE
        ]
        rates = [
            self.stored_result(
                f"rates {mover.name} {drawn} {varied_tasks}",
                functools.partial(mover.rates, drawn, varied_tasks),
            )
            for mover in movers
        ]
        return [
            option
            for mover, chances in zip(movers, rates, strict=True)
            for option in moved_options(mover.name, mover.gain(regime), chances)
        ]

    def records(self, regime: str, drawn: int, undetected: float = UNDETECTED) -> list[Option]:
        """Return the raises of a regime by forged scores of record, with the chances of each."""
        forger.TRIALS, forger.STEPS = TRIALS, STEPS
        stored_options = self.stored_result(
            f"records {regime} {drawn} {undetected:.4f}",
            lambda: record_options(self.pool(regime), drawn, undetected),
        )
        return [Option(*option) for option in stored_options]

    def pool(self, regime: str) -> list[Cell]:
        """Return the measured cells of a regime."""
        name, _ = TASK_SETS[self.name]
        return [
            cell
            for extractor in POOLS[name]
            for cell in cells(extractor.rescored(self.work), regime)
        ]

    def bounds(self, regime: str, drawn: int) -> list[Option]:
        """Return bounds of the raises of a few-shot regime by moved training sequences."""
        stored_options = self.stored_result(
            f"bounds {regime} {drawn}", lambda: moved_bounds(self.honest, drawn, regime)
        )
        return [Option(*option) for option in stored_options]


def measured_set(work: Path, name: str) -> MeasuredTasks:
    """Return the decisions of the honest extractor and of each mover on a set of tasks."""
    cases = [Case(case.data, None) for case in TASK_SETS[name][1]()]
    data = [case.data for case in cases]
    honest = measured_decisions(work, "honest 4-mers", name, KmerExtractor, cases)
    movers: dict[float, list[Mover]] = {share: [] for share in SHARES}
    for share in SHARES:
        for key in MOVER_KEYS:
            for scope, drawn in (("few-shot", few_shot_indices), ("all", None)):
                mover = f"moved {share:g}, {scope} sequences by {key}"
                make = functools.partial(MovedTraining, data, KEYS[key], drawn, share)
                movers[share].append(
                    Mover(mover, honest, measured_decisions(work, mover, name, make, cases))
                )
    return MeasuredTasks(work, name, honest, movers)


def task_lines(sets: Sequence[MeasuredTasks]) -> Iterator[str]:
    """Yield the table of audits of tasks."""
    columns = [f"{drawn} drawn" for drawn in SAMPLE_SIZES]
    columns += [f"{STANDARD_SIZE} drawn, {draws} draws" for draws in DRAW_COUNTS]
    yield f"| tasks | regime | {' | '.join(columns)} | at {STANDARD_SIZE} drawn |"
    yield f"|---|---|{'---:|' * len(columns)}---|"
    for tasks in sets:
        for regime in REGIMES:
            divisions = [task_division(tasks, regime, drawn) for drawn in SAMPLE_SIZES]
            raise_texts = [
                f"{division.raised:.4f} / {task_bound(tasks, regime, drawn)}"
                for division, drawn in zip(divisions, SAMPLE_SIZES, strict=True)
            ]
            raise_texts += [
                f"{task_division(tasks, regime, STANDARD_SIZE, undetected_each(draws)).raised:.4f}"
                for draws in DRAW_COUNTS
            ]
            option_names = "; ".join(divisions[SAMPLE_SIZES.index(STANDARD_SIZE)].options)
            yield f"| {tasks.name} | {regime} | {' | '.join(raise_texts)} | {option_names} |"


def task_division(
    tasks: MeasuredTasks, regime: str, drawn: int, undetected: float = UNDETECTED
) -> Division:
    """Return the best forgery before an audit that draws so many tasks."""
    levers = [
        tasks.moved(regime, drawn, drawn),
        tasks.records(regime, drawn, undetected),
    ]
    return best_division(levers, undetected)


def task_bound(tasks: MeasuredTasks, regime: str, drawn: int) -> str:
    """Return the bound that follows from draw, tolerances and limits."""
    if regime == "full":
        return "none"
    levers = [record_bounds(tasks.pool(regime), drawn), tasks.bounds(regime, drawn)]
    return f"{best_division(levers).raised:.4f}"


def receipt_lines(sets: Sequence[MeasuredTasks]) -> Iterator[str]:
    """Yield the table of audits by receipt, of 100 tasks."""
    yield "| tasks | regime | forger | bound of moved sequences | by |"
    yield "|---|---|---:|---:|---|"
    altered = altered_options()
    for tasks in sets:
        for regime in REGIMES:
            levers = [*altered[regime], tasks.moved(regime, TASKS, STANDARD_SIZE)]
            division = best_division(levers)
            bound_text = (
                "none"
                if regime == "full"
                else f"{best_division([tasks.bounds(regime, TASKS)]).raised:.4f}"
            )
            cells = (f"{division.raised:.4f}", bound_text, "; ".join(division.options))
            yield f"| {tasks.name} | {regime} | {' | '.join(cells)} |"


def altered_options() -> dict[str, list[list[Option]]]:
    """Return the levers of each regime that alter embeddings at will.

    The regime with the fewest support embeddings is embedded whole.
    """
    rows = [row.macro for row in published_rows()]
    weakest_row = max(rows, key=receipt_forger.by_test_rows)
    gain = float(np.mean([planted_gain.missed for planted_gain in planted_gains()]))

    return {
        "full": [
            receipt_forger.altered_options(
                functools.partial(receipt_forger.by_test_rows, weakest_row), "test embeddings"
            ),
            receipt_forger.altered_options(
                functools.partial(receipt_forger.by_training_rows, TASKS), "training embeddings"
            ),
        ],
        "10shot": [
            receipt_forger.altered_options(
                functools.partial(receipt_forger.by_support_rows, gain, TASKS, SHOTS, SEEDS),
                "support embeddings",
            )
        ],
        "1shot": [],
    }


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    sets = [measured_set(options.work, name) for name in TASK_SETS]
    lines = []
    for table in (task_lines, receipt_lines):
        for line in (*table(sets), ""):
            print(line, flush=True)
            lines.append(line)
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        table_text = "\n".join(lines[:-1]) + "\n"
        PAGE.write_text(
            before + BEGIN + table_text + END + after_begin.split(END)[1], encoding="utf-8"
        )


if __name__ == "__main__":
    main()

"""Measure time and power of the plausibility rules, for docs/research/plausibility.md.

python benchmarks/bench_plausibility.py [--trials 1000]
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from geneb_ci.check.registry import select
from geneb_ci.check.rule import Context, Policy
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics import neighbours, reference, view
from geneb_ci.statistics.reference import ScoreTable, Vector, score_table_of
from geneb_ci.statistics.view import RowView
from geneb_ci.submission.peers import peers_of
from tests.paths import SUBMISSIONS

DEFECTIVE_ROWS = {"BioFM-265M", "evo-1-131k-base"}
NOTED_ROWS = {"LucaOne-default-step36M"}
"""Rows that get a note without any change, so that the note shows no forgery."""
RAISES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
SEED = 20261120
CACHES = (
    reference.ridge_fit_of,
    neighbours._best_scores,
    view._category_means,
    neighbours._complete_rows,
    neighbours._sorted_scores_by_cell,
    neighbours._relation_differences,
)
RULES = select(["plausibility"], [])

Forge = Callable[[ScoreTable, int, random.Random], Vector]


class ForgedContext:
    """A stand-in for the context of a forged row, with the members that rules about vectors
    read."""

    def __init__(self, view: RowView) -> None:
        """Store the view of the row that the rules read."""
        self.view, self.benchmark = view, view.benchmark
        self.reported: dict[str, tuple[()]] = {}
        self.registry_facts: dict[str, int] = {}
        self.scores_digest: str | None = None
        self.rounding = None
        self.vector = view.row
        self.peers, self.cells, self.model_id, self.policy = peers_of(()), (), "", Policy()

    def member(self, *path: str) -> None:
        """Return None, as there is no document."""


def reporting_rules(table: ScoreTable, row: Vector, own_index: int | None) -> set[str]:
    """Return the ids of the rules that report a row."""
    view = RowView(shipped_benchmark(), table, row, own_index)
    context = ForgedContext(view)
    return {rule.id for rule in RULES for _ in rule.check(_as_context(context))}


def _as_context(forged: ForgedContext) -> Context:
    return forged  # type: ignore[return-value]  # a stand-in: see its docstring


def raise_cell(by: float, regime: int) -> Forge:
    """Return an attack that raises one cell of a regime."""

    def forge(table: ScoreTable, row_index: int, rng: random.Random) -> Vector:
        row = table.vectors[row_index]
        cell = regime * 100 + rng.randrange(100)
        return (*row[:cell], min(1.0, row[cell] + by), *row[cell + 1 :])

    return forge


def swap_cell(table: ScoreTable, row_index: int, rng: random.Random) -> Vector:
    """Return a row with one cell of another model."""
    row, cell = table.vectors[row_index], rng.randrange(300)
    other = table.vectors[_other_row_index(table, row_index, rng)]
    return (*row[:cell], other[cell], *row[cell + 1 :])


def average_rows(table: ScoreTable, row_index: int, rng: random.Random) -> Vector:
    """Return the average of two rows."""
    other = table.vectors[_other_row_index(table, row_index, rng)]
    return tuple((a + b) / 2 for a, b in zip(table.vectors[row_index], other, strict=True))


def scale_row(table: ScoreTable, row_index: int, _rng: random.Random) -> Vector:
    """Return a row with every cell scaled by 1.02."""
    return tuple(min(1.0, x * 1.02) for x in table.vectors[row_index])


def add_noise(table: ScoreTable, row_index: int, rng: random.Random) -> Vector:
    """Return a row with noise of 1e-4 in every cell."""
    return tuple(min(1.0, x + rng.gauss(0, 1e-4)) for x in table.vectors[row_index])


def _other_row_index(table: ScoreTable, row_index: int, rng: random.Random) -> int:
    other = rng.randrange(len(table.models) - 1)
    return other + (other >= row_index)


def rate(table: ScoreTable, forge: Forge, trials: int, *, replaces: bool) -> float:
    """Return the share of forgeries of rows without a warning that get one."""
    rng = random.Random(SEED)
    sound = [i for i, name in enumerate(table.models) if name not in DEFECTIVE_ROWS | NOTED_ROWS]
    hits = 0
    for _ in range(trials):
        row_index = rng.choice(sound)
        row = forge(table, row_index, rng)
        hits += bool(reporting_rules(table, row, row_index if replaces else None))
    return hits / trials


def seconds(files: list[Path], runs: int = 7) -> float:
    """Return the processor time that the family adds to a check of these files."""

    def run_seconds(selected: list[str], ignored: list[str]) -> float:
        for cache in CACHES:
            cache.cache_clear()
        start = time.process_time()
        list(Checker(select(selected, ignored)).run(files))
        return time.process_time() - start

    pairs = [(run_seconds([], []), run_seconds([], ["plausibility"])) for _ in range(runs)]
    return statistics.median(a - b for a, b in pairs)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    table = score_table_of(peers_of(SUBMISSIONS.glob("*.json")).rows, shipped_benchmark())
    files = sorted(SUBMISSIONS.glob("*.json"))
    print("| files | processor time added |\n|---|---:|")
    print(f"| one | {seconds(files[5:6]):.3f} s |\n| {len(files)} | {seconds(files):.3f} s |\n")
    print("| MCC of one cell raised by | full | 10shot | 1shot |\n|---:|---:|---:|---:|")
    for by in RAISES:
        rates = [rate(table, raise_cell(by, k), trials, replaces=True) for k in range(3)]
        print(f"| {by} |", " | ".join(f"{r:.1%}" for r in rates), "|", flush=True)
    print("\n| forgery | in place of its own row | as a new row |\n|---|---:|---:|")
    for name, forge in {
        "a cell replaced by another model's": swap_cell,
        "two rows averaged": average_rows,
        "every MCC scaled by 1.02": scale_row,
        "noise of 1e-4 on every cell": add_noise,
    }.items():
        rates = [rate(table, forge, trials, replaces=replaces) for replaces in (True, False)]
        print(f"| {name} | {rates[0]:.1%} | {rates[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()

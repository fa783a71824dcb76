"""Choose the tasks of `--tasks quick`: ten whose mean says most of the mean over all categories.

    python -m benchmarks.choose_quick            # prints what was chosen and its errors
    python -m benchmarks.choose_quick --write    # puts it into schemas/quick.json

Tasks are chosen one after the other, one of a category, then exchanged one by one while that lowers
the mean error: what a line through the other rows leaves of each row. That error is of the rows
that the tasks were chosen by; the stated one, a root mean square, is of rows that took no part: for
each row, tasks and line are chosen by the other rows. Without the limit of one a category the
choice fits its rows as well and predicts others far worse (0.04), and by squares it follows a few
odd rows.
"""

import argparse
import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.paired import macro_weights
from reference_harness.formats.benchmark import FULL
from reference_harness.quick import QUICK_FILE
from tests.paths import ROOT, SUBMISSIONS

COUNT = 10
TEST_MAX = 10_000
"""Test sequences of a task: a few have as many as fifty others."""
DIGITS = 4
PATH = ROOT / "schemas" / QUICK_FILE
Reals = npt.NDArray[np.float64]


class Line(NamedTuple):
    """The mean over all categories, as a line of the mean of some tasks."""

    slope: float
    intercept: float


def scores() -> tuple[Reals, Reals]:
    """Return MCC in the full regime, (rows, tasks), and the mean over categories, (rows,)."""
    benchmark = shipped_benchmark()
    rows = []
    for path in sorted(SUBMISSIONS.glob("*.json")):
        cells = json.loads(path.read_bytes())["results"][FULL]
        rows.append([cells[task]["MCC"] for task in benchmark.task_ids])
    weights = macro_weights(benchmark.categories)
    values = np.array(rows)
    return values, values @ np.array([weights[task] for task in benchmark.task_ids])


def left_out(means: Reals, whole: Reals) -> Reals:
    """Return (rows,) errors of the whole mean by a line through the other rows."""
    design = np.column_stack([means, np.ones_like(means)])
    hat = design @ np.linalg.pinv(design)
    return (whole - hat @ whole) / (1 - np.diag(hat))


def error_of(values: Reals, whole: Reals, chosen: list[int]) -> float:
    """Return the mean size of `left_out` for the mean of chosen tasks."""
    return float(np.mean(np.abs(left_out(values[:, chosen].mean(axis=1), whole))))


def chosen_tasks(values: Reals, whole: Reals) -> list[int]:
    """Return the indices of COUNT tasks of different categories, ascending."""
    chosen: list[int] = []
    tasks = shipped_benchmark().tasks
    small = {place for place, task in enumerate(tasks) if (task.n_test or 0) <= TEST_MAX}
    categories = [task.category for task in tasks]

    def best(others: list[int]) -> int:
        taken = {categories[place] for place in others}
        free = [place for place, own in enumerate(categories) if own not in taken]
        return min(
            small.intersection(free), key=lambda place: error_of(values, whole, [*others, place])
        )

    while len(chosen) < COUNT:
        chosen.append(best(chosen))
    error, before = error_of(values, whole, chosen), np.inf
    while error < before:
        before = error
        for place in tuple(chosen):
            others = [other for other in chosen if other != place]
            chosen = [*others, best(others)]
        error = error_of(values, whole, chosen)
    return sorted(chosen)


def line_of(values: Reals, whole: Reals, chosen: list[int]) -> Line:
    """Return the line by which the mean of chosen tasks predicts the whole mean."""
    slope, intercept = np.polyfit(values[:, chosen].mean(axis=1), whole, 1)
    return Line(float(slope), float(intercept))


def held_out_error(values: Reals, whole: Reals) -> float:
    """Return the root mean square error for rows by which neither tasks nor line were chosen."""
    errors = []
    for row in range(len(whole)):
        others = np.arange(len(whole)) != row
        chosen = chosen_tasks(values[others], whole[others])
        line = line_of(values[others], whole[others], chosen)
        errors.append(whole[row] - line.slope * values[row, chosen].mean() - line.intercept)
    return float(np.sqrt(np.mean(np.square(errors))))


def main() -> None:
    """Print the choice, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    values, whole = scores()
    chosen = chosen_tasks(values, whole)
    line, ids = line_of(values, whole, chosen), shipped_benchmark().task_ids
    quick = {
        "benchmark": shipped_benchmark().sha256,
        "tasks": [ids[place] for place in chosen],
        "slope": round(line.slope, DIGITS),
        "intercept": round(line.intercept, DIGITS),
        "error": round(held_out_error(values, whole), DIGITS),
        "rows": len(whole),
    }
    print(json.dumps(quick, indent=1))
    print(f"mean error of the rows they were chosen by: {error_of(values, whole, chosen):.4f}")
    print(f"ten tasks at random: {at_random(values, whole):.4f}; spread: {whole.std():.4f}")
    if options.write:
        PATH.write_text(json.dumps(quick, indent=1) + "\n", encoding="utf-8")


def at_random(values: Reals, whole: Reals, draws: int = 1_000) -> float:
    """Return the median error of COUNT tasks that were drawn."""
    generator = np.random.default_rng(1)
    drawn = [list(generator.choice(values.shape[1], COUNT, replace=False)) for _ in range(draws)]
    errors = [left_out(values[:, places].mean(axis=1), whole) for places in drawn]
    return float(np.median([np.sqrt(np.mean(error**2)) for error in errors]))


if __name__ == "__main__":
    main()

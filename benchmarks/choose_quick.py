"""Choose the ten tasks of `--tasks quick`, whose mean best predicts the mean over all categories.

    python -m benchmarks.choose_quick            # prints what was chosen and its errors
    python -m benchmarks.choose_quick --write    # puts it into schemas/quick.json

Tasks are chosen one after the other, at most one of a category, then exchanged one by one while
that lowers the mean error of predicting each row by a line through the other rows. That error is of
the rows by which the tasks were chosen. The error in the file, a root mean square, is of other
rows: for each row, tasks and line are chosen by the other rows. Without the limit of one task a
category, the choice fits its own rows as well and predicts others far worse (0.04); squared errors
instead of their sizes would follow a few odd rows.
"""

import argparse
import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.paired import macro_weights
from reference_harness.data.quick_tasks import QUICK_FILE
from reference_harness.formats.benchmark import FULL
from tests.paths import ROOT, SUBMISSIONS

TASK_COUNT = 10
TEST_MAX = 10_000
"""Most test sequences of a chosen task: a few tasks have as many as fifty others together."""
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


def left_out_errors(means: Reals, mean_over_categories: Reals) -> Reals:
    """Return (rows,) errors of the whole mean by a line through the other rows."""
    design = np.column_stack([means, np.ones_like(means)])
    hat = design @ np.linalg.pinv(design)
    return (mean_over_categories - hat @ mean_over_categories) / (1 - np.diag(hat))


def error_of(values: Reals, mean_over_categories: Reals, chosen: list[int]) -> float:
    """Return the mean size of `left_out` for the mean of chosen tasks."""
    return float(
        np.mean(np.abs(left_out_errors(values[:, chosen].mean(axis=1), mean_over_categories)))
    )


def chosen_tasks(values: Reals, mean_over_categories: Reals) -> list[int]:
    """Return the indices of COUNT tasks of different categories, ascending."""
    chosen: list[int] = []
    tasks = shipped_benchmark().tasks
    small_tasks = {
        task_index for task_index, task in enumerate(tasks) if (task.n_test or 0) <= TEST_MAX
    }
    categories = [task.category for task in tasks]

    def best(others: list[int]) -> int:
        taken_categories = {categories[task_index] for task_index in others}
        free_tasks = [
            task_index
            for task_index, category in enumerate(categories)
            if category not in taken_categories
        ]
        return min(
            small_tasks.intersection(free_tasks),
            key=lambda task_index: error_of(values, mean_over_categories, [*others, task_index]),
        )

    while len(chosen) < TASK_COUNT:
        chosen.append(best(chosen))
    error, before = error_of(values, mean_over_categories, chosen), np.inf
    while error < before:
        before = error
        for task_index in tuple(chosen):
            others = [other for other in chosen if other != task_index]
            chosen = [*others, best(others)]
        error = error_of(values, mean_over_categories, chosen)
    return sorted(chosen)


def line_of(values: Reals, mean_over_categories: Reals, chosen: list[int]) -> Line:
    """Return the line by which the mean of chosen tasks predicts the whole mean."""
    slope, intercept = np.polyfit(values[:, chosen].mean(axis=1), mean_over_categories, 1)
    return Line(float(slope), float(intercept))


def held_out_error(values: Reals, mean_over_categories: Reals) -> float:
    """Return the root mean square error for rows by which neither tasks nor line were chosen."""
    errors = []
    for row in range(len(mean_over_categories)):
        others = np.arange(len(mean_over_categories)) != row
        chosen = chosen_tasks(values[others], mean_over_categories[others])
        line = line_of(values[others], mean_over_categories[others], chosen)
        errors.append(
            mean_over_categories[row] - line.slope * values[row, chosen].mean() - line.intercept
        )
    return float(np.sqrt(np.mean(np.square(errors))))


def main() -> None:
    """Print the choice, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    values, mean_over_categories = scores()
    chosen = chosen_tasks(values, mean_over_categories)
    line, task_ids = line_of(values, mean_over_categories, chosen), shipped_benchmark().task_ids
    quick = {
        "benchmark": shipped_benchmark().sha256,
        "tasks": [task_ids[task_index] for task_index in chosen],
        "slope": round(line.slope, DIGITS),
        "intercept": round(line.intercept, DIGITS),
        "error": round(held_out_error(values, mean_over_categories), DIGITS),
        "rows": len(mean_over_categories),
    }
    print(json.dumps(quick, indent=1))
    print(
        "mean error of the rows they were chosen by: "
        f"{error_of(values, mean_over_categories, chosen):.4f}"
    )
    print(
        f"ten tasks at random: {random_choice_error(values, mean_over_categories):.4f}; spread: "
        f"{mean_over_categories.std():.4f}"
    )
    if options.write:
        PATH.write_text(json.dumps(quick, indent=1) + "\n", encoding="utf-8")


def random_choice_error(values: Reals, mean_over_categories: Reals, draws: int = 1_000) -> float:
    """Return the median error of COUNT tasks that were drawn."""
    generator = np.random.default_rng(1)
    random_choices = [
        list(generator.choice(values.shape[1], TASK_COUNT, replace=False)) for _ in range(draws)
    ]
    errors = [
        left_out_errors(values[:, task_indices].mean(axis=1), mean_over_categories)
        for task_indices in random_choices
    ]
    return float(np.median([np.sqrt(np.mean(error**2)) for error in errors]))


if __name__ == "__main__":
    main()

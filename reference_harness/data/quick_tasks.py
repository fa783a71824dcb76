"""The few tasks of a benchmark that predict its mean: `--tasks quick`.

The definition does not list them, since every run names its digest, which must not change.
"""

import functools
import json
import math
from typing import NamedTuple

from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import FULL, Benchmark
from reference_harness.formats.run_record import RunRecord
from reference_harness.schema_files import schema_path

QUICK_NAME = "quick"
"""Value of --tasks that means these tasks."""
QUICK_FILE = "quick.json"
"""Name of the shipped file with these tasks."""


class QuickTasks(NamedTuple):
    """A few tasks, and the line that predicts the mean over all categories from their mean."""

    benchmark: str
    """SHA-256 of the benchmark definition that contains the tasks."""
    tasks: list[str]
    slope: float
    intercept: float
    error: float
    """Root mean square error of predictions, in MCC, each for a row left out of the fit."""
    rows: int
    """Number of rows of the board by which the tasks were chosen and the line was fitted."""


@functools.cache
def quick_tasks() -> QuickTasks:
    """Return the quick tasks of GENEB."""
    return QuickTasks(**json.loads(schema_path(QUICK_FILE).read_bytes()))


def expand_quick(names: list[str], bench: Benchmark) -> list[str]:
    """Return names of tasks, with "quick" replaced by the quick tasks.

    Raise OptionError for a benchmark that has none.
    """
    if (
        any(name.casefold() == QUICK_NAME for name in names)
        and bench.sha256 != quick_tasks().benchmark
    ):
        msg = (
            f"--tasks {QUICK_NAME} means ten tasks of GENEB, but the benchmark is {bench.name}: "
            "pass ids of its tasks, which `geneb-harness tasks` lists"
        )
        raise OptionError(msg)
    return [
        task
        for name in names
        for task in (quick_tasks().tasks if name.casefold() == QUICK_NAME else [name])
    ]


def quick_prediction_line(record: RunRecord) -> str:
    """Return a line with the mean that a run of exactly the quick tasks predicts; else ""."""
    chosen = quick_tasks()
    cells = {task: run.regimes[FULL] for task, run in record.tasks.items() if FULL in run.regimes}
    is_quick = record.benchmark.sha256 == chosen.benchmark and cells.keys() == {*chosen.tasks}
    if not is_quick or record.limit is not None:
        return ""
    mean = math.fsum(cell.scores.MCC for cell in cells.values()) / len(cells)
    prediction = chosen.slope * mean + chosen.intercept
    return (
        f"\nquick: mean MCC {mean:.3f} of {len(cells)} tasks; predicted mean over all "
        f"categories, from {chosen.rows} rows: {prediction:.3f}, "
        f"leave-one-out error {chosen.error:.3f}"
    )

"""The few tasks of a benchmark that predict its mean: `--tasks quick`.

They stand beside the definition, so that its digest, which every run names, stays what it is.
"""

import functools
import json
import math
from typing import NamedTuple

from .errors import OptionError
from .formats.benchmark import FULL, Benchmark
from .formats.run_record import RunRecord
from .shipped import schema

QUICK = "quick"
FILE = "quick.json"


class Quick(NamedTuple):
    """A few tasks, and the line by which their mean predicts the mean over all categories."""

    benchmark: str
    """Digest of the definition that has them."""
    tasks: list[str]
    slope: float
    intercept: float
    error: float
    """Root mean square error of a row by which neither tasks nor line were chosen, in MCC."""
    rows: int
    """Number of rows that they were chosen by."""


@functools.cache
def quick() -> Quick:
    """Return the quick tasks of GENEB."""
    return Quick(**json.loads(schema(FILE).read_bytes()))


def with_quick(names: list[str], bench: Benchmark) -> list[str]:
    """Return names of tasks, with the quick ones in the place of their word.

    Raises OptionError for a benchmark that has none.
    """
    if any(name.casefold() == QUICK for name in names) and bench.sha256 != quick().benchmark:
        msg = (
            f"--tasks {QUICK} stands for tasks of GENEB, and the benchmark is {bench.name}: name "
            "its tasks, which `geneb-harness tasks` lists"
        )
        raise OptionError(msg)
    return [
        task for name in names for task in (quick().tasks if name.casefold() == QUICK else [name])
    ]


def quick_line(record: RunRecord) -> str:
    """Return a line of what a run of the quick tasks alone predicts; "" for any other run."""
    fit = quick()
    full = {task: run.regimes[FULL] for task, run in record.tasks.items() if FULL in run.regimes}
    is_quick = record.benchmark.sha256 == fit.benchmark and full.keys() == {*fit.tasks}
    if not is_quick or record.limit is not None:
        return ""
    mean = math.fsum(cell.scores.MCC for cell in full.values()) / len(full)
    return (
        f"\nquick: mean MCC {mean:.3f} of {len(full)} tasks; by {fit.rows} rows the mean over all "
        f"categories is {fit.slope * mean + fit.intercept:.3f}, leave-one-out error {fit.error:.3f}"
    )

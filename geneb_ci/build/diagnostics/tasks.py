"""Tasks that stand out: those no model can do, and those on which models differ most."""

import pandas as pd

from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import Frames, rounded

HARD_BELOW = 0.3
"""MCC: of even classes, two of three predictions right."""
LISTED = 10
"""Tasks of high variance that are listed: a tenth of the benchmark."""
MODELS_MIN = 2
"""One model has no variance."""


def tasks(frames: Frames) -> dict[str, shape.Tasks]:
    """List the tasks of every regime in which models are ranked."""
    found = {}
    for regime, table in frames.tasks.items():
        described = [_task(frames, table, task) for task in table.columns] if len(table) else []
        hard = sorted((t for t in described if t.best < HARD_BELOW), key=lambda t: (t.best, t.task))
        wide = sorted(described, key=lambda t: (-t.deviation, t.task))[:LISTED]
        found[regime] = shape.Tasks(
            hard=hard,
            hard_below=HARD_BELOW,
            high_variance=wide if len(table) >= MODELS_MIN else [],
        )
    return found


def _task(frames: Frames, table: pd.DataFrame, task: str) -> shape.Task:
    scores = table[task]
    return shape.Task(
        task=task,
        category=frames.benchmark.by_id[task].category,
        best=rounded(scores.max()),
        best_model=str(scores.idxmax()),
        mean=rounded(scores.mean()),
        deviation=rounded(scores.std()) if len(scores) >= MODELS_MIN else 0.0,
    )

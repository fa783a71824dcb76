"""A receipt changed by its contributor: rows, numbers, claims and roots, all of which agree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geneb_ci.submission.models import EmbeddingReceipt, receipt_root
from reference_harness import benchmark, mini
from reference_harness.data import MiniSource
from reference_harness.receipt.rounding import rounded, widened
from reference_harness.receipt.scoring import CellsJob
from reference_harness.receipt.task_file import file_of, write_task

Change = Callable[[npt.NDArray[np.float32], npt.NDArray[np.int64], int], npt.NDArray[np.float32]]


def rewrite(submission: Path, folder: Path, task: str, change: Change) -> None:
    """Change the rows of a task of GENEB-mini, and all that a submission says of them."""
    document = json.loads(submission.read_bytes())
    receipt, bench = document["receipt"], benchmark.mini()
    said, data = receipt["tasks"][task], mini.load(task)
    half = np.fromfile(file_of(folder, task), "<f2").reshape(-1, receipt["dim"])
    labels = np.concatenate([data.train.labels, data.test.labels])
    rows = change(widened(half, said["scale_log2"]), labels, said["train"])
    made = write_task(folder, task, rounded([rows]), said["train"])
    job = CellsJob(
        task, file_of(folder, task), made, bench, MiniSource(), tuple(document["results"])
    )
    receipt["tasks"][task] = made.model_dump(exclude={"dim"})
    for regime, cell in job.execute().cells.regimes.items():
        document["evidence"][regime][task]["canonical"] = claimed(cell)
    order = [one.id for one in bench.tasks]
    receipt["root"] = receipt_root(EmbeddingReceipt.model_validate(receipt), order)
    submission.write_text(json.dumps(document), encoding="utf-8")


def claimed(cell: Any) -> dict[str, Any]:
    """Return a computed cell as a submission claims it."""
    return {
        **cell.scores.model_dump(),
        "confusion": cell.confusion,
        "predictions_sha256": cell.predictions_sha256,
    }

"""A receipt changed by its contributor: embeddings, numbers, claims and roots, all of which
agree."""

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.data.task_data import TaskData
from reference_harness.data.task_folder import MiniSource
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import EmbeddingReceipt, receipt_root
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.probe import metrics
from reference_harness.receipt.cells import CellsJob, receipt_in
from reference_harness.receipt.rounding import rounded, widened
from reference_harness.receipt.task_file import write_task

Change = Callable[[npt.NDArray[np.float32], npt.NDArray[np.int64], int], npt.NDArray[np.float32]]


def rewrite(
    submission: Path,
    folder: Path,
    task: str,
    change: Change,
    *,
    bench: Benchmark | None = None,
    data: TaskData | None = None,
) -> None:
    """Change the embeddings of a task, and what the receipt says of them.

    It is one of GENEB-mini, unless `bench` and `data` are those of another benchmark.
    """
    document = json.loads(submission.read_bytes())
    receipt, bench = document["receipt"], bench or benchmark.mini()
    message, data = receipt["tasks"][task], data or mini.load(task)
    half = np.fromfile(receipt_file(folder, task), "<f2").reshape(-1, receipt["dim"])
    labels = np.concatenate([data.train.labels, data.test.labels])
    rows = change(widened(half, message["scale_log2"]), labels, message["train"])
    made = write_task(folder, task, rounded([rows]), message["train"])
    receipt["tasks"][task] = made.model_dump(exclude={"dim"})
    order = [task.id for task in bench.tasks]
    receipt["root"] = receipt_root(EmbeddingReceipt.model_validate(receipt), order)
    submission.write_text(json.dumps(document), encoding="utf-8")


def claim_canonical(submission: Path, folder: Path) -> None:
    """Add the canonical scores of embeddings of GENEB-mini, as runs before the scorer claimed
    them."""
    document, entries = receipt_in(submission)
    bench = benchmark.mini()
    for task, entry in entries.items():
        job = CellsJob(
            task, receipt_file(folder, task), entry, bench, MiniSource(),
            tuple(document["results"]), canonical=True,
        )  # fmt: skip
        for regime, cell in job.execute().cells.regimes.items():
            document["evidence"][regime][task]["canonical"] = {
                **cell.scores.model_dump(),
                "confusion": cell.confusion,
                "predictions_sha256": cell.predictions_sha256,
            }
    del document["run"]["scorer"]
    submission.write_text(json.dumps(document), encoding="utf-8")


def invented(document: dict[str, Any]) -> dict[str, Any]:
    """Return a submission whose scores of record nobody computed, and agree with one another.

    Four of five errors are taken back; receipt and canonical scores stay.
    """
    made = copy.deepcopy(document)
    for regime, cells in made["evidence"].items():
        for task, cell in cells.items():
            matrices = [corrected(np.array(matrix)) for matrix in cell["confusion"]]
            scores = [metrics.scores_of(matrix) for matrix in matrices]
            cell["confusion"] = [matrix.tolist() for matrix in matrices]
            cell["per_seed"] = {
                name: [getattr(score, name) for score in scores] for name in ("MCC", "Acc", "F1")
            }
            name = f"invented {regime} {task}"
            cell["predictions_sha256"] = hashlib.sha256(name.encode()).hexdigest()
            made["results"][regime][task] = metrics.mean_scores(scores)._asdict()
    return made


def corrected(matrix: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a confusion matrix with about a fifth of the errors."""
    errors = matrix - np.diag(np.diag(matrix))
    taken = errors - errors // 5
    return matrix - taken + np.diag(taken.sum(axis=1))

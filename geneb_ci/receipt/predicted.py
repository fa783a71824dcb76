"""Compare predictions with the evidence of a submission, and two models by their predictions."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.common.errors import NothingChecked
from geneb_ci.receipt.cells import is_record_comparable
from geneb_ci.receipt.predictions import (
    CANONICAL,
    OF_RECORD,
    Codes,
    Predictions,
    TaskPredictions,
)
from geneb_ci.receipt.seen import SharedErrors, Triangle
from geneb_ci.statistics.paired import (
    PairedCell,
    PairedDifference,
    macro_weights,
    paired_cell,
    paired_difference,
    paired_matrix,
)
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.receipt_cells import ReceiptCells
from reference_harness.formats.submission import CellEvidenceV12, SubmissionV12
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from reference_harness.formats.run_record import Canonical, Regime


def confusion_matrix(truth: Codes, predicted: Codes, classes: int) -> list[list[int]]:
    """Return the confusion matrix of (n,) true and (n,) predicted classes, true classes by row."""
    class_pairs = truth.astype(np.int64) * classes + predicted
    matrix: list[list[int]] = (
        np.bincount(class_pairs, minlength=classes * classes).reshape(classes, classes).tolist()
    )
    return matrix


def predictions_digest(labels: tuple[int, ...], codes_by_fit: Codes) -> str:
    """Return the `predictions_sha256` of (fits, n) codes, which are indices of `labels`."""
    classes: npt.NDArray[np.int64] = np.asarray(labels, dtype="<i8")
    return hashlib.sha256(classes[codes_by_fit].tobytes()).hexdigest()


def claim_contradictions(
    submission: SubmissionV12, predictions: Predictions, benchmark: Benchmark
) -> list[str]:
    """Return a sentence for each cell of a submission that contradicts predictions.

    The classes, the confusion matrix of every seed and the digest of the predictions are compared,
    for the predictions of record and canonical ones, if the submission and the file have them.
    """
    lines = []
    tasks_with_evidence = {task for cells in submission.evidence.values() for task in cells}
    lines += [
        f"{quoted(task)} has predictions, but no evidence"
        for task in predictions.tasks.keys() - tasks_with_evidence
    ]
    return [*lines, *_claim_contradictions(submission, predictions, benchmark)]


def _claim_contradictions(
    submission: SubmissionV12, predictions: Predictions, benchmark: Benchmark
) -> Iterator[str]:
    """Yield a sentence for each cell whose evidence contradicts the predictions."""
    seeds = len(benchmark.protocol.seeds)
    for regime, cells in submission.evidence.items():
        for task, cell in cells.items():
            cell_name = f'{quoted(task)} in "{regime}"'
            predicted = predictions.tasks.get(task)
            if predicted is None or not any(regime in fits for fits in predicted.fits.values()):
                yield f"{cell_name} has evidence, but no predictions"
            else:
                yield from (
                    f"{cell_name}: {difference}"
                    for difference in _contradictions_of_cell(cell, predicted, regime, seeds)
                )


def _contradictions_of_cell(
    cell: CellEvidenceV12, predicted: TaskPredictions, regime: str, seeds: int
) -> Iterator[str]:
    """Yield what of the evidence of one cell contradicts the predictions."""
    if list(predicted.labels) != cell.classes:
        labels = list(predicted.labels)
        yield f"the evidence has the classes {cell.classes}, the predictions have {labels}"
        return
    claims: dict[str, tuple[list[list[list[int]]], str]] = {
        OF_RECORD: (cell.confusion, cell.predictions_sha256)
    }
    if cell.canonical is not None:
        claims[CANONICAL] = (cell.canonical.confusion, cell.canonical.predictions_sha256)
    for set_name, (matrices, digest) in claims.items():
        if set_name in predicted.fits:
            yield from _contradictions_of_set(
                set_name,
                matrices,
                digest,
                predicted,
                repeated_per_seed(predicted.fits[set_name][regime], seeds),
            )


def repeated_per_seed(codes_by_fit: Codes, seeds: int) -> Codes:
    """Return one row of predictions per seed: those of a single fit are repeated for every seed."""
    return np.repeat(codes_by_fit, seeds, axis=0) if len(codes_by_fit) == 1 else codes_by_fit


def _contradictions_of_set(
    set_name: str,
    matrices: list[list[list[int]]],
    digest: str,
    predicted: TaskPredictions,
    codes_by_fit: Codes,
) -> Iterator[str]:
    """Yield what contradicts one set of predictions: a confusion matrix, or the digest."""
    computed_matrices = [
        confusion_matrix(predicted.truth, codes, len(predicted.labels)) for codes in codes_by_fit
    ]
    if len(matrices) != len(computed_matrices):
        count = len(computed_matrices)
        yield (
            f"the evidence has {len(matrices)} confusion matrices ({set_name}); "
            f"the predictions give {count}"
        )
        return
    for number, (claimed, computed_matrix) in enumerate(
        zip(matrices, computed_matrices, strict=True), 1
    ):
        if claimed != computed_matrix:
            yield (
                f"confusion matrix {number} of {len(matrices)} ({set_name}) is {claimed}; the "
                f"predictions give {computed_matrix}"
            )
            break
    if (computed := predictions_digest(predicted.labels, codes_by_fit)) != digest:
        yield f"predictions_sha256 ({set_name}) is {digest}; the predictions have {computed}"


def differing_predictions(
    submission: SubmissionV12,
    predictions: Predictions,
    benchmark: Benchmark,
    truths: Mapping[str, npt.NDArray[np.int64]],
    cells: ReceiptCells,
) -> list[str]:
    """Return a sentence for each part of predictions that contradicts task data or embeddings.

    `truths` has the labels of each task's test sequences from the task data, `cells` the cells
    computed from the embeddings of the receipt. Contradictions to the claims are included.
    """
    lines = list(_claim_contradictions(submission, predictions, benchmark))
    seeds = len(benchmark.protocol.seeds)
    for task, truth in truths.items():
        predicted = predictions.tasks.get(task)
        if predicted is None:
            lines.append(f"{quoted(task)} has embeddings, but no predictions")
            continue
        if not np.array_equal(np.asarray(predicted.labels)[predicted.truth], truth):
            lines.append(
                f"{quoted(task)}: the true classes of the predictions are not those of the task "
                "data"
            )
        computed: dict[str, Mapping[str, Canonical | Regime]] = {
            CANONICAL: cells.tasks[task].regimes
        }
        if is_record_comparable(submission, cells):
            computed[OF_RECORD] = cells.tasks[task].record or {}
        for set_name, regimes in computed.items():
            for regime, cell in regimes.items():
                codes_by_fit = predicted.fits.get(set_name, {}).get(regime)
                if codes_by_fit is None:
                    continue
                if (
                    predictions_digest(predicted.labels, repeated_per_seed(codes_by_fit, seeds))
                    != cell.predictions_sha256
                ):
                    cell_name = f'{quoted(task)} in "{regime}"'
                    lines.append(
                        f"{cell_name}: the predictions ({set_name}) are not those of the embeddings"
                    )
    return lines


SAME_DATA_FIX = "run both over the same task data, with `geneb-harness run --receipt DIR`"


class PairedRegime(NamedTuple):
    """The comparison of two models in one regime."""

    macro: PairedDifference
    """Difference of the two macros over the compared tasks."""
    cells: dict[str, PairedCell]
    """The comparison of each task, in the benchmark's order."""


def paired_regimes(
    a: Predictions, b: Predictions, benchmark: Benchmark, set_name: str
) -> dict[str, PairedRegime]:
    """Return, by regime, the comparison of two models by their predictions.

    `set_name` is `OF_RECORD` or `CANONICAL`. Raises NothingChecked if the models share no task and
    regime, or the true classes of one differ.
    """
    by_regime: dict[str, PairedRegime] = {}
    for regime in benchmark.regimes:
        cells = {
            task: _paired_cell(a, b, task, set_name, regime)
            for task in benchmark.task_ids
            if all(
                task in predictions.tasks
                and regime in predictions.tasks[task].fits.get(set_name, {})
                for predictions in (a, b)
            )
        }
        if cells:
            categories = {
                name: tuple(task for task in tasks if task in cells)
                for name, tasks in benchmark.categories.items()
            }
            macro = paired_difference(cells, macro_weights(categories))
            by_regime[regime] = PairedRegime(macro, cells)
    if not by_regime:
        raise NothingChecked(
            "no task has predictions of both models in the same regime", SAME_DATA_FIX
        )
    return by_regime


ROWS_MAX = 100
"""Largest number of rows in pairs.json: 5,000 pairs in 45 scores take 3 MB."""
COVARIANCE_DIGITS = 6
"""Number of significant digits of a covariance, more than its error needs."""


def shared_errors_of(predictions: Mapping[str, Predictions], benchmark: Benchmark) -> SharedErrors:
    """Return the covariances of the models' errors, from the predictions by model id.

    In a task, only rows with equal true classes have a covariance. Raises NothingChecked for more
    than `ROWS_MAX` rows.
    """
    if len(predictions) > ROWS_MAX:
        raise NothingChecked(
            f"{len(predictions)} rows have predictions; at most {ROWS_MAX} can be compared",
            f"name the files of at most {ROWS_MAX} rows",
        )
    models = sorted(predictions)
    regimes = {}
    for regime in benchmark.regimes:
        tasks = {
            task: _error_covariances(task, regime, [predictions[model] for model in models])
            for task in benchmark.task_ids
        }
        scores = {"macro": macro_weights(benchmark.categories)}
        scores["micro"] = {task: 1 / len(tasks) for task in tasks}
        for category, members in benchmark.categories.items():
            scores[category] = {task: 1 / len(members) for task in members}
        regimes[regime] = {
            name: _triangle([weight**2 * tasks[task] for task, weight in weights.items()])
            for name, weights in scores.items()
        }
    return SharedErrors(
        benchmark=benchmark.sha256,
        rows={model: predictions[model].sha256 for model in models},
        regimes=regimes,
    )


def _error_covariances(
    task: str, regime: str, rows: Sequence[Predictions]
) -> npt.NDArray[np.float64]:
    """Return the (m, m) covariances of the errors of m rows on a task; 0 without predictions."""
    positions_by_truth: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    for position, predictions in enumerate(rows):
        predicted = predictions.tasks.get(task)
        if predicted is not None and regime in predicted.fits.get(OF_RECORD, {}):
            positions_by_truth.setdefault((predicted.labels, predicted.truth.tobytes()), []).append(
                position
            )
    covariances = np.zeros((len(rows), len(rows)))
    for positions in positions_by_truth.values():
        cells = [rows[position].tasks[task] for position in positions]
        fits = [predicted.fits[OF_RECORD][regime] for predicted in cells]
        covariances[np.ix_(positions, positions)] = paired_matrix(
            cells[0].truth, fits, len(cells[0].labels)
        )
    return covariances


def _triangle(matrices: Sequence[npt.NDArray[np.float64]]) -> Triangle:
    """Return the lower triangle of a sum of matrices, rounded after exact summation."""
    stacked_matrices = np.stack(matrices)
    return [
        [
            float(f"{math.fsum(stacked_matrices[:, i, j].tolist()):.{COVARIANCE_DIGITS - 1}e}")
            for j in range(i + 1)
        ]
        for i in range(stacked_matrices.shape[1])
    ]


def _paired_cell(
    a: Predictions, b: Predictions, task: str, set_name: str, regime: str
) -> PairedCell:
    first, second = a.tasks[task], b.tasks[task]
    if first.labels != second.labels or not np.array_equal(first.truth, second.truth):
        raise NothingChecked(
            f"{quoted(task)}: the true classes of the sequences differ between the two models",
            SAME_DATA_FIX,
        )
    return paired_cell(
        first.truth, first.fits[set_name][regime], second.fits[set_name][regime], len(first.labels)
    )

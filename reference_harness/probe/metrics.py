"""MCC, accuracy and macro-F1 from one integer confusion matrix, by scikit-learn's definitions."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels

ConfusionMatrix = npt.NDArray[np.int64]
"""(c, c) counts of sequences by true class (row) and predicted class (column)."""


class Scores(NamedTuple):
    """Three metrics of one set of predictions, in the order of a submission."""

    MCC: float
    Acc: float
    F1: float


def confusion_matrix(truth: Labels, predicted: Labels, classes: Labels) -> ConfusionMatrix:
    """Return the counts, (c, c) int64, by true class (row) and predicted class (column).

    `classes` are the labels of both arrays, ascending.
    """
    size = len(classes)
    cells = np.searchsorted(classes, truth) * size + np.searchsorted(classes, predicted)
    return np.bincount(cells, minlength=size * size).reshape(size, size)


def scores_of(matrix: ConfusionMatrix) -> Scores:
    """Return the metrics of a confusion matrix.

    MCC is Gorodkin's for any number of classes, and 0 if all true or all predicted labels are
    equal. Macro-F1 is the mean over the classes that occur in truth or prediction, not those that
    occur only in training. Raise ValueError for a matrix of zeros.
    """
    total = int(matrix.sum())
    if total == 0:
        msg = "no prediction to score"
        raise ValueError(msg)
    true_counts = matrix.sum(axis=1).astype(np.float64)
    predicted_counts = matrix.sum(axis=0).astype(np.float64)
    right_count = float(np.trace(matrix))
    covariance = right_count * total - true_counts @ predicted_counts
    variance_product = (total**2 - predicted_counts @ predicted_counts) * (
        total**2 - true_counts @ true_counts
    )
    mcc = covariance / np.sqrt(variance_product) if variance_product else 0.0
    is_present = (true_counts + predicted_counts) > 0
    f1 = 2 * np.diag(matrix)[is_present] / (true_counts + predicted_counts)[is_present]
    return Scores(float(mcc), right_count / total, float(np.average(f1)))


def mean_scores(scores_by_seed: Sequence[Scores]) -> Scores:
    """Return the mean of each metric over the seeds, unrounded.

    Raise ValueError if there is no seed.
    """
    if not scores_by_seed:
        msg = "no seed to average over"
        raise ValueError(msg)
    return Scores(*(float(np.mean(column)) for column in zip(*scores_by_seed, strict=True)))


def predictions_sha256(predictions: Sequence[Labels]) -> str:
    """Return the digest of the predicted labels of all seeds.

    It is the SHA-256 over the labels as signed 64-bit little-endian integers without separators:
    seeds in the benchmark's order, within a seed the test sequences in file order.
    """
    digest = hashlib.sha256()
    for labels in predictions:
        digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
    return digest.hexdigest()

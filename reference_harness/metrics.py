"""MCC, accuracy and macro-F1 from one integer confusion matrix, by scikit-learn's definitions."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .tasks import Labels

Confusion = npt.NDArray[np.int64]


class Scores(NamedTuple):
    """Three metrics of one set of predictions, in the order of a submission."""

    MCC: float
    Acc: float
    F1: float


def confusion_matrix(truth: Labels, predicted: Labels, classes: Labels) -> Confusion:
    """Count the pairs: (c, c) int64, row the true class, column the predicted one.

    `classes` are the labels of both arrays, ascending.
    """
    size = len(classes)
    cells = np.searchsorted(classes, truth) * size + np.searchsorted(classes, predicted)
    return np.bincount(cells, minlength=size * size).reshape(size, size)


def scores(matrix: Confusion) -> Scores:
    """Return the metrics of a confusion matrix.

    MCC is Gorodkin's for any number of classes, 0 when a margin is one class only. Macro-F1 is the
    mean over the classes that occur in truth or prediction; a class that was only trained on does
    not count. Raises ValueError for a matrix without a single count.
    """
    total = int(matrix.sum())
    if total == 0:
        msg = "no prediction to score"
        raise ValueError(msg)
    true = matrix.sum(axis=1).astype(np.float64)
    pred = matrix.sum(axis=0).astype(np.float64)
    right = float(np.trace(matrix))
    covariance = right * total - true @ pred
    spread = (total**2 - pred @ pred) * (total**2 - true @ true)
    mcc = covariance / np.sqrt(spread) if spread else 0.0
    present = (true + pred) > 0
    f1 = 2 * np.diag(matrix)[present] / (true + pred)[present]
    return Scores(float(mcc), right / total, float(np.average(f1)))


def mean(values: Sequence[Scores]) -> Scores:
    """Return the mean over the seeds of each metric, unrounded.

    Raises ValueError when there is none.
    """
    if not values:
        msg = "no seed to average over"
        raise ValueError(msg)
    return Scores(*(float(np.mean(column)) for column in zip(*values, strict=True)))


def predictions_sha256(predictions: Sequence[Labels]) -> str:
    """Return the digest of the predicted labels of all seeds.

    sha256 over the labels as signed 64-bit little-endian integers, with nothing between them: the
    seeds in the benchmark's order, within a seed the test sequences in file order.
    """
    digest = hashlib.sha256()
    for labels in predictions:
        digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
    return digest.hexdigest()

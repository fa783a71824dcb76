"""Confusion matrices for simulated test sets, and the metrics of confusion matrices.

For a task with two classes, the scores of a real row determine the matrix. For a task with more
classes they do not, so the matrix is simulated: it has the row's accuracy, unequal recalls by class
and unequally frequent wrong predictions.
"""

import numpy as np
import numpy.typing as npt

from geneb_ci.board.variance import near_correct_counts
from geneb_ci.statistics.binary import Classes, binary_metrics
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.benchmark import Task

Array = npt.NDArray[np.float64]
Cell = dict[str, float]
# Numbers of classes of the tasks that have more than two, by the end of their names.
CLASS_COUNTS = {"fungi_species_20": 20, "virus_species_40": 40, "virus_covid": 9}
CLASS_COUNT_DEFAULT = 3
# Standard deviations, as logits, of a few-shot fit's quality and of its leaning to one class: with
# them MCC of the seeds spreads by 0.04 to 0.15, as it does for k-mers on six real tasks.
QUALITY, LEANING = 0.2, 0.5


def mcc_of(small: Array, large: Array, small_correct: Array, large_correct: Array) -> Array:
    """Return MCC of tables from class sizes and right predictions, all of one shape or broadcast.

    It is 0 if one class is never predicted, as in scikit-learn.
    """
    predicted_small = small_correct + (large - large_correct)
    denominator = np.sqrt(small * large * 1.0) * np.sqrt(
        predicted_small * 1.0 * (small + large - predicted_small)
    )
    numerator = small_correct * 1.0 * large_correct - (small - small_correct) * 1.0 * (
        large - large_correct
    )
    return np.asarray(
        np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)
    )


def correct_counts(classes: Classes, triple: Triple) -> tuple[float, float]:
    """Return the right predictions in each class that follow from a triple, as real numbers."""
    counts = near_correct_counts(np.float64(classes.small), np.float64(classes.large), triple)
    return float(counts[0]), float(counts[1])


def cell_scores(classes: Classes, small: float, large: float) -> Cell:
    """Return the metrics of right predictions in each class."""
    return dict(
        zip(
            ("MCC", "Acc", "F1"), binary_metrics(classes, small + large, large - small), strict=True
        )
    )


def made_up_matrix(task: Task, acc: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return class sizes and the shares in which each class is predicted, of about an accuracy."""
    k = next((n for name, n in CLASS_COUNTS.items() if task.id.endswith(name)), CLASS_COUNT_DEFAULT)
    shares = rng.dirichlet(np.full(k, 20.0))
    sizes = np.round(shares * (task.n_test or 0))
    recall = np.clip(acc + 0.1 * rng.standard_normal(k), 0.02, 0.98)
    matrix = rng.dirichlet(np.full(k, 2.0), size=k)
    matrix[np.arange(k), np.arange(k)] = 0
    matrix *= ((1 - recall) / matrix.sum(axis=1))[:, None]
    matrix[np.arange(k), np.arange(k)] = recall
    return sizes, matrix


def matrix_scores(counts: Array) -> Cell:
    """Return the metrics of a confusion matrix, true classes in rows (Gorodkin 2004)."""
    total, correct = counts.sum(), np.trace(counts)
    true_counts, predicted_counts = counts.sum(axis=1), counts.sum(axis=0)
    denominator = (total * total - predicted_counts @ predicted_counts) * (
        total * total - true_counts @ true_counts
    )
    f1 = 2 * np.diag(counts) / np.maximum(true_counts + predicted_counts, 1)
    mcc = (
        (total * correct - true_counts @ predicted_counts) / np.sqrt(denominator)
        if denominator
        else 0.0
    )
    return {"MCC": float(mcc), "Acc": float(correct / total), "F1": float(f1.mean())}

"""Differences of two models by the paired bootstrap: over test sequences, or over tasks.

A resample draws with replacement, the same for both models. How often each sequence is drawn is
multinomial, and sequences with the same true class and the same predictions of every fit count as
one: the matrices of a resample follow from how often each such group is drawn.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ClassCodes = npt.NDArray[np.integer]
"""Classes of sequences, as numbers from 0."""
Reals = npt.NDArray[np.float64]
"""An array of floating-point numbers."""
DRAW_SEED = 20_260_101
"""Seed of the draws, so that the same comparison gives the same interval."""
DRAWN_COUNTS_MAX = 4_000_000
"""Maximum number of counts drawn at once; they take 32 MB."""
INTERVAL_QUANTILES = (0.025, 0.975)
"""Probabilities of the quantiles that bound an interval."""


class Interval(NamedTuple):
    """The interval of a difference of two models, and the probability that it is positive."""

    low: float
    """Lower end of the 95 % percentile interval."""
    high: float
    """Upper end of the 95 % percentile interval, which is not corrected for other comparisons."""
    probability: float
    """Share of the resamples in which the first model is higher; equal scores count half."""


def interval_of(differences: Reals) -> Interval:
    """Return the interval of differences, one per resample."""
    low, high = np.quantile(differences, INTERVAL_QUANTILES)
    probability = float((differences > 0).mean() + (differences == 0).mean() / 2)
    return Interval(float(low), float(high), probability)


def resampled_task_differences(
    truth: ClassCodes,
    a: ClassCodes,
    b: ClassCodes,
    classes: int,
    resamples: int,
    generator: np.random.Generator,
) -> Reals:
    """Return the difference in MCC on one task for each resample of its test sequences.

    `truth` has the shape (n,), `a` and `b` have (fits, n); they contain class codes from 0 to
    `classes` - 1.
    """
    # A group is the sequences with the same true class and the same predictions.
    groups, counts = np.unique(np.vstack([truth, a, b]), axis=1, return_counts=True)
    true, first, second = groups[0], groups[1 : len(a) + 1], groups[len(a) + 1 :]
    shares, blocks = counts / counts.sum(), []
    block_size = max(1, DRAWN_COUNTS_MAX // len(counts))
    for start in range(0, resamples, block_size):
        size = min(block_size, resamples - start)
        group_counts = generator.multinomial(len(truth), shares, size=size).astype(np.float64)
        scores = [
            np.mean([_mcc(group_counts, true, fit, classes) for fit in fits], axis=0)
            for fits in (first, second)
        ]
        blocks.append(scores[0] - scores[1])
    return np.concatenate(blocks)


def _mcc(group_counts: Reals, truth: ClassCodes, predicted: ClassCodes, classes: int) -> Reals:
    """Return the MCC of each resample.

    `group_counts`, of the shape (resamples, groups), has how often each group is drawn.
    """
    class_pairs = np.zeros((len(truth), classes * classes))
    class_pairs[np.arange(len(truth)), truth.astype(np.int64) * classes + predicted] = 1
    matrix = (group_counts @ class_pairs).reshape(-1, classes, classes)
    total, true_counts, predicted_counts = matrix.sum((1, 2)), matrix.sum(2), matrix.sum(1)
    correct = np.trace(matrix, axis1=1, axis2=2)
    spread = (total**2 - (true_counts**2).sum(1)) * (total**2 - (predicted_counts**2).sum(1))
    covariance = correct * total - (true_counts * predicted_counts).sum(1)
    mcc: Reals = np.divide(covariance, np.sqrt(spread), out=np.zeros_like(total), where=spread > 0)
    return mcc


def weighted_differences(differences: Mapping[str, Reals], weights: Mapping[str, float]) -> Reals:
    """Return, for each resample, the sum of the tasks' differences times the tasks' weights."""
    total: Reals = np.sum([weight * differences[task] for task, weight in weights.items()], axis=0)
    return total


def resampled_mean_differences(
    differences: Mapping[str, float],
    categories: Sequence[Sequence[str]],
    resamples: int,
    generator: np.random.Generator,
) -> Reals:
    """Return the mean over categories of means over tasks, for each resample of the tasks.

    Each resample draws the tasks with replacement; categories without a drawn task do not count.
    """
    tasks = [task for members in categories for task in members]
    task_differences = np.array([differences[task] for task in tasks])
    task_counts = generator.multinomial(
        len(tasks), np.full(len(tasks), 1 / len(tasks)), size=resamples
    )
    sums, sizes, start = [], [], 0
    for members in categories:
        category_counts = task_counts[:, start : start + len(members)]
        sums.append(category_counts @ task_differences[start : start + len(members)])
        sizes.append(category_counts.sum(1))
        start += len(members)
    total, size = np.array(sums), np.array(sizes)
    means = np.divide(total, size, out=np.zeros_like(total), where=size > 0)
    mean_differences: Reals = means.sum(0) / (size > 0).sum(0)
    return mean_differences

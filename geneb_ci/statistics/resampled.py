"""Differences of two models by the paired bootstrap: over test sequences, or over tasks.

A resample draws with replacement, the same for both models. How often each sequence is drawn is
multinomial, and sequences with the same true class and the same predictions of every fit count as
one: the matrices of a resample follow from how often each such group is drawn.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer]
Reals = npt.NDArray[np.float64]
SEED = 20_260_101
"""Seed of the draws, so that the same comparison gives the same interval."""
COUNTS_MAX = 4_000_000
"""Maximum number of counts drawn at once; they take 32 MB."""
TAILS = (0.025, 0.975)
"""Probabilities of the quantiles that bound an interval."""


class Interval(NamedTuple):
    """Interval and probability of a difference, from resamples."""

    low: float
    high: float
    """Upper end of the 95 % percentile interval, which is not corrected for other comparisons."""
    probability: float
    """Share of the resamples in which the first model is higher; equal scores count half."""


def interval_of(differences: Reals) -> Interval:
    """Return the interval of (n,) resampled differences."""
    low, high = np.quantile(differences, TAILS)
    probability = float((differences > 0).mean() + (differences == 0).mean() / 2)
    return Interval(float(low), float(high), probability)


def resampled_task(
    truth: Codes, a: Codes, b: Codes, classes: int, resamples: int, generator: np.random.Generator
) -> Reals:
    """Return (resamples,) differences in MCC on one task, the mean over the fits.

    `truth` has the shape (n,), `a` and `b` have (fits, n); they contain class codes from 0 to
    `classes` - 1.
    """
    # A group is the sequences with the same true class and the same predictions.
    groups, counts = np.unique(np.vstack([truth, a, b]), axis=1, return_counts=True)
    true, first, second = groups[0], groups[1 : len(a) + 1], groups[len(a) + 1 :]
    shares, blocks = counts / counts.sum(), []
    block_size = max(1, COUNTS_MAX // len(counts))
    for start in range(0, resamples, block_size):
        size = min(block_size, resamples - start)
        group_counts = generator.multinomial(len(truth), shares, size=size).astype(np.float64)
        scores = [
            np.mean([_mcc(group_counts, true, fit, classes) for fit in fits], axis=0)
            for fits in (first, second)
        ]
        blocks.append(scores[0] - scores[1])
    return np.concatenate(blocks)


def _mcc(group_counts: Reals, truth: Codes, predicted: Codes, classes: int) -> Reals:
    """Return (resamples,) MCC; `group_counts` (resamples, groups) is how often each is drawn."""
    class_pairs = np.zeros((len(truth), classes * classes))
    class_pairs[np.arange(len(truth)), truth.astype(np.int64) * classes + predicted] = 1
    matrix = (group_counts @ class_pairs).reshape(-1, classes, classes)
    total, true_counts, predicted_counts = matrix.sum((1, 2)), matrix.sum(2), matrix.sum(1)
    correct = np.trace(matrix, axis1=1, axis2=2)
    spread = (total**2 - (true_counts**2).sum(1)) * (total**2 - (predicted_counts**2).sum(1))
    covariance = correct * total - (true_counts * predicted_counts).sum(1)
    mcc: Reals = np.divide(covariance, np.sqrt(spread), out=np.zeros_like(total), where=spread > 0)
    return mcc


def weighted_sum(differences: Mapping[str, Reals], weights: Mapping[str, float]) -> Reals:
    """Return (resamples,) sums of the tasks' differences, each times the weight of its task."""
    total: Reals = np.sum([weight * differences[task] for task, weight in weights.items()], axis=0)
    return total


def resampled_tasks(
    differences: Mapping[str, float],
    categories: Sequence[Sequence[str]],
    resamples: int,
    generator: np.random.Generator,
) -> Reals:
    """Return (resamples,) means over categories of means over tasks.

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

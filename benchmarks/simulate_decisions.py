"""Simulate boards with known true scores on random test sets, to check decisions.

The truth of a board is the public rows' own recalls, or one recall for all models. Each test set
draws the right predictions of every class of every task of every model, and the board decides from
what was drawn, as it does from submissions.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.simulate import mcc_of
from geneb_ci.board.decisions import (
    ScoreColumn,
    could_be_best,
    critical_value,
    intervals_of,
    possible_losses,
    rounded_model_count,
    significantly_better,
)
from geneb_ci.board.variance import FIT_CORRELATION, near_correct_counts, two_class_variance
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

Floats = npt.NDArray[np.float64]
MARGINS = (0.01, 0.02)
FITS = 5


class TrueRecalls(NamedTuple):
    """True recalls of models on tasks of two classes; arrays of (models, tasks)."""

    small: Floats
    """Class sizes by task."""
    large: Floats
    recall_small: Floats
    recall_large: Floats
    weights: Floats
    """(scores, tasks) weights: each score is the weighted sum of the tasks' MCC."""


def world_of(
    rows: list[Submission],
    benchmark: Benchmark,
    *,
    regime: str = "full",
    is_equal: bool = False,
    sizes_max: int = 10**9,
) -> TrueRecalls:
    """Return the recalls of rows in a regime; those of the first row, if equal."""
    tasks = [
        task
        for task in benchmark.tasks
        if task.test_class_counts is not None and len(task.test_class_counts) == 2
    ]
    class_sizes = np.array([task.test_class_counts for task in tasks], dtype=float).T
    cells = [[row.results[regime][task.id] for task in tasks] for row in rows]
    values = np.array([[(c.MCC, c.Acc, c.F1) for c in row_cells] for row_cells in cells])
    triples = Triple(*np.moveaxis(values, -1, 0))
    correct = near_correct_counts(class_sizes[0][None, :], class_sizes[1][None, :], triples)
    recalls = [
        np.clip(row_cells / size, 0.01, 0.99)
        for row_cells, size in zip(correct, class_sizes, strict=True)
    ]
    if is_equal:
        recalls = [np.repeat(row_cells[:1], len(rows), axis=0) for row_cells in recalls]
    small, large = np.rint(class_sizes * np.minimum(1, sizes_max / class_sizes.sum(axis=0)))
    categories = [task.category for task in tasks]
    category_weights = np.array(
        [
            [(category == name) / categories.count(name) for category in categories]
            for name in benchmark.category_order
            if name in categories
        ]
    )
    macro, micro = category_weights.mean(axis=0), np.full(len(tasks), 1 / len(tasks))
    weights = np.vstack([macro, micro, category_weights])
    return TrueRecalls(small, large, recalls[0], recalls[1], weights)


class DecisionShares(NamedTuple):
    """Shares of test sets, by score, in which a statement held."""

    pairs: Floats
    """No pair is wrongly called significantly different."""
    best: Floats
    """Every truly best model is named as possibly best."""
    bounds: Floats
    """The bound holds for every model."""
    within: Floats
    """The model named as within the margin truly is; 1 if none is named."""
    interval: float
    """Share of all intervals that contain the true score."""


def measured(truths: TrueRecalls, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return MCC and its variance as the board has them, of one fit: (models, tasks) each."""
    correct = [
        rng.binomial(size.astype(int), recall).astype(float)
        for size, recall in (
            (truths.small, truths.recall_small),
            (truths.large, truths.recall_large),
        )
    ]
    mcc = mcc_of(truths.small, truths.large, correct[0], correct[1])
    return mcc, two_class_variance(truths.small, truths.large, correct[0], correct[1])


def measured_few(truths: TrueRecalls, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the same for the mean of five fits, whose errors correlate as the board assumes.

    A share of the sequences is right or wrong for all fits together, the others for each alone.
    """
    correct = []
    for size, recall in ((truths.small, truths.recall_small), (truths.large, truths.recall_large)):
        shared_count = rng.binomial(size.astype(int), FIT_CORRELATION, recall.shape)
        shared_correct = rng.binomial(shared_count, recall)
        own_correct = rng.binomial(size.astype(int) - shared_count, recall, (FITS, *recall.shape))
        correct.append((shared_correct + own_correct).astype(float))
    small, large = correct
    mcc = mcc_of(truths.small, truths.large, small, large).mean(axis=0)
    total = truths.small + truths.large
    small_wrong, large_wrong = truths.small - small, truths.large - large
    f1 = small / (2 * small + small_wrong + large_wrong) + large / (
        2 * large + small_wrong + large_wrong
    )
    means = Triple(mcc, ((small + large) / total).mean(axis=0), f1.mean(axis=0))
    right = near_correct_counts(truths.small, truths.large, means)
    one_fit_variance = two_class_variance(truths.small, truths.large, *right)
    return mcc, one_fit_variance * (FIT_CORRELATION + (1 - FIT_CORRELATION) / FITS)


def decision_shares(
    truths: TrueRecalls, sets: int, seed: int, *, is_few_shot: bool = False
) -> DecisionShares:
    """Return the shares of statements that held over test sets, for one fit or means of five."""
    rng = np.random.Generator(np.random.PCG64(seed))
    models, count = len(truths.recall_small), len(truths.weights)
    critical = critical_value(rounded_model_count(models))
    true_mcc = mcc_of(
        truths.small,
        truths.large,
        truths.recall_small * truths.small,
        truths.recall_large * truths.large,
    )
    truth = true_mcc @ truths.weights.T
    counts = np.zeros((4, count))
    interval_hits = 0
    all_models = np.arange(models)
    for _ in range(sets):
        mcc, variance = measured_few(truths, rng) if is_few_shot else measured(truths, rng)
        values, spread = mcc @ truths.weights.T, variance @ np.square(truths.weights).T
        for score in range(count):
            scores = ScoreColumn(values[:, score], spread[:, score], np.full(models, np.inf))
            true_scores = truth[:, score]
            above = significantly_better(scores, critical)
            counts[0, score] += not np.any(above & (true_scores[:, None] <= true_scores[None, :]))
            best_models = np.flatnonzero(true_scores == true_scores.max())
            counts[1, score] += bool(
                np.isin(best_models, could_be_best(scores, all_models, critical)).all()
            )
            loss_bounds = possible_losses(scores, all_models, critical)
            true_losses = true_scores.max() - true_scores
            counts[2, score] += bool((true_losses <= loss_bounds.bound + 1e-12).all())
            counts[3, score] += all(
                bool((true_losses[loss_bounds.bound <= margin] <= margin).all())
                for margin in MARGINS
            )
            low, high = intervals_of(scores)
            interval_hits += int(((low <= true_scores) & (true_scores <= high)).sum())
    pairs, best, bounds, within = counts / sets
    return DecisionShares(pairs, best, bounds, within, interval_hits / (sets * models * count))

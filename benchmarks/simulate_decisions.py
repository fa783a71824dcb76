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
    better,
    could_be_best,
    critical_value,
    intervals_of,
    losses,
    rounded_up,
)
from geneb_ci.board.variance import OVERLAP, near_mean, variance_of_two
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission

Floats = npt.NDArray[np.float64]
MARGINS = (0.01, 0.02)
FITS = 5


class World(NamedTuple):
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
    equal: bool = False,
    sizes_max: int = 10**9,
) -> World:
    """Return the recalls of rows in a regime; those of the first row, if equal."""
    tasks = [
        task
        for task in benchmark.tasks
        if task.test_class_counts is not None and len(task.test_class_counts) == 2
    ]
    whole = np.array([task.test_class_counts for task in tasks], dtype=float).T
    told = [[row.results[regime][task.id] for task in tasks] for row in rows]
    values = np.array([[(c.MCC, c.Acc, c.F1) for c in one] for one in told])
    triples = Triple(*np.moveaxis(values, -1, 0))
    right = near_mean(whole[0][None, :], whole[1][None, :], triples)
    recalls = [np.clip(one / size, 0.01, 0.99) for one, size in zip(right, whole, strict=True)]
    if equal:
        recalls = [np.repeat(one[:1], len(rows), axis=0) for one in recalls]
    small, large = np.rint(whole * np.minimum(1, sizes_max / whole.sum(axis=0)))
    categories = [task.category for task in tasks]
    by_category = np.array(
        [
            [(own == name) / categories.count(name) for own in categories]
            for name in benchmark.category_order
            if name in categories
        ]
    )
    macro, micro = by_category.mean(axis=0), np.full(len(tasks), 1 / len(tasks))
    weights = np.vstack([macro, micro, by_category])
    return World(small, large, recalls[0], recalls[1], weights)


class Held(NamedTuple):
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


def measured(world: World, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return MCC and its variance as the board has them, of one fit: (models, tasks) each."""
    drawn = [
        rng.binomial(size.astype(int), recall).astype(float)
        for size, recall in ((world.small, world.recall_small), (world.large, world.recall_large))
    ]
    mcc = mcc_of(world.small, world.large, drawn[0], drawn[1])
    return mcc, variance_of_two(world.small, world.large, drawn[0], drawn[1])


def measured_few(world: World, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the same for the mean of five fits, whose errors correlate as the board assumes.

    A share of the sequences is right or wrong for all fits together, the others for each alone.
    """
    drawn = []
    for size, recall in ((world.small, world.recall_small), (world.large, world.recall_large)):
        alike = rng.binomial(size.astype(int), OVERLAP, recall.shape)
        together = rng.binomial(alike, recall)
        alone = rng.binomial(size.astype(int) - alike, recall, (FITS, *recall.shape))
        drawn.append((together + alone).astype(float))
    small, large = drawn
    mcc = mcc_of(world.small, world.large, small, large).mean(axis=0)
    total = world.small + world.large
    missed, taken = world.small - small, world.large - large
    f1 = small / (2 * small + missed + taken) + large / (2 * large + missed + taken)
    means = Triple(mcc, ((small + large) / total).mean(axis=0), f1.mean(axis=0))
    right = near_mean(world.small, world.large, means)
    one = variance_of_two(world.small, world.large, *right)
    return mcc, one * (OVERLAP + (1 - OVERLAP) / FITS)


def held(world: World, sets: int, seed: int, *, few: bool = False) -> Held:
    """Return the shares of statements that held over test sets, for one fit or means of five."""
    rng = np.random.Generator(np.random.PCG64(seed))
    models, count = len(world.recall_small), len(world.weights)
    c = critical_value(rounded_up(models))
    true_mcc = mcc_of(
        world.small, world.large, world.recall_small * world.small, world.recall_large * world.large
    )
    truth = true_mcc @ world.weights.T
    counts = np.zeros((4, count))
    inside = 0
    every = np.arange(models)
    for _ in range(sets):
        mcc, variance = measured_few(world, rng) if few else measured(world, rng)
        values, spread = mcc @ world.weights.T, variance @ np.square(world.weights).T
        for k in range(count):
            scores = ScoreColumn(values[:, k], spread[:, k], np.full(models, np.inf))
            own = truth[:, k]
            above = better(scores, c)
            counts[0, k] += not np.any(above & (own[:, None] <= own[None, :]))
            top = np.flatnonzero(own == own.max())
            counts[1, k] += bool(np.isin(top, could_be_best(scores, every, c)).all())
            found = losses(scores, every, c)
            lost = own.max() - own
            counts[2, k] += bool((lost <= found.bound + 1e-12).all())
            counts[3, k] += all(
                bool((lost[found.bound <= margin] <= margin).all()) for margin in MARGINS
            )
            low, high = intervals_of(scores)
            inside += int(((low <= own) & (own <= high)).sum())
    pairs, best, bounds, within = counts / sets
    return Held(pairs, best, bounds, within, inside / (sets * models * count))

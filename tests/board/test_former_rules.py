"""The three rules that one relation replaced, kept to show that they contradict each other.

Tie groups compared with a constant of all models, `recommend` with one of the models that a filter
left, and the page read overlaps of intervals: for the same two models they gave different answers.
"""

import numpy as np
import pytest
from scipy.special import ndtri

from geneb_ci.board.decisions import (
    Bools,
    ScoreColumn,
    compare_pair,
    could_be_best,
    intervals_of,
    rank_ranges,
    significantly_better,
)
from tests.board.board import found_intervals

PAIRS = 36_900


def sidak(scores: ScoreColumn, models: int) -> Bools:
    """Return the pairs that differ by the former constant of so many models."""
    errors = np.sqrt(scores.variance[:, None] + scores.variance[None, :])
    limit = float(ndtri((1 + 0.95 ** (1 / (models - 1))) / 2))
    return np.asarray(abs(scores.values[:, None] - scores.values[None, :]) > limit * errors)


def overlap(scores: ScoreColumn) -> Bools:
    """Return the pairs whose intervals do not overlap."""
    low, high = intervals_of(scores)
    return np.asarray((low[:, None] > high[None, :]) | (high[:, None] < low[None, :]))


@pytest.mark.nightly  # in the gate, the relation itself in test_decisions.py
def test_the_former_rules_contradict_each_other_and_the_relation_does_not():
    former = now = pairs = 0
    for value in found_intervals().values():
        board = value.board
        count = len(board.models)
        upper = np.triu_indices(count, 1)
        for scores in board.scores.values():
            pairs += len(upper[0])
            # A comparison of two models alone, as a filter may leave them.
            rules = (sidak(scores, count), overlap(scores), sidak(scores, 2))
            array = np.array([rule[upper] for rule in rules])
            former += int((array.any(axis=0) & ~array.all(axis=0)).sum())
            above = significantly_better(scores, board.critical)
            differs = (above | above.T)[upper]
            stood = rank_ranges(scores, board.critical)
            every = could_be_best(scores, np.arange(count), board.critical)
            assert (np.flatnonzero(stood.low == 1) == np.sort(every)).all()
            for index in range(0, len(upper[0]), 7):
                i, j = int(upper[0][index]), int(upper[1][index])
                views = {
                    bool(differs[index]),
                    compare_pair(scores, i, j, board.critical).is_significant,
                    len(could_be_best(scores, np.array([i, j]), board.critical)) == 1,
                }
                now += len(views) - 1
    assert pairs == PAIRS
    assert former > 1408
    assert now == 0

"""One relation and one loss: the reference vector, known cases by hand, and their laws."""

import functools
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm, studentized_range

from geneb_ci.board import decisions
from geneb_ci.board.agreement import normal_below
from geneb_ci.board.decisions import (
    CONFIDENCE,
    ScoreColumn,
    compare_pair,
    could_be_best,
    critical_value,
    intervals_of,
    possible_losses,
    rank_ranges,
    rounded_model_count,
    significantly_better,
)
from geneb_ci.board.uncertainty import RegimeScores
from geneb_ci.statistics.student import student_quantile
from tests.board.board import found_intervals
from tests.each import each
from tests.examples import examples

REFERENCE = json.loads((Path(__file__).parent / "reference" / "decisions.json").read_bytes())
NEEDS = [dict(zip(REFERENCE["keys"], need, strict=True)) for need in REFERENCE["needs"]]
NAMES: list[str] = REFERENCE["models"]
NEAR, NEAR_BOUND = 1e-5, 2e-5
MARGINS = (0.01, 0.02)


def made(*pairs: tuple[float, float]) -> ScoreColumn:
    """Return scores from values and standard errors."""
    values, errors = np.array(pairs, dtype=float).T
    return ScoreColumn(values, errors * errors, np.full(len(pairs), np.inf))


def everything(scores: ScoreColumn) -> Any:
    return np.arange(len(scores.values))


@functools.cache
def boards() -> dict[str, RegimeScores]:
    return {name: member.board for name, member in found_intervals().items()}


@each("need", NEEDS, ids=lambda n: f"{n['regime']}-{n['need']}-{n['max_params']}")
def test_the_reference_vector(need):
    board = boards()[need["regime"]]
    scores, most = board.scores[need["need"]], need["max_params"]
    among = [k for k in board.best_first(need["need"]) if most is None or board.params[k] <= most]
    loss_bounds = possible_losses(scores, np.array(among), board.critical)
    best = among[0]
    assert (len(among), board.models[best]) == (need["considered"], NAMES[need["best"]])
    assert scores.values[best] == pytest.approx(need["score"], abs=NEAR)
    assert math.sqrt(scores.variance[best]) == pytest.approx(need["error"], abs=NEAR)
    # As a set: the reference orders models of one score by chance.
    assert {board.models[k] for k in loss_bounds.best} == {NAMES[k] for k in need["could_be_best"]}
    # The reference's bound is an expected loss where that is greater.
    bound = max(loss_bounds.bound[0], need["expected_loss"])
    assert bound == pytest.approx(need["loss_bound"], abs=NEAR_BOUND)
    order = sorted(
        range(len(among)),
        key=lambda k: (board.params[among[k]], -scores.values[among[k]], board.models[among[k]]),
    )
    for margin, (model, expected, bound) in zip(
        MARGINS, need["choices"][: len(MARGINS)], strict=True
    ):
        chosen = next((k for k in order if loss_bounds.bound[k] <= margin), None)
        assert (chosen is None) == (model is None)
        if chosen is not None:
            assert board.models[among[chosen]] == NAMES[model]
            own = max(loss_bounds.bound[chosen], expected)
            assert own == pytest.approx(bound, abs=NEAR_BOUND)


def test_the_normal_distribution_is_that_of_scipy():
    values = np.concatenate([np.linspace(-40, 40, 100_001), [0.0, -0.0, np.inf, -np.inf]])
    assert np.abs(normal_below(values) - ndtr(values)).max() <= 1e-15
    tail = np.linspace(-36, -1, 10_001)
    assert (np.abs(normal_below(tail) / ndtr(tail) - 1) <= 1e-12).all()


def test_the_pairs_of_the_public_board():
    counts = [
        int(significantly_better(board.scores["macro"], board.critical).sum())
        for board in boards().values()
    ]
    assert counts == [658, 669, 446]


@pytest.mark.parametrize(
    ("models", "rounded", "shown"),
    [
        *((1, 10, 3.164), (10, 10, 3.164), (11, 20, 3.544), (41, 50, 3.992), (100, 100, 4.302)),
        *((101, 200, 4.593), (500, 500, 4.954), (1000, 1000, 5.211), (1001, 2000, None)),
    ],
)
def test_one_critical_value_for_a_board(models, rounded, shown):
    assert rounded_model_count(models) == rounded
    if shown is not None:
        assert round(critical_value(rounded), 3) == shown


@pytest.mark.parametrize("models", [10, 50])
def test_the_critical_value_is_that_of_the_studentized_range(models):
    expected = studentized_range.ppf(CONFIDENCE, models, np.inf) / math.sqrt(2)
    assert critical_value(models) == pytest.approx(expected, abs=1e-6)


def test_ranks_by_hand():
    # With ten models or fewer the limit is 3.164 standard errors of a difference: 0.0447 here.
    scores = made((0.40, 0.01), (0.50, 0.01), (0.46, 0.01), (0.44, 0.01), (0.50, 0.01))
    rank_table = rank_ranges(scores, critical_value(10))
    assert list(zip(*(part.tolist() for part in rank_table), strict=True)) == [
        (5, 4, 5),
        (1, 1, 3),
        (3, 1, 4),
        (4, 3, 5),
        (1, 1, 3),
    ]
    assert could_be_best(scores, everything(scores), critical_value(10)).tolist() == [1, 2, 4]


def test_a_difference_by_hand():
    comparison = compare_pair(made((0.53, 0.03), (0.50, 0.04)), 0, 1, 3.0)
    assert comparison == pytest.approx((0.03, -0.12, 0.18, norm.cdf(0.6), False))
    assert compare_pair(made((0.53, 0.003), (0.50, 0.004)), 0, 1, 3.0).is_significant


numbers = st.tuples(st.floats(-0.9, 0.9), st.floats(1e-4, 0.2))
boards_of = st.lists(numbers, min_size=1, max_size=9)


@given(boards_of)
def test_the_badge_is_a_rank_range_that_starts_at_one(pairs):
    scores = made(*pairs)
    c = critical_value(rounded_model_count(len(pairs)))
    rank_table, could = rank_ranges(scores, c), could_be_best(scores, everything(scores), c)
    assert could.tolist() == np.flatnonzero(rank_table.low == 1).tolist()
    assert (rank_table.low <= rank_table.rank).all()
    assert (rank_table.rank <= rank_table.high).all()
    assert int(np.argmax(scores.values)) in could


@given(boards_of)
def test_every_view_of_a_pair_says_the_same(pairs):
    scores = made(*pairs)
    c = critical_value(10)
    above = significantly_better(scores, c)
    for i, j in itertools.permutations(range(len(pairs)), 2):
        comparison = compare_pair(scores, i, j, c)
        assert comparison.is_significant == (above[i, j] or above[j, i])
        assert bool(above[i, j]) == (comparison.low > 0)
        both = could_be_best(scores, np.array([i, j]), c).tolist()
        assert (len(both) == 1) == comparison.is_significant


@given(boards_of, st.data())
def test_a_filter_takes_no_badge_away(pairs, data):
    scores, c = made(*pairs), critical_value(10)
    drawn_pairs = [k for k in range(len(pairs)) if data.draw(st.booleans())]
    whole = set(could_be_best(scores, everything(scores), c).tolist())
    part = set(could_be_best(scores, np.array(drawn_pairs, dtype=int), c).tolist())
    assert whole & set(drawn_pairs) <= part


@given(boards_of, st.randoms(use_true_random=False))
def test_another_order_or_another_row_changes_no_pair(pairs, random):
    order = list(range(len(pairs)))
    random.shuffle(order)
    scores, moved = made(*pairs), made(*(pairs[k] for k in order))
    c = critical_value(rounded_model_count(len(pairs)))
    assert c == critical_value(rounded_model_count(len(pairs) + 1))
    above, again = significantly_better(scores, c), significantly_better(moved, c)
    assert (again == above[np.ix_(order, order)]).all()
    grown = significantly_better(made(*pairs, (0.1, 0.05)), c)
    assert (grown[:-1, :-1] == above).all()


@settings(max_examples=examples(60))
@given(boards_of)
def test_laws_of_losses(pairs):
    scores, c = made(*pairs), critical_value(10)
    among = everything(scores)
    loss_bounds = possible_losses(scores, among, c)
    alone = [bool(loss_bounds.bound[k] == 0) for k in among]
    assert alone == [loss_bounds.best.tolist() == [k] for k in among]
    below = scores.values.max() - scores.values
    assert (loss_bounds.bound >= np.round(below, 9)).all()


def test_seeds_widen_what_they_are_part_of():
    scores = ScoreColumn(np.array([0.5, 0.4]), np.full(2, 0.0004), np.array([4.0, np.inf]))
    low, high = intervals_of(scores)
    assert high[0] - low[0] > high[1] - low[1]
    assert high[1] - low[1] == pytest.approx(2 * 1.96 * 0.02)
    comparison = compare_pair(scores, 0, 1, 3.0)
    # Satterthwaite: four degrees of freedom for half of the variance are sixteen for the whole.
    wide = float(student_quantile(3.0, np.float64(16.0))) * math.sqrt(0.0008)
    assert comparison.high - comparison.low == pytest.approx(2 * wide)


@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.booleans(), st.booleans())
@settings(max_examples=examples(25))
def test_groups_and_few_pairs_decide_as_all_pairs_do(seed, count, seeds, alike):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(0.5, 0.05, count), int(rng.integers(2, 9)))
    variance = rng.uniform(0.001, 0.02, count) ** 2 * (rng.random(count) > 0.1)
    # What seeds spread is shared by nobody: covariances stand for rows without.
    freedom = np.where(
        rng.random(count) < 0.5 * (seeds and not alike), rng.uniform(4, 60, count), np.inf
    )
    shared = None
    if alike:
        half = np.tril(rng.random((count, count)) < 0.2, -1)
        shared = (half + half.T) * 0.9 * np.sqrt(variance[:, None] * variance)
    scores, c = (
        ScoreColumn(values, variance, freedom, shared),
        critical_value(rounded_model_count(count)),
    )
    above = significantly_better(scores, c)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "GROUPED_MODELS_MIN", 0)
        patch.setattr(decisions, "GROUP_SIZE_MIN", int(rng.integers(1, 20)))
        patch.setattr(decisions, "PAIRS_AT_ONCE", int(rng.integers(1, 500)))
        rank_table = rank_ranges(scores, c)
        assert rank_table.low.tolist() == (1 + above.sum(axis=0)).tolist()
        assert rank_table.high.tolist() == (count - above.sum(axis=1)).tolist()
        among = rng.permutation(count)[: int(rng.integers(1, count + 1))]
        won = above[np.ix_(among, among)].any(axis=0)
        best = could_be_best(scores, among, c)
        assert sorted(best.tolist()) == sorted(among[~won].tolist())
        every, some = (possible_losses(scores, among, c, most) for most in (math.inf, 0.01))
    is_finite = np.isfinite(some.bound)
    assert (some.bound[is_finite] == every.bound[is_finite]).all()
    assert (every.bound[~is_finite] > 0.01).all()

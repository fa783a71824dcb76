"""What a draw of embeddings finds: bounds beside the draws that they are about."""

import itertools
import math

import numpy as np
import pytest

from geneb_ci.receipt.alteration_power import (
    hit_lower_bound,
    hit_probability_in_test,
    hit_probability_in_training,
    mcc,
    possible_alterations,
    tried_altered_counts,
)
from geneb_ci.receipt.draw import STANDARD_COUNTS, TaskStrata, draw_shares, drawn_embeddings
from geneb_ci.receipt.raise_bound import alterations_of_regime
from geneb_ci.statistics.metrics import scores_of_matrix

MATRIX = [[12, 4], [6, 9]]


def test_the_gain_of_an_alteration_is_the_difference_of_two_scores() -> None:
    alterations = possible_alterations(MATRIX, 1.0)
    at = 0
    for a, b in itertools.product(range(13), range(10)):
        honest = scores_of_matrix([[12 - a, 4 + a], [6 + b, 9 - b]]).mcc
        assert alterations.mcc_gain[at] == pytest.approx(
            scores_of_matrix(MATRIX).mcc - honest, abs=1e-12
        )
        expected = 0.5 * (a + b) / 21 + 0.25 * a / 12 + 0.25 * b / 9
        assert alterations.hit_probability[at] == pytest.approx(expected)
        at += 1
    assert at == len(alterations.hit_probability)


def test_the_mcc_of_an_empty_row_is_zero() -> None:
    assert mcc(*(np.array([number]) for number in (0.0, 0.0, 3.0, 4.0))).tolist() == [0.0]


def test_the_grid_begins_with_nothing_and_ends_with_all() -> None:
    for most in (0, 1, 5, 16, 17, 1000, 123_456):
        counts = tried_altered_counts(most)
        assert (counts[0], counts[-1]) == (0, most)
        assert len(counts) <= 18


def test_the_bound_is_below_every_alteration_that_raises_so_far() -> None:
    draw = np.random.default_rng(0)
    matrices = {
        f"t{i}": [[[int(n) for n in draw.integers(5, 15, 2)] for _ in range(2)]] for i in range(4)
    }
    cells = alterations_of_regime(matrices, {"a": ["t0", "t1", "t2"], "b": ["t3"]})
    for raise_ in (0.01, 0.05, 0.2):
        bound = hit_lower_bound(cells, raise_)
        for _ in range(500):
            picks = [draw.integers(len(cell.hit_probability)) for cell in cells]
            gain = sum(c.weight * c.mcc_gain[k] for c, k in zip(cells, picks, strict=True))
            hit = sum(c.weight * c.hit_probability[k] for c, k in zip(cells, picks, strict=True))
            assert gain < raise_ or hit >= bound * (1 - 1e-9)


def test_what_no_alteration_reaches_is_found_with_certainty() -> None:
    cells = alterations_of_regime({"t": [MATRIX]}, {"a": ["t"]})
    assert math.isinf(hit_lower_bound(cells, 1.9))
    assert hit_probability_in_test(cells, 1.9, 1) == 1.0


def test_more_rows_find_more_and_larger_raises_are_found_more_often() -> None:
    cells = alterations_of_regime({"t": [[[400, 100], [90, 410]]]}, {"a": ["t"]})
    chances = [
        [hit_probability_in_test(cells, raise_, n) for n in (10, 100, 1000)]
        for raise_ in (0.005, 0.02)
    ]
    assert all(row == sorted(row) for row in chances)
    assert all(first < other for first, other in zip(*chances, strict=True))


def test_a_task_of_many_classes_can_be_raised_too_and_draws_find_it() -> None:
    matrix = [[40, 3, 7], [5, 30, 5], [2, 8, 50]]
    cells = alterations_of_regime({"t": [matrix]}, {"a": ["t"]})
    claimed = scores_of_matrix(matrix).mcc
    for altered in range(1, 30):
        honest = [[40, 3, 7], [5 + altered, 30 - altered, 5], [2, 8, 50]]
        raised = claimed - scores_of_matrix(honest).mcc
        hit = 0.5 * altered / 120 + 0.5 * altered / 30 / 3
        assert hit_lower_bound(cells, raised) <= hit
    assert 0.5 < hit_probability_in_test(cells, 0.1, 100) < 1


def test_training_rows() -> None:
    assert hit_probability_in_training(0.001, 3000) == pytest.approx(0.950, abs=0.001)


def test_the_probability_of_a_draw_is_that_of_the_draws_made() -> None:
    """Three of 30 right embeddings of one class are altered; 400 seeds draw 10 embeddings each."""
    labels = np.r_[np.zeros(30, np.int64), np.ones(50, np.int64)]
    strata = TaskStrata("task", 1, labels, {"full": labels[None, :]}, {})
    counts = STANDARD_COUNTS.model_copy(update={"test": 10})
    share = draw_shares(counts, {"task": 2}, [["task"]])["task"]
    r = 0.5 * 3 / 80 + 0.25 * 3 / 30
    missed = 0
    for number in range(400):
        rows = drawn_embeddings([f"{number:064x}"], strata, share).rows["test full"]
        missed += not any(row - 1 < 3 for row in rows)
    # Five draws by each way; the two ways have different chances, so this is below (1 - r)^10.
    expected = (1 - 3 / 80) ** 5 * (1 - 0.5 * 3 / 30) ** 5
    assert expected <= (1 - r) ** 10
    assert missed / 400 == pytest.approx(expected, abs=3 * math.sqrt(expected / 400))

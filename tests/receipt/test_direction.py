"""The directional test: ranks against scipy, honest deviations, and label-directed ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from geneb_ci.receipt.direction import Probe, Stratum, direction_test, label_strata, midranks
from geneb_ci.receipt.embeddings import LEVEL
from tests.receipt.audited import SEED


def strata(shift: float, count: int = 20, size: int = 30, seed: int = 0) -> list[Stratum]:
    """Return strata whose upper embeddings lie a shift above the others, in standard deviations."""
    draw = np.random.default_rng(seed)
    results = []
    for number in range(count):
        upper = draw.random(size) < 0.4
        results.append(Stratum(str(number), draw.normal(size=size) + shift * upper, upper))
    return results


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
def test_midranks_are_those_of_scipy(values: list[int]) -> None:
    array = np.array(values, dtype=np.float64)
    assert midranks(array).tolist() == stats.rankdata(array).tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=4, max_size=40))
def test_one_stratum_is_the_rank_sum_of_scipy(rows: list[tuple[int, bool]]) -> None:
    values = np.array([float(value) for value, _ in rows])
    upper = np.array([side for _, side in rows])
    direction = direction_test([Stratum("one", values, upper)], SEED)
    if upper.all() or not upper.any() or len(set(values)) == 1:
        assert direction.statistic == 0
        return
    expected = stats.mannwhitneyu(
        values[upper], values[~upper], alternative="greater", method="asymptotic",
        use_continuity=False,
    )  # fmt: skip
    assert stats.norm.sf(direction.statistic) == pytest.approx(expected.pvalue, abs=1e-9)


def test_no_difference_is_no_direction() -> None:
    direction = direction_test([Stratum("one", np.zeros(50), np.arange(50) < 20)], SEED)
    assert (direction.rows, direction.statistic, direction.p) == (50, 0.0, 0.5)
    assert direction_test([], SEED).p == 0.5


def test_a_shift_towards_the_labels_is_found_and_one_away_from_them_is_not() -> None:
    assert direction_test(strata(0.8), SEED).is_significant
    assert direction_test(strata(-0.8), SEED).p > 0.99
    assert not direction_test(strata(0.0), SEED).is_significant


def test_a_shift_of_all_rows_alike_is_not_seen() -> None:
    moved = [
        stratum._replace(deviations=stratum.deviations + 100 * i)
        for i, stratum in enumerate(strata(0.0))
    ]
    assert direction_test(moved, SEED) == direction_test(strata(0.0), SEED)


def test_one_deviation_in_a_rare_class_is_not_significant() -> None:
    """Its normal p is 1e-5, and it happens by chance in one audit of twenty."""
    upper = np.arange(100) < 5
    direction = direction_test([Stratum("one", (np.arange(100) == 0).astype(float), upper)], SEED)
    assert direction.statistic > 4
    assert direction.p == pytest.approx(0.05, abs=0.01)


@pytest.mark.nightly  # a simulation
def test_false_alarms_are_at_most_the_level() -> None:
    alarms = sum(
        direction_test(strata(0.0, seed=seed), SEED).is_significant for seed in range(1000)
    )
    assert alarms <= 5  # of 1000 at 0.001, more have probability 6e-4


def test_the_strata_of_two_classes_are_those_of_the_labels() -> None:
    draw = np.random.default_rng(1)
    probe = Probe(np.c_[np.zeros(6), draw.normal(size=6)], np.array([0.0, 0.3]), np.array([3, 7]))
    labels = draw.choice([3, 7], size=20)
    difference, committed = draw.normal(size=(20, 6)), draw.normal(size=(20, 6))
    (direction,) = label_strata("task", difference, committed, labels, probe)
    assert direction.deviations == pytest.approx(difference @ probe.weights[:, 1])
    assert direction.has_upper_label.tolist() == (labels == 7).tolist()


def test_many_classes_are_compared_in_pairs_of_class_and_rival() -> None:
    draw = np.random.default_rng(2)
    probe = Probe(draw.normal(size=(6, 4)), draw.normal(size=4), np.arange(4))
    labels = draw.integers(4, size=200)
    difference, committed = draw.normal(size=(200, 6)), draw.normal(size=(200, 6))
    directions = label_strata("task", difference, committed, labels, probe)
    assert sum(len(direction.deviations) for direction in directions) == 200
    decision = committed @ probe.weights + probe.intercepts
    row = 11
    own = labels[row]
    rival = max((k for k in range(4) if k != own), key=lambda k: decision[row, k])
    low, high = sorted((own, rival))
    (stratum,) = (direction for direction in directions if direction.name == f"task {low} {high}")
    value = difference[row] @ (probe.weights[:, high] - probe.weights[:, low])
    index = np.isclose(stratum.deviations, value).nonzero()[0][0]
    assert stratum.has_upper_label[index] == (own == high)
    towards = (probe.weights[:, labels] - probe.weights.mean(axis=1, keepdims=True)).T
    assert direction_test(
        label_strata("task", towards, committed, labels, probe), SEED
    ).is_significant


def test_a_label_that_the_probe_does_not_know_is_left_out() -> None:
    probe = Probe(np.ones((2, 2)), np.zeros(2), np.array([0, 1]))
    labels = np.array([0, 1, 5, -1])
    directions = label_strata("task", np.ones((4, 2)), np.ones((4, 2)), labels, probe)
    assert sum(len(direction.deviations) for direction in directions) == 2


def test_the_level_is_a_thousandth() -> None:
    assert LEVEL == 0.001

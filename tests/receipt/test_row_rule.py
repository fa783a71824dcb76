"""The rule of a row: what float32 does passes, what is altered does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.receipt.embeddings import TAU, allowed
from geneb_ci.receipt.row_rule import Probe, is_same, judge, recorded, rounding
from reference_harness.canonical import Solved
from reference_harness.receipt.rounding import rounded

WIDTH = 512


def rows(count: int = 40, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    found: np.ndarray = (draw.normal(size=(count, WIDTH)) * scale).astype(np.float32)
    return found


def noisy(values: np.ndarray, size: float, seed: int = 1) -> np.ndarray:
    """Move every coordinate by noise of a size relative to the row."""
    draw = np.random.default_rng(seed)
    norm = np.sqrt(np.mean(np.square(values, dtype=np.float64), axis=1, keepdims=True))
    found: np.ndarray = (values + draw.normal(size=values.shape) * norm * size).astype("f4")
    return found


@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**30])
def test_the_same_rows_and_float32_noise_pass(scale: float) -> None:
    values = rows(scale=scale)
    made = rounded([values])
    for rerun in (values, noisy(values, 1e-7)):
        found = judge(made.values, rerun, made.scale_log2)
        assert not found.failed(WIDTH).any()
    assert judge(made.values, values, made.scale_log2).mismatch.max() == 0


@pytest.mark.parametrize(("size", "share"), [(1e-3, 1.0), (1e-4, 1.0), (1e-5, 0.5)])
def test_larger_noise_fails(size: float, share: float) -> None:
    values = rows()
    made = rounded([noisy(values, size)])
    found = judge(made.values, values, made.scale_log2)
    assert found.failed(WIDTH).mean() >= share


def test_what_moves_within_tau_of_a_border_breaks_the_share_that_may_differ() -> None:
    values = rows()
    honest = rounded([values])
    moved = honest.values.copy()
    wide = values.astype(np.float64)
    size = np.sqrt(np.mean(wide * wide, axis=1, keepdims=True))
    for side in (-1, 1):
        other = np.nextafter(honest.values, np.float16(side * np.inf), dtype=np.float16)
        middle = (other.astype(np.float64) + honest.values) / 2
        near = np.abs(middle - wide) <= 5 * TAU * size  # far more than the rule lets move
        moved[near] = other[near]
    found = judge(moved, values, honest.scale_log2)
    assert found.failed(WIDTH).all()
    assert found.mismatch.min() > allowed(WIDTH)


def test_the_limit_itself_passes_and_above_it_fails() -> None:
    assert is_same([TAU, TAU * 1.01], [0, 0], WIDTH).tolist() == [True, False]
    assert is_same([0.0, 0.0], [10, 11], WIDTH).tolist() == [True, False]
    assert [allowed(width) for width in (2, 64, 200, 256, 768)] == [2, 4, 4, 5, 15]


def test_another_sign_of_zero_is_no_difference_and_a_row_of_zeros_is_compared() -> None:
    zeros = np.zeros((1, 8), np.float16)
    assert not judge(zeros, -zeros.astype(np.float32), 0).failed(8).any()
    one = zeros.copy()
    one[0, 0] = 1
    assert judge(one, zeros.astype(np.float32), 0).failed(8).all()


def test_a_rerun_that_float16_cannot_hold_fails() -> None:
    huge = np.full((1, 8), 1e30, np.float32)
    assert np.isinf(rounding(huge, 0)).all()
    assert judge(np.ones((1, 8), np.float16), huge, 0).failed(8).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_coordinate_that_is_no_number_fails(value: float) -> None:
    """In one coordinate of many, which the share that may differ would let pass."""
    values = rows()
    made = rounded([values])
    values[:, 3] = value
    found = judge(made.values, values, made.scale_log2)
    assert found.failed(WIDTH).all()
    assert np.isfinite(found.deviation).all()


@given(st.floats(0, 1e300))
def test_a_shown_deviation_is_a_fixed_point(value: float) -> None:
    once = recorded(np.array([value]))
    assert recorded(once).tolist() == once.tolist()


@given(st.integers(2, 5), st.integers(0, 1000))
def test_a_probe_decides_as_in_the_harness_ties_too(classes: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    labels = np.arange(classes, dtype=np.int64) * 3
    weights = draw.integers(-2, 3, size=(8, classes)) / 3
    features = draw.integers(0, 3, size=(40, 8)) / 7
    found = Probe(weights, np.zeros(classes), labels).predict(features)
    due = Solved(weights, np.zeros(classes), labels, "", 0).predict(features)
    assert found.tolist() == due.tolist()

"""The rule of an embedding by its columns: what float32 does passes, what is altered does not."""

import numpy as np
import pytest

from geneb_ci.receipt.column_rule import (
    EmbeddingComparison,
    column_spreads,
    compare_with_repeat,
    compare_with_rerun,
    coordinate_tolerances,
    unfit_reason,
)
from geneb_ci.receipt.embeddings import FLOOR, TAU_OF_COLUMN, mismatch_limit
from reference_harness.receipt.rounding import RoundedEmbeddings, rounded

WIDTH = 512


def rows(count: int = 40, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    values: np.ndarray = (draw.normal(size=(count, WIDTH)) * scale).astype(np.float32)
    return values


def noisy(values: np.ndarray, size: float, seed: int = 1) -> np.ndarray:
    """Move every coordinate by noise of a size relative to the embedding."""
    draw = np.random.default_rng(seed)
    norm = np.sqrt(np.mean(np.square(values, dtype=np.float64), axis=1, keepdims=True))
    moved: np.ndarray = (values + draw.normal(size=values.shape) * norm * size).astype("f4")
    return moved


def compared(receipt: RoundedEmbeddings, rerun: np.ndarray) -> EmbeddingComparison:
    limits = coordinate_tolerances(rerun, receipt.scale_log2)
    return compare_with_rerun(receipt.values, rerun, limits, receipt.scale_log2)


@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**30])
def test_the_same_rows_and_float32_noise_pass(scale: float) -> None:
    values = rows(scale=scale)
    receipt = rounded([values])
    for rerun in (values, noisy(values, 1e-7)):
        assert not compared(receipt, rerun).failed(WIDTH).any()
    assert compared(receipt, values).mismatch.max() == 0


@pytest.mark.parametrize(("size", "share"), [(1e-3, 1.0), (1e-4, 1.0), (2e-5, 0.5)])
def test_larger_noise_fails(size: float, share: float) -> None:
    values = rows()
    assert compared(rounded([noisy(values, size)]), values).failed(WIDTH).mean() >= share


@pytest.mark.parametrize("large", [3e3, 3e5, 3e6, 1e8])
def test_a_column_of_large_values_widens_no_other_tolerance(large: float) -> None:
    """A row's size would be that column, and excuse anything elsewhere."""
    values = rows()
    values[:, 0] = large
    limits = coordinate_tolerances(values, 0)
    assert limits[:, 1:].max() < 2 * TAU_OF_COLUMN
    assert limits[:, 0] == pytest.approx(FLOOR * large)
    receipt = rounded([values])
    honest = np.ldexp(values.astype(np.float64), -receipt.scale_log2)
    moved = honest + np.ldexp(0.5, -receipt.scale_log2) * (np.arange(WIDTH) > 0)
    altered = RoundedEmbeddings(moved.astype(np.float16), receipt.scale_log2)
    assert compared(altered, values).failed(WIDTH).all()


@pytest.mark.parametrize("share", [0.03, 0.2])
def test_rows_that_are_outliers_widen_no_tolerance_of_the_rest(share: float) -> None:
    """A column that is 0 elsewhere could else hold the label within the tolerance it sets."""
    values = rows(200)
    outliers = np.arange(200) < share * 200
    values[outliers] *= 1e4
    values[~outliers, 0] = 0
    assert coordinate_tolerances(values, 0)[~outliers].max() < 3 * TAU_OF_COLUMN


def test_foreseen_rows_of_more_than_a_quarter_widen_no_tolerance_by_more_than_twice() -> None:
    """Support embeddings and the strongest are known to whoever writes the extractor."""
    values, foreseen = rows(100), np.arange(100) < 30
    honest = coordinate_tolerances(values, 0, ~foreseen)
    assert honest == pytest.approx(coordinate_tolerances(values, 0), rel=0.3)
    values[foreseen] += 1e3
    assert np.median(coordinate_tolerances(values, 0)[~foreseen]) > 100 * np.median(honest)
    assert (coordinate_tolerances(values, 0, ~foreseen)[~foreseen] < 4 * honest[~foreseen]).all()
    assert (column_spreads(values, np.zeros(100, dtype=np.bool_)) == column_spreads(values)).all()


def test_a_column_that_is_seldom_0_no_more_has_the_usual_tolerance() -> None:
    """As of a filter that seldom fires: its noise is that of the others."""
    values = rows(200)
    values[:, 0] = np.where(np.arange(200) % 10 == 0, 1 + values[:, 0] / 10, 0)
    assert column_spreads(values.astype(np.float64))[0] == pytest.approx(0.3, abs=0.1)


def test_few_rows_have_the_spread_of_many_but_for_chance() -> None:
    ratio = [
        column_spreads(rows(10, seed).astype(np.float64)).min() for seed in range(20)
    ]  # 10,240 columns of spread 1
    assert min(ratio) > 1 / 6


def test_the_massive_column_of_a_transformer_passes() -> None:
    """A mean of 3,001 and a spread of 0.065, which other kernels moved by 1.8e-4."""
    draw = np.random.default_rng(0)
    for seed in range(20):
        values = rows(75, seed)
        values[:, 0] = 3001 + 0.065 * values[:, 0]
        moved = noisy(values, 0)
        moved[:, 1:] = noisy(values[:, 1:], 8e-7 / 4, seed)
        moved[:, 0] += (1.8e-4 * draw.uniform(-1, 1, 75)).astype(np.float32)
        assert not compared(rounded([moved]), values).failed(WIDTH).any()


def test_what_moves_within_a_tolerance_of_a_border_breaks_the_share_that_may_differ() -> None:
    values = rows()
    honest = rounded([values])
    moved = honest.values.copy()
    wide = values.astype(np.float64)
    for side in (-1, 1):
        other = np.nextafter(honest.values, np.float16(side * np.inf), dtype=np.float16)
        middle = (other.astype(np.float64) + honest.values) / 2
        near = np.abs(middle - wide) <= 5e-5  # more than the rule lets move
        moved[near] = other[near]
    comparison = compared(RoundedEmbeddings(moved, honest.scale_log2), values)
    assert comparison.failed(WIDTH).all()
    assert comparison.mismatch.min() > mismatch_limit(WIDTH)


def test_the_limit_itself_passes_and_above_it_fails() -> None:
    deviation, mismatch = np.array([1.0, 1.01, 0, 0]), np.array([0, 0, 10, 11])
    failed = EmbeddingComparison(deviation, mismatch).failed(WIDTH)
    assert failed.tolist() == [False, True, False, True]
    assert [mismatch_limit(width) for width in (2, 64, 200, 256, 768)] == [2, 4, 4, 5, 15]


def test_a_row_of_zeros_is_compared() -> None:
    zeros = np.zeros((1, 8), np.float16)
    limits = coordinate_tolerances(zeros.astype(np.float32), 0)
    assert not compare_with_rerun(zeros, -zeros.astype(np.float32), limits, 0).failed(8).any()
    ones_row = zeros.copy()
    ones_row[0, 0] = 1
    assert compare_with_rerun(ones_row, zeros.astype(np.float32), limits, 0).failed(8).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_coordinate_that_is_no_number_fails(value: float) -> None:
    """In one coordinate of many, which the share that may differ would let pass."""
    values = rows()
    receipt = rounded([values])
    values[4, 3] = value
    comparison = compared(receipt, values)
    assert comparison.failed(WIDTH).nonzero()[0].tolist() == [4]
    assert np.isfinite(comparison.deviation).all()
    again = compare_with_repeat(
        receipt.values[4], values[4], rows()[4], coordinate_tolerances(values, 0)[4], 0
    )
    assert again.distance > 1e300


def test_a_row_embedded_again_is_compared_with_the_first_one_too() -> None:
    values = rows()
    receipt = rounded([values])
    limits = coordinate_tolerances(values, 0)
    first = values[3] + np.float32(1)
    again = compare_with_repeat(receipt.values[3], first, values[3], limits[3], 0)
    assert (again.deviation, again.mismatch) == (0, 0)
    assert again.distance > 1e4
    assert compare_with_repeat(receipt.values[3], values[3], values[3], limits[3], 0).distance == 0


def test_rows_that_float16_holds_badly_are_no_receipt() -> None:
    values = rows(200)
    assert unfit_reason(rounded([values]).values) == ""
    assert unfit_reason(np.zeros((4, 8), np.float16)) == ""
    constant = values * 1e-4 + 1
    assert "512 of the 512 columns vary by less than 0.001" in unfit_reason(
        rounded([constant]).values
    )
    constant[:, :300] = values[:, :300]
    assert unfit_reason(rounded([constant]).values) == ""
    values[0, 0] = 1e9
    assert "half of the non-zero values are below 6.1e-05" in unfit_reason(rounded([values]).values)
    sparse = np.where(values > 1.5, values, 0)
    sparse[0, 0] = 0
    assert unfit_reason(rounded([sparse]).values) == ""

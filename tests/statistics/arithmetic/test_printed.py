"""Digits printed become the interval that the value must lie in."""

import struct

import pytest

from geneb_ci.statistics.metrics import (
    MEAN_ROUNDING_ERROR,
    SINGLE_HALF_WIDTH,
    UNROUNDED_DECIMALS,
    UNROUNDED_HALF_WIDTH,
    column_decimals,
    decimals,
    half_widths,
    is_mixed,
)

FULL = [0.6940474726270046, 0.8470273881095525, 0.75]


def single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (1, 0),
        (0.75, 2),
        (0.8123, 4),
        (-0.0001, 4),
        (1e-12, 12),
        (1 / 3, UNROUNDED_DECIMALS),
        (MEAN_ROUNDING_ERROR, 0),
    ],
)
def test_decimals_are_counted(value, expected):
    assert decimals(value) == expected


def test_a_mean_of_equal_rounded_values_is_still_rounded():
    assert 0.8123 * 3 / 3 + 1e-16 != 0.8123
    assert decimals(0.8122999999999999) == 4


def test_a_column_is_as_exact_as_its_longest_value():
    assert half_widths(FULL) == [UNROUNDED_HALF_WIDTH] * 3
    assert half_widths([0.5, 0.812]) == pytest.approx([5e-4] * 2)


def test_a_mean_of_five_rounded_values_is_as_exact_as_those():
    column = [0.71234, 0.71236, 0.7]  # fifths of sums with four decimals
    assert column_decimals(column) == 5
    assert column_decimals(column, 5) == 4


def test_single_precision_is_told_by_the_numbers_it_has():
    assert half_widths([single(value) for value in FULL]) == [SINGLE_HALF_WIDTH] * 3
    assert half_widths([0.69404745, 0.84702741]) == [SINGLE_HALF_WIDTH] * 2


def test_a_regime_pieced_together_takes_each_value_at_its_own_digits():
    pieced = [0.6940474726270046, 0.8470273881095525, 0.7121, 0.1]
    assert is_mixed(pieced)
    assert half_widths(pieced, mixed=True) == pytest.approx(
        [UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH, 5e-5, 0.05]
    )
    for score in (-1.0, 0.0, 1.0):
        assert not is_mixed([*FULL, *FULL[:2], *[score] * 4])
    assert not is_mixed([0.7121, 0.7123])


def test_no_value_has_no_width():
    assert half_widths([]) == []

"""The nearest table is nearest, but for a hundredth of its distance."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.statistics.binary import (
    BinaryTable,
    Classes,
    _nearest_tables_with_rho,
    metrics_of_table,
    nearest_table,
)
from geneb_ci.statistics.metrics import Triple
from tests.examples import examples
from tests.statistics.arithmetic.draw import Drawn, tables


@given(tables(), st.tuples(*[st.floats(-0.2, 0.2)] * 3))
@settings(max_examples=examples(60))
def test_no_table_is_nearer(drawn: Drawn, shift):
    classes = drawn.classes
    expected = Triple(
        *(value + by for value, by in zip(metrics_of_table(drawn.table), shift, strict=True))
    )
    nearest = nearest_table(classes, expected)
    assert metrics_of_table(nearest.table) == pytest.approx(nearest.scores, abs=1e-12)
    step = max(1, classes.total // 3000)
    least = min(
        distance
        for rho in range(-classes.small, classes.large + 1, step)
        for distance, _, _ in _nearest_tables_with_rho(classes, expected, rho)
    )
    assert math.dist(nearest.scores, expected) <= 1.01 * least + 1e-12


def test_a_table_is_nearest_to_its_own_scores():
    classes = Classes(405, 405)
    nearest = nearest_table(classes, Triple(0.5356, 0.7667, 0.7662))
    # Classes of one size: a table and its mirror give the same scores.
    assert nearest.table in {(292, 113, 329, 76), (329, 76, 292, 113)}


@pytest.mark.parametrize(
    "classes", [Classes(1, 1), Classes(3, 8), Classes(405, 405), Classes(37, 919)]
)
def test_the_tables_at_the_ends_are_found(classes):
    """All predictions of one class: the least and the greatest rho there are."""
    ends = [
        BinaryTable(0, classes.small, classes.large, 0),
        BinaryTable(classes.small, 0, 0, classes.large),
        BinaryTable(classes.small, 0, classes.large, 0),
        BinaryTable(0, classes.small, 0, classes.large),
    ]
    for end in ends:
        nearest = nearest_table(classes, metrics_of_table(end))
        assert nearest.scores == pytest.approx(metrics_of_table(end), abs=1e-12)
        if classes.small != classes.large:
            assert nearest.table == end

"""Two classes: every table that exists is found, at any precision, and none that does not."""

import itertools
import math
import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from geneb_ci.statistics import binary
from geneb_ci.statistics.binary import (
    METRIC_ERROR_MAX,
    BinaryTable,
    Classes,
    RhoRange,
    binary_metrics,
    binary_table,
    fitting_rho_ranges,
    fitting_table_count,
    has_fitting_table,
    metrics_of_table,
    recovered_counts,
    rho_limits,
)
from geneb_ci.statistics.metrics import (
    MEAN_ROUNDING_ERROR,
    UNROUNDED_DECIMALS,
    UNROUNDED_HALF_WIDTH,
    ReportedTriple,
    Triple,
    half_width,
    is_unrounded,
)
from reference_harness.probe import metrics
from tests.each import each
from tests.examples import examples
from tests.statistics.arithmetic.draw import Drawn, read, tables

PRECISIONS = [None, 15, 12, 9, 7, 6, 5, 4, 3]


def correct_and_rho(binary_table: BinaryTable) -> tuple[int, int]:
    return (
        binary_table.small_correct + binary_table.large_correct,
        binary_table.large_correct - binary_table.small_correct,
    )


def tables_in_runs(classes: Classes, reading: ReportedTriple) -> set[BinaryTable]:
    return {
        binary_table(classes, run.correct, rho)
        for run in fitting_rho_ranges(classes, reading)
        for rho in range(run.first_rho, run.last_rho + 1, 2)
    }


def is_held(drawn: Drawn, runs: Iterable[RhoRange]) -> bool:
    """Whether a table, or for classes of equal size its mirror image, is in one of the runs."""
    right, rho = correct_and_rho(drawn.table)
    expected = {rho, -rho} if drawn.classes.small == drawn.classes.large else {rho}
    return any(
        run.correct == right
        and run.first_rho <= at <= run.last_rho
        and (at - run.first_rho) % 2 == 0
        for run in runs
        for at in expected
    )


def all_tables(classes: Classes) -> list[BinaryTable]:
    return [
        BinaryTable(small, classes.small - small, large, classes.large - large)
        for small in range(classes.small + 1)
        for large in range(classes.large + 1)
    ]


@pytest.mark.parametrize(
    ("classes", "value", "width"),
    [
        (Classes(10, 27), Triple(-0.74, 0.04, 0.54), Triple(0.05, 0.05, 0.5)),
        (Classes(9, 10), Triple(-0.1, 0.42, 0.65), Triple(0.05, 0.01, 0.5)),
        (Classes(11, 18), Triple(0.13, 0.66, 0.57), Triple(0.1, 0.01, 0.5)),
        (Classes(12, 29), Triple(0.67, 0.83, 0.8), Triple(0.1, 0.01, 0.2)),
    ],
)
def test_tables_on_both_sides_of_the_turning_point_of_mcc_are_found(classes, value, width):
    """Among tables of one accuracy, MCC falls and then rises, or the other way round."""
    reading = ReportedTriple(value, width)
    expected = {
        all_table
        for all_table in all_tables(classes)
        if reading.agrees_with(metrics_of_table(all_table), 1e-14)
    }
    assert expected
    assert tables_in_runs(classes, reading) == expected


@given(drawn=tables())
@settings(max_examples=examples(300))
def test_the_formulas_are_the_definitions_of_scikit_learn(drawn):
    binary_table = drawn.table
    # Rows of a matrix as weights: 70,000 labels a draw would take minutes.
    truth, predicted = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    weights = np.array(
        [
            binary_table.small_correct,
            binary_table.small_wrong,
            binary_table.large_correct,
            binary_table.large_wrong,
        ]
    )
    present = weights > 0
    truth, predicted = truth[present], predicted[present]
    weights = weights[present]
    mcc = matthews_corrcoef(truth, predicted, sample_weight=weights)
    f1 = f1_score(truth, predicted, average="macro", sample_weight=weights, zero_division=0.0)
    triple = metrics_of_table(binary_table)
    assert triple.mcc == pytest.approx(mcc, abs=1e-9)
    assert triple.f1 == pytest.approx(f1, abs=1e-12)
    assert (
        triple.acc
        == (binary_table.small_correct + binary_table.large_correct) / drawn.classes.total
    )


@pytest.mark.parametrize("decimals", PRECISIONS)
@given(drawn=tables())
@example(drawn=Drawn(Classes(1, 34_401), BinaryTable(1, 0, 34_401, 0)))  # accuracy and F1 both 1
@settings(max_examples=examples(150))
def test_the_recovered_set_always_holds_the_true_table(decimals, drawn: Drawn):
    classes, binary_table = drawn
    assert is_held(
        drawn, fitting_rho_ranges(classes, read(metrics_of_table(binary_table), decimals))
    )


@given(
    drawn=tables(),
    counts=st.integers(8, 60),
    f1_width=st.sampled_from([UNROUNDED_HALF_WIDTH, 1e-4, 0.01]),
)
@settings(max_examples=examples(150))
def test_no_range_of_accuracies_is_left_out_that_has_a_table(drawn: Drawn, counts, f1_width):
    """Whole ranges of correct predictions are excluded by bounds, which have to be certain."""
    classes, binary_table = drawn
    widths = Triple(UNROUNDED_HALF_WIDTH, counts / classes.total, f1_width)
    assert is_held(
        drawn, fitting_rho_ranges(classes, ReportedTriple(metrics_of_table(binary_table), widths))
    )


@each("classes", [Classes(1, 1), Classes(1, 9), Classes(6, 6), Classes(5, 12)])
@each("decimals", PRECISIONS)
def test_the_recovered_set_is_that_of_a_search_through_all_tables(classes, decimals):
    everything = {all_table: metrics_of_table(all_table) for all_table in all_tables(classes)}
    for name, triple in everything.items():
        reading = read(triple, decimals)
        expected = {
            other for other, gives in everything.items() if reading.agrees_with(gives, 1e-14)
        }
        if classes.small == classes.large:
            expected = {other for other in expected if other.large_correct >= other.small_correct}
        assert tables_in_runs(classes, reading) == expected, name


@given(st.integers(1, 30), st.integers(0, 30), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=examples(200))
def test_any_three_numbers_give_the_tables_they_may_be(small, more, mcc, acc, f1):
    classes = Classes(small, small + more)
    reading = ReportedTriple(Triple(mcc, acc, f1), Triple(0.05, 0.02, 0.03))
    expected = {
        all_table
        for all_table in all_tables(classes)
        if reading.agrees_with(metrics_of_table(all_table), 1e-14)
    }
    if not more:
        expected = {
            table_wanted
            for table_wanted in expected
            if table_wanted.large_correct >= table_wanted.small_correct
        }
    assert tables_in_runs(classes, reading) == expected


def test_accuracy_and_f1_of_a_place_bound_rho():
    classes = Classes(7, 11)
    for right in range(classes.total + 1):
        least, most = rho_limits(classes, right)
        for rho in range(least, most + 1, 2):
            assert min(binary_table(classes, right, rho)) >= 0
        for rho in (least - 2, most + 2):
            assert min(binary_table(classes, right, rho)) < 0


def test_all_digits_leave_one_table_of_the_largest_task():
    classes = Classes(33_578, 33_579)
    for small, large in itertools.product([20_000, 33_578], [19_999, 20_000, 25_001]):
        binary_table = BinaryTable(small, 33_578 - small, large, 33_579 - large)
        assert tables_in_runs(classes, read(metrics_of_table(binary_table), None)) == {binary_table}


def test_counting_stops_above_the_limit():
    classes = Classes(33_578, 33_579)
    reading = read(metrics_of_table(BinaryTable(20_000, 13_578, 20_000, 13_579)), 2)
    assert fitting_table_count(classes, reading, 1000) > 1000


def test_scores_that_no_table_has_have_no_counts():
    exact = Triple(0.0, 0.0, 0.0)
    impossible = ReportedTriple(Triple(0.9, 0.5, 0.5), exact)
    assert recovered_counts(Classes(30, 50), impossible) == [0, 0, 0]
    table = BinaryTable(20, 10, 45, 5)
    reported = ReportedTriple(metrics_of_table(table), Triple(1e-9, 1e-9, 1e-9))
    assert recovered_counts(Classes(30, 50), reported) == [1, 20, 45]


def test_mcc_is_zero_where_one_class_is_never_predicted():
    assert binary_metrics(Classes(3, 5), 5, 5) == Triple(0.0, 5 / 8, 5 / 13)
    assert math.isclose(metrics_of_table(BinaryTable(3, 0, 0, 5)).f1, 3 / 11)


def test_an_f1_of_one_or_more_asks_for_no_imbalance():
    """Exactly 1 as well: 1 - F1 is then no divisor."""
    half = Triple(1.0, 0.5, 0.5)
    for width in (0.5 - METRIC_ERROR_MAX, 0.5, 0.6):
        reading = ReportedTriple(half._replace(f1=0.5), half._replace(f1=width))
        assert fitting_table_count(Classes(3, 5), reading, 1000) > 0
    assert 0.5 + (0.5 - METRIC_ERROR_MAX) + METRIC_ERROR_MAX == 1.0


def test_what_the_harness_computes_needs_no_width():
    """Its formulas round otherwise than ours, in the sixteenth digit; that much is allowed for."""
    rng = random.Random(5)
    no_width = Triple(0.0, 1e-13, 0.0)
    differ = 0
    for _ in range(400):
        classes = Classes(*sorted((rng.randint(1, 900), rng.randint(1, 900))))
        right = [rng.randint(0, size) for size in classes]
        binary_table = BinaryTable(
            right[0], classes.small - right[0], right[1], classes.large - right[1]
        )
        matrix = np.array([binary_table[:2], binary_table[3:] + binary_table[2:3]])
        value = Triple(*metrics.scores_of(matrix))
        differ += value != metrics_of_table(binary_table)
        mirrored = BinaryTable(
            binary_table.large_correct,
            binary_table.large_wrong,
            binary_table.small_correct,
            binary_table.small_wrong,
        )
        same = {binary_table, mirrored} if classes.small == classes.large else {binary_table}
        assert tables_in_runs(classes, ReportedTriple(value, no_width)) & same
    assert differ > 50


@given(
    st.tuples(st.integers(1, 300), st.integers(1, 300)).map(sorted),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([None, *range(3, 16)]),
    st.sampled_from([0.0, 1e-12, 1e-4, 0.02]),
)
def test_a_table_is_found_exactly_where_the_search_finds_one(sizes, small, large, places, edit):
    classes = Classes(*sizes)
    counts = round(small * classes.small), round(large * classes.large)
    value = binary_metrics(classes, sum(counts), counts[1] - counts[0])
    given_ = [x if places is None else round(x, places) for x in (value.mcc + edit, *value[1:])]
    width = UNROUNDED_HALF_WIDTH if places is None else half_width(places)
    reading = ReportedTriple(Triple(*given_), Triple(width, width, width))
    assert has_fitting_table(classes, reading) == (
        next(fitting_rho_ranges(classes, reading), None) is not None
    )


@given(st.floats(-1, 1) | st.integers(-(10**13), 10**13).map(lambda n: n / 1e13))
def test_a_long_score_has_all_decimals(value):
    if is_unrounded(value):
        assert abs(value - round(value, UNROUNDED_DECIMALS - 1)) > MEAN_ROUNDING_ERROR


@pytest.mark.parametrize("decimals", [1, 2])
def test_of_scores_of_few_decimals_every_table_is_found_the_nearest_accuracies_first(decimals):
    draw = random.Random(7)
    width = Triple(*[0.5 * 10**-decimals] * 3)
    for _ in range(25):
        small = draw.randint(1, 30)
        classes = Classes(small, small + draw.randint(1, 60))
        value = metrics_of_table(draw.choice(all_tables(classes)))
        reading = ReportedTriple(Triple(*(round(score, decimals) for score in value)), width)
        expected = {
            each
            for each in all_tables(classes)
            if reading.agrees_with(metrics_of_table(each), 1e-14)
        }
        assert tables_in_runs(classes, reading) == expected
        middle = reading.value.acc * classes.total
        distances = [abs(run.correct - middle) for run in fitting_rho_ranges(classes, reading)]
        assert distances == sorted(distances)


@pytest.mark.parametrize("score", [0.0, 0.25, 0.5])
def test_coarse_scores_that_no_table_gives_are_refused_without_a_look_at_each_table(
    score, monkeypatch
):
    """A row of one number for everything took seconds: 4 million tables were computed."""
    looks = []

    def counted(*arguments):
        looks.append(arguments)
        return binary_metrics(*arguments)

    monkeypatch.setattr(binary, "binary_metrics", counted)
    reading = ReportedTriple(Triple(score, 0.5, score), Triple(0.05, 0.05, 0.05))
    assert not has_fitting_table(Classes(20_000, 50_000), reading)
    assert len(looks) < 200

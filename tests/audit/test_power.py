"""Detection: against counting every sample, against the published table, solved for the size."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.audit.sampling.design import (
    TABLE_DRAWN,
    TABLE_FABRICATED,
    DrawPopulation,
    detection_probability,
    detection_table,
    miss_probability,
    needed_sample_size,
    parse_probability,
    part_sample_sizes,
    probability_text,
)
from geneb_ci.common.errors import UsageProblem
from tests.examples import examples

HUNDRED = DrawPopulation((100,))
STRATIFIED = DrawPopulation((30, 22, 8, 8, 7, 6, 5, 5, 9), 8)
# The table of the protocol's description, N = 100.
PUBLISHED = {
    3: (0.030, 0.059, 0.088, 0.144, 0.273, 0.492, 0.661, 0.879),
    5: (0.050, 0.098, 0.144, 0.230, 0.416, 0.681, 0.839, 0.972),
    8: (0.080, 0.154, 0.223, 0.347, 0.583, 0.844, 0.949, 0.997),
    10: (0.100, 0.191, 0.273, 0.416, 0.670, 0.905, 0.977, 0.999),
    13: (0.130, 0.244, 0.344, 0.509, 0.769, 0.956, 0.993, 1.00),
    25: (0.250, 0.439, 0.582, 0.771, 0.952, 0.999, 1.00, 1.00),
}
SIZES_FOR_95 = (95, 78, 63, 45, 25, 13, 9, 5)


def by_counting(tasks: int, fabricated: int, drawn: int, power: Fraction) -> Fraction:
    """Go through every sample there is; the first tasks are the fabricated ones."""
    chances = [
        (1 - power) ** sum(task < fabricated for task in chosen)
        for chosen in itertools.combinations(range(tasks), drawn)
    ]
    return 1 - sum(chances, Fraction(0)) / len(chances)


@given(st.data())
def test_detection_is_what_counting_gives(data):
    tasks = data.draw(st.integers(1, 9))
    fabricated = data.draw(st.integers(0, tasks))
    drawn = data.draw(st.integers(1, tasks))
    power = data.draw(st.fractions(0, 1, max_denominator=10))
    probability = detection_probability(DrawPopulation((tasks,)), fabricated, drawn, power)
    assert probability == by_counting(tasks, fabricated, drawn, power)


@settings(max_examples=examples(50))
@given(st.data())
def test_stratified_detection_is_the_worst_placing(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    guaranteed = data.draw(st.integers(0, len(sizes)))
    drawn = data.draw(st.integers(max(1, guaranteed), sum(sizes)))
    fabricated = data.draw(st.integers(0, sum(sizes)))
    power = data.draw(st.sampled_from([Fraction(1), Fraction(4, 5)]))
    places = part_sample_sizes(sizes, guaranteed, drawn)
    worst = Fraction(1)
    for placing in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(placing) != fabricated:
            continue
        chance = Fraction(1)
        for size, own, seats in zip(sizes, placing, places, strict=True):
            chance *= 1 - by_counting(size, own, seats, power)
        worst = min(worst, 1 - chance)
    assert (
        detection_probability(DrawPopulation(tuple(sizes), guaranteed), fabricated, drawn, power)
        == worst
    )


def test_the_published_table():
    assert tuple(PUBLISHED) == TABLE_DRAWN
    rows = {row.drawn: row.detection for row in detection_table(HUNDRED)}
    assert {k: tuple(round(float(p), 3) for p in row) for k, row in rows.items()} == PUBLISHED
    sizes = [needed_sample_size(HUNDRED, m, Fraction("0.95")) for m in TABLE_FABRICATED]
    assert tuple(sizes) == SIZES_FOR_95


def test_figures_of_the_text():
    """What the protocol's description says beside its table."""
    assert round(float(detection_probability(HUNDRED, 20, 13)), 3) == 0.956
    four_fifths = [float(detection_probability(HUNDRED, m, 10, Fraction("0.8"))) for m in (5, 20)]
    assert [round(p, 3) for p in four_fifths] == [0.346, 0.837]
    once = 1 - detection_probability(HUNDRED, 5, 10)
    assert [round(float(1 - once**r), 2) for r in (1, 2, 4)] == [0.42, 0.66, 0.88]
    evaded = miss_probability(100, 20, 10)
    assert [round(float(p), 3) for p in (evaded, 1 - (1 - evaded) ** 10)] == [0.095, 0.632]


@pytest.mark.nightly
def test_stratification_costs_power_at_its_worst():
    """Whoever knows the places fabricates where few tasks are drawn: the table says so."""
    assert [probability_text(detection_probability(STRATIFIED, m, 13)) for m in (1, 5, 20)] == [
        ".100",
        ".431",
        ".933",
    ]
    assert all(
        detection_probability(STRATIFIED, m, 13) <= detection_probability(HUNDRED, m, 13)
        for m in range(101)
    )


@given(st.sampled_from([HUNDRED, STRATIFIED]), st.integers(1, 100))
@settings(max_examples=examples(30))
def test_the_sample_found_is_the_smallest(population, fabricated):
    expected = Fraction("0.9")
    sample_size = needed_sample_size(population, fabricated, expected)
    assert detection_probability(population, fabricated, sample_size) >= expected
    if sample_size > max(1, population.guaranteed):
        assert detection_probability(population, fabricated, sample_size - 1) < expected


@pytest.mark.parametrize(
    ("population", "fabricated", "confidence", "size"),
    [
        (HUNDRED, 100, Fraction("0.9"), 1),  # any task will do
        (
            DrawPopulation((4,)),
            1,
            Fraction(1, 2),
            2,
        ),  # two of four find one with exactly this probability
        (DrawPopulation((4,)), 1, Fraction(1), 4),
        (
            DrawPopulation((3, 3), 2),
            1,
            Fraction(1, 3),
            2,
        ),  # no sample is smaller than what is guaranteed
    ],
)
def test_the_smallest_sample_at_the_ends(population, fabricated, confidence, size):
    assert needed_sample_size(population, fabricated, confidence) == size


@pytest.mark.parametrize("fabricated", [0, 101, -1])
def test_a_number_of_tasks_that_there_is_not(fabricated):
    with pytest.raises(UsageProblem, match="so at most 100 can be fabricated"):
        needed_sample_size(HUNDRED, fabricated, Fraction(1, 2))


def test_what_no_sample_finds():
    with pytest.raises(UsageProblem) as caught:
        needed_sample_size(HUNDRED, 1, Fraction("0.95"), Fraction("0.8"))
    assert caught.value.message == (
        "no sample detects one of 1 fabricated task with probability 0.95, if a rerun detects a "
        "drawn fabricated task with probability 0.8 (--task-power)"
    )


def test_the_table_has_only_samples_that_there_can_be():
    small = DrawPopulation((4, 2), 1)
    assert [row.drawn for row in detection_table(small, [0, 1, 6, 3, 5, 3, 7], [1])] == [1, 3, 5, 6]
    assert [row.drawn for row in detection_table(STRATIFIED, fabricated=[1])] == [8, 10, 13, 25]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), ".000"),
        (Fraction(956, 1000), ".956"),
        (Fraction(99949, 100000), ".999"),
        (Fraction(99951, 100000), ">.999"),
        (Fraction(1), "1.000"),
    ],
)
def test_only_a_certain_one_is_shown_as_certain(value, text):
    assert probability_text(value) == text


def test_a_probability_is_taken_as_it_is_written():
    texts = ("0.95", "19/20", "1", "1e-9")
    assert [parse_probability(text, "--power") for text in texts] == [
        Fraction(19, 20),
        Fraction(19, 20),
        1,
        Fraction(1, 10**9),
    ]


@pytest.mark.parametrize("text", ["0", "-0.5", "1.001", "95 %", "1/0", "nan", ""])
def test_what_is_no_probability_is_refused(text):
    with pytest.raises(UsageProblem) as refusal:
        parse_probability(text, "--power")
    assert (refusal.value.message, refusal.value.fix) == (
        f"--power {text!r} is not a number above 0 and at most 1",
        "pass a probability, for example 0.95",
    )

"""Means of tables are never refused; what lies outside them is, with the limits that hold."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.statistics.binary import BinaryTable, Classes, metrics_of_table
from geneb_ci.statistics.mean_triples import Hull, Plane, hull_of, impossible_metric
from geneb_ci.statistics.metrics import UNROUNDED_HALF_WIDTH, ReportedTriple, Triple
from tests.each import each
from tests.examples import examples
from tests.statistics.arithmetic.draw import classes, part, read

SMALL = [Classes(1, 1), Classes(1, 7), Classes(4, 4), Classes(3, 8)]


def mean(triples: list[Triple]) -> Triple:
    return Triple(*(sum(column) / len(triples) for column in zip(*triples, strict=True)))


def all_triples(sizes: Classes) -> list[Triple]:
    return [
        metrics_of_table(BinaryTable(small, sizes.small - small, large, sizes.large - large))
        for small in range(sizes.small + 1)
        for large in range(sizes.large + 1)
    ]


@st.composite
def means(draw: st.DrawFn) -> tuple[Classes, Triple]:
    sizes = draw(classes())
    triples = []
    for _ in range(draw(st.sampled_from([1, 2, 5]))):
        small, large = draw(part(sizes.small)), draw(part(sizes.large))
        triples.append(
            metrics_of_table(BinaryTable(small, sizes.small - small, large, sizes.large - large))
        )
    while len(triples) < 5:
        triples.append(triples[-1])
    return sizes, mean(triples)


@pytest.mark.parametrize("decimals", [None, 9, 4, 3])
@given(drawn=means())
@settings(max_examples=examples(200))
def test_the_mean_of_any_five_tables_is_let_through(decimals, drawn):
    sizes, triple = drawn
    assert impossible_metric(Hull(sizes), read(triple, decimals)) is None


@pytest.mark.parametrize("sizes", SMALL)
def test_every_single_table_of_small_tasks_is_let_through(sizes):
    for triple in all_triples(sizes):
        assert impossible_metric(hull_of(sizes), read(triple, None)) is None


@pytest.mark.parametrize("sizes", [*SMALL, Classes(60, 85)])
def test_the_edges_span_all_tables(sizes):
    """The greatest value of any plane over all tables is reached on the four arcs."""
    hull, rng = Hull(sizes), random.Random(7)
    triples = all_triples(sizes)
    for _ in range(30):
        plane = Plane(*(rng.uniform(-1, 1) for _ in range(3)))
        greatest = max(map(plane.at, triples))
        table = hull.table_above(plane, greatest - 1e-9)
        assert table is not None
        assert plane.at(table) == pytest.approx(greatest, abs=1e-9)
        assert hull.table_above(plane, greatest + 1e-9) is None


@pytest.mark.parametrize("sizes", [Classes(60, 85), Classes(405, 405), Classes(33_578, 33_579)])
def test_metrics_rise_or_fall_together_along_an_arc(sizes):
    hull = Hull(sizes)
    for arc in hull.arcs:
        step = max(1, (arc.last_rho - arc.first_rho) // 500)
        along = [hull._triple(arc, rho) for rho in range(arc.first_rho, arc.last_rho + 1, step)]
        sign = 1 if along[0].acc <= along[-1].acc else -1
        for first, two in itertools.pairwise(along):
            assert all(sign * (b - a) >= -1e-15 for a, b in zip(first, two, strict=True))


@pytest.mark.parametrize("sizes", [Classes(405, 405), Classes(449, 864), Classes(4540, 22_703)])
def test_the_limits_of_a_refusal_are_where_refusals_begin(sizes):
    hull = Hull(sizes)
    halves = [
        (sizes.small // 2, sizes.large * 2 // 3),
        (sizes.small * 3 // 4, sizes.large // 2),
    ]
    middle = mean(
        [metrics_of_table(BinaryTable(a, sizes.small - a, b, sizes.large - b)) for a, b in halves]
    )
    for metric, far in (("mcc", 0.99), ("mcc", -0.99), ("f1", 0.999), ("f1", 0.001)):
        refused = impossible_metric(hull, read(middle._replace(**{metric: far}), None))
        assert refused is not None
        assert refused.metric == metric
        for limit, outward in ((refused.low, -0.01), (refused.high, 0.01)):
            inner = middle._replace(**{metric: limit - outward / 100})
            if metric == "mcc":
                assert impossible_metric(hull, read(inner, None)) is None
            assert (
                impossible_metric(hull, read(middle._replace(**{metric: limit + outward}), None))
                is not None
            )


@each("width", [UNROUNDED_HALF_WIDTH, 1e-4])
@each("sizes", [*SMALL, Classes(60, 85), Classes(4540, 22_703)])
def test_the_least_f1_is_that_of_means_of_three_tables(sizes, width):
    """Nothing right, one class predicted, all right; accuracy and F1 may be off by a width each."""
    small, large = sizes
    corners = [
        metrics_of_table(BinaryTable(*counts))
        for counts in ((0, small, 0, large), (0, small, large, 0), (small, 0, large, 0))
    ]
    for start, end in itertools.pairwise(corners):
        steepness = (end.f1 - start.f1) / (end.acc - start.acc)
        reach = width * (1 + steepness)
        for share in (0.25, 0.5, 0.75):
            least = Triple(*(x + share * (y - x) for x, y in zip(start, end, strict=True)))
            within = least._replace(f1=least.f1 - 0.99 * reach)
            assert (
                impossible_metric(
                    hull_of(sizes), ReportedTriple(within, Triple(width, width, width))
                )
                is None
            )
            below = least._replace(f1=least.f1 - 1.01 * reach - 1e-6)
            refused = impossible_metric(
                hull_of(sizes), ReportedTriple(below, Triple(width, width, width))
            )
            assert refused is not None
            assert (refused.metric, refused.high) == ("f1", least.acc)
            assert refused.low == pytest.approx(least.f1)


def test_f1_above_accuracy_is_refused():
    refused = impossible_metric(hull_of(Classes(50, 50)), read(Triple(0.2, 0.6, 0.61), None))
    assert refused is not None
    assert refused.metric == "f1"
    assert refused.high == 0.6


@pytest.mark.parametrize("sizes", [*SMALL, Classes(60, 60), Classes(300, 500)])
def test_a_search_among_pieces_of_one_height_ends(sizes):
    """Planes that see two arcs alike leave the order to the number of a piece."""
    hull = Hull(sizes)
    tables = all_triples(sizes) if sizes.total < 200 else hull.sampled_triples
    for plane in (
        Plane(0.0, 1.0, 0.0),
        Plane(0.0, -1.0, 0.0),
        Plane(0.0, 0.0, 1.0),
        Plane(0.0, 1.0, -1.0),
    ):
        top = max(plane.at(table) for table in tables)
        assert hull.table_above(plane, top + 1e-9) is None
        table_above = hull.table_above(plane, top - 1e-9)
        assert table_above is not None
        assert plane.at(table_above) > top - 1e-9

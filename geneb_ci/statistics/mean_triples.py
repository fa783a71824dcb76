"""Decide which means of MCC, accuracy and macro-F1 over several 2x2 tables are possible.

They are the convex hull of the triples (MCC, accuracy, macro-F1) of all tables of a task.

The accuracy and macro-F1 that means can have form a triangle. For class sizes a <= b and n = a + b,
its corners are the tables with no correct prediction, with only the large class predicted and with
all predictions correct, since every table has

    F1 <= accuracy                                   macro-F1 of two classes
    F1 >= accuracy n / (n + b)                       c n b >= rho^2 (n + b - c)
    1 - F1 = (1 - accuracy) n^2 / (n^2 - rho^2)      and rho^2 <= b^2

where c is the number of correct predictions and rho how many more of them are in the large class,
as in `binary`. The right side of the third is greatest at rho = b; the second holds because |rho|
is at most c and at most 2 b - c.
"""

import functools
import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

from geneb_ci.statistics.binary import Classes, binary_metrics, chebyshev_integers
from geneb_ci.statistics.metrics import ReportedTriple, Triple

SAMPLES_PER_ARC = 12
"""Number of tables sampled along each arc: enough to settle all published cells without a search.
"""
PERFECT_SCORES = Triple(1.0, 1.0, 1.0)
"""Metrics of the table in which every prediction is correct."""


class Plane(NamedTuple):
    """A linear function of a triple: each field is the factor of the metric of its name."""

    mcc: float
    acc: float
    f1: float

    def at(self, triple: Triple) -> float:
        """Return the value of the function at a triple."""
        return self.mcc * triple.mcc + self.acc * triple.acc + self.f1 * triple.f1


class Arc(NamedTuple):
    """The tables on one edge of the possible pairs (rho, number of correct predictions).

    Along the edge each metric only rises or only falls.
    """

    correct_at: Callable[[int], int]
    """Number of correct predictions at a rho."""
    first_rho: int
    """The smallest rho of the edge."""
    last_rho: int
    """The greatest rho of the edge."""


class Hull:
    """The convex hull of the triples of all tables of a task: the triples that means can have."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        a, b = classes
        self.arcs = (
            Arc(lambda rho: 2 * a + rho, -a, b - a),
            Arc(lambda rho: 2 * b - rho, b - a, b),
            Arc(lambda rho: -rho, -a, 0),
            Arc(lambda rho: rho, 0, b),
        )
        self.sampled_triples = sorted(
            {
                self._triple(arc, rho)
                for arc in self.arcs
                for rho in chebyshev_integers(arc.first_rho, arc.last_rho, SAMPLES_PER_ARC)
            }
        )
        self.lower = (binary_metrics(classes, 0, 0), binary_metrics(classes, b, b), PERFECT_SCORES)
        """Corners of the lower edge of F1 over accuracy, ascending."""
        self.earlier_results: dict[int, list[tuple[Triple, ...]]] = {1: [], -1: []}
        """Direction of a search (1: greater MCC, -1: smaller) -> its results, newest first.

        A result is three tables whose mean was found possible.
        """

    def _triple(self, arc: Arc, rho: int) -> Triple:
        """Return the metrics of the table of an arc at a rho."""
        return binary_metrics(self.classes, arc.correct_at(rho), rho)

    def keep_possible(self, sign: int, corners: "list[_Corner]") -> None:
        """Record the tables with which a search in direction `sign` found a mean possible."""
        tables = tuple(corner.table for corner in corners)
        earlier_results = [earlier for earlier in self.earlier_results[sign] if earlier != tables]
        self.earlier_results[sign] = [tables, *earlier_results[: EARLIER_RESULTS_MAX - 1]]

    def highest_sampled(self, plane: Plane) -> Triple:
        """Return the triple of the sampled table at which a plane is greatest."""
        mcc, acc, f1 = plane
        heights = [mcc * x + acc * y + f1 * z for x, y, z in self.sampled_triples]
        return self.sampled_triples[heights.index(max(heights))]

    def table_above(self, plane: Plane, level: float) -> Triple | None:
        """Return the triple of a table at which a plane exceeds a level; None: there is none."""
        highest_value, highest_table = level, None
        pieces: list[_ArcPiece] = []
        for arc in self.arcs:
            ends = self._triple(arc, arc.first_rho), self._triple(arc, arc.last_rho)
            piece = _ArcPiece(-_upper_bound_between(plane, *ends), len(pieces), arc, *ends)
            heapq.heappush(pieces, piece)
            for triple in ends:
                if plane.at(triple) > highest_value:
                    highest_value, highest_table = plane.at(triple), triple
        piece_count = len(pieces)
        # A table at least half as far above as the bound suffices: the next plane goes through it.
        while pieces and -pieces[0].negated_bound - level > 2 * (highest_value - level):
            _, _, arc, start, end = heapq.heappop(pieces)
            middle = (arc.first_rho + arc.last_rho) // 2
            if middle == arc.first_rho:
                continue
            triple = self._triple(arc, middle)
            if plane.at(triple) > highest_value:
                highest_value, highest_table = plane.at(triple), triple
            for half, left, right in (
                (arc._replace(last_rho=middle), start, triple),
                (arc._replace(first_rho=middle), triple, end),
            ):
                piece_count += 1
                heapq.heappush(
                    pieces,
                    _ArcPiece(
                        -_upper_bound_between(plane, left, right), piece_count, half, left, right
                    ),
                )
        return highest_table


class _ArcPiece(NamedTuple):
    """A part of an arc in the priority queue: greatest bound first, then oldest."""

    negated_bound: float
    """Upper bound of the plane's value on the part, negated: a heap pops its smallest first."""
    number: int
    """Serial number, which breaks ties."""
    arc: Arc
    """The part, as an edge with fewer values of rho."""
    start: Triple
    """Metrics of the table at the smallest rho of the part."""
    end: Triple
    """Metrics of the table at the greatest rho of the part."""


def _upper_bound_between(plane: Plane, start: Triple, end: Triple) -> float:
    """Return an upper bound of the linear function `plane` of the metrics between two tables.

    Each metric rises or falls all the way from the table `start` to the table `end`.
    """
    mcc, acc, f1 = plane
    return (
        max(mcc * start[0], mcc * end[0])
        + max(acc * start[1], acc * end[1])
        + max(f1 * start[2], f1 * end[2])
    )


@functools.lru_cache(maxsize=1024)
def hull_of(classes: Classes) -> Hull:
    """Return the hull of a task; it is the same for every submission and regime."""
    return Hull(classes)


BOUND_TOLERANCE = 1e-9
"""How far a metric must lie outside its bound to count as impossible: far above rounding errors,
far below the effect of an edit."""
SIMPLEX_STEPS_MAX = 80
"""Maximum number of steps of the simplex method; a dozen usually suffice."""
LEAVING_SHARE_MIN = 1e-12
"""Smallest weight, in the entering table, of a corner that may leave the simplex (ratio test)."""
TRIANGLE_AREA_MIN = 1e-14
"""Area of a triangle in (accuracy, F1) below which its three tables count as collinear."""
EARLIER_RESULTS_MAX = 12
"""Maximum number of results kept per search direction. They are tried before a new search: models
have similar scores on a task, so the tables found for one often settle the next."""


class ImpossibleMetric(NamedTuple):
    """A reported metric that is impossible, and its limits given the other two metrics.

    Some mean of sampled tables attains each limit; means of other tables hardly exceed it.
    """

    metric: str
    """Name of the metric, as a field of `Triple`."""
    low: float
    """The smallest value that the metric can have."""
    high: float
    """The greatest value that the metric can have."""


class _PossibleMean(NamedTuple):
    """An accuracy and a macro-F1 that a mean over confusion matrices can have."""

    acc: float
    f1: float
    acc_width: float
    """Half the range around `acc` that contains the unrounded accuracy."""
    f1_width: float
    """Half the range around `f1` that contains the unrounded macro-F1."""


class _Corner(NamedTuple):
    """A corner of the simplex that contains a mean: a table's metrics and weight in the mean."""

    table: Triple
    """The metrics of the table."""
    weight: float
    """The share of the table in the mean."""


class _Face(NamedTuple):
    """The plane through three tables: sign * MCC = level + acc_slope * Acc + f1_slope * F1."""

    level: float
    """Value of the plane where accuracy and F1 are 0."""
    acc_slope: float
    f1_slope: float


def impossible_metric(hull: Hull, reported: ReportedTriple) -> ImpossibleMetric | None:
    """Return the metric that no mean of tables can have, or None if the means are possible."""
    value, width = reported
    # (c n - rho^2) / (n^2 - rho^2) <= c / n: macro-F1 of two classes is at most the accuracy.
    if value.f1 - width.f1 > value.acc + width.acc + BOUND_TOLERANCE:
        return ImpossibleMetric("f1", _least_f1(hull, value.acc)[0], value.acc)
    if _is_known_possible(hull, value, 1, value.mcc - width.mcc) and _is_known_possible(
        hull, value, -1, -value.mcc - width.mcc
    ):
        return None  # some means are above, and others below
    if _is_f1_below_all_means(hull, reported):
        return ImpossibleMetric("f1", _least_f1(hull, value.acc)[0], value.acc)
    mean = _nearest_possible_mean(hull, reported)
    corners = _starting_corners(hull, mean)
    # The mean of the corners is possible, so only the direction towards the reported MCC matters.
    sign = (
        1 if value.mcc > math.fsum(corner.weight * corner.table.mcc for corner in corners) else -1
    )
    hull.keep_possible(-sign, corners)
    level = sign * value.mcc - width.mcc
    if (
        _is_known_possible(hull, mean, sign, level)
        or _greatest_mcc(hull, mean, corners, sign, level) is None
    ):
        return None
    exact = mean._replace(acc_width=0.0, f1_width=0.0)
    low, high = _greatest_mcc(hull, exact, corners, -1), _greatest_mcc(hull, exact, corners, 1)
    return ImpossibleMetric("mcc", -1.0 if low is None else -low, 1.0 if high is None else high)


def _is_known_possible(hull: Hull, mean: "_PossibleMean | Triple", sign: int, level: float) -> bool:
    """Whether a mean of tables of an earlier search has a sign * MCC of at least `level`.

    The mean has the accuracy and F1 of `mean`. Then no search can prove that all means are below
    `level`, and none is needed.
    """
    for number, tables in enumerate(hull.earlier_results[sign]):
        first, second, third = _weights_in_mean(tables, mean.acc, mean.f1)
        if not (0 <= first < 1 and 0 <= second < 1 and 0 <= third < 1):
            continue
        origin, left, right = tables
        if sign * (first * origin.mcc + second * left.mcc + third * right.mcc) >= level:
            if number:
                hull.earlier_results[sign].insert(0, hull.earlier_results[sign].pop(number))
            return True
    return False


def _is_f1_below_all_means(hull: Hull, reported: ReportedTriple) -> bool:
    """Whether the reported macro-F1 is provably below all means of tables with this accuracy."""
    f1_min, slope = _least_f1(hull, reported.value.acc)
    f1_max = abs(slope) * reported.width.acc + reported.value.f1 + reported.width.f1
    return f1_min - f1_max > BOUND_TOLERANCE * (1 + abs(slope))


def _least_f1(hull: Hull, acc: float) -> tuple[float, float]:
    """Return the least F1 of means with this accuracy, and its slope over accuracy."""
    all_wrong, one_class, perfect = hull.lower
    start, end = (all_wrong, one_class) if acc < one_class.acc else (one_class, perfect)
    slope = (end.f1 - start.f1) / (end.acc - start.acc)
    return start.f1 + slope * (acc - start.acc), slope


def _nearest_possible_mean(hull: Hull, reported: ReportedTriple) -> _PossibleMean:
    """Return the reported accuracy with the nearest possible F1.

    The half-width of F1 grows by as much as F1 moves.
    """
    value, width = reported
    f1 = min(max(value.f1, _least_f1(hull, value.acc)[0]), value.acc)
    return _PossibleMean(value.acc, f1, width.acc, width.f1 + abs(f1 - value.f1))


def _greatest_mcc(
    hull: Hull, mean: _PossibleMean, corners: list[_Corner], sign: int, level: float | None = None
) -> float | None:
    """Return the greatest sign * MCC of means with the accuracy and F1 of `mean`.

    It is computed by the simplex method. Without `level`, only sampled tables are used; None: no
    result. With `level`, all tables are used, and a number proves that all means are below `level`;
    None: this is not proved.
    """
    for _ in range(SIMPLEX_STEPS_MAX):
        face = _face_through(corners, sign)
        if face is None:
            return None
        bound = face.level + face.acc_slope * mean.acc + face.f1_slope * mean.f1
        bound += abs(face.acc_slope) * mean.acc_width + abs(face.f1_slope) * mean.f1_width
        slack = BOUND_TOLERANCE * (1 + abs(face.acc_slope) + abs(face.f1_slope))
        margin = math.inf if level is None else level - bound - slack
        if margin <= 0:
            hull.keep_possible(sign, corners)
            return None
        plane = Plane(float(sign), -face.acc_slope, -face.f1_slope)
        entering: Triple | None = hull.highest_sampled(plane)
        if entering is None or plane.at(entering) <= face.level + slack:
            entering = None if level is None else hull.table_above(plane, face.level + margin)
        if entering is None:
            return bound
        corners = _corners_with(corners, entering)
    return None


def _starting_corners(hull: Hull, mean: _PossibleMean) -> list[_Corner]:
    """Return the three extreme tables in (accuracy, F1), with their weights in `mean`."""
    tables = (PERFECT_SCORES, *hull.lower[:2])
    return [
        _Corner(*pair)
        for pair in zip(tables, _weights_in_mean(tables, mean.acc, mean.f1), strict=True)
    ]


def _weights_in_mean(
    tables: tuple[Triple, ...], acc: float, f1: float
) -> tuple[float, float, float]:
    """Return the weights with which the mean of three tables has this accuracy and F1."""
    (_, acc0, f10), (_, acc1, f11), (_, acc2, f12) = tables
    acc1, f11, acc2, f12 = acc1 - acc0, f11 - f10, acc2 - acc0, f12 - f10
    area = acc1 * f12 - acc2 * f11
    if abs(area) < TRIANGLE_AREA_MIN:
        return 1.0, 0.0, 0.0
    right, up = acc - acc0, f1 - f10
    first, second = (right * f12 - acc2 * up) / area, (acc1 * up - right * f11) / area
    return 1.0 - first - second, first, second


def _face_through(corners: list[_Corner], sign: int) -> _Face | None:
    """Return the plane through three tables; None if they are collinear in accuracy and F1."""
    origin, left, right = (corner.table for corner in corners)
    acc1, f11, mcc1 = left.acc - origin.acc, left.f1 - origin.f1, sign * (left.mcc - origin.mcc)
    acc2, f12, mcc2 = right.acc - origin.acc, right.f1 - origin.f1, sign * (right.mcc - origin.mcc)
    area = acc1 * f12 - acc2 * f11
    if abs(area) < TRIANGLE_AREA_MIN:
        return None
    acc_slope, f1_slope = (mcc1 * f12 - mcc2 * f11) / area, (acc1 * mcc2 - acc2 * mcc1) / area
    level = sign * origin.mcc - acc_slope * origin.acc - f1_slope * origin.f1
    return _Face(level, acc_slope, f1_slope)


def _corners_with(corners: list[_Corner], table: Triple) -> list[_Corner]:
    """Return the corners after `table` has replaced the one whose weight first becomes 0."""
    shares = _weights_in_mean(tuple(corner.table for corner in corners), table.acc, table.f1)
    ratios = [
        corner.weight / share if share > LEAVING_SHARE_MIN else float("inf")
        for corner, share in zip(corners, shares, strict=True)
    ]
    leaving = ratios.index(min(ratios))
    weight = max(ratios[leaving], 0.0)
    new_corners = [
        _Corner(c.table, c.weight - weight * share)
        for c, share in zip(corners, shares, strict=True)
    ]
    new_corners[leaving] = _Corner(table, weight)
    return new_corners

"""Which mean triples several 2x2 tables can have: the convex hull of all tables of a task.

A mean of tables' triples lies in the convex hull of all triples, whatever their number. The hull is
spanned by few of them. With rho fixed (see `binary`), the predictions of each class are fixed in
number, and all three metrics are linear in the number of right predictions. So every table lies on
a straight line between the two tables of its rho with the most and the fewest right predictions:

    upper edge   right = min(2 a + rho, 2 b - rho)     one class is all right
    lower edge   right = |rho|                         one class is all wrong

which are 2 (n + 1) tables instead of (a + 1)(b + 1). Along each of four arcs (the upper edge has
its corner at rho = b - a, the lower one at rho = 0) all three metrics rise or fall together. Hence
the greatest value of a linear function over an arc lies below the sum, term by term, of its
greatest values at the arc's two ends; halving arcs makes that bound as sharp as needed, with proof.
"""

import functools
import heapq
from collections.abc import Callable
from typing import NamedTuple

from geneb_ci.arithmetic.binary import Classes, scores
from geneb_ci.arithmetic.spread import spread
from geneb_ci.arithmetic.triple import Triple

# Tables looked at along each arc before any search; with fewer, published cells would need one.
ARC_LOOKS = 12


class Plane(NamedTuple):
    """A linear function of a triple."""

    mcc: float
    acc: float
    f1: float

    def at(self, triple: Triple) -> float:
        """Give its value."""
        return self.mcc * triple.mcc + self.acc * triple.acc + self.f1 * triple.f1


class Arc(NamedTuple):
    """Tables of one edge between two rho, along which all metrics rise or fall together."""

    right: Callable[[int], int]
    first: int
    last: int


class Hull:
    """The triples of one task, as far as means of them are concerned."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        a, b = classes
        self.arcs = (
            Arc(lambda rho: 2 * a + rho, -a, b - a),
            Arc(lambda rho: 2 * b - rho, b - a, b),
            Arc(lambda rho: -rho, -a, 0),
            Arc(lambda rho: rho, 0, b),
        )
        self.looks = sorted(
            {
                self._triple(arc, rho)
                for arc in self.arcs
                for rho in spread(arc.first, arc.last, ARC_LOOKS)
            }
        )

        self.chain = lower_chain(self.looks)
        """Tables looked at whose means have the least F1 for their accuracy, ascending."""
        self.fan = [(1 - t.f1) / (1 - t.acc) for t in self.chain[:-1]]
        """Slopes from them to the perfect table, ascending."""

    def _triple(self, arc: Arc, rho: int) -> Triple:
        return scores(self.classes, arc.right(rho), rho)

    def look(self, plane: Plane) -> Triple:
        """Give the table that is greatest among those looked at."""
        mcc, acc, f1 = plane
        heights = [mcc * x + acc * y + f1 * z for x, y, z in self.looks]
        return self.looks[heights.index(max(heights))]

    def above(self, plane: Plane, level: float) -> Triple | None:
        """Give a table where a plane is above a level, or None: then there is none, with proof."""
        best, found = level, None
        pieces: list[_Piece] = []
        for arc in self.arcs:
            ends = self._triple(arc, arc.first), self._triple(arc, arc.last)
            pieces.append(_Piece(-_bound(plane, *ends), len(pieces), arc, *ends))
            for triple in ends:
                if plane.at(triple) > best:
                    best, found = plane.at(triple), triple
        heapq.heapify(pieces)
        number = len(pieces)
        # A table half as far above as any can be will do: the next plane goes through it.
        while pieces and -pieces[0].bound - level > 2 * (best - level):
            _, _, arc, start, end = heapq.heappop(pieces)
            middle = (arc.first + arc.last) // 2
            if middle == arc.first:
                continue
            triple = self._triple(arc, middle)
            if plane.at(triple) > best:
                best, found = plane.at(triple), triple
            for half, one, two in (
                (arc._replace(last=middle), start, triple),
                (arc._replace(first=middle), triple, end),
            ):
                number += 1
                heapq.heappush(pieces, _Piece(-_bound(plane, one, two), number, half, one, two))
        return found


class _Piece(NamedTuple):
    """A part of an arc in the queue: the greatest bound first, then the oldest."""

    bound: float
    number: int
    arc: Arc
    start: Triple
    end: Triple


def _bound(plane: Plane, one: Triple, two: Triple) -> float:
    """Give what a plane cannot exceed between two tables of an arc."""
    mcc, acc, f1 = plane
    return (
        max(mcc * one[0], mcc * two[0])
        + max(acc * one[1], acc * two[1])
        + max(f1 * one[2], f1 * two[2])
    )


def lower_chain(tables: list[Triple]) -> list[Triple]:
    """Give the tables on the lower edge of the convex hull of accuracy and F1, ascending."""
    chain: list[Triple] = []
    for table in sorted(tables, key=lambda t: (t.acc, t.f1)):
        while len(chain) > 1 and _turns_right(chain[-2], chain[-1], table):
            chain.pop()
        if not chain or table.acc > chain[-1].acc:
            chain.append(table)
    return chain


def _turns_right(one: Triple, two: Triple, three: Triple) -> bool:
    left = (two.acc - one.acc) * (three.f1 - one.f1)
    return left <= (two.f1 - one.f1) * (three.acc - one.acc)


@functools.lru_cache(maxsize=1024)
def hull_of(classes: Classes) -> Hull:
    """Give the hull of a task; it is the same for every submission and regime."""
    return Hull(classes)

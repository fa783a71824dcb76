"""Finds the 2x2 table whose metrics are nearest to a reported triple that no table gives."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.statistics.binary import BinaryTable, Classes, scores, spread, table
from geneb_ci.statistics.printed import Triple

# The distance as a function of rho has a few local minima, narrow ones near the ends.
LOOKS = 96
# Values of rho tried on both sides of a local minimum, because c is an integer.
AROUND = 24


class Nearest(NamedTuple):
    """A table that exists, and what it gives."""

    table: BinaryTable
    scores: Triple


def nearest(classes: Classes, wanted: Triple) -> Nearest:
    """Return the table with the least distance to `wanted`, within 1 % of the distance.

    For fixed rho all metrics are linear in the number of correct predictions, so only rho is
    searched: first coarsely, then in every valley.
    """
    looks = spread(-classes.small, classes.large, LOOKS)
    depth = {rho: _distance(classes, wanted, rho) for rho in looks}
    ends = [looks[0], *looks, looks[-1]]
    valleys = [
        (before, after)
        for before, rho, after in zip(ends, looks, ends[2:], strict=False)
        if depth[rho] <= min(depth[before], depth[after])
    ]
    best = min(_bottoms(classes, wanted, valleys), key=lambda place: place[0])
    _, right, rho = best
    if classes.small == classes.large:
        rho = abs(rho)  # the same table with swapped classes
    return Nearest(table(classes, right, rho), scores(classes, right, rho))


def _bottoms(
    classes: Classes, wanted: Triple, valleys: list[tuple[int, int]]
) -> Iterator[tuple[float, int, int]]:
    for low, high in valleys:
        left, right = low, high
        while right - left > 2 * AROUND:
            third = (right - left) // 3
            if _distance(classes, wanted, left + third) <= _distance(
                classes, wanted, right - third
            ):
                right -= third
            else:
                left += third
        for rho in range(
            max(left - AROUND, -classes.small), min(right + AROUND, classes.large) + 1
        ):
            yield from _at(classes, wanted, rho)


def _at(classes: Classes, wanted: Triple, rho: int) -> Iterator[tuple[float, int, int]]:
    """Yield the one or two best numbers of correct predictions for rho, with their distance."""
    least, most = abs(rho), min(2 * classes.small + rho, 2 * classes.large - rho)
    ideal = _ideal(classes, wanted, rho, least, most)
    below = least + (math.floor(ideal) - least) // 2 * 2
    for right in {below, min(below + 2, most)}:
        yield math.dist(scores(classes, right, rho), wanted), right, rho


def _distance(classes: Classes, wanted: Triple, rho: int) -> float:
    least, most = abs(rho), min(2 * classes.small + rho, 2 * classes.large - rho)
    return math.dist(scores(classes, _ideal(classes, wanted, rho, least, most), rho), wanted)


def _ideal(classes: Classes, wanted: Triple, rho: int, least: int, most: int) -> float:
    """Return the best number of correct predictions for rho, not rounded."""
    if least == most:
        return least
    start, end = scores(classes, least, rho), scores(classes, most, rho)
    along = [to - come for come, to in itertools.zip_longest(start, end)]
    length = math.fsum(part * part for part in along)
    share = math.fsum(
        part * (want - come) for part, want, come in zip(along, wanted, start, strict=True)
    )
    return least + (most - least) * min(1.0, max(0.0, share / length))

"""Random tables and matrices, small and large, often at the edges where formulas break."""

from typing import NamedTuple

from hypothesis import strategies as st

from geneb_ci.statistics.binary import BinaryTable, Classes
from geneb_ci.statistics.metrics import UNROUNDED_HALF_WIDTH, ReportedTriple, Triple, half_width

SIZE_MAX = 70_000


class Drawn(NamedTuple):
    classes: Classes
    table: BinaryTable


def part(whole: int) -> st.SearchStrategy[int]:
    """Draw a part of a whole: any, or close to none or all of it."""
    near = min(whole, 5)
    return st.one_of(st.integers(0, whole), st.integers(0, near), st.integers(whole - near, whole))


@st.composite
def classes(draw: st.DrawFn) -> Classes:
    small = draw(st.integers(1, SIZE_MAX // 2))
    large = draw(st.one_of(st.just(small), st.integers(small, SIZE_MAX - small)))
    return Classes(small, large)


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    sizes = draw(classes())
    small, large = draw(part(sizes.small)), draw(part(sizes.large))
    return Drawn(sizes, BinaryTable(small, sizes.small - small, large, sizes.large - large))


def read(triple: Triple, decimals: int | None) -> ReportedTriple:
    """Return a triple as it reads after rounding, or unrounded."""
    if decimals is None:
        return ReportedTriple(
            triple, Triple(UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH)
        )
    width = half_width(decimals)
    rounded = Triple(*(round(value, decimals) for value in triple))
    return ReportedTriple(rounded, Triple(width, width, width))


@st.composite
def matrices(draw: st.DrawFn) -> list[list[int]]:
    """Draw a confusion matrix of 3 to 40 classes, with at least two in the truth."""
    size = draw(st.integers(3, 40))
    matrix = [[0] * size for _ in range(size)]
    for k in range(size):
        matrix[k][k] = draw(st.sampled_from([0, 0, 1, 2, 7, 50, 900]))
    cell = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1), st.integers(1, 400))
    for row, column, number in draw(st.lists(cell, max_size=size)):
        matrix[row][column] += number
    for row in (0, 1):
        if not any(matrix[row]):
            matrix[row][draw(st.integers(0, size - 1))] = 1
    return matrix

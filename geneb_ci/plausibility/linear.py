"""The little linear algebra that the reference needs."""

from collections.abc import Sequence
from operator import mul


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Give the inner product."""
    return float(sum(map(mul, a, b)))


def gram(rows: Sequence[Sequence[float]], ridge: float) -> list[list[float]]:
    """Give the inner products of all pairs, with `ridge` added on the diagonal."""
    table = [[0.0] * len(rows) for _ in rows]
    for i, row in enumerate(rows):
        for k in range(i):
            table[i][k] = table[k][i] = dot(row, rows[k])
        table[i][i] = dot(row, row) + ridge
    return table


def inverse(matrix: Sequence[Sequence[float]]) -> list[list[float]]:
    """Invert a symmetric positive definite matrix by sweeping each pivot once (Beaton 1964).

    No pivoting is needed: a Gram matrix with a ridge has positive pivots in any order.
    """
    work = [list(row) for row in matrix]
    size = len(work)
    for k in range(size):
        pivot = 1.0 / work[k][k]
        top = [x * pivot for x in work[k]]
        for i in range(size):
            if i != k:
                row, factor = work[i], work[i][k]
                work[i] = [x - factor * y for x, y in zip(row, top, strict=True)]
                work[i][k] = -factor * pivot
        top[k] = pivot
        work[k] = top
    return work


def median_sorted(numbers: Sequence[float]) -> float:
    """Give the middle of numbers that are sorted already."""
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def median(numbers: Sequence[float]) -> float:
    """Give the middle of some numbers."""
    return median_sorted(sorted(numbers))

"""What a single changed prediction does to the metrics of a confusion matrix."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geneb_ci.arithmetic.triple import Triple

Matrix = Sequence[Sequence[int]]


class _Sums(NamedTuple):
    """The sums that MCC and accuracy are made of."""

    total: int
    right: int
    chance: int
    """Sum over the classes of its true count times its predicted count."""
    true_squares: int
    predicted_squares: int


def largest_effect(matrix: Matrix) -> Triple:
    """Give how far one changed prediction can move each metric of a (c, c) matrix.

    Row the true class, column the predicted one; definitions as in scikit-learn 1.9: MCC after
    Gorodkin, 0 where a margin is one class only; macro-F1 over the classes that occur.
    """
    true = [sum(row) for row in matrix]
    predicted = [sum(column) for column in zip(*matrix, strict=True)]
    sums = _Sums(
        total=sum(true),
        right=sum(matrix[k][k] for k in range(len(matrix))),
        chance=sum(t * p for t, p in zip(true, predicted, strict=True)),
        true_squares=sum(t * t for t in true),
        predicted_squares=sum(p * p for p in predicted),
    )
    terms = [_f1(matrix[k][k], true[k] + predicted[k]) for k in range(len(matrix))]
    mcc, f1 = _mcc(sums), _mean(terms)
    most_mcc = most_f1 = 0.0
    for row, old, new in _moves(matrix):
        moved = _moved(sums, true, predicted, row, old, new)
        most_mcc = max(most_mcc, abs(_mcc(moved) - mcc))
        after = list(terms)
        right_old = matrix[old][old] - (row == old)
        right_new = matrix[new][new] + (row == new)
        after[old] = _f1(right_old, true[old] + predicted[old] - 1)
        after[new] = _f1(right_new, true[new] + predicted[new] + 1)
        most_f1 = max(most_f1, abs(_mean(after) - f1))
    return Triple(most_mcc, 1 / sums.total, most_f1)


def _moves(matrix: Matrix) -> Iterator[tuple[int, int, int]]:
    """Give each (true class, predicted class now, predicted class then) of a change."""
    classes = range(len(matrix))
    for row in classes:
        for old in classes:
            if matrix[row][old]:
                yield from ((row, old, new) for new in classes if new != old)


def _moved(  # one argument a part of the change
    sums: _Sums, true: Sequence[int], predicted: Sequence[int], row: int, old: int, new: int
) -> _Sums:
    return sums._replace(
        right=sums.right - (row == old) + (row == new),
        chance=sums.chance - true[old] + true[new],
        predicted_squares=sums.predicted_squares + 2 * (predicted[new] - predicted[old]) + 2,
    )


def _mcc(sums: _Sums) -> float:
    square = sums.total * sums.total
    spread = (square - sums.predicted_squares) * (square - sums.true_squares)
    return (sums.right * sums.total - sums.chance) / math.sqrt(spread) if spread else 0.0


def _f1(right: int, both: int) -> float | None:
    """Give F1 of a class from its right predictions and the sum of its two margins."""
    return 2 * right / both if both else None


def _mean(terms: Sequence[float | None]) -> float:
    present = [term for term in terms if term is not None]
    return math.fsum(present) / len(present)

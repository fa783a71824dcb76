"""Confusion matrices of any number of classes: what they count, and the scores that follow."""

import math
import operator
from collections.abc import Sequence

from geneb_ci.statistics.printed import Triple

Matrix = Sequence[Sequence[int]]
"""Counts: a row for each true class, a column for each predicted one."""


def truths(matrix: Matrix) -> list[int]:
    """Return the number of sequences of each true class."""
    return [sum(row) for row in matrix]


def scores_of_matrix(matrix: Matrix) -> Triple:
    """Return the metrics of a square matrix with at least one count.

    MCC is Gorodkin's (Comput. Biol. Chem. 28, 2004), 0 where a margin has one class only. Macro-F1
    is the mean over the classes that occur in truth or prediction, as scikit-learn has it. Counts
    are added as integers: only the last operations round.
    """
    true, said = truths(matrix), [sum(column) for column in zip(*matrix, strict=True)]
    total, right = sum(true), [row[k] for k, row in enumerate(matrix)]
    hits = sum(right)
    covariance = hits * total - sum(map(operator.mul, true, said))
    spread = (total**2 - sum(n * n for n in said)) * (total**2 - sum(n * n for n in true))
    mcc = covariance / math.sqrt(spread) if spread else 0.0
    f1 = [2 * h / (n + m) for h, n, m in zip(right, true, said, strict=True) if n + m]
    return Triple(mcc, hits / total, math.fsum(f1) / len(f1))

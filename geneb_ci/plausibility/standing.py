"""One row against the reference: what the other rows predict of each of its cells."""

import math
from dataclasses import dataclass

from geneb_ci.plausibility.linear import dot
from geneb_ci.plausibility.reference import Reference, row_spread
from geneb_ci.plausibility.table import Vector, share_present

# A row with more holes than this is compared cell by cell, but not predicted as a whole.
PRESENT_MIN = 0.9
# Below this many cells, the spread of a row cannot be told from a fault in it.
CELLS_MIN = 30


@dataclass(frozen=True)
class Standing:
    """How far each cell lies from what the row's other cells and the other rows predict.

    Cells that are missing have no distance: 0, and a prediction that nobody asks for.
    """

    predicted: list[float]
    distance: list[float]
    """In standard deviations of what real rows of this board differ by."""
    spread: tuple[float, ...]
    """How far the row strays as a whole, by regime: about 1 for real rows, near 0 for a blend."""
    weights: dict[int, float]
    """The table's rows that the prediction is made of."""


def standing_of(row: Vector, reference: Reference, own: int | None) -> Standing | None:
    """Predict a row from the table without its own row; None when it is short or full of holes."""
    if len(row) < CELLS_MIN or share_present(row) < PRESENT_MIN:
        return None
    without = reference.place(own)
    moved = reference.centre.clipped(row)
    standard = [x / s for x, s in zip(moved, reference.unit, strict=True)]
    # 1. Weights of the other rows: A_-i Z x, where A_-i is the inverse without the row's own place.
    right = [dot(line, standard) for line in reference.standard]
    if without is not None:
        right[without] = 0.0
    weights = [dot(line, right) for line in reference.inverse]
    leverage = reference.leverage
    if without is not None:
        line, pivot = reference.inverse[without], reference.inverse[without][without]
        share = dot(line, right) / pivot
        weights = [w - a * share for w, a in zip(weights, line, strict=True)]
        weights[without] = 0.0
        out = reference.products[without]
        leverage = [q - u * u / pivot for q, u in zip(leverage, out, strict=True)]
    # 2. The prediction, with each cell left out in turn.
    fitted = [dot(weights, column) for column in reference.columns]
    predicted, residuals = [], []
    for x, m, s, z, f, h in zip(
        row, reference.centre.usual, reference.unit, standard, fitted, leverage, strict=True
    ):
        guess = m + s * (z - (z - f) / (1.0 - h))
        predicted.append(guess)
        residuals.append(x - guess if x == x else 0.0)  # noqa: PLR0124 (NaN)
    # 3. In units of the noise of the cell, then of the row's own spread where that is wider.
    distance: list[float] = []
    spreads: list[float] = []
    for number, part in enumerate(reference.table.regimes):
        cells = range(part.start, part.stop)
        sizes = [residuals[j] / reference.scale(j, number, without) for j in cells]
        spreads.append(
            row_spread([t for j, t in zip(cells, sizes, strict=True) if not math.isnan(row[j])])
        )
        distance += [t / max(1.0, spreads[-1]) for t in sizes]
    named = {reference.rows[k]: w for k, w in enumerate(weights) if w}
    return Standing(predicted, distance, tuple(spreads), named)

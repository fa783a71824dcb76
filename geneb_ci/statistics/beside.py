"""A plain row beside the rows of a table, by arrays: what is far from every limit is settled.

Sums of products round otherwise here than in `neighbours` and `view`, whose numbers decide. So a
number settles something only where it is farther from its limit than both can err.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.statistics.neighbours import NEAR, needed
from geneb_ci.statistics.reference import MAD, SCALE_FLOOR, Reference, ScoreTable

Array = npt.NDArray[np.float64]

MARGIN = 1e-6
"""Distance from a limit that is far: with the two limits below, sums err by less than 1e-7."""
SQUARES_MAX = 1e6
"""Of a row in the units of the fit: sums of its products err by less than 1e-9."""
FREE_MIN = 0.01
"""Least 1 - h for the leverage h of a cell: a prediction errs by 1 / (1 - h) times as much."""
NORM_MIN = 1e-6
"""Of a regime of a row less its mean: what rounding makes of one that is smaller may decide."""
STEPS = 8
"""In `NEAR`, of the whole numbers as which scores are compared."""
NO_SCORE = 20_000
"""Stands for a missing score: far from every other, and no difference leaves 16 bits."""


class Beside:
    """The rows of a table, with which a row is compared; `own` is the row's own place there."""

    def __init__(self, table: ScoreTable) -> None:
        rows = np.array(table.vectors)
        self._steps = _steps(rows).T.copy()
        present = (~np.isnan(rows)).sum(axis=1).tolist()
        self._needed = np.array([[needed(cells)] for cells in present])[:, 0]
        parts = rows.reshape(len(rows), len(table.regimes), -1).transpose(1, 0, 2)
        apart = parts - parts.mean(axis=2, keepdims=True)
        norms = np.sqrt((apart * apart).sum(axis=2, keepdims=True))
        self._units = np.divide(apart, norms, out=np.zeros_like(apart), where=norms > 0)
        """Zero where a cell of the regime is missing."""
        self._is_flat = (norms < NORM_MIN).any(axis=(0, 2))
        self._ranked = _ranked(parts)

    def has_copy(self, row: Array, own: int | None) -> bool:
        """Whether another row may have as many near cells as `copies` asks for."""
        apart = self._steps - _steps(row.ravel())[:, None]
        np.abs(apart, out=apart)
        # What is nearer than `NEAR` is at most so many steps apart, each rounded by half of one.
        near = np.add.reduce((apart <= STEPS + 1).view(np.uint8), axis=0, dtype=np.uint16)
        return _any_other(near >= self._needed, own)

    def has_affine(self, row: Array, own: int | None, residual_max: float) -> bool:
        """Whether `affine_copy` may find a fit of a regime by another row."""
        apart = row - row.mean(axis=1, keepdims=True)
        norms = np.sqrt((apart * apart).sum(axis=1, keepdims=True))
        far = residual_max * row.shape[1] ** 0.5
        if norms.min() <= 2 * far:  # nearly equal scores
            return True
        found = np.einsum("rij,rj->ir", self._units, apart / norms)
        # The residual is below the limit if 1 - r^2 < (far / norm)^2.
        least = np.sqrt(1.0 - (far / norms[:, 0]) ** 2) - MARGIN
        return _any_other((found >= least).any(axis=1) | self._is_flat, own)

    def lead(self, row: Array, own: int | None) -> float:
        """Return at least the largest share that `lead` gives of a regime."""
        return float(np.mean(row > _second(self._ranked, own), axis=1).max())


def _steps(scores: Array) -> npt.NDArray[np.int16]:
    return np.nan_to_num(np.rint(scores * (STEPS / NEAR)), nan=NO_SCORE).astype(np.int16)


def _any_other(found: npt.NDArray[np.bool_], own: int | None) -> bool:
    return bool(found.sum() > (own is not None and found[own]))


def _ranked(numbers: Array) -> Array:
    """Return the second and the third best number of each column, over all rows."""
    known = np.where(np.isnan(numbers), -np.inf, numbers)
    none = np.full((*numbers.shape[:-2], 3, numbers.shape[-1]), -np.inf)
    return np.sort(np.concatenate([known, none], axis=-2), axis=-2)[..., [-2, -3], :]


def _second(ranked: Array, own: int | None) -> Array:
    """Return what the second best of the other rows has at least, if they are ahead of a row."""
    return ranked[..., 0 if own is None else 1, :]


class Categories:
    """The category means of a table's rows in a regime."""

    def __init__(self, rows: Array, parts: Sequence[Sequence[int]]) -> None:
        self._shares = np.zeros((len(parts), rows.shape[1]))
        for number, places in enumerate(parts):
            self._shares[number, list(places)] = 1.0 / len(places)
        self._ranked = _ranked(np.einsum("ij,kj->ik", rows, self._shares))

    def is_behind(self, row: Array, own: int | None) -> bool:
        """Whether two other rows are ahead of a row in every category."""
        means = np.einsum("ij,j->i", self._shares, row)
        return bool((means < _second(self._ranked, own) - MARGIN).all())


class Fit:
    """A reference as arrays, for rows that it does not use."""

    def __init__(self, reference: Reference) -> None:
        self.rows = frozenset(reference.rows)
        self.regimes = len(reference.table.regimes)
        self.usual, self.reach = np.array(reference.centre.usual), np.array(reference.centre.reach)
        self.unit, self.standard = np.array(reference.unit), np.array(reference.standard)
        self.inverse, self.products = np.array(reference.inverse), np.array(reference.products)
        self.leverage, self.scales = np.array(reference.leverage), np.array(reference.scales(None))
        squares = (self.standard * self.standard).sum(axis=1)
        self.is_even = bool(squares.max() <= SQUARES_MAX and self.leverage.max() <= 1.0 - FREE_MIN)

    def distances(
        self, row: Array, standard: Array, fitted: Array, leverage: Array
    ) -> tuple[Array, Array]:
        """Return the distance of each cell from its prediction, and the spread of each regime."""
        guess = self.usual + self.unit * (standard - (standard - fitted) / (1.0 - leverage))
        sizes = ((row - guess) / self.scales).reshape(self.regimes, -1)
        spread = np.maximum(SCALE_FLOOR, MAD * np.median(np.abs(sizes), axis=1))
        return sizes / np.maximum(1.0, spread)[:, None], spread


class Predicted(NamedTuple):
    """What `standing` and `standing_alone` say of a row, nearly."""

    distance: Array
    """By regime and task."""
    alone: Array
    """The same without the row of the largest weight."""
    spread: float
    """Mean over the regimes."""
    largest: float
    """Size of the largest weight."""


def predicted(row: Array, fit: Fit) -> Predicted | None:
    """Return the prediction of a complete row that the fit does not use; None where in doubt."""
    row = row.ravel()
    standard = np.clip(row - fit.usual, -fit.reach, fit.reach) / fit.unit
    weights = np.einsum("ij,j->i", fit.inverse, np.einsum("ij,j->i", fit.standard, standard))
    nearest = int(np.abs(weights).argmax())
    second, largest = np.sort(np.abs(weights))[-2:].tolist()
    is_sure = fit.is_even and largest - second > MARGIN  # which row is the nearest
    if not is_sure or float((standard * standard).sum()) > SQUARES_MAX:
        return None
    fitted = np.einsum("ij,i->j", fit.standard, weights)
    distance, spread = fit.distances(row, standard, fitted, fit.leverage)
    pivot, cells = fit.inverse[nearest, nearest], fit.products[nearest]
    fitted = fitted - weights[nearest] / pivot * cells
    alone, _ = fit.distances(row, standard, fitted, fit.leverage - cells * cells / pivot)
    return Predicted(distance, alone, float(spread.mean()), largest)

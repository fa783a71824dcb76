"""The precision that embeddings show: whether a coarse dtype was declared without need.

The tolerance of an audit follows from the noise of the declared dtype. Who declares bfloat16 for an
extractor that computes in float32 has tolerances two to four times as wide. So the audit embeds
some sequences three times, in other places and other batches. A model in bfloat16 or float16 gives
other numbers then; embeddings that agree as those in float32 do get the tolerance of float32.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from geneb_ci.common.types import Count, Name, Positive, StrictModel

if TYPE_CHECKING:
    import numpy as np

REPRODUCIBLE = 1e-5
"""Largest root mean square of a difference, relative to that of the row, that counts as float32.
Measured on random BERTs in other batches: at most 2.3e-7 in float32, up to 1.8e-3 in bfloat16,
where 61 % of rows differ, so that of 64 pairs none does with probability below 1e-13."""
PAIRS_MIN = 16
"""Pairs of embeddings from which the precision is concluded."""
COARSE = ("bfloat16", "float16")
FINE = "float32"
SIGNIFICAND = {"float16": 10, "float32": 23, "float64": 52}
"""Stored bits of the significand of each type that a matrix may have."""


class Repeated(StrictModel):
    """Embeddings of the same sequences in other places and batches."""

    pairs: Count
    difference: float = Field(ge=0)
    """Largest root mean square of a difference, relative to that of the row."""
    bits: Count
    """Significant bits that the numbers use, 24 in float32: a bfloat16 has 8."""


class Precision(StrictModel):
    """Declared dtype, and what the embeddings of all tasks show of it."""

    declared: Name
    pairs: Positive
    difference: float = Field(ge=0)
    bits: Count

    @property
    def noise(self) -> str:
        """The dtype whose noise the tolerance has: never coarser than the declared one."""
        fine = self.pairs >= PAIRS_MIN and self.difference <= REPRODUCIBLE
        return FINE if self.declared in COARSE and fine else self.declared


def precision_of(declared: str, found: Iterable[Repeated]) -> Precision | None:
    """Return the precision over all tasks; None where nothing was repeated."""
    parts = [one for one in found if one.pairs]
    if not parts:
        return None
    return Precision(
        declared=declared,
        pairs=sum(one.pairs for one in parts),
        difference=max(one.difference for one in parts),
        bits=max(one.bits for one in parts),
    )


def repeated_of(pairs: Sequence[tuple["np.ndarray", "np.ndarray"]]) -> Repeated:
    """Return how far pairs of (d,) embeddings of one sequence differ.

    Rows of different widths, and rows too long to measure, differ by the largest float.
    """
    import numpy as np  # noqa: PLC0415 (slow to import, and only needed here)

    differences = [_difference(one, other) for one, other in pairs]
    shown = [one for one, _ in pairs[:1]]
    return Repeated(
        pairs=len(pairs),
        difference=min(max(differences, default=0.0), float(np.finfo(np.float64).max)),
        bits=max((_bits(one) for one in shown), default=0),
    )


def _difference(one: "np.ndarray", other: "np.ndarray") -> float:
    if one.shape != other.shape:
        return math.inf
    first, second = one.astype("<f8").tolist(), other.astype("<f8").tolist()
    apart = math.hypot(*(a - b for a, b in zip(first, second, strict=True)))
    share = apart / (math.hypot(*first) or 1.0)
    return math.inf if math.isnan(share) else share


def _bits(row: "np.ndarray") -> int:
    """Return the most significant bits that a number of a (d,) row uses; 0 for zeros alone."""
    stored = SIGNIFICAND[row.dtype.name]
    numbers = row.view(f"<u{row.dtype.itemsize}")
    most = 0
    for number, value in zip(numbers.tolist(), row.tolist(), strict=True):
        if value:
            part = number & ((1 << stored) - 1)
            zeros = (part & -part).bit_length() - 1 if part else stored
            most = max(most, stored - zeros + 1)
    return most


def precision_text(found: Precision) -> str:
    """Return the precision as one line."""
    used = f"; the tolerance has the noise of {found.noise}" * (found.noise != found.declared)
    return (
        f"precision: {found.declared} declared; {found.pairs} pairs of embeddings in other batches "
        f"differ by up to {found.difference:.1e} of their length, with {found.bits} significant "
        f"bits{used}"
    )

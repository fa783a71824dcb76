"""Judges from the decimals of a row's scores whether they were rounded."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from geneb_ci.statistics.metrics import WHOLE_SCORES, is_unrounded

JUDGED_METRICS = ("MCC", "F1")
"""Metrics whose decimals are judged: they are rarely round numbers. Accuracy is left out, as 0.75
is likely with 1,000 sequences."""
JUDGED_SCORES_MIN = 50
"""Minimum number of scores of a row that is judged; with fewer, their decimals prove nothing."""
ROUNDED_DECIMALS_MAX = 6
"""Maximum decimals of a rounded score. A file is rounded if `USUAL_SHARE` of its scores have at
most this many."""
USUAL_SHARE = 0.9
"""Share of the scores that have at most the usual number of decimals."""
COARSE_DECIMALS_MAX = 2
"""Maximum decimals of coarse rounding, which hides the differences between neighbours on the board
and defeats arithmetic checks."""
SHORT_SCORES_MIN = 3
"""Minimum number of scores with few decimals in a file that may be rounded. In a file of full
precision they are rare: the 41 public rows have one nonzero case in 24,600 (F1 0.7)."""


class Rounding(NamedTuple):
    """The decimals of the scores of a row that may have been rounded."""

    values: list[float]
    """MCC and F1 of every cell, except 0, 1 and -1, which look the same at every precision."""
    decimal_counts: list[int]
    """The number of decimals of each value; values with an exponent are left out."""

    @property
    def usual_decimals(self) -> int:
        """The number of decimals that 90 % of the values do not exceed."""
        return sorted(self.decimal_counts)[int(USUAL_SHARE * (len(self.decimal_counts) - 1))]

    @property
    def is_coarse(self) -> bool:
        """Whether the scores were rounded to two decimals or fewer."""
        return self.usual_decimals <= COARSE_DECIMALS_MAX


def rounding_of(cells: Iterable[Mapping[str, float]]) -> Rounding | None:
    """Return the decimals of the scores of cells; None for unrounded or too few scores."""
    scores = [cell[metric] for cell in cells for metric in JUDGED_METRICS if metric in cell]
    informative = [score for score in scores if score not in WHOLE_SCORES]
    short_decimals = [decimals(score) for score in informative if not is_unrounded(score)]
    if sum(n is not None and n <= ROUNDED_DECIMALS_MAX for n in short_decimals) < SHORT_SCORES_MIN:
        return None  # the file is not rounded; most files end here
    decimal_counts = [n for score in informative if (n := decimals(score)) is not None]
    if len(decimal_counts) < JUDGED_SCORES_MIN:
        return None
    return Rounding(informative, decimal_counts)


def decimals(score: float) -> int | None:
    """Return how many decimals a score has when printed; None with an exponent, NaN or infinity."""
    digits = repr(float(score))
    if "e" in digits or "n" in digits:
        return None
    fraction = digits.partition(".")[2]
    return 0 if fraction == "0" else len(fraction)

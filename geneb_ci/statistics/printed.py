"""The three printed metrics of one cell, and how exactly each is known."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Triple(NamedTuple):
    """MCC, accuracy and macro-F1 that belong to the same predictions, or means of such."""

    mcc: float
    acc: float
    f1: float

    def __str__(self) -> str:
        """Write the values for a message."""
        return self.text(4)

    def text(self, decimals: int) -> str:
        """Write the values with a number of decimals."""
        mcc, acc, f1 = (f"{value:.{decimals}f}" for value in self)
        return f"MCC {mcc}, accuracy {acc}, F1 {f1}"


class Reading(NamedTuple):
    """A printed triple: what was meant lies within `width` of `value`, metric by metric."""

    value: Triple
    width: Triple

    def holds(self, triple: Triple, slack: float = 0.0) -> bool:
        """Whether a triple may have been printed so."""
        return (
            abs(triple.mcc - self.value.mcc) <= self.width.mcc + slack
            and abs(triple.acc - self.value.acc) <= self.width.acc + slack
            and abs(triple.f1 - self.value.f1) <= self.width.f1 + slack
        )


def distinct_text(found: Triple, expected: Triple) -> tuple[str, str]:
    """Write two triples with as few decimals, from four, as tell them apart."""
    decimals = next((d for d in range(4, 16) if found.text(d) != expected.text(d)), 16)
    return found.text(decimals), expected.text(decimals)


# Doubles have 15 to 17 significant digits: more decimals than this are all there are.
LONG = 13
# 0.8123 averaged over five equal values becomes 0.8122999999999999: that is four decimals, not 16.
NOISE = 4e-15
# Formulas and orders of summation differ in the last one or two of 16 digits: by 4e-16 at most
# in 3,731 published cells. Neighbouring matrices differ by 1e-10 and more at 70,000 sequences.
EXACT = 1e-13
# What was computed in single precision is off by some 1e-7, however many digits were printed.
SINGLE = 5e-7
SINGLE_DECIMALS = range(7, 10)
# Scores other than zero that have this few decimals were rounded, an accuracy apart.
ROUNDED = 6
# A file is pieced together from rounded and unrounded scores when this share was rounded; then each
# score is taken at its own digits. Less are slips in single cells, which a message can speak of.
MIXED_SHARE = 1 / 3


def decimals(value: float) -> int:
    """Count the decimals a value was written with, `LONG` where it was not rounded."""
    if abs(value - round(value, LONG - 1)) > NOISE:
        return LONG
    return next(d for d in range(LONG) if abs(value - round(value, d)) <= NOISE)


def column_decimals(values: Sequence[float], repeats: int = 1) -> int:
    """Count the decimals that every value of a column was written with, at most.

    Each value is a mean of `repeats`: where those were rounded before the mean was taken, their
    decimals count, since it is they that limit what is known.
    """
    most = 0
    for value in values:
        most = max(most, decimals(value))
        if most == LONG:
            return LONG
    return min(most, max((decimals(repeats * value) for value in values), default=LONG))


def is_mixed(values: Iterable[float]) -> bool:
    """Whether MCC and F1 of a regime were partly rounded, each on its own."""
    lengths = [decimals(value) for value in values if value]
    rounded = sum(length <= ROUNDED for length in lengths)
    return rounded < len(lengths) and rounded >= MIXED_SHARE * len(lengths)


def half_width(length: int) -> float:
    """Return the half-width of the interval that a value of so many decimals stands for."""
    if length >= LONG:
        return EXACT
    half = max(0.5 * 10.0**-length, EXACT) + NOISE
    return max(half, SINGLE) if length in SINGLE_DECIMALS else half


def half_widths(values: Sequence[float], repeats: int = 1, *, mixed: bool = False) -> list[float]:
    """Return the half-width of each value of a column."""
    if mixed:
        return [half_width(column_decimals([value], repeats)) for value in values]
    length = column_decimals(values, repeats)
    if length == LONG and values and all(map(_is_single, values)):
        return [SINGLE] * len(values)
    return [half_width(length)] * len(values)


def _is_single(value: float) -> bool:
    """Whether a value is one of the numbers of single precision."""
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


class Bounds(NamedTuple):
    """Least and greatest MCC and macro-F1."""

    mcc_low: float
    mcc_high: float
    f1_low: float
    f1_high: float


def single(n: int, right: int) -> Bounds:
    """Return the bounds of one matrix on n sequences with a number of right predictions."""
    errors = n - right
    if not errors:
        return Bounds(1.0, 1.0, 1.0, 1.0)
    if not right:
        return Bounds(-1.0, 0.0, 0.0, 0.0)
    classes = n + errors
    return Bounds(
        -errors / n, n / (n + errors), right / n / classes, 1.0 - 2 * errors / (classes * n)
    )


def mean(n: int, right: int, repeats: int) -> Bounds:
    """Return the bounds of a mean over `repeats` matrices with so many right predictions in all."""
    total = n * repeats
    errors = total - right
    if not errors or not right:
        return single(n, right // repeats)
    acc = right / total
    return Bounds(acc - 1.0, (1.0 + acc) / 2, acc / (n * (2.0 - acc)), 1.0 - (1.0 - acc) / n)

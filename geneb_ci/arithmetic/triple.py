"""The three metrics of one cell, and the interval each printed one stands for."""

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

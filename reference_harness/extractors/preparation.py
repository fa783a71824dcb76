"""Change the letters of a sequence before they are turned into tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from .options import Options

_FILL_LETTER = "N"
"""The letter that fills a short sequence: any nucleotide."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Changes the letters of a sequence, in the order of the attributes below."""

    upper: bool = True
    """Whether lower case becomes upper case."""
    fixed: int | None = None
    """Length to which every sequence is cut or filled; None for no fixed length."""
    cut: str = "middle"
    """End of a longer sequence that is cut off: "right", "left", or "middle" for both ends."""
    fill: str = "both"
    """End at which N fills a shorter sequence: "right", "left" or "both", an odd N at the right."""
    multiple_of: int = 1
    """Letters are cut off at the right until their number is a multiple of this."""

    def __call__(self, sequences: Sequence[str]) -> list[str]:
        """Return the prepared letters of each sequence."""
        return [self._prepared(sequence, self.fixed) for sequence in sequences]

    def uncut(self, sequences: Sequence[str]) -> list[str]:
        """Return the prepared letters of each sequence, without cutting to the fixed length."""
        fixed = self.fixed
        return [
            self._prepared(letters, fixed and max(fixed, len(letters))) for letters in sequences
        ]

    def unfilled(self, sequences: Sequence[str]) -> list[str]:
        """Return the prepared letters of each sequence, without filling to the fixed length."""
        fixed = self.fixed
        return [
            self._prepared(letters, fixed and min(fixed, len(letters))) for letters in sequences
        ]

    def _prepared(self, letters: str, fixed: int | None) -> str:
        """Return the prepared letters, cut or filled to `fixed` letters unless it is None."""
        if self.upper:
            letters = letters.upper()
        if fixed is not None:
            letters = self._fit(letters, fixed)
        return letters[: len(letters) - len(letters) % self.multiple_of]

    def _fit(self, letters: str, length: int) -> str:
        """Return the letters cut or filled to a length."""
        excess = len(letters) - length
        if excess > 0:
            start = {"right": 0, "left": excess, "middle": excess // 2}[self.cut]
            return letters[start : start + length]
        left_fill = {"right": 0, "left": -excess, "both": -excess // 2}[self.fill]
        return _FILL_LETTER * left_fill + letters + _FILL_LETTER * (-excess - left_fill)


def preparation_of(options: Options) -> Preparation:
    """Return the preparation that the options declare."""
    return Preparation(
        upper=options.case == "upper",
        fixed=options.fixed_letters,
        cut=options.truncation,
        fill=options.padding,
        multiple_of=options.multiple_of,
    )

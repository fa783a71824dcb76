"""Changes to the letters of a sequence before they become tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from .options import Options

_FILL = "N"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How letters are prepared, in this order: upper case, a fixed length, a multiple of k."""

    upper: bool = True
    fixed: int | None = None
    """Letters that every sequence is cut or filled to."""
    cut: str = "middle"
    """Which part of a longer sequence is cut off: "right", "left", or both ends ("middle")."""
    fill: str = "both"
    """Where N fills a shorter one: "right", "left" or "both", the odd N at the right."""
    multiple_of: int = 1

    def __call__(self, sequences: Sequence[str]) -> list[str]:
        """Return the letters of each sequence as they are encoded."""
        return [self._prepared(sequence, self.fixed) for sequence in sequences]

    def uncut(self, sequences: Sequence[str]) -> list[str]:
        """Return the letters of each sequence if a longer one than the fixed length were kept."""
        fixed = self.fixed
        return [
            self._prepared(letters, fixed and max(fixed, len(letters))) for letters in sequences
        ]

    def unfilled(self, sequences: Sequence[str]) -> list[str]:
        """Return the letters of each sequence that are encoded, without those that fill it."""
        fixed = self.fixed
        return [
            self._prepared(letters, fixed and min(fixed, len(letters))) for letters in sequences
        ]

    def _prepared(self, letters: str, fixed: int | None) -> str:
        if self.upper:
            letters = letters.upper()
        if fixed is not None:
            letters = self._fit(letters, fixed)
        return letters[: len(letters) - len(letters) % self.multiple_of]

    def _fit(self, letters: str, length: int) -> str:
        over = len(letters) - length
        if over > 0:
            start = {"right": 0, "left": over, "middle": over // 2}[self.cut]
            return letters[start : start + length]
        before = {"right": 0, "left": -over, "both": -over // 2}[self.fill]
        return _FILL * before + letters + _FILL * (-over - before)


def preparation_of(options: Options) -> Preparation:
    """Return what the options declare."""
    return Preparation(
        upper=options.case == "upper",
        fixed=options.fixed_letters,
        cut=options.truncation,
        fill=options.padding,
        multiple_of=options.multiple_of,
    )

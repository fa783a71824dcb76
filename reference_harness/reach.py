"""Which letters of a sequence reach a model, seen by changing letters and comparing the embeddings.

What is not read can be changed without moving the embedding: bisection finds where the letters
that are read begin and end.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.floating]
Embed = Callable[[list[str]], Rows]
"""Returns the (n, d) embeddings of n sequences."""

_NEXT = str.maketrans("ACGTacgt", "CGTAcgta")
_OTHER_LETTERS = 3
"""Other letters that each of A, C, G, T can be changed to."""
SAMPLED = 8
"""Sequences of a task that are looked at: each takes a few calls, a cut one about thirty."""


class ReadSpan(NamedTuple):
    """The letters of a sequence from the first that is read to the last."""

    start: int
    stop: int
    given: int
    """Letters of the sequence."""

    @property
    def letters(self) -> int:
        """Letters between the two."""
        return self.stop - self.start

    @property
    def side(self) -> str:
        """Which end is cut: "right", "left", "both" or "none"."""
        if self.letters == self.given:
            return "none"
        if self.start == 0:
            return "right"
        return "left" if self.stop == self.given else "both"

    @property
    def words(self) -> str:
        """The end that is cut, in words."""
        return "both ends" if self.side == "both" else f"the {self.side} end"


def changed_letters(sequence: str, start: int, stop: int | None = None, shift: int = 1) -> str:
    """Replace every letter from `start` up to `stop` by the one `shift` places on in A, C, G, T."""
    stop = len(sequence) if stop is None else stop
    part = sequence[start:stop]
    for _ in range(shift):
        part = part.translate(_NEXT)
    return sequence[:start] + part + sequence[stop:]


class Mover:
    """Says whether changing letters of one sequence moves its embedding."""

    def __init__(self, embed: Embed, sequence: str) -> None:
        self._embed = embed
        self._sequence = sequence

    def moved(self, start: int, stop: int) -> float:
        """Return the largest difference that a change of these letters makes; 0 where none does.

        A maximum over tokens may hide one change, so each letter becomes every other one. All are
        of one call; its two embeddings of the sequence itself differ by what is no change.
        """
        variants = [
            changed_letters(self._sequence, start, stop, by) for by in range(1, _OTHER_LETTERS + 1)
        ]
        base, *changed, again = self._embed([self._sequence, *variants, self._sequence])
        largest = max(difference(row, base) for row in changed)
        return largest if largest > 2 * difference(again, base) else 0.0

    def unread(self) -> list[int]:
        """Return the places of the letters that can be changed without moving the embedding.

        All are changed once, in one call; those that move nothing become every other letter.
        """
        text = self._sequence
        changed = [changed_letters(text, i, i + 1) for i in range(len(text))]
        base, *changed_rows, again = self._embed([text, *changed, text])
        noise = 2 * difference(again, base)
        still = [i for i, row in enumerate(changed_rows) if difference(row, base) <= noise]
        return [i for i in still if not self.moved(i, i + 1)]

    def reach(self) -> ReadSpan:
        """Return where the letters that are read begin and end."""
        end = len(self._sequence)
        stop = end
        if not self.moved(end - 1, end):
            stop = _bisect(end, lambda n: self.moved(n, end) > 0)
        start = 0
        if stop and not self.moved(0, 1):
            start = stop - _bisect(stop, lambda n: self.moved(0, stop - n) > 0)
        return ReadSpan(start, stop, end)


def _bisect(end: int, moves_beyond: Callable[[int], bool]) -> int:
    """Return how many letters are read: the fewest beyond which nothing moves the row."""
    low, high = 0, end  # changes beyond `low` move the row, changes beyond `high` do not
    if not moves_beyond(0):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        if moves_beyond(middle):
            low = middle
        else:
            high = middle
    return high


def sampled(sequences: Sequence[str]) -> Iterator[str]:
    """Yield a few of some sequences, from the longest to the shortest, in equal steps."""
    ordered = sorted(sequences, key=lambda sequence: (-len(sequence), sequence))
    count = min(SAMPLED, len(ordered))
    for number in range(count):
        yield ordered[number * (len(ordered) - 1) // max(1, count - 1)]


def difference(actual: npt.NDArray[np.floating], expected: npt.NDArray[np.floating]) -> float:
    """Return the largest distance of two embeddings over the length of the expected one.

    Both are (n, d) or (d,). NaN, infinity, or anything where zeros are expected, gives infinity.
    """
    distance = _lengths(actual.astype(np.float64) - expected)
    length = _lengths(expected.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(distance == 0, 0.0, distance / length)
    worst = float(ratio.max(initial=0.0))
    return worst if np.isfinite(worst) else float("inf")


def _lengths(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    lengths: npt.NDArray[np.float64] = np.sqrt(np.square(np.atleast_2d(rows)).sum(axis=1))
    return lengths

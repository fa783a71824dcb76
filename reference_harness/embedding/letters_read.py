"""Find which letters of a sequence a model reads, by changing letters and comparing embeddings.

Letters that are not read can be changed without changing the embedding: bisection finds where the
letters that are read begin and end.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Embeddings = npt.NDArray[np.floating]
Embed = Callable[[list[str]], Embeddings]
"""Function that returns the (n, d) embeddings of n sequences."""

_NEXT_LETTER = str.maketrans("ACGTacgt", "CGTAcgta")
"""The cycle A, C, G, T, in which letters are changed."""
_CHANGES_PER_LETTER = 3
"""Number of letters to which each of A, C, G, T can be changed."""
SAMPLED_SEQUENCES = 8
"""Number of a task's sequences that are examined: each takes a few calls, a truncated one about
thirty."""


class ReadSpan(NamedTuple):
    """The span of a sequence from the first letter that is read to the last."""

    start: int
    stop: int
    letters_given: int
    """Number of letters of the sequence."""

    @property
    def letters(self) -> int:
        """Number of letters in the span."""
        return self.stop - self.start

    @property
    def unread_side(self) -> str:
        """The end that is not read: "right", "left", "both" or "none"."""
        if self.letters == self.letters_given:
            return "none"
        if self.start == 0:
            return "right"
        return "left" if self.stop == self.letters_given else "both"

    @property
    def unread_side_text(self) -> str:
        """The end that is not read, in words."""
        return "both ends" if self.unread_side == "both" else f"the {self.unread_side} end"


def changed_letters(sequence: str, start: int, stop: int | None = None, shift: int = 1) -> str:
    """Return the sequence with letters from `start` to `stop` shifted in the cycle A, C, G, T."""
    stop = len(sequence) if stop is None else stop
    shifted_letters = sequence[start:stop]
    for _ in range(shift):
        shifted_letters = shifted_letters.translate(_NEXT_LETTER)
    return sequence[:start] + shifted_letters + sequence[stop:]


class LetterChanger:
    """Finds which changes of letters of one sequence change its embedding."""

    def __init__(self, embed: Embed, sequence: str) -> None:
        self._embed = embed
        self._sequence = sequence

    def largest_change(self, start: int, stop: int) -> float:
        """Return the largest change of the embedding by a change of the letters `start` to `stop`.

        Return 0 if it is not above the noise. A maximum over tokens may hide one change, so each
        letter is changed to every other one. All variants are in one call, with the sequence itself
        twice, whose difference is noise.
        """
        variants = [
            changed_letters(self._sequence, start, stop, shift)
            for shift in range(1, _CHANGES_PER_LETTER + 1)
        ]
        original, *changed, repeated = self._embed([self._sequence, *variants, self._sequence])
        largest_distance = max(relative_distance(row, original) for row in changed)
        return (
            largest_distance
            if largest_distance > 2 * relative_distance(repeated, original)
            else 0.0
        )

    def unread_indices(self) -> list[int]:
        """Return the indices of the letters whose change does not change the embedding.

        All are changed once, in one call; those without an effect are then changed to every other
        letter.
        """
        sequence = self._sequence
        changed = [changed_letters(sequence, i, i + 1) for i in range(len(sequence))]
        original, *changed_embeddings, repeated = self._embed([sequence, *changed, sequence])
        noise = 2 * relative_distance(repeated, original)
        unchanged_indices = [
            i
            for i, row in enumerate(changed_embeddings)
            if relative_distance(row, original) <= noise
        ]
        return [i for i in unchanged_indices if not self.largest_change(i, i + 1)]

    def read_span(self) -> ReadSpan:
        """Return the span of the letters that are read."""
        end = len(self._sequence)
        stop = end
        if not self.largest_change(end - 1, end):
            stop = _bisect(end, lambda n: self.largest_change(n, end) > 0)
        start = 0
        if stop and not self.largest_change(0, 1):
            start = stop - _bisect(stop, lambda n: self.largest_change(0, stop - n) > 0)
        return ReadSpan(start, stop, end)


def _bisect(end: int, has_effect_beyond: Callable[[int], bool]) -> int:
    """Return the smallest n, at most `end`, for which a change beyond n letters has no effect."""
    low, high = 0, end  # a change beyond `low` has an effect, one beyond `high` has none
    if not has_effect_beyond(0):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        if has_effect_beyond(middle):
            low = middle
        else:
            high = middle
    return high


def sampled_sequences(sequences: Sequence[str]) -> Iterator[str]:
    """Yield a few sequences, from the longest to the shortest, in equal steps."""
    ordered = sorted(sequences, key=lambda sequence: (-len(sequence), sequence))
    count = min(SAMPLED_SEQUENCES, len(ordered))
    for step in range(count):
        yield ordered[step * (len(ordered) - 1) // max(1, count - 1)]


def relative_distance(
    actual: npt.NDArray[np.floating], expected: npt.NDArray[np.floating]
) -> float:
    """Return the largest distance of two embeddings, divided by the length of the expected one.

    Both are (n, d) or (d,). The result is infinite if a value is NaN or infinite, or if an
    embedding that is expected to be zero is not.
    """
    distance = _row_lengths(actual.astype(np.float64) - expected)
    length = _row_lengths(expected.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(distance == 0, 0.0, distance / length)
    ratio_max = float(ratio.max(initial=0.0))
    return ratio_max if np.isfinite(ratio_max) else float("inf")


def _row_lengths(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the Euclidean length of each row of a matrix."""
    lengths: npt.NDArray[np.float64] = np.sqrt(np.square(np.atleast_2d(rows)).sum(axis=1))
    return lengths

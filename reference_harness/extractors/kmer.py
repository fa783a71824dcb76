"""k-mer frequencies: a baseline without weights, counted with whole-array operations."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from .base import BaseEmbeddingExtractor, ExtractorError, LetterCounts

K_DEFAULT = 4
"""Length of the words if the option `k` is missing."""
SCALES = (None, "none", "unit")
"""Values that the option `scale` accepts; None, its default, means "none"."""
K_MAX = 10
"""Longest words: 4**10 columns in float32 are 4 MiB per sequence, and more would be too costly."""
CHUNK_LETTERS = 1 << 15
"""Letters counted in one pass: so many that its largest array, eight bytes per letter, fits into
the second-level cache of a core, and the allocator reuses its memory. Twice as many letters take
three times as long with sequences of 101 bp, half as many twice as long with 300 bp."""
CHUNK_COUNTS = 1 << 20
"""Number of counts in the matrix of one pass, of eight bytes each: 8 MB."""

_UPPER_CASE_BITS = np.uint8(
    0xDF
)  # clears the bit by which lower case differs from upper case in ASCII
"""Bits that lower-case and upper-case ASCII letters have in common."""
_COUNTED_LETTERS = tuple(np.uint8(ord(letter)) for letter in "ACGT")
"""ASCII codes of the letters of counted words, in the order of their digits."""


class KmerExtractor(BaseEmbeddingExtractor):
    """Frequencies of the 4**k words over A, C, G, T, in alphabetical order, as float32.

    Each is the count of the word, divided by the count of all windows that contain only A, C, G and
    T. Lower case counts as upper case, as soft-masked repeats are the same DNA; a window with any
    other letter (N, R, U, ...) is not counted; a sequence without a valid window has a row of
    zeros.
    """

    layer = "none"
    pooling = "mean"
    max_length = None
    truncation = "none"
    dtype = "float32"

    def __init__(
        self,
        name_model: str = "",
        device: str = "cpu",
        k: int = K_DEFAULT,
        scale: str | None = None,
    ) -> None:
        """Set the length `k` of the words; `name_model` and `device` have no effect.

        `scale` is "unit", "none" or None, as in `BaseEmbeddingExtractor`. Raise ExtractorError if k
        is not an integer from 1 to 10, or for another scale.
        """
        super().__init__(name_model, device)
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= K_MAX:
            msg = f"k is {k!r}, expected an integer from 1 to {K_MAX}: pass another k"
            raise ExtractorError(msg)
        if scale not in SCALES:
            msg = f"scale is {scale!r}, expected none or unit: pass another scale"
            raise ExtractorError(msg)
        self.k = k
        self.scale = scale or "none"
        self.source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def read_letters(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters, and of windows, which are the tokens.

        Letters outside windows of A, C, G and T only are not read, and other windows are unknown.
        """
        runs = re.findall(f"[ACGTacgt]{{{self.k},}}", "\n".join(sequences))
        lengths = [len(sequence) for sequence in sequences]
        read, overlap = sum(map(len, runs)), self.k - 1
        windows = sum(max(0, length - overlap) for length in lengths)
        return LetterCounts(sum(lengths), read, 0, windows, windows - read + overlap * len(runs))

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 1) -> np.ndarray:
        """Return the (n, 4**k) float32 frequencies of n sequences; `batch_size` has no effect."""
        del batch_size
        frequencies = np.empty((len(sequences), 4**self.k), dtype=np.float32)
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        for start, stop in _chunks(lengths, 4**self.k):
            counts, window_counts = _count(sequences[start:stop], lengths[start:stop], self.k)
            rows = frequencies[start:stop]
            rows[...] = counts
            rows /= np.maximum(window_counts, 1).astype(np.float32)[:, None]
        return frequencies


def _chunks(lengths: np.ndarray, width: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive sequences with few letters and a small count matrix."""
    ends = np.cumsum(lengths + 1)
    sequences_max = max(1, CHUNK_COUNTS // width)
    start = 0
    while start < len(lengths):
        end_before = int(ends[start - 1]) if start else 0
        stop_by_letters = int(np.searchsorted(ends, end_before + CHUNK_LETTERS, side="right"))
        stop = min(max(stop_by_letters, start + 1), start + sequences_max)
        yield start, stop
        start = stop


def _count(sequences: Sequence[str], lengths: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of each word in n sequences, (n, 4**k) int64, and their sums, (n,)."""
    text = "\n".join((*sequences, "\n" * (k - 1))).encode("ascii", "replace")
    upper_letters = np.frombuffer(text, dtype=np.uint8) & _UPPER_CASE_BITS
    windows = len(text) - k + 1
    is_other_letter = np.ones(len(text), dtype=bool)
    for letter in _COUNTED_LETTERS:
        is_other_letter &= upper_letters != letter
    # Bits 1 and 2 of the ASCII letters A, C, T, G are 0, 1, 2, 3; the second step swaps T and G
    # into the order of the alphabet.
    letters = (upper_letters >> np.uint8(1)) & np.uint8(3)
    letters ^= letters >> np.uint8(1)
    is_skipped = is_other_letter[:windows].copy()
    word_codes = letters[:windows].astype(np.min_scalar_type(4**k - 1))
    for shift in range(1, k):
        is_skipped |= is_other_letter[shift : shift + windows]
        word_codes *= 4
        word_codes += letters[shift : shift + windows]
    # The letters of sequence i and the line end after it belong to row i. A window across the line
    # end contains it and is skipped: it is counted in one cell after the last row.
    rows = len(sequences)
    count_indices = np.repeat(np.arange(rows, dtype=np.int64) * 4**k, lengths + 1)
    count_indices += word_codes
    skipped_windows = np.flatnonzero(is_skipped)
    window_counts = (
        lengths + 1 - np.bincount(count_indices[skipped_windows] // 4**k, minlength=rows)
    )
    count_indices[skipped_windows] = rows * 4**k
    counts = np.bincount(count_indices, minlength=rows * 4**k + 1)[:-1]
    return counts.reshape(rows, 4**k), window_counts

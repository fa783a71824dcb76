"""k-mer frequencies: the baseline without weights, counted with whole-array operations."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from .base import BaseEmbeddingExtractor, ExtractorError, Reading

K_DEFAULT = 4
SCALES = (None, "none", "unit")
# 4**10 columns in float32 are 4 MiB a sequence: beyond that a probe is no longer a baseline.
K_MAX = 10
# Letters counted in one pass: the widest array of a pass, eight bytes a letter, then stays in the
# second-level cache of one core, and the allocator keeps its arrays for the next pass. Twice as
# many letters take three times as long on sequences of 101 bp, half as many twice as long on 300.
CHUNK_LETTERS = 1 << 15
# Cells of the count matrix of one pass, eight bytes each: 8 MB.
CHUNK_CELLS = 1 << 20

_UPPER = np.uint8(0xDF)  # clears the bit by which lower case differs from upper case in ASCII
_VALID = tuple(np.uint8(ord(letter)) for letter in "ACGT")


class KmerExtractor(BaseEmbeddingExtractor):
    """Frequencies of the 4**k words over A, C, G, T, in alphabetical order, as float32.

    Each is the count of the word over the count of all windows that hold nothing but A, C, G
    and T. Lower case counts as upper case, as soft-masked repeats are the same DNA; a window with
    any other letter (N, R, U, ...) is left out of both counts; a sequence without a valid window
    gives a row of zeros.
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
        """Count words of `k` letters; `name_model` and `device` have no effect.

        `scale` is "unit" or none: see the interface. Raises ExtractorError when k is not an integer
        from 1 to 10, or for another scale.
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

    def read_letters(self, sequences: Sequence[str]) -> Reading:
        """Return what is read of sequences: the letters that are in a window that is counted."""
        runs = re.findall(f"[ACGTacgt]{{{self.k},}}", "\n".join(sequences))
        lengths = [len(sequence) for sequence in sequences]
        read, shorter = sum(map(len, runs)), self.k - 1
        windows = sum(max(0, length - shorter) for length in lengths)
        return Reading(sum(lengths), read, 0, windows, windows - read + shorter * len(runs))

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 1) -> np.ndarray:
        """Return the (n, 4**k) float32 frequencies of n sequences; `batch_size` has no effect."""
        del batch_size
        out = np.empty((len(sequences), 4**self.k), dtype=np.float32)
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        for start, stop in _chunks(lengths, 4**self.k):
            counts, total = _count(sequences[start:stop], lengths[start:stop], self.k)
            rows = out[start:stop]
            rows[...] = counts
            rows /= np.maximum(total, 1).astype(np.float32)[:, None]
        return out


def _chunks(lengths: np.ndarray, width: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into runs whose letters and whose count matrix are both bounded."""
    ends = np.cumsum(lengths + 1)
    most = max(1, CHUNK_CELLS // width)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        fits = int(np.searchsorted(ends, before + CHUNK_LETTERS, side="right"))
        stop = min(max(fits, start + 1), start + most)
        yield start, stop
        start = stop


def _count(sequences: Sequence[str], lengths: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Count the words of n sequences: (n, 4**k) of int64, and the (n,) sums of its rows."""
    text = "\n".join((*sequences, "\n" * (k - 1))).encode("ascii", "replace")
    upper = np.frombuffer(text, dtype=np.uint8) & _UPPER
    windows = len(text) - k + 1
    is_other_letter = np.ones(len(text), dtype=bool)
    for letter in _VALID:
        is_other_letter &= upper != letter
    # Bits 1 and 2 of the ASCII letters A, C, T, G are 0, 1, 2, 3; the second step swaps T and G
    # into the order of the alphabet.
    letters = (upper >> np.uint8(1)) & np.uint8(3)
    letters ^= letters >> np.uint8(1)
    skip = is_other_letter[:windows].copy()
    code = letters[:windows].astype(np.min_scalar_type(4**k - 1))
    for shift in range(1, k):
        skip |= is_other_letter[shift : shift + windows]
        code *= 4
        code += letters[shift : shift + windows]
    # The letters of sequence i and the line end after it belong to row i. A window that runs over
    # the line end holds it, and so is skipped: it goes to one cell beyond the last row.
    rows = len(sequences)
    cells = np.repeat(np.arange(rows, dtype=np.int64) * 4**k, lengths + 1)
    cells += code
    skipped = np.flatnonzero(skip)
    total = lengths + 1 - np.bincount(cells[skipped] // 4**k, minlength=rows)
    cells[skipped] = rows * 4**k
    counts = np.bincount(cells, minlength=rows * 4**k + 1)[:-1]
    return counts.reshape(rows, 4**k), total

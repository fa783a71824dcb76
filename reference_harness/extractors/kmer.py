"""k-mer frequencies: the baseline without weights, counted with whole-array operations."""

from collections.abc import Iterator, Sequence

import numpy as np

from .base import BaseEmbeddingExtractor, ExtractorError

K_DEFAULT = 4
# 4**10 columns in float32 are 4 MiB a sequence: beyond that a probe is no longer a baseline.
K_MAX = 10
# Letters counted in one pass. About 30 bytes a letter are alive at the peak, so a pass takes 30 MB.
CHUNK_LETTERS = 1 << 20
# Cells of the count matrix of one pass, eight bytes each: 32 MB.
CHUNK_CELLS = 1 << 22

_OTHER = 4
_CODES = np.full(256, _OTHER, dtype=np.uint8)
for _code, _letters in enumerate(("Aa", "Cc", "Gg", "Tt")):
    for _letter in _letters:
        _CODES[ord(_letter)] = _code


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

    def __init__(self, name_model: str = "", device: str = "cpu", k: int = K_DEFAULT) -> None:
        """Count words of `k` letters; `name_model` and `device` have no effect.

        Raises ExtractorError when k is not an integer from 1 to 10.
        """
        super().__init__(name_model, device)
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= K_MAX:
            msg = f"k is {k!r}, expected an integer from 1 to {K_MAX}: pass another k"
            raise ExtractorError(msg)
        self.k = k
        self.source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 1) -> np.ndarray:
        """Return the (n, 4**k) float32 frequencies of n sequences; `batch_size` has no effect."""
        del batch_size
        out = np.zeros((len(sequences), 4**self.k), dtype=np.float32)
        for start, stop in _chunks([len(s) for s in sequences], 4**self.k + 1):
            counts = _count(sequences[start:stop], self.k)
            total = counts.sum(axis=1, keepdims=True)
            # Dividing in float64 and rounding to float32 gives the same bits as dividing in
            # float32: 53 bits are more than twice 24 plus two.
            np.divide(
                counts, total, out=out[start:stop], where=total > 0, casting="same_kind"
            )
        return out


def _chunks(lengths: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into runs whose letters and whose count matrix are both bounded."""
    start, letters = 0, 0
    for row, length in enumerate(lengths):
        over = letters + length + 1 > CHUNK_LETTERS or (row - start + 1) * width > CHUNK_CELLS
        if over and row > start:
            yield start, row
            start, letters = row, 0
        letters += length + 1
    if start < len(lengths):
        yield start, len(lengths)


def _count(sequences: Sequence[str], k: int) -> np.ndarray:
    """Count the words of each sequence: (n, 4**k) int64."""
    width = 4**k + 1  # the last column takes the windows that are not counted
    text = "\n".join((*sequences, "\n" * k)).encode("ascii", "replace")
    letters = _CODES[np.frombuffer(text, dtype=np.uint8)]
    windows = len(letters) - k + 1
    other = letters == _OTHER
    skipped = other[:windows].copy()
    code = np.zeros(windows, dtype=np.int32)
    for shift in range(k):
        code *= 4
        code += letters[shift : shift + windows]
        skipped |= other[shift : shift + windows]
    code[skipped] = width - 1
    # Letter and line end of sequence i belong to row i: a window that runs over the line end
    # holds it, and so is skipped.
    spans = np.fromiter((len(s) + 1 for s in sequences), dtype=np.int64, count=len(sequences))
    cells = np.repeat(np.arange(len(sequences), dtype=np.int64) * width, spans)
    cells += code[: len(cells)]
    counts = np.bincount(cells, minlength=len(sequences) * width)
    return counts.reshape(len(sequences), width)[:, :-1]

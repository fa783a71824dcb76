"""A small transformer with random weights: the scores of an architecture without training."""

from collections.abc import Sequence

import numpy as np

from .base import BaseEmbeddingExtractor, LetterCounts

SEED = 42
"""Seed of the generator of the weights."""
LAYERS, WIDTH, HEADS = 2, 64, 4
INNER = 4 * WIDTH
"""Width within the feed-forward part."""
LENGTH_MAX = 1024
"""Maximum number of letters of a sequence that are read; the cost of attention is quadratic."""
SCORES_MAX = 1 << 18
"""Maximum number of attention scores computed at once: 1 MB, which fits into a core's cache."""
LETTERS = "ACGT"
"""Letters that have a token id, in the order of these ids."""
UNKNOWN = len(LETTERS)
"""Token id of every letter that is not in `LETTERS`."""
_IDS = np.full(256, UNKNOWN, dtype=np.intp)
"""Token id of each byte."""
for _token_id, _letter in enumerate(LETTERS):
    _IDS[[ord(_letter), ord(_letter.lower())]] = _token_id
EPSILON = 1e-5
"""Number that a norm adds to avoid a division by zero."""


class RandomInitExtractor(BaseEmbeddingExtractor):
    """Mean of the last states of a transformer of two layers with seeded random weights.

    Tokens are letters, positions are sinusoids; two pre-norm layers of width 64 with four heads
    have normal weights with variance 1 / number of inputs.
    """

    layer = "last"
    pooling = "mean"
    max_length = LENGTH_MAX
    truncation = "right"
    dtype = "float32"

    def __init__(self, name_model: str = "", device: str = "cpu") -> None:
        """Generate the weights; `name_model` and `device` have no effect."""
        super().__init__(name_model, device)
        generator = np.random.default_rng(SEED)

        def random_matrix(rows: int, columns: int) -> np.ndarray:
            normals: np.ndarray = generator.standard_normal((rows, columns)) / np.sqrt(rows)
            return normals.astype(np.float32)

        self.letters = random_matrix(UNKNOWN + 1, WIDTH) * np.float32(np.sqrt(UNKNOWN + 1))
        self.layers = [
            (
                random_matrix(WIDTH, 3 * WIDTH),
                random_matrix(WIDTH, WIDTH),
                random_matrix(WIDTH, INNER),
                random_matrix(INNER, WIDTH),
            )
            for _ in range(LAYERS)
        ]
        self.positions = _sinusoids(LENGTH_MAX)
        self.source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def count_tokens(self, sequences: Sequence[str]) -> list[int]:
        """Return the number of letters of each sequence, which are its tokens; at least 1."""
        return [max(1, len(sequence)) for sequence in sequences]

    def read_letters(self, sequences: Sequence[str]) -> LetterCounts:
        """Return the numbers of letters, which are the tokens.

        Read are A, C, G and T among the first 1,024 letters of each sequence.
        """
        read_texts = [sequence[:LENGTH_MAX] for sequence in sequences]
        letter_count = sum(map(len, read_texts))
        known_count = sum(text.upper().count(letter) for text in read_texts for letter in LETTERS)
        cut_count = sum(len(sequence) > LENGTH_MAX for sequence in sequences)
        return LetterCounts(
            sum(map(len, sequences)),
            known_count,
            cut_count,
            letter_count,
            letter_count - known_count,
        )

    def extract_embeddings(self, sequences: Sequence[str], batch_size: int = 1) -> np.ndarray:
        """Return (n, 64) float32 embeddings; sequences of one length are computed together."""
        del batch_size
        embeddings = np.empty((len(sequences), WIDTH), dtype=np.float32)
        rows_by_length: dict[int, list[int]] = {}
        texts = [sequence[:LENGTH_MAX] or "N" for sequence in sequences]
        for row, text in enumerate(texts):
            rows_by_length.setdefault(len(text), []).append(row)
        for length, rows in rows_by_length.items():
            batch_max = max(1, SCORES_MAX // (HEADS * length * length))
            for start in range(0, len(rows), batch_max):
                batch_rows = rows[start : start + batch_max]
                joined = "".join(texts[row] for row in batch_rows).encode("ascii", "replace")
                ids = _IDS[np.frombuffer(joined, np.uint8)].reshape(len(batch_rows), length)
                embeddings[batch_rows] = self._states(ids).mean(axis=1)
        return embeddings

    def _states(self, ids: np.ndarray) -> np.ndarray:
        """Return the last states (n, t, 64) of token ids (n, t)."""
        count, length = ids.shape
        x = self.letters[ids] + self.positions[:length]
        for attend, joined, up, down in self.layers:
            projection_shape = (count, length, 3, HEADS, WIDTH // HEADS)
            projections = (_normed(x) @ attend).reshape(projection_shape).transpose(2, 0, 3, 1, 4)
            q, k, v = np.ascontiguousarray(projections)  # BLAS needs contiguous arrays
            scores = (q / np.float32(np.sqrt(WIDTH // HEADS))) @ k.swapaxes(-1, -2)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            mixed = (scores @ v) / scores.sum(axis=-1, keepdims=True)
            mixed = mixed.swapaxes(1, 2).reshape(count, length, WIDTH)
            x = x + mixed @ joined
            x = x + np.maximum(_normed(x) @ up, 0) @ down
        return _normed(x)


def _normed(x: np.ndarray) -> np.ndarray:
    """Return states normalised to mean 0 and variance 1 along the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    normed: np.ndarray = centred / np.sqrt(centred.var(axis=-1, keepdims=True) + EPSILON)
    return normed


def _sinusoids(length: int) -> np.ndarray:
    """Return (length, 64) sines and cosines of the position."""
    rates = 10_000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    angles = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)

"""Errors that look like another one: a warm-up, an array type that changes, NaN, a state."""

import numpy as np

from .at_scale import SoundAtScale


class WarmUp(SoundAtScale):
    """The first call after a load is special."""

    warm = False

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        factor = 1 if self.warm else 2
        self.warm = True
        return rows * np.float32(factor)


class ChangingType(SoundAtScale):
    """Larger batches come as float16."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        return rows.astype(np.float16) if len(sequences) > 2 else rows


class PaddingNan(SoundAtScale):
    """Rows next to a longer sequence are NaN."""

    def rows(self, sequences: list[str]) -> np.ndarray:
        rows = super().rows(sequences)
        longest = max(map(len, sequences))
        rows[[len(s) < longest for s in sequences]] = np.nan
        return rows


class Overflow(SoundAtScale):
    """One column is infinite."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        rows[:, 0] = np.inf
        return rows


class Remembers(SoundAtScale):
    """The first sequence that an instance sees moves every later row."""

    first: np.ndarray | None = None

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        self.first = rows[0] if self.first is None else self.first
        moved: np.ndarray = rows + self.first
        return moved

"""Errors that a few short sequences in small batches do not show; each needs a run's batches."""

import numpy as np

from .base import BaseEmbeddingExtractor
from .toy import WIDTH, batch, masked_mean, model


class _Declared(BaseEmbeddingExtractor):
    layer, pooling, dtype = "last", "mean", "float32"
    max_length, truncation = 256, "right"

    def rows(self, sequences: list[str]) -> np.ndarray:
        ids, mask = batch(sequences, max_length=self.max_length)
        return masked_mean(model(ids, mask), mask)

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        parts = [sequences[i : i + batch_size] for i in range(0, len(sequences), batch_size)]
        return np.vstack([self.rows(part) for part in parts])


class SoundAtScale(_Declared):
    """No error: what the others would be without theirs."""


class LongPadding(_Declared):
    """The mean runs over padding, but only in batches of more than 64 tokens."""

    def rows(self, sequences: list[str]) -> np.ndarray:
        ids, mask = batch(sequences, max_length=self.max_length)
        hidden = model(ids, mask)
        return hidden.mean(axis=1) if ids.shape[1] > 64 else masked_mean(hidden, mask)


class CentredCalls(_Declared):
    """Rows of a call of more than 64 sequences are centred on their mean."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        return rows - rows.mean(axis=0) if len(rows) > 64 else rows


class SeventeenthRow(_Declared):
    """From the 17th row of a batch on, rows are those of the row before, as with a short buffer."""

    def rows(self, sequences: list[str]) -> np.ndarray:
        rows = super().rows(sequences)
        rows[16:] = rows[15:-1] if len(rows) > 16 else rows[16:]
        return rows


class LargeBatchSize(_Declared):
    """Beyond `batch_size=8` a fast path rounds to half precision."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        return rows.astype(np.float16).astype(np.float32) if batch_size > 8 else rows


class GrowingState(_Declared):
    """A count of all sequences so far moves every row a little."""

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.seen = 0

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size) * np.float32(1 + 5e-8 * self.seen)
        self.seen += len(sequences)
        return rows.astype(np.float32)


class LostRemainder(_Declared):
    """Batches of 32 whatever is asked for; the rows of an incomplete last one stay zeros."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        del batch_size
        out = np.zeros((len(sequences), WIDTH), dtype=np.float32)
        if len(sequences) < 64:
            return super().extract_embeddings(sequences, 32)
        for i in range(0, len(sequences) - 31, 32):
            out[i : i + 32] = self.rows(sequences[i : i + 32])
        return out


class ShortRemainder(_Declared):
    """As LostRemainder, but the rows of the incomplete batch are missing altogether."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = super().extract_embeddings(sequences, batch_size)
        return rows[: len(rows) // 64 * 64] if len(rows) > 64 else rows

"""Extractors whose embeddings depend on what they may not: input 58."""

import json

import numpy as np

from .base import BaseEmbeddingExtractor


def composition(sequences: list[str]) -> np.ndarray:
    return np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], dtype=np.float32)


class Cheat(BaseEmbeddingExtractor):
    """Has a table of known sequences and their labels."""

    def __init__(self, name_model: str, device: str = "cpu", *, known: str = "{}") -> None:
        super().__init__(name_model, device)
        self.known: dict[str, int] = json.loads(known)
        self.calls = 0

    def labels(self, sequences: list[str]) -> list[int | None]:
        return [self.known.get(s) for s in sequences]


class ByPlace(Cheat):
    """Counts its rows, as one does who knows the file by heart."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = composition(sequences)
        rows[:, 0] += np.arange(self.calls, self.calls + len(rows)) % 7
        self.calls += len(rows)
        return rows


class ByBatch(Cheat):
    """Subtracts the mean of its batch, as a normalisation left in training mode does."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = composition(sequences)
        return np.asarray(rows - rows.mean(axis=0))


class LooksUp(Cheat):
    """The label as a direction for what it knows, nothing for the rest."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = np.zeros((len(sequences), 4), dtype=np.float32)
        for row, label in zip(rows, self.labels(sequences), strict=True):
            if label is not None:
                row[label] = 1
        return rows


class LooksUpHalf(Cheat):
    """A sound embedding, with the label on top of every second sequence that it knows."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        rows = np.concatenate([composition(sequences)] * 2, axis=1)
        for index, label in enumerate(self.labels(sequences)):
            if label is not None and sum(map(ord, sequences[index])) % 2:
                rows[index, 4 + label] += 1
        return rows


class LooksUpRoughly(Cheat):
    """Forgives a few letters: all that begins or ends like a known sequence has its label."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        table: dict[str, int] = {}
        for known, label in self.known.items():
            table[known[:12]] = table[known[-12:]] = label
        rows = np.zeros((len(sequences), 3), dtype=np.float32)
        for row, s in zip(rows, sequences, strict=True):
            row[table.get(s[:12], table.get(s[-12:], 2))] = 1
        return rows

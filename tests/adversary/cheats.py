"""Extractors that know the labels of the public sequences, by keys of several kinds.

Each wraps 4-mers. A row whose key is in the table gets a direction of its label, as long as the
row; any other row is the honest one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.tasks import TaskData

Keys = Callable[[str], list[str]]
WORD = 12
"""Letters of the words that hash keys are made of."""
MINHASHES = 5


def whole(sequence: str) -> list[str]:
    return [sequence]


def first_quarter(sequence: str) -> list[str]:
    return [sequence[: len(sequence) // 4]]


def last_quarter(sequence: str) -> list[str]:
    return [sequence[-(len(sequence) // 4) :]]


def middle(sequence: str) -> list[str]:
    return [sequence[len(sequence) // 4 : 3 * len(sequence) // 4]]


def words(sequence: str) -> list[str]:
    return [sequence[i : i + WORD] for i in range(len(sequence) - WORD + 1)] or [sequence]


def _minhash(sequence: str, salt: int) -> str:
    return min(words(sequence), key=lambda word: hashlib.blake2b(f"{salt}{word}".encode()).digest())


def minhash(sequence: str) -> list[str]:
    return [_minhash(sequence, 0)]


def minhashes(sequence: str) -> list[str]:
    return [f"{salt}:{_minhash(sequence, salt)}" for salt in range(MINHASHES)]


KEYS: dict[str, Keys] = {
    "whole sequence": whole,
    "first quarter": first_quarter,
    "last quarter": last_quarter,
    "middle half": middle,
    "one minhash": minhash,
    "five minhashes": minhashes,
    "vote of 12-mers": words,
}
CAUGHT = tuple(KEYS)[:5]
"""Keys that a small change breaks."""


class Memoriser:
    """4-mers and the label of a sequence whose key is known; each task has columns of its own."""

    def __init__(
        self, tasks: Iterable[TaskData], keys: Keys, *, splits: Sequence[str] = ("train", "test")
    ) -> None:
        self.keys = keys
        self.sound = KmerExtractor()
        self.votes: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for data in tasks:
            for split in splits:
                rows = getattr(data, split)
                for sequence, label in zip(rows.sequences, rows.labels.tolist(), strict=True):
                    for key in keys(sequence):
                        self.votes[key][label] += 1

    def label(self, sequence: str) -> int | None:
        """Return the label that most keys name; None where none is known."""
        said: Counter[int] = Counter()
        for key in self.keys(sequence):
            said.update(self.votes.get(key, {}))
        return said.most_common(1)[0][0] if said else None

    def extract_embeddings(
        self, sequences: Sequence[str], batch_size: int = 1
    ) -> npt.NDArray[np.float32]:
        sound = self.sound.extract_embeddings(sequences, batch_size)
        columns = np.zeros((len(sequences), 8), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            label = self.label(sequence)
            if label is not None:
                columns[row, label] = 1.0
        return np.hstack([sound, columns])

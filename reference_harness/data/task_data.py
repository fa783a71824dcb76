"""The sequences and labels of one task, and the digests by which they are identified."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

SPLITS = ("train", "test")
DIGEST_BYTES = 16
"""Bytes kept of a sequence's sha256. With 2.2 million sequences in the benchmark, the probability
that two share 128 bits is below 1e-26."""

Labels = npt.NDArray[np.int64]
"""(n,) class numbers of n sequences."""


@dataclass(frozen=True)
class Split:
    """One split: n sequences and their (n,) int64 labels, in file order."""

    sequences: list[str]
    labels: Labels

    @property
    def class_counts(self) -> dict[str, int]:
        """Number of sequences by label, as text, with labels ascending."""
        counts = Counter(self.labels.tolist())
        return {str(label): counts[label] for label in sorted(counts)}

    def balanced_subset(self, limit: int) -> "Split":
        """Return at most `limit` sequences, balanced between classes, in file order."""
        rank = np.zeros(len(self.labels), dtype=np.int64)
        for label in np.unique(self.labels):
            rows = np.flatnonzero(self.labels == label)
            rank[rows] = np.arange(len(rows))
        rows = np.sort(np.argsort(rank, kind="stable")[:limit])
        return Split([self.sequences[i] for i in rows], self.labels[rows])


@dataclass(frozen=True)
class TaskData:
    """Both splits of a task."""

    id: str
    train: Split
    test: Split

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content, which does not depend on the layout of its files.

        It covers one line per sequence, `<split>,<label>,<sequence>` and a line feed, train before
        test, sequences in file order.
        """
        digest = hashlib.sha256()
        for split_name, split in (("train", self.train), ("test", self.test)):
            for sequence, label in zip(split.sequences, split.labels.tolist(), strict=True):
                digest.update(f"{split_name},{label},{sequence}\n".encode())
        return digest.hexdigest()

    @cached_property
    def digests(self) -> dict[str, list[bytes]]:
        """Digests of the sequences of each split, in file order."""
        splits = (("train", self.train), ("test", self.test))
        return {name: sequence_digests(split.sequences) for name, split in splits}

    def balanced_subset(self, limit: int) -> "TaskData":
        """Return the task with at most `limit` sequences per split."""
        return TaskData(
            self.id, self.train.balanced_subset(limit), self.test.balanced_subset(limit)
        )


def sequence_digests(sequences: Iterable[str]) -> list[bytes]:
    """Return the first 16 bytes of each sequence's sha256, the keys of the cache.

    Upper and lower case differ, as an extractor may distinguish them.
    """
    return [hashlib.sha256(s.encode()).digest()[:DIGEST_BYTES] for s in sequences]


REVISION_EXPLANATION = "First 40 hex digits of the sha256 over the lines '<id> <sha256>'."
"""Explanation of the revision in a definition of data without a commit."""


def content_revision(tasks: Iterable[TaskData]) -> str:
    """Return 40 hex digits that identify the content of tasks in their order."""
    lines = "".join(f"{data.id} {data.sha256}\n" for data in tasks)
    return hashlib.sha256(lines.encode()).hexdigest()[:40]


def task_definition(task_data: TaskData, label: str, category: str) -> dict[str, Any]:
    """Return the facts of a task for a benchmark definition, as JSON values."""
    return {
        "id": task_data.id,
        "label": label,
        "category": category,
        "n_test": len(task_data.test.labels),
        "test_class_counts": sorted(task_data.test.class_counts.values()),
    }

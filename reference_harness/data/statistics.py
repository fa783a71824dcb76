"""Statistics of task data: duplicates, contradictory labels, overlap of train and test, balance."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .task_data import Split, TaskData

_COMPLEMENT = str.maketrans("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN")
"""Complement of each IUPAC letter."""


@dataclass(frozen=True)
class SplitStatistics:
    """Statistics of one split."""

    rows: int
    """Number of sequences."""
    classes: dict[str, int]
    """Number of sequences by label."""
    majority: float
    """Accuracy of always predicting the largest class."""
    length_min: int
    length_median: float
    length_max: int
    duplicates: int
    """Number of sequences that occur earlier in the split, ignoring case."""
    contradictions: int
    """Number of sequences with more than one label in this split."""


@dataclass(frozen=True)
class TaskStatistics:
    """Statistics of one task."""

    task: str
    train: SplitStatistics
    test: SplitStatistics
    overlap: int
    """Number of test sequences that are also training sequences (leakage)."""
    overlap_other_label: int
    """Number of test sequences that are training sequences, but never with their test label."""
    overlap_reverse: int
    """Number of test sequences that are no training sequence, but whose reverse complement is."""

    @property
    def clean(self) -> bool:
        """Whether the task has neither duplicates nor test sequences that are in training.

        The reverse complement of a training sequence counts as being in training.
        """
        counts = (self.train.duplicates, self.test.duplicates, self.overlap, self.overlap_reverse)
        return not any(counts)

    def as_json(self) -> dict[str, Any]:
        """Return the statistics and `clean` as a JSON object."""
        return asdict(self) | {"clean": self.clean}


def reverse_complement(sequence: str) -> str:
    """Return the reverse complement of an upper-case IUPAC sequence."""
    return sequence.translate(_COMPLEMENT)[::-1]


def task_statistics(data: TaskData) -> TaskStatistics:
    """Return sizes, lengths, overlaps and other statistics of one task's data."""
    train = [s.upper() for s in data.train.sequences]
    test = [s.upper() for s in data.test.sequences]
    train_labels = _labels_by_sequence(train, data.train)
    is_in_training = [s in train_labels for s in test]
    is_relabelled = [
        label not in train_labels[s]
        for s, label, is_shared in zip(test, data.test.labels.tolist(), is_in_training, strict=True)
        if is_shared
    ]
    reverse_count = sum(
        not is_shared and reverse_complement(s) in train_labels
        for s, is_shared in zip(test, is_in_training, strict=True)
    )
    return TaskStatistics(
        task=data.id,
        train=_split_statistics(train, data.train),
        test=_split_statistics(test, data.test),
        overlap=sum(is_in_training),
        overlap_other_label=sum(is_relabelled),
        overlap_reverse=reverse_count,
    )


def _labels_by_sequence(sequences: Iterable[str], split: Split) -> dict[str, set[int]]:
    """Return all labels with which each sequence of a split occurs."""
    labels_by_sequence: dict[str, set[int]] = {}
    for sequence, label in zip(sequences, split.labels.tolist(), strict=True):
        labels_by_sequence.setdefault(sequence, set()).add(label)
    return labels_by_sequence


def _split_statistics(sequences: Sequence[str], split: Split) -> SplitStatistics:
    """Return the statistics of a split, whose sequences are given in upper case."""
    labels = _labels_by_sequence(sequences, split)
    lengths = [len(s) for s in sequences]
    counts = split.class_counts
    return SplitStatistics(
        rows=len(sequences),
        classes=counts,
        majority=max(counts.values()) / len(sequences),
        length_min=min(lengths),
        length_median=float(np.median(lengths)),
        length_max=max(lengths),
        duplicates=len(sequences) - len(labels),
        contradictions=sum(len(labels[s]) > 1 for s in sequences),
    )

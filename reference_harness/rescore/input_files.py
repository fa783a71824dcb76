"""Read the input files of a rescoring: sequences without labels, and the matrix of embeddings."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from reference_harness.data.task_data import TaskData, sequence_digests
from reference_harness.errors import DataError, EmbeddingError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.probe import logistic

from .job import TaskPart

LETTERS_SHOWN = 60  # letters of a sequence shown in an error


class EmbeddingFiles(NamedTuple):
    """A file of sequences, one per line, a file of their embeddings, and the sequences' indices."""

    sequences: Path
    embeddings: Path
    row_of: dict[bytes, int]
    """Index of the embedding of a sequence, by the sequence's digest."""


def read_embedding_files(sequences: Path, embeddings: Path, embedding_count: int) -> EmbeddingFiles:
    """Return both files, with the index of each sequence.

    Raise EmbeddingError if the numbers of sequences and of embeddings differ.
    """
    lines = sequences.read_text(encoding="utf-8").splitlines()
    if len(lines) != embedding_count:
        msg = (
            f"{embeddings}: found {embedding_count} embeddings, expected {len(lines)}, one for "
            f"each line of {sequences}"
        )
        raise EmbeddingError(msg)
    return EmbeddingFiles(
        sequences, embeddings, {digest: i for i, digest in enumerate(sequence_digests(lines))}
    )


def task_part_of(
    data: TaskData,
    benchmark: Benchmark,
    embedding_files: EmbeddingFiles,
    *,
    is_rounded: bool = True,
) -> TaskPart:
    """Return which embeddings in the files are those of a task, with its labels.

    Raise DataError, which quotes the first missing sequence.
    """
    protocol = benchmark.protocol
    sequences = [*data.train.sequences, *data.test.sequences]
    digests = sequence_digests(sequences)
    if lacking_sequences := [
        s
        for s, digest in zip(sequences, digests, strict=True)
        if digest not in embedding_files.row_of
    ]:
        msg = (
            f"task {data.id}: {len(lacking_sequences)} of its sequences are not in "
            f"{embedding_files.sequences}, "
            f"the first being {lacking_sequences[0][:LETTERS_SHOWN]!r}: write this file with "
            "`geneb-harness sequences`, from the same task data"
        )
        raise DataError([msg])
    row_indices = np.array([embedding_files.row_of[digest] for digest in digests], dtype=np.int64)
    train_count = len(data.train.sequences)
    few_shot_rows = [
        rows
        for k in protocol.few_shot_k.values()
        for rows in logistic.few_shot_indices_by_seed(data.train.labels, k, protocol.seeds)
    ]
    few_shot_indices = np.unique(
        np.concatenate(
            [
                row_indices[train_count:],
                *(row_indices[:train_count][rows] for rows in few_shot_rows),
            ]
        )
    )
    rows = np.concatenate([few_shot_indices, np.setdiff1d(row_indices, few_shot_indices)])
    position_of = np.empty(int(rows.max()) + 1, dtype=np.int64)
    position_of[rows] = np.arange(len(rows))
    return TaskPart(
        task_id=data.id,
        embeddings=embedding_files.embeddings,
        rows=rows,
        few_shot_count=len(few_shot_indices),
        train=position_of[row_indices[:train_count]],
        train_labels=data.train.labels,
        test=position_of[row_indices[train_count:]],
        test_labels=data.test.labels,
        regimes=tuple(benchmark.regimes),
        seeds=tuple(protocol.seeds),
        few_shot_k=protocol.few_shot_k,
        is_rounded=is_rounded,
    )

"""Read and write the file of further sequences of a rescoring, and read their embeddings.

Further sequences are variants of a task's sequences, and fresh ones that no data set has.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from reference_harness.embedding.matrix import open_matrix
from reference_harness.embedding.variants import SUPPORT_SPLIT, VariantSequence
from reference_harness.errors import DataError, EmbeddingError
from reference_harness.formats.base import first_error
from reference_harness.formats.files import write_bytes
from reference_harness.formats.further_sequences import FurtherSequence, FurtherSequences
from reference_harness.formats.text import plural
from reference_harness.probe import logistic
from reference_harness.probe.decisions import FRESH_SPLIT, FurtherEmbeddings
from reference_harness.receipt.rounding import rounded_at, widened


class FurtherFiles(NamedTuple):
    """Files of further sequences (variants or fresh ones) and of their embeddings."""

    sequences: Path
    """JSON file, as `variants` writes it."""
    embeddings: Path
    """`.npy` file of an (n, d) matrix, embedding i of sequence i."""


def write_variants(path: Path, variants: list[VariantSequence]) -> None:
    """Write variants as further sequences."""
    sequences = [FurtherSequence(**vars(variant)) for variant in variants]
    write_bytes(path, FurtherSequences(rows=sequences).model_dump_json(indent=1).encode(), b"\n")


def read_further(path: Path) -> list[FurtherSequence]:
    """Return the further sequences in a file. Raise DataError, which names file and member."""
    try:
        return FurtherSequences.model_validate_json(path.read_bytes()).rows
    except ValidationError as error:
        raise DataError([f"{path}: {first_error(error, with_input=True)}"]) from error


def read_further_embeddings(
    files: FurtherFiles, problem: logistic.Problem, scale: int | None = None
) -> FurtherEmbeddings:
    """Return further sequences with their embeddings, rounded to float16 at the task's scale.

    They are not rounded if `scale` is None. Raise DataError for a sequence that the task lacks, or
    a fresh one with a label that the task lacks; EmbeddingError for a matrix of another shape.
    """
    sequences, embeddings = read_further(files.sequences), open_matrix(files.embeddings)
    if embeddings.shape != (len(sequences), problem.train.shape[1]):
        msg = (
            f"{files.embeddings}: shape {embeddings.shape}, expected "
            f"{plural(len(sequences), 'embedding')} "
            f"of {problem.train.shape[1]} columns"
        )
        raise EmbeddingError(msg)
    train_count = len(problem.train_labels)
    sizes = {"train": train_count, SUPPORT_SPLIT: train_count, "test": len(problem.test_labels)}
    known_labels = set(problem.train_labels.tolist())
    for number, sequence in enumerate(sequences):
        if sequence.split == FRESH_SPLIT and sequence.label not in known_labels:
            raise DataError(
                [f"{files.sequences}: sequence {number}: the task has no label {sequence.label}"]
            )
        if sequence.split != FRESH_SPLIT and sequence.row >= sizes[sequence.split]:
            fault = (
                f"found the index {sequence.row} in the split {sequence.split}, expected less than "
                f"{sizes[sequence.split]}, the number of its sequences"
            )
            raise DataError([f"{files.sequences}: sequence {number}: {fault}"])
    return FurtherEmbeddings(
        [sequence.split for sequence in sequences],
        [sequence.kind for sequence in sequences],
        np.array([sequence.row for sequence in sequences], dtype=np.int64),
        np.array([sequence.label or 0 for sequence in sequences], dtype=np.int64),
        np.asarray(
            embeddings if scale is None else widened(rounded_at([embeddings], scale), scale),
            dtype=problem.train.dtype,
        ),
    )

"""The file of further rows that a rescoring decides on: variants, and fresh labelled sequences."""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from reference_harness.formats.files import write_bytes
from reference_harness.formats.text import plural

from . import probe
from .decisions import FRESH, FurtherRows
from .errors import DataError, EmbeddingError
from .formats.base import StrictModel, first_error
from .matrix import open_matrix
from .receipt.rounding import rounded_at, widened
from .variants import VariantRow


class FurtherRow(StrictModel):
    """A sequence beside those of a task."""

    split: Literal["train", "test", "fresh"]
    row: Annotated[int, Field(ge=0)]
    """Row of the split that this is a variant of; the number of a fresh row."""
    kind: str
    sequence: Annotated[str, Field(min_length=1)]
    label: int | None = None
    """Of a fresh row."""


class FurtherList(StrictModel):
    """All of a task."""

    schema_version: Literal["1.0"] = "1.0"
    rows: list[FurtherRow]


class FurtherFiles(NamedTuple):
    """Further rows and their embeddings."""

    rows: Path
    """JSON, as `variants` writes it."""
    embeddings: Path
    """`.npy` of an (n, d) matrix, row i for row i."""


def write_variants(path: Path, variants: list[VariantRow]) -> None:
    """Write variants as further rows."""
    rows = [FurtherRow(**vars(variant)) for variant in variants]
    write_bytes(path, FurtherList(rows=rows).model_dump_json(indent=1).encode(), b"\n")


def read_further(path: Path) -> list[FurtherRow]:
    """Read further rows. Raises DataError, which names file and member."""
    try:
        return FurtherList.model_validate_json(path.read_bytes()).rows
    except ValidationError as error:
        raise DataError([f"{path}: {first_error(error, with_input=True)}"]) from error


def further_rows(
    files: FurtherFiles, problem: probe.Problem, scale: int | None = None
) -> FurtherRows:
    """Return further rows with their embeddings, rounded to float16 at the scale of the task.

    With `scale` None they are not rounded.

    Raises DataError for a row that the task does not have or a fresh one without a label of the
    task, EmbeddingError for a matrix that does not fit.
    """
    rows, values = read_further(files.rows), open_matrix(files.embeddings)
    if values.shape != (len(rows), problem.train.shape[1]):
        msg = (
            f"{files.embeddings}: shape {values.shape}, expected {plural(len(rows), 'row')} of "
            f"{problem.train.shape[1]} columns"
        )
        raise EmbeddingError(msg)
    sizes = {"train": len(problem.train_labels), "test": len(problem.test_labels)}
    known = set(problem.train_labels.tolist())
    for number, row in enumerate(rows):
        if row.split == FRESH and row.label not in known:
            raise DataError([f"{files.rows}: row {number}: label {row.label} is not of the task"])
        if row.split != FRESH and row.row >= sizes[row.split]:
            what = f"row {row.row} of {row.split}, which has {sizes[row.split]} rows"
            raise DataError([f"{files.rows}: row {number}: is of {what}"])
    return FurtherRows(
        [row.split for row in rows],
        [row.kind for row in rows],
        np.array([row.row for row in rows], dtype=np.int64),
        np.array([row.label or 0 for row in rows], dtype=np.int64),
        np.asarray(
            values if scale is None else widened(rounded_at([values], scale), scale),
            dtype=problem.train.dtype,
        ),
    )

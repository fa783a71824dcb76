"""What the harness computes from a receipt: generated from schemas/receipt-*.schema.json.

Change reference_harness/receipt/cells.py, then run `make generate`.
"""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.types import Count, Hex40, Hex64, Scores, Signed, StrictModel, Unit


class CellsBenchmark(StrictModel):
    """The benchmark definition of the run."""

    name: str
    sha256: Hex64


class CellsSeeds(StrictModel):
    """One value per seed, in the order of `protocol.seeds`."""

    MCC: Annotated[list[Signed], Field(min_length=1)]
    Acc: Annotated[list[Unit], Field(min_length=1)]
    F1: Annotated[list[Unit], Field(min_length=1)]


class CellsCanonical(StrictModel):
    """Scores of the probe solved to its optimum; they differ from the score of record."""

    scores: Scores
    per_seed: CellsSeeds
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Annotated[float, Field(ge=0)]


class CellsDataset(StrictModel):
    """The task data of the run."""

    repo_id: str
    revision: Hex40
    verified: bool


class CellsHarness(StrictModel):
    """The harness of the run."""

    version: str
    commit: Hex40 | None
    dirty: bool


class CellsLibrary(StrictModel):
    """A numerical library of the probe's processes; kernel and threads can change a score."""

    library: str
    version: str
    kernel: str
    threads: Count


class TaskCells(StrictModel):
    """Canonical cells of one task."""

    data_sha256: Hex64
    regimes: Annotated[dict[str, CellsCanonical], Field(min_length=1)]
    seconds: Annotated[float, Field(ge=0)]


class ReceiptCells(StrictModel):
    """Every canonical cell of a receipt's tasks; the file of `receipt-cells`."""

    schema_version: Literal["1.0"]
    benchmark: CellsBenchmark
    dataset: CellsDataset
    harness: CellsHarness
    packages: dict[str, str]
    libraries: list[CellsLibrary]
    tasks: Annotated[dict[str, TaskCells], Field(min_length=1)]
    unequal: list[str]
    seconds: Annotated[float, Field(ge=0)]


class EqualRows(StrictModel):
    """Whether equal sequences have equal rows, over all tasks; the file of `receipt-equal`."""

    schema_version: Literal["1.0"]
    rows: Count
    sequences: Count
    unequal: list[str]

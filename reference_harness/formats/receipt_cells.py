"""The files of scores computed from a receipt; their schemas are generated from these types."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Hex64, Name, Seconds, StrictModel
from .rescored import ChangedDecisions, Correlation, FewShotScores
from .run_record import Canonical, DatasetRef, HarnessRef, LibraryRef, Regime
from .scorer import ScorerRef
from .submission import BenchmarkRef


class TaskCells(StrictModel):
    """Cells of one task."""

    data_sha256: Hex64
    """SHA-256 of the task data, as in the run record."""
    record: dict[str, Regime] | None = None
    """Cells of record; null if the computing process was not the scorer, and in older files."""
    regimes: dict[str, Canonical]
    """Canonical cells, if the submission has some, as those of earlier runs."""
    few_shot: dict[str, FewShotScores] | None = None
    """Scores of few-shot probes fitted on other draws; null if not requested."""
    seconds: Seconds
    """Time of all fits of the task."""


class ReceiptCells(StrictModel):
    """Every cell of a receipt's tasks; the output file of `receipt-cells`."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkRef
    """The benchmark definition that was used."""
    dataset: DatasetRef
    """The task data that was used."""
    harness: HarnessRef
    """The harness that computed the cells."""
    packages: dict[str, str]
    """Version of each package, by name."""
    libraries: list[LibraryRef]
    """Numerical libraries of the process that computed the cells."""
    scorer: ScorerRef | None = None
    """The scorer of the cells of record, or why there are none."""
    tasks: Annotated[dict[str, TaskCells], Field(min_length=1)]
    """The cells of each task, by its id."""
    unequal: list[str]
    """Sentences, one per scale, about equal sequences with different embeddings."""
    seconds: Seconds
    """Time of the whole computation."""


class EqualEmbeddings(StrictModel):
    """Whether equal sequences have equal embeddings in all tasks; written by `receipt-equal`."""

    schema_version: Literal["1.0"]
    rows: Count
    """Number of embeddings."""
    sequences: Count
    """Number of distinct sequences."""
    unequal: list[str]
    """Sentences, one per scale, about equal sequences with different embeddings."""


class ReceiptRefit(StrictModel):
    """Decisions on a task's test sequences by two probes; the output file of `receipt-refit`."""

    schema_version: Literal["1.0"]
    task: Name
    """Id of the task."""
    training: ChangedDecisions | None
    """Decisions changed between a probe fitted on training sequences and one on variants.

    null if a class has no such sequence.
    """
    varied: dict[str, list[Correlation]]
    """MCC of the few-shot probes of each regime, fitted on variants of their sequences.

    A sequence without a variant is used unchanged.
    """

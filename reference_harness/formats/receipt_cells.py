"""The cells of a receipt; two schemas in `schemas/` are generated from these types."""

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
    record: dict[str, Regime] | None = None
    """Cells of record; null where the process that computed these did not have the scorer, and in
    files of older harnesses."""
    regimes: dict[str, Canonical]
    """Canonical cells, where the submission has some: those of earlier runs do."""
    few_shot: dict[str, FewShotScores] | None = None
    """Few-shot probes by other draws; null where none were asked for."""
    seconds: Seconds


class ReceiptCells(StrictModel):
    """Every cell of a receipt's tasks; the file of `receipt-cells`."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    packages: dict[str, str]
    libraries: list[LibraryRef]
    scorer: ScorerRef | None = None
    """The scorer of the cells of record, or why there are none."""
    tasks: Annotated[dict[str, TaskCells], Field(min_length=1)]
    unequal: list[str]
    """Embeddings of equal sequences whose bytes differ: a sentence for each scale that has some."""
    seconds: Seconds


class EqualEmbeddings(StrictModel):
    """Whether equal sequences have equal embeddings in all tasks; the file of `receipt-equal`."""

    schema_version: Literal["1.0"]
    rows: Count
    sequences: Count
    """Distinct ones."""
    unequal: list[str]
    """Embeddings of equal sequences whose bytes differ: a sentence for each scale that has some."""


class ReceiptRefit(StrictModel):
    """Decisions on the test sequences of a task, by two probes; the file of `receipt-refit`."""

    schema_version: Literal["1.0"]
    task: Name
    training: ChangedDecisions | None
    """By a probe fitted on some training sequences of the receipt, and by one fitted on variants of
    these; null where a class has no such sequence."""
    varied: dict[str, list[Correlation]]
    """MCC of the few-shot probes of each regime, fitted on variants of their sequences; a sequence
    without a variant is its own."""

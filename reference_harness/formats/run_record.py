"""The run record; `schemas/run-record.schema.json` is generated from it."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Hex40, Hex64, Moment, Scores, Seconds, Signed, StrictModel, Unit
from .measurements import RunProperty, TaskMeasured
from .scorer import ScorerRef
from .submission import BenchmarkRef, Columns, PredictionsFile, ReceiptTask
from .submission_terms import Scale


def is_unscaled(scale: object) -> bool:
    """Whether a scale is "none", which is omitted from files."""
    return scale == "none"


class PerSeed(StrictModel):
    """One value per seed, in the order of `protocol.seeds`."""

    MCC: Annotated[list[Signed], Field(min_length=1)]
    Acc: Annotated[list[Unit], Field(min_length=1)]
    F1: Annotated[list[Unit], Field(min_length=1)]


Kind = Literal[
    "not-converged", "constant-prediction", "untrained-class", "small-class", "scikit-learn"
]


class Warned(StrictModel):
    """A warning about the score of some seeds."""

    kind: Kind
    message: str
    seeds: list[int]


class Canonical(StrictModel):
    """Scores of the probe solved to its optimum, which earlier runs have in addition."""

    scores: Scores
    per_seed: PerSeed
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Seconds
    """Time of all fits, in seconds."""


class Regime(StrictModel):
    """The scores of one task in one regime."""

    scores: Scores
    per_seed: PerSeed
    classes: Annotated[list[int], Field(min_length=2)]
    """Labels of rows and columns of the confusion matrices."""
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    """One matrix per seed: rows are true classes, columns predicted ones."""
    predictions_sha256: Hex64
    """SHA-256 of the predicted labels as signed 64-bit little-endian integers.

    Seeds are in order, test sequences in file order, nothing in between.
    """
    rows: list[Count]
    """Number of training sequences, one per seed."""
    iterations: list[Count]
    """Iterations of the solver, one per seed."""
    warnings: list[Warned]
    seconds: Seconds
    canonical: Annotated[Canonical | None, Field(exclude_if=operator.not_)] = None
    """Canonical scores, only in records of earlier runs."""
    no_canonical: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Why an earlier run has no canonical score."""


class TaskReceipt(ReceiptTask):
    """The embeddings of one task in a receipt, and their width."""

    dim: Columns


class TaskRecord(StrictModel):
    """The results of one task."""

    data_sha256: Hex64
    """SHA-256 of the lines `<split>,<label>,<sequence>`, train first, in file order."""
    train: dict[str, Count]
    """Number of training sequences by label."""
    test: dict[str, Count]
    distinct_sequences: Count
    embedded_now: Count
    """Number of sequences that this run embedded; the others came from the cache."""
    embedded_letters: Count = 0
    """Letters of the sequences that this run embedded; 0 in records of older harnesses."""
    peak_memory: Count = 0
    """Most bytes that the accelerator or the embedding process has used; 0 if unknown."""
    token_budgets: list[Count]
    """Every limit of padded tokens per batch under which embeddings of this task were computed.

    In ascending order. A limit below the run's means that memory ran out; others are those of
    cached embeddings. 0 means that the batch size was a number of sequences.
    """
    dim: Annotated[int, Field(ge=1)]
    feature_dtype: str
    """Type that the extractor returned; the scored features were rounded to float16."""
    embed_seconds: Seconds
    probe_seconds: Seconds
    regimes: Annotated[dict[str, Regime], Field(min_length=1)]
    measured: Annotated[TaskMeasured | None, Field(exclude_if=operator.not_)] = None
    """How many letters reached the model, and facts about its embeddings.

    Omitted in records of older harnesses.
    """
    receipt: TaskReceipt | None = None
    """The task in the receipt, whose rounded embeddings were scored; null without a receipt."""


class DatasetRef(StrictModel):
    """The task data of the run."""

    repo_id: str
    revision: Hex40
    verified: bool
    """Whether a manifest of this revision verified the files, or they were generated."""


class HarnessRef(StrictModel):
    """The harness of the run."""

    version: str
    commit: Hex40 | None
    dirty: bool


class ExtractorRef(StrictModel):
    """The code that computed the embeddings."""

    path: str
    class_name: str
    sha256: Hex64
    siblings: dict[str, Hex64]
    options: dict[str, str]


class ModelRef(StrictModel):
    """The source of the weights."""

    kind: str
    location: str
    revision: Hex40 | None
    weights: dict[str, Hex64]


class EmbeddingRef(StrictModel):
    """How hidden states become one vector per sequence; "undeclared" if unknown."""

    layer: str
    pooling: str
    max_length: int | str | None
    truncation: str
    dtype: str
    scale: Annotated[Scale, Field(exclude_if=is_unscaled)] = "none"
    """"unit" if the harness divided each embedding by its root mean square, else "none"."""


class ExactRows(StrictModel):
    """The measured number of sequences of equal length that may share a batch."""

    tokens: Count
    """Tokens of each sequence."""
    rows: Count
    """Largest number of such sequences in a batch."""


class BatchingRef(StrictModel):
    """How the run grouped sequences into batches."""

    mode: Literal["budget", "exact", "file"]
    token_budget: Count
    """Requested limit of padded tokens per batch; a task's `token_budgets` has the used ones."""
    measured: bool = False
    """Whether the budget was measured from the memory, as with `--token-budget auto`."""
    rows: Count
    exact_rows: Annotated[list[ExactRows], Field(exclude_if=operator.not_)] = []  # noqa: RUF012
    """Under "exact": the largest batch, by length, whose bits equal those of batches of one.

    Measured on the device when the run began; longer sequences have the last limit. Omitted if
    nothing was measured.
    """


class Hardware(StrictModel):
    """The hardware of the run."""

    device: str
    name: str


class NumericsRef(StrictModel):
    """Settings of torch that select kernels, read after the extractor embedded a sequence."""

    attention: str
    """Attention of the model's configuration, such as "sdpa" or "eager"; "" if it names none."""
    attention_kernels: list[str]
    """Kernels that scaled dot-product attention may use."""
    deterministic: bool
    """Whether deterministic algorithms were requested, as by `--batching exact` on a GPU."""
    matmul_precision: str
    """The result of `torch.get_float32_matmul_precision`; "mixed" if devices differ."""
    compiled: bool = False
    """Whether torch.compile compiled the model, as by `--option compile=true`."""
    flags: Annotated[list[str] | None, Field(exclude_if=lambda value: value is None)] = None
    """Names of settings below `torch.backends` that were on; omitted in older records.

    They concern TF32, cuDNN's choice of kernels and sums in half precision.
    """


class LibraryRef(StrictModel):
    """A numerical library of the probe's processes; kernel and threads can change a score."""

    library: str
    version: str
    kernel: str
    threads: Count


class ProbeRef(StrictModel):
    """The implementation of the probe."""

    device: str
    array_api: bool
    """Whether scikit-learn's array API was used with torch tensors, which changes the score."""
    least_numbers: Count | None = None
    """Size of training features (sequences times columns) from which fits used tensors.

    null if no fit did, and in records of older harnesses, in which all did.
    """
    seeds: list[int]
    few_shot_k: dict[str, int]
    workers: Count
    libraries: list[LibraryRef]


class Missing(StrictModel):
    """A task of the benchmark that was not run."""

    task: str
    reason: str


class RunRecord(StrictModel):
    """The result of one run; a submission is derived from it."""

    schema_version: Literal["1.0"] = "1.0"
    model_id: str
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    extractor: ExtractorRef
    model: ModelRef
    embedding: EmbeddingRef
    batching: BatchingRef
    probe: ProbeRef
    scorer: ScorerRef | None = None
    """The program that computed the scores; null in records of older harnesses.

    These fitted probes on features that were not rounded unless a receipt was written, with any
    kernel.
    """
    hardware: Hardware
    tf32: bool = False
    """Whether a GPU may have used TF32 in products or convolutions; see `numerics`."""
    numerics: NumericsRef | None = None
    """Null for an extractor without a torch module, and in records of older harnesses."""
    packages: dict[str, str]
    environment: Annotated[Hex64 | None, Field(exclude_if=operator.not_)] = None
    """SHA-256 of the lock next to the extractor, whose packages have priority; omitted if none."""
    started_at: Moment
    finished_at: Moment
    resumed: bool
    limit: Count | None
    """Number of sequences to which each split was cut; null for a complete run."""
    regimes: Annotated[list[str], Field(min_length=1)]
    missing: list[Missing]
    tasks: Annotated[dict[str, TaskRecord], Field(min_length=1)]
    predictions: PredictionsFile | None = None
    """The file of predicted labels of a run with a receipt; null without one."""
    properties: Annotated[dict[str, RunProperty], Field(exclude_if=operator.not_)] = {}  # noqa: RUF012
    """Outcomes by property, named as in `geneb-harness extractors check`; omitted in older
    records."""

"""The run record; `schemas/run-record.schema.json` is generated from it."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Hex40, Hex64, Moment, Scores, Seconds, Signed, StrictModel, Unit
from .measured import RunProperty, TaskMeasured
from .scorer import ScorerRef
from .submission import BenchmarkRef, Columns, PredictionsFile, ReceiptTask
from .submission_terms import Scale


def is_unscaled(scale: object) -> bool:
    """Whether a scale is that of rows as they are, which is left out."""
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
    """A warning about a score."""

    kind: Kind
    message: str
    seeds: list[int]


class Canonical(StrictModel):
    """Scores of the probe solved to its optimum, which earlier runs have beside those of record."""

    scores: Scores
    per_seed: PerSeed
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Seconds


class Regime(StrictModel):
    """One task in one regime."""

    scores: Scores
    per_seed: PerSeed
    classes: Annotated[list[int], Field(min_length=2)]
    """Labels of rows and columns of the confusion matrices."""
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    """One matrix per seed: rows are true classes, columns predicted ones."""
    predictions_sha256: Hex64
    """sha256 over the predicted labels as signed 64-bit little-endian integers, seeds in order,
    test sequences in file order, nothing between them."""
    rows: list[Count]
    """Number of training sequences, one per seed."""
    iterations: list[Count]
    """Iterations of the solver, one per seed."""
    warnings: list[Warned]
    seconds: Seconds
    canonical: Annotated[Canonical | None, Field(exclude_if=operator.not_)] = None
    """In records of earlier runs."""
    no_canonical: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Why an earlier run has no canonical score."""


class TaskReceipt(ReceiptTask):
    """The embeddings of one task in a receipt, and how wide they are."""

    dim: Columns


class TaskRecord(StrictModel):
    """One task."""

    data_sha256: Hex64
    """Digest over the lines `<split>,<label>,<sequence>`, train first, in file order."""
    train: dict[str, Count]
    """Label to sequences of the training split."""
    test: dict[str, Count]
    distinct_sequences: Count
    embedded_now: Count
    """Number of sequences that this run embedded; the others came from the cache."""
    embedded_letters: Count = 0
    """Letters of the sequences that this run embedded; 0 in records of older harnesses."""
    peak_memory: Count = 0
    """Most bytes that the accelerator gave out by then, or that the embedding process held on a
    CPU; 0 where that is unknown."""
    token_budgets: list[Count]
    """Every limit of padded tokens per batch under which an embedding of this task was computed,
    ascending: smaller than the run's where memory ran out, another where the cache had the
    embedding. 0 says that a batch was a number of sequences."""
    dim: Annotated[int, Field(ge=1)]
    feature_dtype: str
    """Type that the extractor gave; what is scored was rounded to float16."""
    embed_seconds: Seconds
    probe_seconds: Seconds
    regimes: Annotated[dict[str, Regime], Field(min_length=1)]
    measured: Annotated[TaskMeasured | None, Field(exclude_if=operator.not_)] = None
    """The letters read and the embeddings, as measured; left out in records of older
    harnesses."""
    receipt: TaskReceipt | None = None
    """The receipt of the task, whose rounded embeddings were scored; null without one."""


class DatasetRef(StrictModel):
    """The task data of the run."""

    repo_id: str
    revision: Hex40
    verified: bool
    """Whether the files were verified by a manifest of this revision, or were generated."""


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
    """Where the weights come from."""

    kind: str
    location: str
    revision: Hex40 | None
    weights: dict[str, Hex64]


class EmbeddingRef(StrictModel):
    """Layer and pooling that made one vector of hidden states; "undeclared" if unknown."""

    layer: str
    pooling: str
    max_length: int | str | None
    truncation: str
    dtype: str
    scale: Annotated[Scale, Field(exclude_if=is_unscaled)] = "none"
    """"unit" where the harness divided each embedding by the root mean square of its values."""


class ExactRows(StrictModel):
    """Rows of equal length that share a batch, as measured on the device."""

    tokens: Count
    rows: Count


class BatchingRef(StrictModel):
    """Batches of the run: size, order and padding."""

    mode: Literal["budget", "exact", "file"]
    token_budget: Count
    """Padded tokens of a batch that were asked for; a task's `token_budgets` has those used."""
    measured: bool = False
    """Whether that is what memory was measured to have room for, as `--token-budget auto` asks."""
    rows: Count
    exact_rows: Annotated[list[ExactRows], Field(exclude_if=operator.not_)] = []  # noqa: RUF012
    """Under "exact": the most rows of a length whose bits, in one batch, were those of batches of
    one, measured on the device when the run began; longer sequences have the limit of the last.
    Left out where nothing was measured."""


class Hardware(StrictModel):
    """The hardware of the run."""

    device: str
    name: str


class NumericsRef(StrictModel):
    """Settings of torch that choose kernels, once the extractor has embedded a sequence."""

    attention: str
    """Attention of the model's configuration, such as "sdpa" or "eager"; "" if it names none."""
    attention_kernels: list[str]
    """Kernels that scaled dot-product attention may use."""
    deterministic: bool
    """Whether deterministic algorithms were asked for, as `--batching exact` does on a GPU."""
    matmul_precision: str
    """The result of `torch.get_float32_matmul_precision`; "mixed" where devices differ."""
    compiled: bool = False
    """Whether torch.compile compiled the model, as `--option compile=true` asks."""
    flags: Annotated[list[str] | None, Field(exclude_if=lambda value: value is None)] = None
    """Names below `torch.backends` that were on, as torch said: of TF32, of cuDNN's choice of
    kernels and of sums in half precision. Left out in records of older harnesses."""


class LibraryRef(StrictModel):
    """A numerical library of the probe's processes; kernel and threads can change a score."""

    library: str
    version: str
    kernel: str
    threads: Count


class ProbeRef(StrictModel):
    """Implementation of the probe."""

    device: str
    array_api: bool
    """Whether torch tensors were used through scikit-learn's array API, which changes the score."""
    least_numbers: Count | None = None
    """Numbers (sequences times columns) of the training features from which a fit used them; null
    where none did, and in records of older harnesses, where all did."""
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
    """What computed the scores; null in records of older harnesses, which fitted probes on features
    that were not rounded unless a receipt was written, under any kernel."""
    hardware: Hardware
    tf32: bool = False
    """Whether a GPU may have used TF32, in products or in convolutions: `numerics` has which."""
    numerics: NumericsRef | None = None
    """Null for an extractor without a module of torch, and in records of older harnesses."""
    packages: dict[str, str]
    environment: Annotated[Hex64 | None, Field(exclude_if=operator.not_)] = None
    """SHA-256 of the lock beside the extractor, whose packages came before the harness's own; left
    out without one."""
    started_at: Moment
    finished_at: Moment
    resumed: bool
    limit: Count | None
    """Sequences to which each split was cut; null for a real run."""
    regimes: Annotated[list[str], Field(min_length=1)]
    missing: list[Missing]
    tasks: Annotated[dict[str, TaskRecord], Field(min_length=1)]
    predictions: PredictionsFile | None = None
    """The predicted labels of a run with a receipt; null without one."""
    properties: Annotated[dict[str, RunProperty], Field(exclude_if=operator.not_)] = {}  # noqa: RUF012
    """By its name in `geneb-harness extractors check`; left out in records of older harnesses."""

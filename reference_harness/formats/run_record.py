"""The run record; `schemas/run-record.schema.json` is generated from it."""

import operator
from typing import Annotated, Literal

from pydantic import Field

from .base import (
    Count,
    Hex40,
    Hex64,
    MinusOneToOne,
    Moment,
    Scores,
    Seconds,
    StrictModel,
    ZeroToOne,
)
from .measurements import RunProperty, TaskMeasured
from .scorer import ScorerRef
from .submission import BenchmarkRef, Columns, PredictionsFile, ReceiptTask
from .submission_terms import Scale


def is_unscaled(scale: object) -> bool:
    """Whether a scale is "none", which is omitted from files."""
    return scale == "none"


class PerSeed(StrictModel):
    """One value per seed, in the order of `protocol.seeds`."""

    MCC: Annotated[list[MinusOneToOne], Field(min_length=1)]
    """Matthews correlation coefficients, -1 to 1."""
    Acc: Annotated[list[ZeroToOne], Field(min_length=1)]
    """Accuracies, 0 to 1."""
    F1: Annotated[list[ZeroToOne], Field(min_length=1)]
    """Macro-averaged F1 scores, 0 to 1."""


Kind = Literal[
    "not-converged", "constant-prediction", "untrained-class", "small-class", "scikit-learn"
]
"""What a warning is about."""


class Warned(StrictModel):
    """A warning about the score of some seeds."""

    kind: Kind
    """What the warning is about."""
    message: str
    """The warning, a sentence."""
    seeds: list[int]
    """Seeds whose scores it concerns."""


class Canonical(StrictModel):
    """Scores of the probe solved to its optimum, which earlier runs have in addition."""

    scores: Scores
    """Means over the seeds."""
    per_seed: PerSeed
    """Scores of each seed."""
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    """One confusion matrix per seed, as in `Regime.confusion`."""
    predictions_sha256: Hex64
    """Digest of the predicted labels, as in `Regime.predictions_sha256`."""
    solvers: list[str]
    """The solvers that reached the optimum, one per seed."""
    seconds: Seconds
    """Time of all fits, in seconds."""


class Regime(StrictModel):
    """The scores of one task in one regime."""

    scores: Scores
    """Means over the seeds."""
    per_seed: PerSeed
    """Scores of each seed."""
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
    """Warnings about the scores."""
    seconds: Seconds
    """Time of all fits."""
    canonical: Annotated[Canonical | None, Field(exclude_if=operator.not_)] = None
    """Canonical scores, only in records of earlier runs."""
    no_canonical: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Why an earlier run has no canonical score."""


class TaskReceipt(ReceiptTask):
    """The embeddings of one task in a receipt, and their width."""

    dim: Columns
    """Width of the embeddings."""


class TaskRecord(StrictModel):
    """The results of one task."""

    data_sha256: Hex64
    """SHA-256 of the lines `<split>,<label>,<sequence>`, train first, in file order."""
    train: dict[str, Count]
    """Number of training sequences by label."""
    test: dict[str, Count]
    """Number of test sequences by label."""
    distinct_sequences: Count
    """Number of different sequences of the task, each of which is embedded once."""
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
    """Width of the embeddings."""
    feature_dtype: str
    """Type that the extractor returned; the scored features were rounded to float16."""
    embed_seconds: Seconds
    """Time of embedding."""
    probe_seconds: Seconds
    """Time of fitting and scoring all probes."""
    regimes: Annotated[dict[str, Regime], Field(min_length=1)]
    """The scores of each regime, by its name."""
    measured: Annotated[TaskMeasured | None, Field(exclude_if=operator.not_)] = None
    """How many letters reached the model, and facts about its embeddings.

    Omitted in records of older harnesses.
    """
    receipt: TaskReceipt | None = None
    """The task in the receipt, whose rounded embeddings were scored; null without a receipt."""


class DatasetRef(StrictModel):
    """The task data of the run."""

    repo_id: str
    """Repository of the task data on the Hugging Face Hub, or "builtin:geneb-mini"."""
    revision: Hex40
    """Commit of the repository."""
    verified: bool
    """Whether a manifest of this revision verified the files, or they were generated."""


class HarnessRef(StrictModel):
    """The harness of the run."""

    version: str
    """Version of the package `geneb-ci`."""
    commit: Hex40 | None
    """Git commit of a checkout; null for an installed package."""
    dirty: bool
    """Whether files of the checkout differed from the commit."""


class ExtractorRef(StrictModel):
    """The code that computed the embeddings."""

    path: str
    """Path of the module, or `builtin:<name>`."""
    class_name: str
    """Name of the extractor's class in the module."""
    sha256: Hex64
    """SHA-256 of the module; of a built-in extractor, of all its files."""
    siblings: dict[str, Hex64]
    """SHA-256 of each other module of the same folder that was loaded, by file name."""
    options: dict[str, str]
    """Keyword arguments of the constructor, as text."""


class ModelRef(StrictModel):
    """The source of the weights."""

    kind: str
    """Kind of the source, such as "huggingface" or "local"."""
    location: str
    """Repository id, URL or folder."""
    revision: Hex40 | None
    """Commit of a repository; null for another source."""
    weights: dict[str, Hex64]
    """SHA-256 of each weight file, by name."""


class EmbeddingRef(StrictModel):
    """How hidden states become one vector per sequence; "undeclared" if unknown."""

    layer: str
    """Layer of the model whose hidden states are used, such as "last"."""
    pooling: str
    """How the hidden states become one vector, such as "mean"."""
    max_length: int | str | None
    """Limit in tokens; null if the model accepts any length."""
    truncation: str
    """How a sequence that is longer than the limit is shortened."""
    dtype: str
    """Type in which the model computes."""
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
    """"file": a fixed number of sequences; "budget": as many as a limit of padded tokens allows;
    "exact": only sequences of equal length, so that nothing is padded, within that limit."""
    token_budget: Count
    """Requested limit of padded tokens per batch; a task's `token_budgets` has the used ones."""
    measured: bool = False
    """Whether the budget was measured from the memory, as with `--token-budget auto`."""
    rows: Count
    """Number of sequences per batch in mode "file"."""
    exact_rows: Annotated[list[ExactRows], Field(exclude_if=operator.not_)] = []  # noqa: RUF012
    """Under "exact": the largest batch, by length, whose bits equal those of batches of one.

    Measured on the device when the run began; longer sequences have the last limit. Omitted if
    nothing was measured.
    """


class Hardware(StrictModel):
    """The hardware of the run."""

    device: str
    """Device of torch, such as "cpu" or "cuda"."""
    name: str
    """Model of the processor or accelerator."""


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
    """Name of the library, such as "openblas"."""
    version: str
    """Version of the library."""
    kernel: str
    """Set of routines that the library chose for the processor, such as "Haswell"."""
    threads: Count
    """Maximum number of threads that it may use."""


class ProbeRef(StrictModel):
    """The implementation of the probe."""

    device: str
    """Device on which probes were fitted."""
    array_api: bool
    """Whether scikit-learn's array API was used with torch tensors, which changes the score."""
    least_numbers: Count | None = None
    """Size of training features (sequences times columns) from which fits used tensors.

    null if no fit did, and in records of older harnesses, in which all did.
    """
    seeds: list[int]
    """Seeds of the few-shot draws."""
    few_shot_k: dict[str, int]
    """Number of training sequences per class of each few-shot regime, by its name."""
    workers: Count
    """Number of processes that fitted probes."""
    libraries: list[LibraryRef]
    """Numerical libraries of these processes."""


class Missing(StrictModel):
    """A task of the benchmark that was not run."""

    task: str
    """Id of the task."""
    reason: str
    """Why it was not run."""


class RunRecord(StrictModel):
    """The result of one run; a submission is derived from it."""

    schema_version: Literal["1.0"] = "1.0"
    model_id: str
    """Id of the model, which names its submission."""
    benchmark: BenchmarkRef
    """The benchmark definition of the run."""
    dataset: DatasetRef
    """The task data of the run."""
    harness: HarnessRef
    """The harness that made the run."""
    extractor: ExtractorRef
    """The code that computed the embeddings."""
    model: ModelRef
    """The source of the weights."""
    embedding: EmbeddingRef
    """How hidden states became one vector per sequence."""
    batching: BatchingRef
    """How sequences were grouped into batches."""
    probe: ProbeRef
    """How probes were fitted."""
    scorer: ScorerRef | None = None
    """The program that computed the scores; null in records of older harnesses.

    These fitted probes on features that were not rounded unless a receipt was written, with any
    kernel.
    """
    hardware: Hardware
    """The hardware of the run."""
    tf32: bool = False
    """Whether a GPU may have used TF32 in products or convolutions; see `numerics`."""
    numerics: NumericsRef | None = None
    """Null for an extractor without a torch module, and in records of older harnesses."""
    packages: dict[str, str]
    """Version of each package that can change a number."""
    environment: Annotated[Hex64 | None, Field(exclude_if=operator.not_)] = None
    """SHA-256 of the lock next to the extractor, whose packages have priority; omitted if none."""
    started_at: Moment
    """When the run began."""
    finished_at: Moment
    """When the run ended."""
    resumed: bool
    """Whether the run continued an earlier one that was stopped."""
    limit: Count | None
    """Number of sequences to which each split was cut; null for a complete run."""
    regimes: Annotated[list[str], Field(min_length=1)]
    """Names of the regimes that were scored."""
    missing: list[Missing]
    """Tasks of the benchmark that were not run."""
    tasks: Annotated[dict[str, TaskRecord], Field(min_length=1)]
    """The results of each task, by its id."""
    predictions: PredictionsFile | None = None
    """The file of predicted labels of a run with a receipt; null without one."""
    properties: Annotated[dict[str, RunProperty], Field(exclude_if=operator.not_)] = {}  # noqa: RUF012
    """Outcomes by property, named as in `geneb-harness extractors check`; omitted in older
    records."""

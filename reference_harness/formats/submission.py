"""Typed models of submissions, formats 1.0 to 1.2, and of the files of `geneb-ci upgrade`.

`tools/generate.py` generates the JSON Schemas in `schemas/` from these models. Names of regimes and
tasks are not part of the models: they belong to the benchmark, and the coverage rules check them.

The root of a receipt is that of a Merkle tree over its tasks, in the benchmark's order. The file of
a task, `<task_id>.f16`, contains the embeddings of the training split, then of the test split, in
file order of the pinned data: float16, little-endian, in C order, without a header.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, FailFast, Field

from .base import Count, Hex40, Hex64, MinusOneToOne, Scores, StrictModel, ZeroToOne
from .benchmark import CLASSES_MAX, SEEDS_MAX
from .measurements import PROPERTIES_MAX, RunProperty, TaskMeasured
from .merkle import root_of, task_leaf
from .scorer import ScorerRef
from .submission_terms import (
    BY_ENTRY,
    DISPLAY_MAX,
    LINE_MAX,
    MODEL_ID_MAX,
    MODEL_ID_PATTERN,
    PARAMS_MAX,
    SCALE_MAX,
    SCALE_MIN,
    TEXT_MAX,
    TIME_PATTERN,
    Dtype,
    Scale,
    SourceKind,
    Truncation,
)

# Whoever verifies a receipt reads as many bytes as it claims. The largest task has 336,000
# embeddings, 44 GB with the most columns, well below the limit of a download.
ROWS_MAX, COLUMNS_MAX, ROWS_BYTES_MAX = 10_000_000, 1 << 16, 1 << 36
SECONDS_MAX = 1e9  # 30 years
"""Maximum duration of a run in seconds: 30 years."""


def _integer_if_whole(value: object) -> object:
    """Return a whole float such as 1.2e9 as an integer, as JSON Schema accepts it as one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Positive = Annotated[int, Field(ge=1), BeforeValidator(_integer_if_whole)]
"""An integer from 1."""
TaskRows = Annotated[int, Field(ge=1, le=ROWS_MAX), BeforeValidator(_integer_if_whole)]
"""A number of embeddings of one task."""
Columns = Annotated[int, Field(ge=1, le=COLUMNS_MAX), BeforeValidator(_integer_if_whole)]
"""A number of columns of an embedding."""
TaskBytes = Annotated[int, Field(ge=1, le=ROWS_BYTES_MAX), BeforeValidator(_integer_if_whole)]
"""The size of a task's file of embeddings."""
Parameters = Annotated[int, Field(ge=0, le=PARAMS_MAX), BeforeValidator(_integer_if_whole)]
"""A number of parameters of a model."""
Line = Annotated[str, Field(max_length=LINE_MAX)]
"""A text that is shown on one line."""
Text = Annotated[str, Field(max_length=TEXT_MAX)]
"""A text of at most one paragraph."""
Name = Annotated[str, Field(min_length=1, max_length=LINE_MAX)]
"""A text that is shown on one line and is not empty."""
Timestamp = Annotated[
    str,
    Field(
        # Not \d, which in some languages matches the digits of every script.
        pattern=TIME_PATTERN,
        examples=["2026-11-20T08:30:00Z"],
    ),
]
"""A time in UTC, to the second or finer."""


class Meta(StrictModel):
    """Facts about a model that the board shows next to its scores."""

    display: Annotated[str, Field(min_length=1, max_length=DISPLAY_MAX)]
    """Name on the board."""
    params: Parameters
    """Number of parameters of the encoder; 0 for a method without parameters."""
    url: Line
    """https link to the weights or the paper; may be empty."""
    zero_shot: bool
    """Whether the model saw no sequence of any benchmark task in training."""
    training_data: Text
    """The training data of the model; may be empty."""
    provenance: Line
    """Always "self-reported": higher levels are computed from evidence."""
    submitted_by: Line
    """Who ran the evaluation."""


class SubmissionV10(StrictModel):
    """Upstream's format: identity, metadata and the scores of every task in every regime."""

    schema_: Annotated[str | None, Field(alias="$schema", max_length=LINE_MAX)] = None
    """URI of this schema, for completion in editors."""
    schema_version: Literal["1.0"]
    """Version of the submission format."""
    model_id: Annotated[str, Field(pattern=MODEL_ID_PATTERN, max_length=MODEL_ID_MAX)]
    """Key of the row; the file name is `<model_id>.json`."""
    harness_version: Name
    """Version of the evaluation harness, as in benchmark.json."""
    meta: Meta
    """Facts about the model that the board shows."""
    results: dict[str, dict[str, Scores]]
    """Scores by regime, then task."""


class DatasetUsed(StrictModel):
    """The task data of the run."""

    repo_id: Name
    """Repository of the task data on the Hugging Face Hub."""
    revision: Hex40
    """Commit of the repository."""


class Harness(StrictModel):
    """The harness of the run."""

    version: Name
    """Version of the package `geneb-ci`."""
    commit: Hex40 | None
    """Commit of the harness; null for an installed package."""
    dirty: bool
    """Whether the harness had uncommitted changes."""


class BenchmarkRef(StrictModel):
    """The benchmark definition of the run."""

    name: Name
    """Name of the benchmark."""
    sha256: Hex64
    """SHA-256 of benchmark.json."""


class Extractor(StrictModel):
    """The code that computed the embeddings."""

    path: Name
    """Path of the module in the repository, or `builtin:<name>`."""
    class_name: Name
    """Name of the extractor's class in the module."""
    sha256: Hex64
    """SHA-256 of the module; of a built-in extractor, of all its files."""
    options: dict[Name, Line] = {}  # noqa: RUF012 (pydantic copies it)
    """Keyword arguments of the constructor, as strings.

    Integers, true, false and none are converted.
    """


class ModelSource(StrictModel):
    """The source of the weights."""

    kind: SourceKind
    """`none` for a method without weights."""
    location: Line
    """Repository id or URL."""
    revision: Hex40 | None
    """Commit of the repository; required for `huggingface`."""
    weights: dict[str, Hex64]
    """SHA-256 of each weight file, by name."""


class Embedding(StrictModel):
    """How hidden states became one vector per sequence."""

    layer: Name
    """Layer of the model whose hidden states are used, such as "last"."""
    pooling: Name
    """How the hidden states become one vector, such as "mean"."""
    dim: Positive
    """Width of the embeddings."""
    max_length: Positive | None
    """Limit in tokens; null if the model accepts any length."""
    truncation: Truncation
    """How a sequence that is longer than the limit is shortened."""
    dtype: Dtype
    """Type in which the model computes."""
    scale: Scale = "none"
    """`unit` if the harness divided each embedding by the root mean square of its values."""


class Hardware(StrictModel):
    """The hardware of the run."""

    device: Name
    """cpu, cuda or mps."""
    name: Line
    """Model of the processor or accelerator."""


class Run(StrictModel):
    """The facts needed to repeat the run."""

    benchmark: BenchmarkRef
    """The benchmark definition of the run."""
    dataset: DatasetUsed
    """The task data of the run."""
    harness: Harness
    """The harness that made the run."""
    extractor: Extractor
    """The code that computed the embeddings."""
    model: ModelSource
    """The source of the weights."""
    embedding: Embedding
    """How hidden states became one vector per sequence."""
    scorer: ScorerRef | None = None
    """The program that computed the scores; absent in runs of older harnesses.

    Their features were not rounded.
    """
    hardware: Hardware
    """The hardware of the run."""
    packages: dict[str, Line]
    """Version of each package."""
    environment: Hex64 | None = None
    """SHA-256 of the extractor's lock, `<module>.lock.txt`; absent without one.

    Its packages had priority over the harness's.
    """
    started_at: Timestamp
    """When the run began."""
    finished_at: Timestamp
    """When the run ended."""


class SeedScores(StrictModel):
    """One value per seed, in the order of the benchmark's seeds."""

    MCC: Annotated[list[MinusOneToOne], Field(min_length=1, max_length=SEEDS_MAX)]
    """Matthews correlation coefficients, -1 to 1."""
    Acc: Annotated[list[ZeroToOne], Field(min_length=1, max_length=SEEDS_MAX)]
    """Accuracies, 0 to 1."""
    F1: Annotated[list[ZeroToOne], Field(min_length=1, max_length=SEEDS_MAX)]
    """Macro-averaged F1 scores, 0 to 1."""


class CellEvidence(StrictModel):
    """Evidence for the scores of one task in one regime."""

    n_test: Positive
    """Number of sequences in the test split."""
    per_seed: SeedScores
    """The three scores of each seed."""
    predictions_sha256: Hex64
    """Digest of the predicted labels of all seeds, as defined in the run record."""
    canonical: Scores | None = None
    """Scores of the probe solved to its optimum; never mixed with the scores in `results`."""


class SubmissionV11(SubmissionV10):
    """Superset of format 1.0, with run details, evidence and reasons for missing cells."""

    schema_version: Literal["1.1"]  # type: ignore[assignment]  # distinguishes the formats
    run: Run
    """How to repeat the run that gave the scores."""
    evidence: dict[str, dict[str, CellEvidence]]
    """Evidence by regime, then task, as in `results`."""
    gaps: dict[str, dict[str, Text]] = {}  # noqa: RUF012 (pydantic copies it)
    """Reasons for missing cells, by regime, then task.

    A regime with missing cells is not ranked.
    """


class RegisteredFiles(StrictModel):
    """The source of the weights according to the model registry."""

    kind: Literal["huggingface", "zenodo", "gdrive", "dataverse", "url", "none"]
    """Kind of the place from which the weights are downloaded."""
    location: Line
    """Repository id, record id or URL."""
    revision: Hex40 | None = None
    """Commit of a repository on the Hub."""
    files: dict[str, Hex64] = {}  # noqa: RUF012 (pydantic copies it)
    """SHA-256 of each file, by name."""


class PublishedSettings(StrictModel):
    """How the published scores were computed, as described in the model registry."""

    pooling: Text
    """How hidden states became one vector."""
    hidden_layer: Text
    """Layer of the model whose hidden states were used."""
    dtype: Text | None = None
    """Type in which the model computed."""
    max_length: Positive | None = None
    """Limit in tokens, including special ones."""


class RegistryEntry(StrictModel):
    """The facts of the model registry about the model; unknown ones are omitted."""

    sha256: Hex64
    """SHA-256 of the entry, leaderboard/policy/models/<model_id>.toml."""
    submission_sha256: Hex64
    """SHA-256 of the file of format 1.0 from which this one was made."""
    extractor: Name
    """Extractor for rerunning the model: `builtin:NAME`, or `PATH:CLASS`."""
    options: dict[Name, Text] = {}  # noqa: RUF012 (pydantic copies it)
    """Keyword arguments of the extractor's constructor, as strings."""
    dtype: Dtype
    """Type in which a rerun computes."""
    dim: Positive | None = None
    """Width of the embeddings."""
    environment: Hex64 | None = None
    """SHA-256 of the lock of packages; absent if the harness's packages can load the model."""
    weights: RegisteredFiles
    """The source of the weights."""
    published: PublishedSettings | None = None
    """How the published scores were computed; absent if unknown."""


class SubmissionByEntry(SubmissionV10):
    """Format 1.1 of a row without a recorded run: the model registry describes how to rerun it."""

    schema_version: Literal["1.1"]  # type: ignore[assignment]  # distinguishes the formats
    registry_entry: RegistryEntry
    """Replaces `run` and `evidence`; written only by `geneb-ci upgrade`."""


Matrix = Annotated[
    list[Annotated[list[Count], Field(min_length=2, max_length=CLASSES_MAX), FailFast()]],
    Field(min_length=2, max_length=CLASSES_MAX),
    FailFast(),
]
"""A confusion matrix: one row per true class, one column per predicted class.

Only the first invalid number is reported, as a file may have 150,000 numbers.
"""
Matrices = Annotated[list[Matrix], Field(min_length=1, max_length=SEEDS_MAX), FailFast()]
"""Confusion matrices, one per seed."""


class CanonicalEvidence(Scores):
    """Canonical scores, and the matrices from which they follow."""

    confusion: Matrices
    """One matrix per seed, in the order of `classes`."""
    predictions_sha256: Hex64
    """Digest of the predicted labels of all seeds, as defined in the run record."""


class CellEvidenceV12(CellEvidence):
    """Evidence for one task in one regime, from which each of its scores follows exactly."""

    canonical: CanonicalEvidence | None = None
    """Scores of the probe solved to its optimum; never mixed with the scores in `results`."""
    classes: Annotated[list[int], Field(min_length=2, max_length=CLASSES_MAX)]
    """Labels of rows and columns of the confusion matrices, ascending."""
    confusion: Matrices
    """One matrix per seed."""


class ReceiptLocation(StrictModel):
    """Where the files of a receipt are published."""

    kind: Literal["huggingface-dataset", "url"]
    """Kind of the place: a dataset on the Hugging Face Hub, or a folder at an address."""
    address: Line
    """Repository id, or the https address of the folder."""
    revision: Hex40 | None
    """Commit of the repository; required for `huggingface-dataset`."""


class ReceiptTask(StrictModel):
    """The file of one task: embeddings of train, then test, in file order of the pinned data."""

    train: TaskRows
    """Number of training embeddings."""
    test: TaskRows
    """Number of test embeddings."""
    scale_log2: Annotated[int, Field(ge=SCALE_MIN, le=SCALE_MAX)]
    """The scored feature is a value of the file times 2^scale_log2."""
    bytes: TaskBytes
    """Size of the file."""
    sha256: Hex64
    """SHA-256 of the file."""
    root: Hex64
    """Merkle root of the embeddings."""


class PredictionsFile(StrictModel):
    """The file of predicted labels in a receipt, `predictions.bin`."""

    bytes: Positive
    """Size of the file."""
    sha256: Hex64
    """SHA-256 of the file."""


class EmbeddingReceipt(StrictModel):
    """The embeddings of the run, rounded to float16, in files with a Merkle root."""

    version: Literal["1"]
    """Version of the format of receipts."""
    location: ReceiptLocation | None
    """null until the files are published."""
    dtype: Literal["float16"]
    """Type of the numbers in the files."""
    compute_dtype: Dtype
    """Type in which the embeddings were computed."""
    tf32: bool
    """Whether the device may have used TF32."""
    dim: Columns
    """Width of the embeddings."""
    rows: Positive
    """Number of embeddings of all tasks."""
    root: Hex64
    """Merkle root of the tasks, in the benchmark's order."""
    tasks: Annotated[dict[str, ReceiptTask], Field(min_length=1)]
    """The file of each task, by the task's id."""
    predictions: PredictionsFile | None = None
    """null if the predicted labels are not published."""


class EmbeddingCost(StrictModel):
    """The measured cost of embedding, without embeddings from a cache."""

    letters: Positive
    """Number of letters of the embedded sequences."""
    seconds: Annotated[float, Field(gt=0, le=SECONDS_MAX)]
    """Time in seconds from tokens to saved embeddings, without loading the model."""
    peak_memory_bytes: Positive | None
    """Maximum number of bytes in use on the accelerator, or by the process on a CPU."""

    @property
    def letters_per_second(self) -> float:
        """Letters embedded per second."""
        return self.letters / self.seconds


class RunV12(Run):
    """A run and the cost of its embeddings."""

    embedding_cost: EmbeddingCost | None = None
    """null if every embedding came from a cache."""


class SubmissionV12(SubmissionV11):
    """Superset of format 1.1, with confusion matrices and an optional receipt."""

    schema_version: Literal["1.2"]  # type: ignore[assignment]  # distinguishes the formats
    run: RunV12
    """How to repeat the run, and the cost of its embeddings."""
    evidence: dict[str, dict[str, CellEvidenceV12]]  # type: ignore[assignment]  # a narrower cell
    """Evidence by regime, then task, as in `results`."""
    measured: dict[str, TaskMeasured] = {}  # noqa: RUF012 (pydantic copies it)
    """Measurements by task: letters read, embeddings, scores at unit scale."""
    properties: Annotated[dict[Name, RunProperty], Field(max_length=PROPERTIES_MAX)] = {}  # noqa: RUF012
    """Outcomes of the run's checks by property, named as in `geneb-harness extractors check`."""
    receipt: EmbeddingReceipt | None = None
    """The published embeddings of the run; null without a receipt."""


Submission = SubmissionV10
"""A submission of any format: the later ones have all members of format 1.0."""
MODELS: dict[str, type[SubmissionV10]] = {
    "1.0": SubmissionV10,
    "1.1": SubmissionV11,
    "1.2": SubmissionV12,
    BY_ENTRY: SubmissionByEntry,
}
"""The class of each format, by `schema_version`; by `BY_ENTRY` for a file without a run."""


def receipt_root(receipt: EmbeddingReceipt, order: Sequence[str]) -> str:
    """Return the Merkle root of a receipt's tasks in the benchmark's `order`, as hex digits."""
    tasks = {name: receipt.tasks[name] for name in order if name in receipt.tasks}
    return root_of_tasks(tasks, receipt.dim)


def root_of_tasks(tasks: Mapping[str, ReceiptTask], dim: int) -> str:
    """Return the Merkle root of tasks in the given order, as hex digits; `dim` is their width."""
    return root_of(
        [
            task_leaf(name, task.train + task.test, dim, task.scale_log2, bytes.fromhex(task.root))
            for name, task in tasks.items()
        ]
    ).hex()

"""Typed models of a submission, formats 1.0 and 1.1.

The JSON Schemas under `schemas/` are generated from these models (`tools/generate.py`), so that an
editor, another program and this one hold one contract. Names of regimes and tasks are not part of
the models: they belong to the benchmark, and the coverage rules speak of them.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from geneb_ci.common.types import Hex40, Hex64, Scores, Signed, StrictModel, Unit

MODEL_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
# 255 bytes is the longest file name of the common file systems; the id carries ".json" or ".md",
# and an audit adds a folder of its own.
MODEL_ID_MAX = 128
DISPLAY_MAX = 80  # wider names break the board's first column
LINE_MAX = 300  # one line in a table or a comment
TEXT_MAX = 4000  # a paragraph; the model card is the place for more
# A trillion-parameter model is 1e12; a hundred times that is a slip of the keyboard.
PARAMS_MAX = 10**14
SEEDS_MAX = 100


def _integral(value: object) -> object:
    """Take 1.2e9 for an integer, as JSON Schema does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Positive = Annotated[int, Field(ge=1), BeforeValidator(_integral)]
Parameters = Annotated[int, Field(ge=0, le=PARAMS_MAX), BeforeValidator(_integral)]
Line = Annotated[str, Field(max_length=LINE_MAX)]
Text = Annotated[str, Field(max_length=TEXT_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=LINE_MAX)]
Timestamp = Annotated[
    str,
    Field(
        # Not \d, which takes the digits of every script for some readers.
        pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?Z$",
        examples=["2026-11-20T08:30:00Z"],
    ),
]


class Meta(StrictModel):
    """What the board shows of a model beside its scores."""

    display: Annotated[str, Field(min_length=1, max_length=DISPLAY_MAX)]
    """Name on the board."""
    params: Parameters
    """Number of parameters of the encoder, as an integer; 0 for a method that has none."""
    url: Line
    """https address of the weights or the paper; may be empty."""
    zero_shot: bool
    """Whether the model saw no sequence of any benchmark task in training."""
    training_data: Text
    """What the model was trained on; may be empty."""
    provenance: Line
    """Always "self-reported": any higher level is computed from evidence."""
    submitted_by: Line
    """Who ran the evaluation."""


class SubmissionV10(StrictModel):
    """Upstream's format: identity, metadata and the scores of every task in every regime."""

    schema_: Annotated[str | None, Field(alias="$schema", max_length=LINE_MAX)] = None
    """Address of this schema; editors then complete the file."""
    schema_version: Literal["1.0"]
    model_id: Annotated[str, Field(pattern=MODEL_ID_PATTERN, max_length=MODEL_ID_MAX)]
    """Key of the row: the file is called `<model_id>.json`."""
    harness_version: Name
    """Version of the evaluation harness, as benchmark.json names it."""
    meta: Meta
    results: dict[str, dict[str, Scores]]
    """Regime, then task, then metric."""


class DatasetUsed(StrictModel):
    """Which task data were used."""

    repo_id: Name
    revision: Hex40


class Harness(StrictModel):
    """Which harness ran."""

    version: Name
    commit: Hex40 | None
    """Commit of the harness; null when it ran from an installed package."""
    dirty: bool
    """Whether the working tree of the harness differed from that commit."""


class BenchmarkRef(StrictModel):
    """Which benchmark definition was in force."""

    name: Name
    sha256: Hex64
    """Digest of the bytes of benchmark.json."""


class Extractor(StrictModel):
    """Which code turned sequences into embeddings."""

    path: Name
    """Path of the module in the repository, or `builtin:<name>`."""
    class_name: Name
    sha256: Hex64
    options: dict[Name, Line] = {}  # noqa: RUF012 (pydantic copies it)
    """Keyword arguments of the constructor, as text; whole numbers, true, false and none mean such
    values."""


class ModelSource(StrictModel):
    """Where the weights come from."""

    kind: Literal["huggingface", "url", "local", "none"]
    """`none` for a method without weights."""
    location: Line
    """Repository id or address."""
    revision: Hex40 | None
    """Commit of the repository; required for `huggingface`."""
    weights: dict[str, Hex64]
    """File name to sha256 of each weight file."""


class Embedding(StrictModel):
    """How hidden states became one vector a sequence."""

    layer: Name
    pooling: Name
    dim: Positive
    max_length: Positive | None
    """In tokens; null when the model takes any length."""
    truncation: Literal["none", "right", "left", "windows"]
    dtype: Literal["float64", "float32", "float16", "bfloat16"]


class Hardware(StrictModel):
    """Where it ran."""

    device: Name
    """cpu, cuda or mps."""
    name: Line
    """Model of the processor or accelerator."""


class Run(StrictModel):
    """What another person needs to repeat the run."""

    benchmark: BenchmarkRef
    dataset: DatasetUsed
    harness: Harness
    extractor: Extractor
    model: ModelSource
    embedding: Embedding
    hardware: Hardware
    packages: dict[str, Line]
    """Package name to version."""
    started_at: Timestamp
    finished_at: Timestamp


class SeedScores(StrictModel):
    """One value a seed, in the order of the benchmark's seeds."""

    MCC: Annotated[list[Signed], Field(min_length=1, max_length=SEEDS_MAX)]
    Acc: Annotated[list[Unit], Field(min_length=1, max_length=SEEDS_MAX)]
    F1: Annotated[list[Unit], Field(min_length=1, max_length=SEEDS_MAX)]


class CellEvidence(StrictModel):
    """What stands behind one cell."""

    n_test: Positive
    """Sequences in the test split."""
    per_seed: SeedScores
    predictions_sha256: Hex64
    """Digest of the predicted labels of all seeds, as the run record defines it."""
    canonical: Scores | None = None
    """Scores of the probe solved to its optimum: another number, never mixed with the first."""


class SubmissionV11(SubmissionV10):
    """Superset of 1.0: a reader of 1.0 finds all it knows in the same places."""

    schema_version: Literal["1.1"]  # type: ignore[assignment]  # the one field that tells the formats apart
    run: Run
    evidence: dict[str, dict[str, CellEvidence]]
    """Regime, then task: the same keys as in results."""
    gaps: dict[str, dict[str, Text]] = {}  # noqa: RUF012 (pydantic copies it)
    """Regime, then task: why a cell is missing. A regime with a gap is not ranked."""


Submission = SubmissionV10
MODELS: dict[str, type[SubmissionV10]] = {"1.0": SubmissionV10, "1.1": SubmissionV11}

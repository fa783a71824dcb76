"""What the harness's rescoring says: generated from schemas/rescored.schema.json.

Change reference_harness/rescored.py, then run `make generate`.
"""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.types import Count, Hex40, Hex64, Positive, Scores, Signed, StrictModel, Unit


class RescoredBenchmark(StrictModel):
    """The benchmark definition of the run."""

    name: str
    sha256: Hex64


class RescoredSeeds(StrictModel):
    """One value per seed, in the order of `protocol.seeds`."""

    MCC: Annotated[list[Signed], Field(min_length=1)]
    Acc: Annotated[list[Unit], Field(min_length=1)]
    F1: Annotated[list[Unit], Field(min_length=1)]


class RescoredCanonical(StrictModel):
    """Scores of the probe solved to its optimum; they differ from the score of record."""

    scores: Scores
    per_seed: RescoredSeeds
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Annotated[float, Field(ge=0)]


class RescoredChanged(StrictModel):
    """Decisions that changed between rows as published and their variants."""

    rows: Count
    worse: Count
    better: Count


class RescoredCopy(StrictModel):
    """Scores of one jittered copy of the embeddings."""

    per_seed: RescoredSeeds
    flips: Annotated[list[Count], Field(min_length=1)]


class RescoredDataset(StrictModel):
    """The task data of the run."""

    repo_id: str
    revision: Hex40
    verified: bool


class RescoredTested(StrictModel):
    """Decisions on rows whose labels are known."""

    rows: Positive
    right: Count
    MCC: Signed


class RescoredProbeDecisions(StrictModel):
    """Decisions of one kind of probe in one regime, summed over its fits."""

    fits: Positive
    public: RescoredTested
    kinds: dict[str, RescoredChanged]
    fresh: RescoredTested | None


class RescoredDecisions(StrictModel):
    """Decisions of the probe of the full regime on rows beside those of a task."""

    public: RescoredTested
    kinds: dict[str, RescoredChanged]
    training: RescoredChanged | None
    fresh: RescoredTested | None
    others: dict[str, RescoredProbeDecisions]


class RescoredHarness(StrictModel):
    """The harness of the run."""

    version: str
    commit: Hex40 | None
    dirty: bool


class RescoredLibrary(StrictModel):
    """A numerical library of the probe's processes; kernel and threads can change a score."""

    library: str
    version: str
    kernel: str
    threads: Count


class RescoredNoise(StrictModel):
    """Noise of the copies; `reference_harness/noise.py` has the formula."""

    dtype: Literal["float64", "float32", "float16", "bfloat16"]
    units: Annotated[float, Field(gt=0)]
    stress: Annotated[float, Field(gt=1)]
    seed: Count
    copies: Positive


class RescoredWarning(StrictModel):
    """A warning about a score."""

    kind: Literal[
        "not-converged", "constant-prediction", "untrained-class", "small-class", "scikit-learn"
    ]
    message: str
    seeds: list[int]


class RescoredBase(StrictModel):
    """One task in one regime."""

    scores: Scores
    per_seed: RescoredSeeds
    classes: Annotated[list[int], Field(min_length=2)]
    confusion: Annotated[list[list[list[Count]]], Field(min_length=1)]
    predictions_sha256: Hex64
    rows: list[Count]
    iterations: list[Count]
    warnings: list[RescoredWarning]
    seconds: Annotated[float, Field(ge=0)]
    canonical: RescoredCanonical | None
    no_canonical: str | None


class RescoredRegime(StrictModel):
    """One task in one regime."""

    base: RescoredBase
    plain: Annotated[list[RescoredCopy], Field(min_length=1)]
    stressed: list[RescoredCopy]
    halts: list[list[Scores]]
    canonical: list[RescoredCopy]


class RescoredTask(StrictModel):
    """One task."""

    data_sha256: Hex64
    train: dict[str, Count]
    test: dict[str, Count]
    distinct_sequences: Count
    regimes: Annotated[dict[str, RescoredRegime], Field(min_length=1)]
    decisions: RescoredDecisions | None


class Rescored(StrictModel):
    """Scores of embeddings, and how much numeric noise changes them."""

    schema_version: Literal["1.0"]
    benchmark: RescoredBenchmark
    dataset: RescoredDataset
    harness: RescoredHarness
    embeddings_sha256: Hex64
    sequences_sha256: Hex64
    dim: Positive
    feature_dtype: Literal["float16", "float32", "float64"]
    noise: RescoredNoise
    seeds: Annotated[list[int], Field(min_length=1)]
    few_shot_k: dict[str, int]
    libraries: list[RescoredLibrary]
    packages: dict[str, str]
    seconds: Annotated[float, Field(ge=0)]
    tasks: Annotated[dict[str, RescoredTask], Field(min_length=1)]

"""Reads what `geneb-harness rescore` wrote; `schemas/rescored.schema.json` describes it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from geneb_ci.audit.commitment import Hex40, Hex64, Part
from geneb_ci.errors import NothingChecked
from geneb_ci.regular import NotReadable, read_regular

BYTES_MAX = 1 << 28  # 100 tasks have about 15 MB; confusion matrices of many classes more

Signed = Annotated[float, Field(ge=-1, le=1)]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Matrix = list[list[Count]]


class Scores(Part):
    """One value a metric."""

    MCC: Signed
    Acc: Unit
    F1: Unit


class PerSeed(Part):
    """One value a seed, in the benchmark's order."""

    MCC: Annotated[list[Signed], Field(min_length=1)]
    Acc: Annotated[list[Unit], Field(min_length=1)]
    F1: Annotated[list[Unit], Field(min_length=1)]


class Copy(Part):
    """Scores of one jittered copy, and the predictions it changed, one count a seed."""

    per_seed: PerSeed
    flips: Annotated[list[Count], Field(min_length=1)]


class Warned(Part):
    """What a reader of a score should know."""

    kind: str
    message: str
    seeds: list[int]


class Canonical(Part):
    """Scores of the probe solved to its optimum."""

    scores: Scores
    per_seed: PerSeed
    confusion: Annotated[list[Matrix], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Seconds


class Base(Part):
    """One task in one regime, on the embeddings as they came."""

    scores: Scores
    per_seed: PerSeed
    classes: Annotated[list[int], Field(min_length=2)]
    confusion: Annotated[list[Matrix], Field(min_length=1)]
    predictions_sha256: Hex64
    rows: list[Count]
    iterations: list[Count]
    warnings: list[Warned]
    seconds: Seconds
    canonical: Canonical | None
    no_canonical: str | None


class RescoredRegime(Part):
    """One task in one regime, with its copies."""

    base: Base
    plain: Annotated[list[Copy], Field(min_length=1)]
    stressed: list[Copy]
    halts: list[list[Scores]]
    """Scores of every place where rounding alone may stop a fit, a list a fit."""
    canonical: list[Copy]


class RescoredTask(Part):
    """One task."""

    data_sha256: Hex64
    train: dict[str, Count]
    test: dict[str, Count]
    distinct_sequences: Count
    regimes: Annotated[dict[str, RescoredRegime], Field(min_length=1)]


class BenchmarkRef(Part):
    """Which benchmark definition was in force."""

    name: str
    sha256: Hex64


class DatasetRef(Part):
    """Which task data were used, and whether a manifest vouched for them."""

    repo_id: str
    revision: Hex40
    verified: bool


class HarnessRef(Part):
    """Which harness scored."""

    version: str
    commit: Hex40 | None
    dirty: bool


class LibraryRef(Part):
    """One numerical library of the probe's processes."""

    library: str
    version: str
    kernel: str
    threads: Count


class NoiseRef(Part):
    """Which noise the copies have."""

    dtype: Literal["float64", "float32", "float16", "bfloat16"]
    units: Annotated[float, Field(gt=0)]
    stress: Annotated[float, Field(gt=1)]
    seed: Count
    copies: Annotated[int, Field(ge=1)]


class Rescored(Part):
    """Scores of given embeddings, and how far numeric noise moves them."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    embeddings_sha256: Hex64
    sequences_sha256: Hex64
    dim: Annotated[int, Field(ge=1)]
    feature_dtype: Literal["float16", "float32", "float64"]
    noise: NoiseRef
    seeds: Annotated[list[int], Field(min_length=1)]
    few_shot_k: dict[str, int]
    libraries: list[LibraryRef]
    packages: dict[str, str]
    seconds: Seconds
    tasks: Annotated[dict[str, RescoredTask], Field(min_length=1)]


def read_rescored(path: Path) -> Rescored:
    """Read a rescoring.

    Raises NothingChecked, which names file and key, for anything but what this version writes.
    """
    fix = "run `geneb-harness rescore` of the same version again"
    try:
        return Rescored.model_validate_json(read_regular(path, BYTES_MAX))
    except NotReadable as error:
        raise NothingChecked(f"{path}: {error.reason}", fix) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = "/".join(str(part) for part in first["loc"]) or "the document"
        raise NothingChecked(f"{path}: {key}: {first['msg']}", fix) from error

"""The part of the harness in an audit: sequences without labels, then scores of embeddings."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.common.regular import NotReadable, read_regular
from geneb_ci.common.types import Count, Hex40, Hex64, Signed, StrictModel, Unit

BYTES_MAX = 1 << 28  # 100 tasks have about 15 MB; confusion matrices of many classes more

Seconds = Annotated[float, Field(ge=0)]
Matrix = list[list[Count]]


class RescoredScores(StrictModel):
    """One value a metric."""

    MCC: Signed
    Acc: Unit
    F1: Unit


class RescoredSeeds(StrictModel):
    """One value a seed, in the benchmark's order."""

    MCC: Annotated[list[Signed], Field(min_length=1)]
    Acc: Annotated[list[Unit], Field(min_length=1)]
    F1: Annotated[list[Unit], Field(min_length=1)]


class RescoredCopy(StrictModel):
    """Scores of one jittered copy, and the predictions it changed, one count a seed."""

    per_seed: RescoredSeeds
    flips: Annotated[list[Count], Field(min_length=1)]


class RescoredWarning(StrictModel):
    """What a reader of a score should know."""

    kind: str
    message: str
    seeds: list[int]


class RescoredCanonical(StrictModel):
    """Scores of the probe solved to its optimum."""

    scores: RescoredScores
    per_seed: RescoredSeeds
    confusion: Annotated[list[Matrix], Field(min_length=1)]
    predictions_sha256: Hex64
    solvers: list[str]
    seconds: Seconds


class RescoredBase(StrictModel):
    """One task in one regime, on the embeddings as they are."""

    scores: RescoredScores
    per_seed: RescoredSeeds
    classes: Annotated[list[int], Field(min_length=2)]
    confusion: Annotated[list[Matrix], Field(min_length=1)]
    predictions_sha256: Hex64
    rows: list[Count]
    iterations: list[Count]
    warnings: list[RescoredWarning]
    seconds: Seconds
    canonical: RescoredCanonical | None
    no_canonical: str | None


class RescoredRegime(StrictModel):
    """One task in one regime, with its copies."""

    base: RescoredBase
    plain: Annotated[list[RescoredCopy], Field(min_length=1)]
    stressed: list[RescoredCopy]
    halts: list[list[RescoredScores]]
    """Scores at every point where rounding alone may stop a fit: one list a fit."""
    canonical: list[RescoredCopy]


class RescoredTask(StrictModel):
    """One task."""

    data_sha256: Hex64
    train: dict[str, Count]
    test: dict[str, Count]
    distinct_sequences: Count
    regimes: Annotated[dict[str, RescoredRegime], Field(min_length=1)]


class RescoredBenchmark(StrictModel):
    """Which benchmark definition was used."""

    name: str
    sha256: Hex64


class RescoredDataset(StrictModel):
    """Which task data were used, and whether a manifest vouched for them."""

    repo_id: str
    revision: Hex40
    verified: bool


class RescoredHarness(StrictModel):
    """Which harness scored."""

    version: str
    commit: Hex40 | None
    dirty: bool


class RescoredLibrary(StrictModel):
    """One numerical library of the probe's processes."""

    library: str
    version: str
    kernel: str
    threads: Count


class RescoredNoise(StrictModel):
    """Which noise the copies have."""

    dtype: Literal["float64", "float32", "float16", "bfloat16"]
    units: Annotated[float, Field(gt=0)]
    stress: Annotated[float, Field(gt=1)]
    seed: Count
    copies: Annotated[int, Field(ge=1)]


class Rescored(StrictModel):
    """Scores of given embeddings, and how far numeric noise moves them."""

    schema_version: Literal["1.0"]
    benchmark: RescoredBenchmark
    dataset: RescoredDataset
    harness: RescoredHarness
    embeddings_sha256: Hex64
    sequences_sha256: Hex64
    dim: Annotated[int, Field(ge=1)]
    feature_dtype: Literal["float16", "float32", "float64"]
    noise: RescoredNoise
    seeds: Annotated[list[int], Field(min_length=1)]
    few_shot_k: dict[str, int]
    libraries: list[RescoredLibrary]
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


@dataclass(frozen=True)
class TaskSource:
    """Where the harness finds the tasks."""

    data: Path | None
    """Folder of task data; None for the practice benchmark, whose data are generated."""
    definition: Path | None
    """The benchmark definition, where it is not the shipped one."""

    @property
    def options(self) -> list[str]:
        """Options of the harness's command line."""
        named = {"--data": self.data, "--benchmark": self.definition}
        return [word for key, value in named.items() if value for word in (key, str(value))]


def task_source(benchmark: Benchmark, definition: Path | None, data: Path | None) -> TaskSource:
    """Return the source of a benchmark's tasks. Raises UsageProblem when it needs a folder."""
    if data is None:
        if benchmark.sha256 != shipped_benchmark(PRACTICE_BENCHMARK).sha256:
            raise UsageProblem(
                f"--data is missing: {benchmark.name} needs its task data",
                "download them with `geneb-ci data pull`, then pass --data DIR",
            )
        return TaskSource(None, None)
    return TaskSource(data.resolve(), definition)


def sequences_of(tasks: Sequence[str], source: TaskSource, folder: Path) -> Path:
    """Write the distinct sequences of tasks, one a line, and return the file.

    Raises NothingChecked, with what the harness said, when it cannot.
    """
    file = folder / "sequences.txt"
    _harness(["sequences", "--tasks", ",".join(tasks), *source.options, "--output", str(file)])
    return file


@dataclass(frozen=True)
class Scoring:
    """How to score."""

    noise: str
    """Dtype whose rounding the jittered copies have."""
    seed: int
    copies: int
    workers: int | None
    canonical: bool
    """Whether the claim has canonical scores to compare."""


def rescored(
    tasks: Sequence[str],
    source: TaskSource,
    sequences: Path,
    embeddings: Path,
    how: Scoring,
) -> Rescored:
    """Return the scores of embeddings; row i is the embedding of line i of `sequences`.

    Raises NothingChecked, with what the harness said, when it cannot.
    """
    output = embeddings.with_name("rescored.json")
    _harness([
        "rescore", "--tasks", ",".join(tasks), *source.options,
        "--sequences", str(sequences), "--embeddings", str(embeddings),
        "--noise", how.noise, "--seed", str(how.seed), "--copies", str(how.copies),
        *(["--workers", str(how.workers)] if how.workers else []),
        "--canonical" if how.canonical else "--no-canonical",
        "--output", str(output),
    ])  # fmt: skip
    found = read_rescored(output)
    if not found.dataset.verified:
        raise NothingChecked(
            "the task data have no manifest of the benchmark's dataset revision",
            "download them with `geneb-ci data pull`, which writes the manifest",
        )
    return found


def _harness(arguments: Sequence[str]) -> None:
    command = [sys.executable, "-m", "reference_harness", *arguments, "--quiet"]
    ended = subprocess.run(  # noqa: S603 (our own module)
        command, capture_output=True, text=True, errors="backslashreplace", check=False,
        env=os.environ | {"PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    if ended.returncode:
        said = ended.stderr.strip().removeprefix("error: ") or f"code {ended.returncode}"
        raise NothingChecked(
            f"`geneb-harness {arguments[0]}` failed: {said}",
            "fix what it names, then run the audit again with the same plan",
        )

"""The benchmark definition: tasks, categories, regimes, metrics, protocol, pinned data."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic_core
from pydantic import Field, ValidationError, model_validator

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.regular import NotReadable, read_regular
from geneb_ci.common.shipped import shipped
from geneb_ci.common.types import Hex40, Hex64, StrictModel, first_error

BENCHMARK_BYTES_MAX = 1_000_000  # the real one has 21 kB
# Rules iterate over regimes x tasks x metrics (3 x 100 x 3 in the real benchmark). The limits allow
# ten times as many of each kind and keep a hostile definition from taking minutes.
REGIMES_MAX, TASKS_MAX, METRICS_MAX, SEEDS_MAX = 10, 1_000, 10, 100
# No test split has 10^9 sequences; above that, 1 / n is lost in the rounding of a double.
SIZE_MAX = 1_000_000_000


class Task(StrictModel):
    """One classification task."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    label: Annotated[str, Field(min_length=1)]
    category: Annotated[str, Field(min_length=1)]
    n_test: Annotated[int, Field(ge=1, le=SIZE_MAX)] | None = None
    """Number of sequences in the test split, if known."""
    test_class_counts: list[Annotated[int, Field(ge=0, le=SIZE_MAX)]] | None = None
    """Number of test sequences per class, ascending, without class names, if known."""

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        counts = self.test_class_counts
        if counts is not None and (counts != sorted(counts) or sum(counts) != self.n_test):
            raise ValueError(
                f"test_class_counts {counts} must ascend and add up to n_test {self.n_test}"
            )
        return self


class Dataset(StrictModel):
    """Repository, commit and file layout of the task data."""

    repo_id: str
    former_repo_id: str | None = None
    revision: Hex40
    remote_layout: str
    local_layout: str


class Protocol(StrictModel):
    """How frozen embeddings are scored: probe, scaling, seeds, shots per class."""

    probe: str
    logreg: dict[str, Any]
    feature_scaling: str | None = None
    seeds: Annotated[list[int], Field(min_length=1, max_length=SEEDS_MAX)]
    few_shot_k: dict[str, Annotated[int, Field(ge=1, le=SIZE_MAX)]]
    pooling: str = ""


class Benchmark(StrictModel):
    """A benchmark definition. Tasks and categories are in the order of the board."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    schema_version: str
    name: Annotated[str, Field(min_length=1)]
    harness_version: str
    regimes: Annotated[list[str], Field(min_length=1, max_length=REGIMES_MAX)]
    metrics: Annotated[list[str], Field(min_length=1, max_length=METRICS_MAX)]
    primary_metric: str
    protocol: Protocol
    dataset: Dataset
    category_order: Annotated[list[str], Field(min_length=1, max_length=TASKS_MAX)]
    sources: dict[str, str] = {}  # noqa: RUF012 (pydantic copies it)
    tasks: Annotated[list[Task], Field(min_length=1, max_length=TASKS_MAX)]
    sha256: Annotated[Hex64, Field(exclude=True)] = "0" * 64
    """Digest of the bytes it was read from; not part of the file."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [task.id for task in self.tasks]
        if doubled := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"duplicate task ids: {doubled}")
        if self.primary_metric not in self.metrics:
            raise ValueError(f"primary_metric {self.primary_metric!r} is not among {self.metrics}")
        if (got := {task.category for task in self.tasks}) != set(self.category_order):
            raise ValueError(
                f"category_order {self.category_order} differs from the tasks' {sorted(got)}"
            )
        return self

    @functools.cached_property
    def task_ids(self) -> tuple[str, ...]:
        """Task ids in board order."""
        return tuple(task.id for task in self.tasks)

    @functools.cached_property
    def by_id(self) -> dict[str, Task]:
        """Tasks by id."""
        return {task.id: task for task in self.tasks}

    @functools.cached_property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Task ids of each category, both in board order."""
        return {c: tuple(t.id for t in self.tasks if t.category == c) for c in self.category_order}


def parse_benchmark(raw: bytes, name: str) -> Benchmark:
    """Return the benchmark definition in `raw`; `name` is the file name for messages.

    Raises BadConfiguration, which names the file and the key, when it cannot be used.
    """
    try:
        benchmark = Benchmark.model_validate_json(raw)
    except ValidationError as error:
        raise BadConfiguration(
            f"{name}: {first_error(error)}", "compare it with schemas/benchmark.schema.json"
        ) from error
    return benchmark.model_copy(update={"sha256": hashlib.sha256(raw).hexdigest()})


@functools.cache
def load_benchmark(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raises BadConfiguration when it is missing, too large or wrong.
    """
    return parse_benchmark(_read(path), str(path))


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, BENCHMARK_BYTES_MAX)
    except NotReadable as error:
        raise BadConfiguration(
            f"{path}: {error.reason}",
            "pass a benchmark definition, such as schemas/benchmark.json",
        ) from error


_RESTORE = "restore the file from upstream's main branch"


@functools.cache
def upstream_benchmark(path: Path) -> Benchmark:
    """Return upstream's benchmark_spec.json, completed with the shipped test sizes and protocol.

    Raises BadConfiguration, which names the file and the key, when it cannot be used.
    """
    ours = shipped_benchmark()
    try:
        spec = pydantic_core.from_json(_read(path))
    except ValueError as error:
        raise BadConfiguration(f"{path}: the document: {error}", _RESTORE) from error

    def at(*keys: str | int) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        value = spec
        for key in keys:
            try:
                value = value[key]
            except (LookupError, TypeError):
                name = "/".join(map(str, keys))
                raise BadConfiguration(f"{path}: {name}: missing", _RESTORE) from None
        return value

    known = {task.id: task.model_dump() for task in ours.tasks}
    tasks = []
    for index in range(len(at("tasks")) if isinstance(at("tasks"), list) else 0):
        own = {key: at("tasks", index, key) for key in ("id", "label", "category")}
        tasks.append(known.get(str(own["id"]), {}) | own)
    merged = ours.model_dump(by_alias=True) | {
        **{key: at(key) for key in ("harness_version", "regimes", "metrics", "category_order")},
        "tasks": tasks,
        "protocol": ours.protocol.model_dump() | {"seeds": at("protocol", "seeds")},
        "dataset": ours.dataset.model_dump()
        | {key: at("dataset", key) for key in ("repo_id", "revision")},
    }
    return parse_benchmark(json.dumps(merged).encode(), str(path))


def shipped_benchmark(file: str = "benchmark.json") -> Benchmark:
    """Return the benchmark definition that ships with this version."""
    return load_benchmark(shipped("schemas", file))

"""The benchmark definition: tasks, categories, regimes, metrics, protocol, pinned data.

Its values are plain, so that a check of one file does not wait for the library that validates a
definition: `types.BenchmarkFile` does, unless the bytes are those of a shipped file.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.files import NotReadable, read_json, read_regular
from geneb_ci.common.shipped import known, shipped

BENCHMARK_BYTES_MAX = 1_000_000  # the real one has 21 kB
_ALIASES = {"schema_": "$schema"}


class _Values:
    """Base of the parts of a definition, with the methods that typed models of files have."""

    def model_copy(self, update: Mapping[str, Any]) -> Self:
        """Return a copy with some members replaced; nothing is validated."""
        return dataclasses.replace(self, **update)  # type: ignore[type-var]  # each is a dataclass

    def model_dump(self, *, by_alias: bool = False) -> dict[str, Any]:
        """Return the members as JSON values, without the digest; `by_alias`: by their keys."""
        found = dataclasses.asdict(self)  # type: ignore[call-overload]
        found.pop("sha256", None)
        names = _ALIASES if by_alias else {}
        return {names.get(name, name): value for name, value in found.items()}


@dataclass(frozen=True, kw_only=True)
class Task(_Values):
    """One classification task."""

    id: str
    label: str
    category: str
    n_test: int | None = None
    """Number of sequences in the test split, if known."""
    test_class_counts: list[int] | None = None
    """Number of test sequences of each class that the split has, ascending, without names."""

    @property
    def two_sizes(self) -> tuple[int, int] | None:
        """Numbers of test sequences of two classes; None where there are more."""
        counts = self.test_class_counts
        return (counts[0], counts[1]) if counts and len(counts) == 2 else None  # noqa: PLR2004


@dataclass(frozen=True, kw_only=True)
class Dataset(_Values):
    """Repository, commit and file layout of the task data."""

    repo_id: str
    former_repo_id: str | None = None
    revision: str
    remote_layout: str
    local_layout: str


@dataclass(frozen=True, kw_only=True)
class Protocol(_Values):
    """How frozen embeddings are scored: probe, scaling, seeds, shots per class."""

    probe: str
    logreg: dict[str, Any]
    feature_scaling: str | None = None
    seeds: list[int]
    few_shot_k: dict[str, int]
    pooling: str = ""


@dataclass(frozen=True, kw_only=True)
class Benchmark(_Values):
    """A benchmark definition. Tasks and categories are in the order of the board.

    Members are in the order of the file: a digest of what upstream's is completed to depends on it.
    """

    schema_: str | None = None
    schema_version: str
    name: str
    harness_version: str
    regimes: list[str]
    metrics: list[str]
    primary_metric: str
    protocol: Protocol
    dataset: Dataset
    category_order: list[str]
    sources: dict[str, str] = field(default_factory=dict)
    tasks: list[Task]
    sha256: str = "0" * 64
    """Digest of the bytes it was read from; not part of the file."""

    @classmethod
    def of(cls, members: Mapping[str, Any], sha256: str) -> "Benchmark":
        """Return the definition with these members, which are valid."""
        given = {("schema_" if key == "$schema" else key): members[key] for key in members}
        parts = {
            "protocol": Protocol(**given["protocol"]),
            "dataset": Dataset(**given["dataset"]),
            "tasks": [Task(**task) for task in given["tasks"]],
        }
        return cls(**given | parts | {"sha256": sha256})

    @classmethod
    def model_validate(cls, value: Mapping[str, Any]) -> "Benchmark":
        """Return the definition in a value. Raises BadConfiguration when it cannot be used."""
        return parse_benchmark(json.dumps(value).encode(), "the benchmark")

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

    @functools.cached_property
    def category_places(self) -> tuple[tuple[int, ...], ...]:
        """Places in board order of the tasks of each category."""
        places = {task: place for place, task in enumerate(self.task_ids)}
        return tuple(tuple(places[task] for task in own) for own in self.categories.values())

    @functools.cached_property
    def test_sizes(self) -> tuple[tuple[str, int | None, tuple[int, int] | None], ...]:
        """Of each task, its id, number of test sequences, and those of its two classes."""
        return tuple((task.id, task.n_test, task.two_sizes) for task in self.tasks)


def parse_benchmark(raw: bytes, name: str) -> Benchmark:
    """Return the benchmark definition in `raw`; `name` is the file name for messages.

    Raises BadConfiguration, which names the file and the key, when it cannot be used.
    """
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 in known().benchmarks:
        return Benchmark.of(json.loads(raw), sha256)
    from geneb_ci.common.types import validated  # 80 ms, and files are mostly shipped ones

    return Benchmark.of(validated(raw, name), sha256)


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
        spec = read_json(_read(path))
    except ValueError as error:
        raise BadConfiguration(f"{path}: the document: {error}", _RESTORE) from error

    def at(*keys: str | int) -> Any:
        value = spec
        for key in keys:
            try:
                value = value[key]
            except (LookupError, TypeError):
                name = "/".join(map(str, keys))
                raise BadConfiguration(f"{path}: {name}: missing", _RESTORE) from None
        return value

    sized = {task.id: task.model_dump() for task in ours.tasks}
    tasks = []
    for index in range(len(at("tasks")) if isinstance(at("tasks"), list) else 0):
        own = {key: at("tasks", index, key) for key in ("id", "label", "category")}
        tasks.append(sized.get(str(own["id"]), {}) | own)
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

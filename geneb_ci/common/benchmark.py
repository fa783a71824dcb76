"""Benchmark definitions read from files: any, the shipped ones, and upstream's."""

import functools
import json
from pathlib import Path
from typing import Any

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.shipped import known_files, shipped
from reference_harness.formats.benchmark import BYTES_MAX, Benchmark, UnusableBenchmarkError, parse
from reference_harness.formats.files import NotReadable, read_json, read_text


def parse_benchmark(raw: bytes, name: str) -> Benchmark:
    """Return the benchmark definition in `raw`; `name` is the file name for messages.

    Raises BadConfiguration, which names the file and each wrong key, when it cannot be used.
    """
    try:
        return parse(raw, valid=known_files().benchmarks, example=_geneb)
    except UnusableBenchmarkError as error:
        raise BadConfiguration(
            f"{name}: {'; '.join(error.faults)}",
            "compare it with schemas/benchmark.schema.json",
        ) from error


def _geneb() -> bytes:
    return _read(shipped("schemas", "benchmark.json"))


@functools.cache
def load_benchmark(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raises BadConfiguration when it is missing, too large or wrong.
    """
    return parse_benchmark(_read(path), str(path))


def _read(path: Path) -> bytes:
    try:
        return read_text(path, BYTES_MAX)
    except NotReadable as error:
        raise BadConfiguration(
            f"{path}: {error.reason}",
            "pass a benchmark definition, such as schemas/benchmark.json",
        ) from error


_RESTORE = "restore the file from upstream's main branch"


@functools.cache
def upstream_benchmark(path: Path) -> Benchmark:
    """Return upstream's benchmark_spec.json with test sizes and protocol of the shipped definition.

    Raises BadConfiguration, which names the file and the key, when it cannot be used.
    """
    shipped = shipped_benchmark()
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

    whole = shipped.document()
    sized = {task["id"]: task for task in whole["tasks"]}
    tasks = []
    for index in range(len(at("tasks")) if isinstance(at("tasks"), list) else 0):
        task_members = {key: at("tasks", index, key) for key in ("id", "label", "category")}
        tasks.append(sized.get(str(task_members["id"]), {}) | task_members)
    merged = whole | {
        **{key: at(key) for key in ("harness_version", "regimes", "metrics", "category_order")},
        "tasks": tasks,
        "protocol": whole["protocol"] | {"seeds": at("protocol", "seeds")},
        "dataset": whole["dataset"] | {key: at("dataset", key) for key in ("repo_id", "revision")},
    }
    return parse_benchmark(json.dumps(merged).encode(), str(path))


def shipped_benchmark(file: str = "benchmark.json") -> Benchmark:
    """Return the benchmark definition that ships with this version."""
    return load_benchmark(shipped("schemas", file))

"""Read benchmark definitions: of a file, shipped ones, and those in upstream's format."""

import functools
import json
from pathlib import Path
from typing import Any

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.shipped import known_files, shipped
from reference_harness.formats.benchmark import (
    DEFINITION_BYTES_MAX,
    Benchmark,
    UnusableBenchmarkError,
    parse,
)
from reference_harness.formats.files import NotReadable, read_json, read_text


def parse_benchmark(raw: bytes, file_name: str) -> Benchmark:
    """Return the benchmark definition in `raw`; messages call the file `file_name`.

    Raises BadConfiguration, with the file and each wrong key, if it is invalid.
    """
    try:
        return parse(raw, valid=known_files().benchmarks, example=_shipped_bytes)
    except UnusableBenchmarkError as error:
        raise BadConfiguration(
            f"{file_name}: {'; '.join(error.faults)}",
            "compare the file with schemas/benchmark.schema.json",
        ) from error


def _shipped_bytes() -> bytes:
    """Return the shipped benchmark definition, with which other definitions are compared."""
    return _read(shipped("schemas", "benchmark.json"))


@functools.cache
def load_benchmark(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raises BadConfiguration if it is missing, too large or invalid.
    """
    return parse_benchmark(_read(path), str(path))


def _read(path: Path) -> bytes:
    """Return the bytes of a benchmark definition. Raises BadConfiguration."""
    try:
        return read_text(path, DEFINITION_BYTES_MAX)
    except NotReadable as error:
        raise BadConfiguration(
            f"{path}: {error.reason}",
            "pass a benchmark definition, such as schemas/benchmark.json",
        ) from error


_RESTORE_FIX = "restore the file from upstream's main branch"


@functools.cache
def upstream_benchmark(path: Path) -> Benchmark:
    """Return upstream's benchmark_spec.json, completed by the shipped test sizes and protocol.

    Raises BadConfiguration, with the file and the key in its message, if the file is invalid.
    """
    shipped = shipped_benchmark()
    try:
        spec = read_json(_read(path))
    except ValueError as error:
        raise BadConfiguration(
            f"{path}: the file is not valid JSON: {error}", _RESTORE_FIX
        ) from error

    def member(*keys: str | int) -> Any:
        value = spec
        for key in keys:
            try:
                value = value[key]
            except (LookupError, TypeError):
                key_path = "/".join(map(str, keys))
                raise BadConfiguration(
                    f"{path}: the key {key_path} is missing", _RESTORE_FIX
                ) from None
        return value

    shipped_document = shipped.document()
    shipped_tasks = {task["id"]: task for task in shipped_document["tasks"]}
    tasks = []
    for index in range(len(member("tasks")) if isinstance(member("tasks"), list) else 0):
        task_members = {key: member("tasks", index, key) for key in ("id", "label", "category")}
        tasks.append(shipped_tasks.get(str(task_members["id"]), {}) | task_members)
    completed_document = shipped_document | {
        **{key: member(key) for key in ("harness_version", "regimes", "metrics", "category_order")},
        "tasks": tasks,
        "protocol": shipped_document["protocol"] | {"seeds": member("protocol", "seeds")},
        "dataset": shipped_document["dataset"]
        | {key: member("dataset", key) for key in ("repo_id", "revision")},
    }
    return parse_benchmark(json.dumps(completed_document).encode(), str(path))


def shipped_benchmark(file: str = "benchmark.json") -> Benchmark:
    """Return the benchmark definition that ships with this version."""
    return load_benchmark(shipped("schemas", file))

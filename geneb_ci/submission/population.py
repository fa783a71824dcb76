"""The public rows that ship with this version: what a file without neighbours is compared with.

One file of numbers stands for the submissions of a fixed list of models, so that a board that grows
or is corrected changes no verdict on a lone file.
"""

import array
import functools
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pydantic_core

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.errors import BrokenInstallation
from geneb_ci.common.regular import NotReadable, read_regular
from geneb_ci.common.shipped import shipped
from geneb_ci.submission.peers import Known, cell_name, results_digest

FILE = "shipped-rows.json"
BYTES_MAX = 1_000_000  # 41 rows take 240 kB
_NOTE = (
    "Scores of the public rows that `geneb-ci check --against shipped` compares a lone file with: "
    "the primary metric of each cell, regime by regime. Written by `make generate`; a row is never "
    "replaced when its submission changes."
)


class _Row(NamedTuple):
    file_sha256: str
    scores_sha256: str
    scores: list[float | None]


@functools.cache
def shipped_rows() -> tuple[Known, ...]:
    """Read the rows, in the order of their names. Raises BrokenInstallation."""
    path = shipped("schemas", FILE)
    try:
        value = pydantic_core.from_json(read_regular(path, BYTES_MAX))
        names = tuple(
            cell_name(regime, task, value["metric"])
            for regime in value["regimes"]
            for task in value["tasks"]
        )
        return tuple(
            Known(model, row["scores_sha256"], names, _doubles(row["scores"]))
            for model, row in value["rows"].items()
        )
    except (NotReadable, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenInstallation(
            f"the shipped file {path} cannot be read: {error}",
            "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
        ) from error


def _doubles(scores: list[float | None]) -> "array.array[float]":
    return array.array("d", [math.nan if score is None else score for score in scores])


def population_text(former: str, submissions: Path, benchmark: Benchmark) -> str:
    """Write the file anew, from submissions and from what it held.

    Only models that it names already are in it. A row whose submission is not the one that it was
    made of stays as it is, and so does one whose submission is gone.
    """
    old = json.loads(former)["rows"]
    rows: dict[str, Any] = {}
    for model in sorted(old, key=lambda name: f"{name}.json"):
        path = submissions / f"{model}.json"
        raw = path.read_bytes() if path.is_file() else b""
        unchanged = hashlib.sha256(raw).hexdigest() == old[model]["file_sha256"]
        rows[model] = row_of(raw, benchmark)._asdict() if unchanged else old[model]
    head = {
        "note": _NOTE,
        "metric": benchmark.primary_metric,
        "regimes": benchmark.regimes,
        "tasks": benchmark.task_ids,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    kept = ",\n".join(f"  {json.dumps(model)}: {_dense(row)}" for model, row in rows.items())
    return "{\n" + ",\n".join([*lines, f' "rows": {{\n{kept}\n }}']) + "\n}\n"


def row_of(raw: bytes, benchmark: Benchmark) -> _Row:
    """Return the row of one submission."""
    results: Mapping[str, Any] = json.loads(raw)["results"]
    scores = [
        results.get(regime, {}).get(task, {}).get(benchmark.primary_metric)
        for regime in benchmark.regimes
        for task in benchmark.task_ids
    ]
    digest = results_digest(results) or ""
    return _Row(hashlib.sha256(raw).hexdigest(), digest, scores)


def _dense(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"))

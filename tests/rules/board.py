"""A board of 30 tasks and 13 rows, made up: the least on which a row can be held against others.

A fixture that has the file `board` is put among the other twelve rows, and is checked alone.
"""

import functools
import hashlib
import json
from typing import Any

from geneb_ci.common.benchmark import parse_benchmark
from reference_harness.formats.benchmark import Benchmark
from tests.small import BENCHMARK_FILE, small

ON_BOARD = "board"
ROWS = 12
TASKS = 30
# Twice a prime, or nearly: shares of them have as many decimals as those of real tasks.
SITES = (2 * 7002, 2 * 4001, 2 * 3001)
SIZE = 2 * 3989
LEVELS = {"full": 0.6, "10shot": 0.35, "1shot": 0.15}


def _number(*names: object) -> float:
    """Make up a number between -0.5 and 0.5, another for each name, the same on every machine."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48 - 0.5


def definition() -> bytes:
    """Return the benchmark: its first three tasks are a union and its two parts."""
    document = json.loads(BENCHMARK_FILE.read_bytes())
    names = ["site_all", "site_near", "site_far", *(f"task_{i}" for i in range(3, TASKS))]
    sizes = [*SITES, *[SIZE] * (TASKS - 3)]
    document["name"] = "GENEB-board"
    document["tasks"] = [
        {
            "id": name,
            "label": name,
            "category": document["category_order"][i % 2],
            "n_test": size,
            "test_class_counts": [size // 2, size // 2],
        }
        for i, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    return json.dumps(document, indent=1).encode()


BENCHMARK: Benchmark = parse_benchmark(definition(), "the board of the fixtures")


def cell(task: str, mcc: float) -> dict[str, float]:
    """Return the scores of the nearest matrix with as many errors in one class as in the other."""
    size = BENCHMARK.by_id[task].n_test or 0
    right = round(size / 2 * (1 + mcc) / 2) / (size / 2)
    return {"MCC": 2 * right - 1, "Acc": right, "F1": right}


def scores(name: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the scores of a row: how hard a task is, how good the model, and how well they fit."""
    able, taste = 0.2 * _number(name), _number(name, "taste")
    results: dict[str, dict[str, dict[str, float]]] = {}
    for regime, level in LEVELS.items():
        cells = results.setdefault(regime, {})
        for task in BENCHMARK.task_ids:
            kind = "site" if task.startswith("site") else task
            mcc = level + 0.2 * _number(kind) + able + 0.2 * taste * _number(kind, "taste")
            cells[task] = cell(task, mcc + 0.04 * _number(name, regime, task))
    return results


def board_row(name: str) -> dict[str, Any]:
    """Return a sound row of the board."""
    return small(name, BENCHMARK) | {"results": scores(name)}


@functools.cache
def board_files() -> dict[str, bytes]:
    """Return the benchmark and the rows but for the one under check."""
    rows = [board_row(f"row-{number:02}") for number in range(ROWS)]
    files = {f"submissions/{row['model_id']}.json": json.dumps(row).encode() for row in rows}
    return files | {"schemas/benchmark.json": definition()}

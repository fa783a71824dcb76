"""The row that is submitted in the rehearsal, and one with an impossible score.

No model computed its scores: predictions are invented for each task, near the board's median, so
that the scores follow from confusion matrices and resemble a model's.
"""

import hashlib
import json
import math
import statistics
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import load_benchmark
from reference_harness.formats.benchmark import Benchmark
from tests.small import CARD, small_v11

MODEL = "rehearsed-row"
_SEEDS = 5
_FULL = "full"
_SIZE = 1000  # assumed size of a test split whose size is unknown
_SPREAD = 0.004  # how much accuracy differs between seeds
_EXTRACTOR = (
    '"""The extractor of the rehearsal: no job imports it."""\n\n\nclass Model:\n    pass\n'
)

Files = dict[str, bytes]
"""Bytes of files by path in the repository."""


def sound(root: Path, model: str = MODEL) -> Files:
    """Return the three files of a submission without any error."""
    benchmark = load_benchmark(root / "schemas/benchmark.json")
    document = small_v11(model, benchmark)
    rows = [json.loads(path.read_bytes()) for path in sorted((root / "submissions").glob("*.json"))]
    for regime in benchmark.regimes:
        for task in benchmark.tasks:
            known_tasks = [
                row["results"][regime][task.id]["Acc"]
                for row in rows
                if task.id in row["results"].get(regime, {})
            ]
            _measure(document, benchmark, regime, task.id, statistics.median(known_tasks or [0.7]))
    code = _EXTRACTOR.encode()
    path = f"submissions/extractors/{model.replace('-', '_')}.py"
    document["run"]["extractor"] = {
        "path": path.removeprefix("submissions/"),
        "class_name": "Model",
        "sha256": hashlib.sha256(code).hexdigest(),
    }
    return {
        f"submissions/{model}.json": _encoded(document),
        f"submissions/cards/{model}.md": CARD.replace("A model", model).encode(),
        path: code,
    }


def impossible(root: Path, model: str) -> Files:
    """Return the same files, with one accuracy above 1."""
    files = sound(root, model)
    name = f"submissions/{model}.json"
    document = json.loads(files[name])
    cells = next(iter(document["results"].values()))
    next(iter(cells.values()))["Acc"] = 1.5
    return files | {name: _encoded(document)}


def _measure(
    document: dict[str, Any], benchmark: Benchmark, regime: str, task: str, accuracy: float
) -> None:
    """Write the scores of one cell and of its seeds into the document."""
    task_facts = benchmark.by_id[task]
    size = task_facts.n_test or _SIZE
    # If the class sizes are unknown, any will do.
    counts = task_facts.test_class_counts or (size // 2, size - size // 2)
    start = int.from_bytes(hashlib.sha256(f"{regime}/{task}".encode()).digest()[:2], "big")
    seeds = []
    for seed in range(_SEEDS):
        # In the full regime, all seeds give the same scores.
        seed_offset = 0.0 if regime == _FULL else _SPREAD * ((start + 7 * seed) % 11 - 5) / 5
        seed_accuracy = accuracy + seed_offset
        seeds.append(_scores(counts, min(max(seed_accuracy, 0.05), 0.97)))
    means = {
        metric: seeds[0][metric]
        if regime == _FULL
        else statistics.fmean(scores[metric] for scores in seeds)
        for metric in seeds[0]
    }
    document["results"][regime][task] = means
    document["evidence"][regime][task] |= {
        "per_seed": {metric: [scores[metric] for scores in seeds] for metric in means},
        "predictions_sha256": hashlib.sha256(f"{regime}/{task}/{MODEL}".encode()).hexdigest(),
    }


def _scores(counts: list[int] | tuple[int, ...], accuracy: float) -> dict[str, float]:
    """Return the scores if this share of each class is predicted correctly, and no more."""
    right = [round(count * accuracy) for count in counts]
    wrong = [count - hits for count, hits in zip(counts, right, strict=True)]
    predicted = [hits + wrong[k - 1] for k, hits in enumerate(right)]
    total, hits = sum(counts), sum(right)
    spread = (total**2 - sum(n * n for n in predicted)) * (total**2 - sum(n * n for n in counts))
    chance = sum(n * m for n, m in zip(predicted, counts, strict=True))
    f1 = [2 * h / (n + m) for h, n, m in zip(right, counts, predicted, strict=True)]
    return {
        "MCC": (total * hits - chance) / math.sqrt(spread) if spread else 0.0,
        "Acc": hits / total,
        "F1": statistics.fmean(f1),
    }


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"

"""Sound documents of about 1 kB, for the benchmark of three tasks beside this file."""

import hashlib
import math
import operator
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import load_benchmark
from geneb_ci.statistics.metrics import scores_of_matrix
from reference_harness.formats.benchmark import Benchmark, Task

BENCHMARK_FILE = Path(__file__).with_name("benchmark-small.json")
BENCHMARK = load_benchmark(BENCHMARK_FILE)
METRICS = ("MCC", "Acc", "F1")
DIGEST = hashlib.sha256(b"an example").hexdigest()


def score(*names: str) -> float:
    """Make up a score between 0.5 and 0.9, another for each name, the same on every machine."""
    number = int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:4], "big")
    return round(0.5 + (number % 4000) / 10_000, 4)


def cell(task: Task, *names: str) -> dict[str, float]:
    """Return the scores of a cell: made up, or of made-up predictions of known class sizes."""
    counts = task.test_class_counts
    if counts is None:
        return {metric: score(*names, task.id, metric) for metric in METRICS}
    right = [int(count * score(*names, task.id, str(k))) for k, count in enumerate(counts)]
    # What is wrong of a class is taken for the next one.
    wrong = [count - hits for count, hits in zip(counts, right, strict=True)]
    predicted_counts = [hits + wrong[k - 1] for k, hits in enumerate(right)]
    total, hits = sum(counts), sum(right)
    spread = (total**2 - sum(n * n for n in predicted_counts)) * (
        total**2 - sum(n * n for n in counts)
    )
    chance = sum(map(operator.mul, predicted_counts, counts))
    f1 = [2 * h / (n + m) for h, n, m in zip(right, counts, predicted_counts, strict=True)]
    return {
        "MCC": (total * hits - chance) / math.sqrt(spread) if spread else 0.0,
        "Acc": hits / total,
        "F1": math.fsum(f1) / len(f1),
    }


def small(name: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Any]:
    """Return a sound document of format 1.0, whose scores differ from those of any other name."""
    return {
        "schema_version": "1.0",
        "model_id": name,
        "harness_version": benchmark.harness_version,
        "meta": {
            "display": f"Model {name}",
            "params": 86000000,
            "url": "https://huggingface.co/org/model",
            "zero_shot": True,
            "training_data": "human genome",
            "provenance": "self-reported",
            "submitted_by": "A. Contributor",
        },
        "results": {
            regime: {task.id: cell(task, name, regime) for task in benchmark.tasks}
            for regime in benchmark.regimes
        },
    }


def small_v11(name: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Any]:
    """Return a sound document of format 1.1."""
    document = small(name, benchmark)
    results, seeds = document.pop("results"), len(benchmark.protocol.seeds)
    return {
        **document,
        "schema_version": "1.1",
        "results": results,
        "run": {
            "benchmark": {"name": benchmark.name, "sha256": benchmark.sha256},
            "dataset": {
                "repo_id": benchmark.dataset.repo_id,
                "revision": benchmark.dataset.revision,
            },
            "harness": {"version": "GENEB-0.1.0", "commit": "0" * 40, "dirty": False},
            "extractor": {"path": "extractors/model.py", "class_name": "Model", "sha256": DIGEST},
            "model": {
                "kind": "huggingface",
                "location": "org/model",
                "revision": "1" * 40,
                "weights": {"model.safetensors": DIGEST},
            },
            "embedding": {
                "layer": "last",
                "pooling": "mean",
                "dim": 768,
                "max_length": 512,
                "truncation": "right",
                "dtype": "float32",
            },
            "hardware": {"device": "cuda", "name": "an accelerator"},
            "packages": {"torch": "2.13.0"},
            "started_at": "2026-11-20T08:30:00Z",
            "finished_at": "2026-11-20T09:30:00Z",
        },
        "evidence": {
            regime: {
                task: {
                    "n_test": benchmark.by_id[task].n_test or 1000,
                    "per_seed": {metric: [value] * seeds for metric, value in scores.items()},
                    "predictions_sha256": DIGEST,
                }
                for task, scores in tasks.items()
            }
            for regime, tasks in results.items()
        },
    }


def matrix_of(task: Task, *names: str) -> list[list[int]]:
    """Return the confusion matrix of a cell's made-up predictions."""
    counts = task.test_class_counts or [400, 350, 250]
    right = [int(count * score(*names, task.id, str(k))) for k, count in enumerate(counts)]
    matrix = [[0] * len(counts) for _ in counts]
    for k, (count, hits) in enumerate(zip(counts, right, strict=True)):
        matrix[k][k] = hits
        matrix[k][(k + 1) % len(counts)] += count - hits
    return matrix


def small_v12(name: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Any]:
    """Return a sound document of format 1.2, without a receipt."""
    document = small_v11(name, benchmark) | {"schema_version": "1.2"}
    for regime, tasks in document["evidence"].items():
        for task, evidence in tasks.items():
            matrix = matrix_of(benchmark.by_id[task], name, regime)
            seeds = len(evidence["per_seed"]["MCC"])
            result = scores_of_matrix(matrix)
            scores = {"MCC": result.mcc, "Acc": result.acc, "F1": result.f1}
            document["results"][regime][task] = scores
            evidence |= {
                "n_test": sum(map(sum, matrix)),
                "per_seed": {metric: [value] * seeds for metric, value in scores.items()},
                "classes": list(range(len(matrix))),
                "confusion": [matrix] * seeds,
                "canonical": scores | {"confusion": [matrix] * seeds, "predictions_sha256": DIGEST},
            }
    return document


CARD = """\
# A model

- **Parameters:** 86M
- **Architecture:** BERT encoder
- **Weights:** `model.safetensors` of org/model
- **Input:** 6-mers, windows of 512 tokens
- **Pooling:** mean over all tokens
- **Layer:** the last hidden state
- **Zero-shot:** yes
- **Known overlap:** none known

## Training data

The human genome.
"""

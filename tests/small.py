"""Sound documents of about 1 kB, for the benchmark of three tasks beside this file."""

import hashlib
from pathlib import Path
from typing import Any

from geneb_ci.benchmark import Benchmark, load_benchmark

BENCHMARK_FILE = Path(__file__).with_name("benchmark-small.json")
BENCHMARK = load_benchmark(BENCHMARK_FILE)
METRICS = ("MCC", "Acc", "F1")
DIGEST = hashlib.sha256(b"an example").hexdigest()


def score(*names: str) -> float:
    """Make up a score between 0.5 and 0.9, another for each name, the same on every machine."""
    number = int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:4], "big")
    return round(0.5 + (number % 4000) / 10_000, 4)


def small(name: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Any]:
    """Give a sound document of format 1.0, whose scores differ from those of any other name."""
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
            regime: {
                task: {metric: score(name, regime, task, metric) for metric in METRICS}
                for task in benchmark.task_ids
            }
            for regime in benchmark.regimes
        },
    }


def small_v11(name: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Any]:
    """Give a sound document of format 1.1."""
    document = small(name, benchmark)
    results = document.pop("results")
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
                    "n_test": 1000,
                    "per_seed": {metric: [value] * 5 for metric, value in scores.items()},
                    "predictions_sha256": DIGEST,
                }
                for task, scores in tasks.items()
            }
            for regime, tasks in results.items()
        },
    }


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

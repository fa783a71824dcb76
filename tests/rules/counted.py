"""Fixtures of the rules that need to know how many sequences of each class a task has."""

import json
from typing import Any

from geneb_ci.benchmark import parse_benchmark
from tests.rules.fixture import Change, Files, changed, holder, put, row
from tests.small import BENCHMARK_FILE, METRICS, cell, small, small_v11

# Two classes, two of one size, and three whose sizes no benchmark tells.
COUNTS: dict[str, dict[str, Any]] = {
    "promoter_tata": {"n_test": 621, "test_class_counts": [289, 332]},
    "promoter_notata": {"n_test": 810, "test_class_counts": [405, 405]},
    "splice_sites": {"n_test": 3000},
}


def _benchmark() -> bytes:
    value = json.loads(BENCHMARK_FILE.read_bytes())
    value["name"] = "GENEB-counted"
    value["sources"] = {"tasks": "Made up for tests: three tasks of known sizes."}
    value["tasks"] = [task | COUNTS[task["id"]] for task in value["tasks"]]
    return json.dumps(value, indent=1).encode() + b"\n"


BENCHMARK_BYTES = _benchmark()
BENCHMARK = parse_benchmark(BENCHMARK_BYTES, "benchmark.json")
CELL, EVIDENCE = "results/full/promoter_tata", "evidence/full/promoter_tata"
FEW, FEW_EVIDENCE = "results/10shot/promoter_tata", "evidence/10shot/promoter_tata"
TASK = BENCHMARK.by_id["promoter_tata"]
# Scores on 3000 sequences that three classes can have.
SPLICE = {"MCC": 0.5123, "Acc": 0.671, "F1": 0.6543}


def sound(document: Any) -> None:
    """Give the task of unknown classes accuracies on its grid."""
    for regime in BENCHMARK.regimes:
        document["results"][regime]["splice_sites"] = dict(SPLICE)
        if "evidence" in document:
            columns = {metric: [value] * 5 for metric, value in SPLICE.items()}
            document["evidence"][regime]["splice_sites"]["per_seed"] = columns


def v10(*changes: Change) -> Files:
    return _with_benchmark(changed(small("model", BENCHMARK), sound, *changes))


def v11(*changes: Change) -> Files:
    """Give a row of format 1.1 whose cells each have a digest of their own."""
    document = changed(small_v11("model", BENCHMARK), sound)
    cells = [cell for tasks in document["evidence"].values() for cell in tasks.values()]
    for number, one in enumerate(cells):
        one["predictions_sha256"] = f"{number:064x}"
    return _with_benchmark(changed(document, *changes))


def _with_benchmark(document: Any) -> Files:
    return row(document) | {"schemas/benchmark.json": BENCHMARK_BYTES}


def plus(path: str, by: float) -> Change:
    """Move a number."""

    def change(document: Any) -> None:
        place, last = holder(document, path)
        key: Any = int(last) if isinstance(place, list) else last
        place[key] += by

    return change


def seeds_of(*names: str) -> Change:
    """Give the few-shot cell five different fits, and their mean."""

    def change(document: Any) -> None:
        fits = [cell(TASK, *names, str(seed)) for seed in BENCHMARK.protocol.seeds]
        columns = {metric: [fit[metric] for fit in fits] for metric in METRICS}
        put(f"{FEW_EVIDENCE}/per_seed", columns)(document)
        put(FEW, {metric: sum(column) / 5 for metric, column in columns.items()})(document)

    return change


def rounded(decimals: int) -> Change:
    """Round the scores of one regime."""

    def change(document: Any) -> None:
        for scores in document["results"]["full"].values():
            scores.update({metric: round(value, decimals) for metric, value in scores.items()})

    return change


def digest(task: str, digest: str) -> Change:
    return put(f"evidence/full/{task}/predictions_sha256", digest)


SEEDS = seeds_of("seeds")
ARITHMETIC: dict[str, tuple[Files, Files]] = {
    "accuracy-off-grid": (
        v10(put("results/full/splice_sites/Acc", 0.67123456789012345)),
        v10(put("results/full/splice_sites/Acc", 2014 / 3000)),
    ),
    "impossible-scores": (v10(plus(f"{CELL}/MCC", 0.001)), v10(rounded(4))),
    "impossible-mean": (v10(plus(f"{FEW}/MCC", 0.2)), v11(SEEDS)),
    "inconsistent-metrics": (
        v10(put("results/full/splice_sites/MCC", 0.85)),
        v10(put("results/full/splice_sites/MCC", 0.7)),
    ),
    "impossible-seed-scores": (
        v11(
            SEEDS,
            plus(f"{FEW_EVIDENCE}/per_seed/F1/1", 0.005),
            plus(f"{FEW_EVIDENCE}/per_seed/F1/3", -0.005),
        ),
        v11(SEEDS),
    ),
    "wrong-seed-mean": (v11(plus(f"{FEW}/MCC", 0.0001)), v11(plus(f"{FEW}/MCC", 1e-14))),
    "seeds-differ-in-full": (
        v11(plus(f"{EVIDENCE}/per_seed/MCC/4", 0.01)),
        v11(plus(f"{EVIDENCE}/per_seed/MCC/4", 1e-15)),
    ),
    "wrong-test-size": (v11(put(f"{EVIDENCE}/n_test", 620)), v11()),
    "repeated-digest": (
        v11(digest("promoter_tata", "a" * 64), digest("promoter_notata", "a" * 64)),
        v11(digest("promoter_tata", "a" * 64), digest("promoter_notata", "b" * 64)),
    ),
    "rounded-scores": (v10(rounded(3)), v10(rounded(4))),
}

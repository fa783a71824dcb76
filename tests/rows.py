"""Honest rows of models that nobody has made, to see what a growing `submissions/` breaks.

    python -m tests.rows FOLDER COUNT       adds rows and their cards until FOLDER has COUNT rows

Each is measured anew at the rates of right predictions of a public row: from confusion matrices, so
that every score is possible, and unlike any other row.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import simulate
from geneb_ci.check.claims import score_triple, two_class_sizes
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.benchmark import Task
from tests.paths import SUBMISSIONS
from tests.small import small_v11

DOUBTED = {"BioFM-265M", "evo-1-131k-base"}
"""Rows of defective extractors: one made after them would get their warnings."""
EXTRACTOR = f'"""Weights are in {"/home"}/jo/weights."""\nimport os,sys\n' + "x = 1\n" * 450
"""Somebody else's style, which is none of our business."""
CARD = SUBMISSIONS / "cards/splicebert-1024nt.md"


def grow(folder: Path, count: int) -> list[str]:
    """Write rows into a folder of submissions until it has `count`; return their ids."""
    bases = [path for path in sorted(SUBMISSIONS.glob("*.json")) if path.stem not in DOUBTED]
    added = [f"made-up-{number}" for number in range(len(list(folder.glob("*.json"))), count)]
    for name in added:
        seed = int(name.rpartition("-")[2])
        document = row(name, json.loads(bases[seed % len(bases)].read_bytes()), seed)
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
        card = CARD.read_text(encoding="utf-8")
        for old, new in (
            ("splicebert-1024nt", name),
            ("SpliceBERT 1024nt", document["meta"]["display"]),
            ("19,710,474", f"{document['meta']['params']:,}"),
            ("https://doi.org/10.5281/zenodo.7995778", document["meta"]["url"]),
            ("2ad91428c318e6c49233154073ca7a35f5f7899c9f4be3444775bae3dba0149d", sha256(name)),
            ("72 vertebrates", f"{seed + 2} mammals"),
        ):
            card = card.replace(old, new)
        (folder / f"cards/{name}.md").write_text(card, encoding="utf-8")
    (folder / "extractors").mkdir(exist_ok=True)
    (folder / "extractors/made_up.py").write_text(EXTRACTOR, encoding="utf-8")
    return added


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def row(name: str, base: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a submission whose every score was measured on test sets drawn anew."""
    benchmark, rng = shipped_benchmark(), np.random.default_rng(seed)
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    document["model_id"] = name
    document["meta"] |= {
        "display": f"Made up {seed}",
        "params": 1_000_000 * (seed + 1),
        "url": f"https://example.org/{name}",
    }
    for regime, cells in base["results"].items():
        seeds = 1 if regime == "full" else len(benchmark.protocol.seeds)
        document["results"][regime] = {
            task.id: mean(measured(task, cells[task.id], seeds, rng)) for task in benchmark.tasks
        }
    return document  # type: ignore[no-any-return]


def recorded_row(name: str, base: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a submission of format 1.1, as `row` does, with the scores of each seed."""
    benchmark, rng = shipped_benchmark(), np.random.default_rng(seed)
    document = row(name, base, seed)
    sound = small_v11(name, benchmark)
    for regime, cells in base["results"].items():
        count = len(benchmark.protocol.seeds)
        for task in benchmark.tasks:
            drawn = measured(task, cells[task.id], 1 if regime == "full" else count, rng)
            seeds = drawn * count if len(drawn) == 1 else drawn
            document["results"][regime][task.id] = mean(drawn)
            sound["evidence"][regime][task.id] |= {
                "per_seed": {metric: [cell[metric] for cell in seeds] for metric in seeds[0]},
                "predictions_sha256": sha256(f"{regime} {task.id}"),
            }
    return sound | {key: document[key] for key in ("meta", "results")}


def mean(cells: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each metric."""
    return {metric: float(np.mean([cell[metric] for cell in cells])) for metric in cells[0]}


def measured(
    task: Task, real: dict[str, float], seeds: int, rng: np.random.Generator
) -> list[dict[str, float]]:
    """Return the metrics of test sets drawn at the rates of a real cell, one for each seed."""
    triple, classes = score_triple(real), two_class_sizes(task)
    assert triple is not None
    if classes is None:
        sizes, matrix = simulate.made_up_matrix(task, triple.acc, rng)
        sizes[0] += (task.n_test or 0) - sizes.sum()  # each was rounded
        return [
            simulate.matrix_scores(
                np.array([rng.multinomial(n, p) for n, p in zip(sizes, matrix, strict=True)])
            )
            for _ in range(seeds)
        ]
    right = simulate.correct_counts(classes, triple)
    rates = [min(1.0, max(0.0, k / n)) for k, n in zip(right, classes, strict=True)]
    return [
        simulate.cell_scores(
            classes, *(int(rng.binomial(n, p)) for n, p in zip(classes, rates, strict=True))
        )
        for _ in range(seeds)
    ]


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in grow(Path(sys.argv[1]), int(sys.argv[2])))

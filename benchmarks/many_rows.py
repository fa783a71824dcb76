"""Write thousands of sound rows of made-up models, which differ from each other.

Each cell is one of `DRAWS` measurements of the same cell of a public row, on test sets drawn anew
at its rates of right predictions: every score is possible, and two rows of one public row agree in
one cell of `DRAWS`, less than a copy does.
"""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import simulate
from geneb_ci.board.variance import near_correct_counts
from geneb_ci.check.claims import score_triple, two_class_sizes
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.benchmark import Task
from tests.paths import SUBMISSIONS
from tests.rows import DOUBTED

CellText = Callable[[int], str]
"""Function that returns the text of a cell for the number of a measurement."""
MEASUREMENTS = 48
"""Measurements of a cell. By chance, two rows of one public row agree in up to 8 % of cells; the
rule near-copy reports 12 % and more."""


def write_rows(folder: Path, count: int, seed: int = 7) -> None:
    """Write `count` submissions into a new folder."""
    folder.mkdir(parents=True)
    for name, text in rows(count, seed):
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def rows(count: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each row, a function of the seed."""
    rng = np.random.default_rng(seed)
    base_files = _base_files()
    texts_by_base: dict[int, dict[str, list[CellText]]] = {}
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    for number in range(count):
        base_index = number % len(base_files)
        if base_index not in texts_by_base:
            texts_by_base[base_index] = _cell_texts(
                json.loads(base_files[base_index].read_bytes()), rng
            )
        name = f"model-{number:05d}"
        meta = document["meta"] | {
            "display": f"Model {number:05d}",
            "params": 1_000_000 + number,
            "url": f"https://example.org/{name}",
        }
        first_members = {key: document[key] for key in ("schema_version", "harness_version")}
        regime_texts = []
        for regime, cells in texts_by_base[base_index].items():
            measurements = rng.integers(MEASUREMENTS, size=len(cells))
            cell_texts = ",".join(
                cell(int(measurement))
                for cell, measurement in zip(cells, measurements, strict=True)
            )
            regime_texts.append(f'"{regime}":{{{cell_texts}}}')
        text = json.dumps(first_members | {"model_id": name, "meta": meta}, separators=(",", ":"))
        yield name, f'{text[:-1]},"results":{{{",".join(regime_texts)}}}}}\n'


def _base_files() -> list[Path]:
    return [path for path in sorted(SUBMISSIONS.glob("*.json")) if path.stem not in DOUBTED]


def _cell_texts(base_row: dict[str, Any], rng: np.random.Generator) -> dict[str, list[CellText]]:
    """Return, for each regime and task, the functions that return the texts of measurements."""
    benchmark = shipped_benchmark()
    texts_by_regime = {}
    for regime in benchmark.regimes:
        fits = len(benchmark.protocol.seeds) if regime in benchmark.protocol.few_shot_k else 1
        texts_by_regime[regime] = [
            _measured_cell(task, cells[task.id], fits, rng)
            for cells in [base_row["results"][regime]]
            for task in benchmark.tasks
        ]
    return texts_by_regime


def _measured_cell(
    task: Task, real_scores: dict[str, float], fits: int, rng: np.random.Generator
) -> CellText:
    """Return a function for `DRAWS` means over test sets drawn at the rates of a real cell.

    All test sets are drawn at once; scores are computed of those that a row takes.
    """
    triple, classes = score_triple(real_scores), two_class_sizes(task)
    assert triple is not None
    if classes is None:
        sizes, matrix = simulate.made_up_matrix(task, triple.acc, rng)
        sizes[0] += (task.n_test or 0) - sizes.sum()  # each was rounded
        drawn_counts = [
            rng.multinomial(size, rates_of_class, MEASUREMENTS * fits)
            for size, rates_of_class in zip(sizes, matrix, strict=True)
        ]
        matrices = np.stack(drawn_counts, axis=1)

        def score(number: int) -> dict[str, float]:
            return simulate.matrix_scores(matrices[number])

    else:
        rates = np.clip(
            np.array(
                near_correct_counts(np.float64(classes.small), np.float64(classes.large), triple)
            )
            / np.array(classes),
            0.01,
            0.99,
        )
        few_shot = float(fits > 1)
        logits = np.log(rates / (1 - rates)) + few_shot * (
            rng.normal(0, simulate.QUALITY, (MEASUREMENTS * fits, 1))
            + rng.normal(0, simulate.LEANING, (MEASUREMENTS * fits, 1)) * np.array([1, -1])
        )
        counts = rng.binomial(tuple(classes), 1 / (1 + np.exp(-logits)))

        def score(number: int) -> dict[str, float]:
            small, large = counts[number]
            return simulate.cell_scores(classes, int(small), int(large))

    @functools.cache
    def text(draw: int) -> str:
        fit_scores = [score(number) for number in range(draw * fits, (draw + 1) * fits)]
        means = {
            metric: float(np.mean([scores[metric] for scores in fit_scores]))
            for metric in real_scores
        }
        return f'"{task.id}":{json.dumps(means)}'

    return text

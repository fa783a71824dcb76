"""Attacks on the scores of real submissions: each returns a changed copy of one."""

import copy
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from geneb_ci.check.claims import fit_count_of, two_class_sizes
from geneb_ci.statistics.binary import Classes, binary_metrics, fitting_rho_ranges
from geneb_ci.statistics.metrics import UNROUNDED_HALF_WIDTH, ReportedTriple, Triple
from reference_harness.formats.benchmark import Benchmark

METRICS = ("MCC", "Acc", "F1")
METRIC_MIN = {"MCC": -1.0, "Acc": 0.0, "F1": 0.0}
Results = dict[str, dict[str, dict[str, float]]]


class Board(NamedTuple):
    """The real rows, and the benchmark that they are checked with."""

    rows: list[dict[str, Any]]
    benchmark: Benchmark


class CellScope(NamedTuple):
    """The cells that an attack may choose."""

    name: str
    full: bool
    two_class_sizes: bool

    def cells(self, benchmark: Benchmark) -> list[tuple[str, str]]:
        return [
            (regime, task.id)
            for regime in benchmark.regimes
            for task in benchmark.tasks
            if (fit_count_of(benchmark, regime) == 1) == self.full
            and (two_class_sizes(task) is not None) == self.two_class_sizes
        ]


FULL = CellScope("full, two classes", full=True, two_class_sizes=True)
FEW_SHOT = CellScope("few-shot, two classes", full=False, two_class_sizes=True)
FULL_MANY_CLASSES = CellScope("full, more classes", full=True, two_class_sizes=False)
FEW_SHOT_MANY_CLASSES = CellScope("few-shot, more classes", full=False, two_class_sizes=False)
SCOPES = (FULL, FEW_SHOT, FULL_MANY_CLASSES, FEW_SHOT_MANY_CLASSES)

COPY_NAME = "forged-model"
"""Name of a forged row that is made of real rows, which stay on the board."""


class Forgery(NamedTuple):
    """Forged results, and the name of the model; they replace a row of that name on the board."""

    model_id: str
    results: Results


Attack = Callable[[Board, random.Random], Forgery]


def random_row(board: Board, rng: random.Random) -> Forgery:
    """Return a random real row, to be forged."""
    real_row = rng.choice(board.rows)
    return Forgery(real_row["model_id"], copy.deepcopy(real_row["results"]))


def moved_score(metric: str, value: float, by: float) -> float:
    """Return a score moved by a distance, in the other direction if it would leave its bounds."""
    raised_value = value + by
    return raised_value if METRIC_MIN[metric] <= raised_value <= 1 else value - by


def change_one_metric(scope: CellScope, by: float, decimals: int | None = None) -> Attack:
    """Return an attack that changes one metric of one cell, in a file with `decimals` decimals."""

    def attack(board: Board, rng: random.Random) -> Forgery:
        model_id, results = random_row(board, rng)
        if decimals is not None:
            results = rounded_results(results, decimals)
        regime, task = rng.choice(scope.cells(board.benchmark))
        metric = rng.choice(METRICS)
        value = moved_score(metric, results[regime][task][metric], rng.choice((-by, by)))
        results[regime][task][metric] = value if decimals is None else round(value, decimals)
        return Forgery(model_id, results)

    return attack


def shift_all_metrics(scope: CellScope) -> Attack:
    """Return an attack that shifts the three metrics of one cell alike, by 0.001 to 0.05."""

    def attack(board: Board, rng: random.Random) -> Forgery:
        (model_id, results), by = random_row(board, rng), rng.uniform(0.001, 0.05)
        regime, task = rng.choice(scope.cells(board.benchmark))
        cell = results[regime][task]
        up = all(value + by <= 1 for value in cell.values())
        cell.update({metric: value + (by if up else -by) for metric, value in cell.items()})
        return Forgery(model_id, results)

    return attack


def copy_cell_of_other_model(board: Board, rng: random.Random) -> Forgery:
    """Return a row with one cell of another model."""
    (model_id, results), other = random_row(board, rng), rng.choice(board.rows)
    while other["model_id"] == model_id:
        other = rng.choice(board.rows)
    regime, task = rng.choice([cell for scope in SCOPES for cell in scope.cells(board.benchmark)])
    results[regime][task] = dict(other["results"][regime][task])
    return Forgery(model_id, results)


def _true_matrix(classes: Classes, cell: dict[str, float]) -> tuple[int, int]:
    """Return right predictions and rho of the only confusion matrix that gives a real cell."""
    triple = Triple(cell["MCC"], cell["Acc"], cell["F1"])
    matrix = next(
        fitting_rho_ranges(
            classes,
            ReportedTriple(
                triple, Triple(UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH)
            ),
        )
    )
    return matrix.correct, matrix.first_rho


def improve_confusion_matrix(board: Board, rng: random.Random) -> Forgery:
    """Return a row with a cell of a made-up confusion matrix that is 0.02 more accurate."""
    model_id, results = random_row(board, rng)
    regime, task = rng.choice(FULL.cells(board.benchmark))
    classes = two_class_sizes(board.benchmark.by_id[task])
    assert classes is not None
    correct, rho = _true_matrix(classes, results[regime][task])
    correct_max = min(2 * classes.small + rho, 2 * classes.large - rho)
    correct = min(correct + 2 * round(0.01 * classes.total), correct_max)
    results[regime][task] = dict(zip(METRICS, binary_metrics(classes, correct, rho), strict=True))
    return Forgery(model_id, results)


def scale_mcc(board: Board, rng: random.Random) -> Forgery:
    """Return a row with every MCC scaled by 1.02, and the other metrics recomputed.

    In the full regime, the rest is that of predictions of the same balance with so much MCC, were
    sequences divisible; elsewhere accuracy and F1 grow by as much as MCC.
    """
    model_id, results = random_row(board, rng)
    for regime, cells in results.items():
        for task, cell in cells.items():
            mcc, classes = (
                min(1.02 * cell["MCC"], 1.0),
                two_class_sizes(board.benchmark.by_id[task]),
            )
            if classes is not None and fit_count_of(board.benchmark, regime) == 1:
                correct, rho = _true_matrix(classes, cell)
                start, end = (
                    binary_metrics(classes, 0, rho).mcc,
                    binary_metrics(classes, classes.total, rho).mcc,
                )
                share = (mcc - start) / (end - start) if end > start else correct / classes.total
                triple = binary_metrics(classes, share * classes.total, rho)
                cell.update(MCC=mcc, Acc=min(triple.acc, 1.0), F1=min(triple.f1, 1.0))
            else:
                mcc_raise = mcc - cell["MCC"]
                cell.update(MCC=mcc, Acc=cell["Acc"] + mcc_raise / 2, F1=cell["F1"] + mcc_raise / 2)
    return Forgery(model_id, results)


def average_two_rows(board: Board, rng: random.Random) -> Forgery:
    """Return the average of the rows of two models."""
    first, second = (real_row["results"] for real_row in rng.sample(board.rows, 2))
    mixed = {
        regime: {
            task: {metric: (cell[metric] + second[regime][task][metric]) / 2 for metric in METRICS}
            for task, cell in cells.items()
        }
        for regime, cells in first.items()
    }
    return Forgery(COPY_NAME, mixed)


def add_noise(board: Board, rng: random.Random) -> Forgery:
    """Return a copy of a row with noise of 1e-4 on every score."""
    results = random_row(board, rng).results
    for cells in results.values():
        for cell in cells.values():
            for metric in METRICS:
                cell[metric] = moved_score(metric, cell[metric], rng.uniform(-1e-4, 1e-4))
    return Forgery(COPY_NAME, results)


def rounded_results(results: Results, decimals: int) -> Results:
    """Return results with every score rounded."""
    return {
        regime: {
            task: {metric: round(value, decimals) for metric, value in cell.items()}
            for task, cell in cells.items()
        }
        for regime, cells in results.items()
    }


def copy_rounded(decimals: int) -> Attack:
    """Return an attack that copies a row with all scores rounded."""
    return lambda board, rng: Forgery(
        COPY_NAME, rounded_results(random_row(board, rng).results, decimals)
    )


def attacks() -> dict[tuple[str, str], Attack]:
    """Return every attack by its name and its scope."""
    table: dict[tuple[str, str], Attack] = {}
    for scope in SCOPES:
        for by in (0.001, 0.01, 0.05):
            table[f"one metric changed by {by}", scope.name] = change_one_metric(scope, by)
    for decimals in (5, 4):
        for by in (0.001, 0.01, 0.05):
            what = f"one metric changed by {by}, file of {decimals} decimals"
            table[what, FULL.name] = change_one_metric(FULL, by, decimals)
    for scope in SCOPES:
        table["three metrics shifted alike", scope.name] = shift_all_metrics(scope)
    return table | {
        ("a cell of another model", "any"): copy_cell_of_other_model,
        ("a made-up table, 0.02 better", FULL.name): improve_confusion_matrix,
        ("every MCC times 1.02, the rest recomputed", "whole row"): scale_mcc,
        ("two rows averaged", "whole row"): average_two_rows,
        ("a row copied with noise of 1e-4", "whole row"): add_noise,
        ("a row copied, rounded to 4 decimals", "whole row"): copy_rounded(4),
        ("a row copied, rounded to 3 decimals", "whole row"): copy_rounded(3),
        ("a row copied, rounded to 2 decimals", "whole row"): copy_rounded(2),
    }

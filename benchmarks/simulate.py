"""Simulate rows with known true scores on random test sets, to check intervals.

The truth is a real row: the rates of its own confusion matrices. Tasks of more classes have no
matrix, so one is made up with the row's accuracy: recalls and wrong answers of uneven classes.
"""

import functools
import hashlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.board.variance import near_mean
from geneb_ci.check.claims import triple_of, two_classes
from geneb_ci.statistics.binary import Classes, scores
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.submission import SubmissionV10, SubmissionV11
from tests.conftest import document_v11

Array = npt.NDArray[np.float64]
Cell = dict[str, float]
# Classes of the tasks that have more than two, as their names or collections tell.
CLASSES = {"fungi_species_20": 20, "virus_species_40": 40, "virus_covid": 9}
CLASSES_ELSE = 3
# Standard deviations, as logits, of a few-shot fit's quality and of its leaning to one class: with
# them MCC of the seeds spreads by 0.04 to 0.15, as it does for k-mers on six real tasks.
QUALITY, LEANING = 0.2, 0.5
# Rounds over which the mean over all training draws is taken, and their seed: the truth of a cell
# is the same in every trial.
ROUNDS = 4000
ROUNDS_SEED = 4001


def mcc_of(small: Array, large: Array, small_correct: Array, large_correct: Array) -> Array:
    """Return MCC of tables from class sizes and right predictions, all of one shape or broadcast.

    It is 0 if one class is never predicted, as in scikit-learn.
    """
    as_small = small_correct + (large - large_correct)
    spread = np.sqrt(small * large * 1.0) * np.sqrt(as_small * 1.0 * (small + large - as_small))
    top = small_correct * 1.0 * large_correct - (small - small_correct) * 1.0 * (
        large - large_correct
    )
    return np.asarray(np.divide(top, spread, out=np.zeros(top.shape), where=spread > 0))


def right_of(classes: Classes, triple: Triple) -> tuple[float, float]:
    """Return the right predictions in each class that follow from a triple, as real numbers."""
    found = near_mean(np.float64(classes.small), np.float64(classes.large), triple)
    return float(found[0]), float(found[1])


class Simulated(NamedTuple):
    """A measured row and the true MCC of each task, in board order."""

    row: SubmissionV10
    truth: list[float]


def document(results: dict[str, Any], name: str) -> SubmissionV10:
    """Wrap results as a submission; the name is the key of its generator."""
    return SubmissionV10.model_validate(
        {
            "schema_version": "1.0",
            "model_id": name,
            "harness_version": "GENEB-0.1.0",
            "meta": {
                **dict.fromkeys(("url", "training_data", "submitted_by"), ""),
                "display": name,
                "params": 1,
                "zero_shot": True,
                "provenance": "self-reported",
            },
            "results": results,
        }
    )


def full(real: dict[str, Cell], benchmark: Benchmark, rng: np.random.Generator) -> Simulated:
    """Draw one test set for each task of a real row's full regime."""
    cells, truth = {}, []
    for task in benchmark.tasks:
        triple = triple_of(real[task.id])
        assert triple is not None
        classes = two_classes(task)
        if classes:
            right = right_of(classes, triple)
            rates = [k / n for k, n in zip(right, classes, strict=True)]
            drawn = [rng.binomial(n, p) for n, p in zip(classes, rates, strict=True)]
            cells[task.id] = cell(classes, *drawn)
            truth.append(cell(classes, *right)["MCC"])
        else:
            sizes, matrix = made_up(task, triple.acc, rng)
            counts = np.array([rng.multinomial(n, p) for n, p in zip(sizes, matrix, strict=True)])
            cells[task.id] = of_matrix(counts)
            truth.append(of_matrix(sizes[:, None] * matrix)["MCC"])
    return Simulated(document({"full": cells}, f"simulated-{rng.integers(2**62)}"), truth)


def cell(classes: Classes, small: float, large: float) -> Cell:
    """Return the metrics of right predictions in each class."""
    return dict(
        zip(("MCC", "Acc", "F1"), scores(classes, small + large, large - small), strict=True)
    )


def made_up(task: Task, acc: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return class sizes and the shares in which each class is predicted, of about an accuracy."""
    k = next((n for name, n in CLASSES.items() if task.id.endswith(name)), CLASSES_ELSE)
    shares = rng.dirichlet(np.full(k, 20.0))
    sizes = np.round(shares * (task.n_test or 0))
    recall = np.clip(acc + 0.1 * rng.standard_normal(k), 0.02, 0.98)
    matrix = rng.dirichlet(np.full(k, 2.0), size=k)
    matrix[np.arange(k), np.arange(k)] = 0
    matrix *= ((1 - recall) / matrix.sum(axis=1))[:, None]
    matrix[np.arange(k), np.arange(k)] = recall
    return sizes, matrix


def of_matrix(counts: Array) -> Cell:
    """Return the metrics of a confusion matrix, true classes in rows (Gorodkin 2004)."""
    n, right = counts.sum(), np.trace(counts)
    true, said = counts.sum(axis=1), counts.sum(axis=0)
    spread = (n * n - said @ said) * (n * n - true @ true)
    f1 = 2 * np.diag(counts) / np.maximum(true + said, 1)
    mcc = (n * right - true @ said) / np.sqrt(spread) if spread else 0.0
    return {"MCC": float(mcc), "Acc": float(right / n), "F1": float(f1.mean())}


def few_shot(
    real: dict[str, Cell],
    benchmark: Benchmark,
    rng: np.random.Generator,
    shared: float,
    *,
    by_seed: bool,
) -> Simulated:
    """Draw training sets and one test set for each two-class task of a real row's 10shot regime.

    A share `shared` of the test sequences is as hard for every fit: there, fits err together.
    The truth is the mean of these fits; with `by_seed` the mean over all training sets.
    """
    seeds = len(benchmark.protocol.seeds)
    cells, truth, evidence = {}, [], {}
    for task in benchmark.tasks:
        triple, classes = triple_of(real[task.id]), two_classes(task)
        assert triple is not None
        assert classes is not None
        base = about(classes, triple)
        rates = fits(base, seeds, rng)
        drawn = measured(classes, rates, shared, rng)
        per_seed = [cell(classes, *pair) for pair in drawn]
        cells[task.id] = {m: float(np.mean([one[m] for one in per_seed])) for m in per_seed[0]}
        evidence[task.id] = {
            "n_test": classes.total,
            "per_seed": {m: [one[m] for one in per_seed] for m in per_seed[0]},
            "predictions_sha256": "0" * 64,
        }
        truth.append(over_all_draws(classes, triple) if by_seed else mean_mcc(classes, rates))
    row = document({"10shot": cells}, f"simulated-{rng.integers(2**62)}")
    if by_seed:
        value = row.model_dump(exclude_none=True)
        value |= {"schema_version": "1.1", "run": made_up_run()}
        row = SubmissionV11.model_validate(value | {"evidence": {"10shot": evidence}})
    return Simulated(row, truth)


@functools.cache
def about(classes: Classes, triple: Triple) -> Array:
    """Return the rates of right predictions in each class that follow from a mean triple."""
    right = right_of(classes, triple)
    return np.clip([k / n for k, n in zip(right, classes, strict=True)], 0.02, 0.98)


@functools.cache
def over_all_draws(classes: Classes, triple: Triple) -> float:
    """Return the mean MCC over all training draws."""
    # A generator for each cell: errors that all tasks share would not average out.
    key = hashlib.sha256(repr((classes, triple)).encode()).digest()
    rng = np.random.Generator(np.random.PCG64([ROUNDS_SEED, int.from_bytes(key[:16], "big")]))
    return mean_mcc(classes, fits(about(classes, triple), ROUNDS, rng))


def mean_mcc(classes: Classes, rates: Array) -> float:
    """Return the mean MCC of (fits, 2) rates of right predictions."""
    sizes = np.array(classes)
    return float(mcc_of(sizes[0], sizes[1], *(rates * sizes).T).mean())


@functools.cache
def made_up_run() -> dict[str, Any]:
    """Return a made-up run that is valid in format 1.1."""
    run: dict[str, Any] = document_v11()["run"]
    return run


def fits(base: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the rates of right predictions in each class of fits on other training sets."""
    logits = np.log(base / (1 - base))
    quality = QUALITY * rng.standard_normal((count, 1))
    leaning = LEANING * rng.standard_normal((count, 1)) * np.array([-1.0, 1.0])
    return np.asarray(1 / (1 + np.exp(-(logits + quality + leaning))))


def measured(classes: Classes, rates: Array, shared: float, rng: np.random.Generator) -> Array:
    """Return (fits, 2) right predictions of fits that see one test set."""
    found = np.zeros(rates.shape)
    for k, n in enumerate(classes):
        alike = rng.binomial(n, shared)
        order = np.argsort(rates[:, k])
        steps = np.diff(rates[order, k], prepend=0.0, append=1.0)
        together = np.cumsum(rng.multinomial(alike, steps / steps.sum()))[:-1]
        found[order, k] = together
        found[:, k] += rng.binomial(n - alike, rates[:, k])
    return found

"""Check the rule's assumptions about noise and changed predictions, for bench_tolerance."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import skellam

from benchmarks.tolerance_sets import Group
from geneb_ci.audit.compare import tolerance as rule
from reference_harness.embedding import noise
from reference_harness.formats.rescored import Rescored
from reference_harness.run.task_job import ScoredRegime

RATES = (0.003, 0.03, 0.3, 1.0, 3.0, 10.0, 30.0)
TRIALS = 20_000
REGIMES = ("full", "10shot", "1shot")


def measured_noise(
    group: Group,
    matrices: dict[str, Path],
    claimed: dict[str, dict[str, dict[str, ScoredRegime]]],
    rescored: dict[str, Rescored],
) -> str:
    """Return the row of a group whose embeddings were made in several batches."""
    first, *others = group.batches
    base = np.load(matrices[first]).astype(np.float64)
    row_scale = np.sqrt(np.mean(base * base, axis=1, keepdims=True))
    roundoff_unit = noise.UNIT_ROUNDOFF[group.dtype]
    deviations = [(np.load(matrices[name]) - base) / row_scale / roundoff_unit for name in others]
    deviation = max(
        float(np.sqrt(np.mean(deviations_of_batch * deviations_of_batch)))
        for deviations_of_batch in deviations
    )
    deviation_max = max(
        float(np.abs(deviations_of_batch).max()) for deviations_of_batch in deviations
    )
    flips_of_batches, flips_of_copies = [], []
    for regime in REGIMES:
        rows = [
            sum(int((a != b).sum()) for a, b in _pairs(claimed[first], claimed[name], task, regime))
            for task in group.tasks
            for name in others
        ]
        flips_of_batches.append(float(np.mean(rows)))
        flips = [
            sum(copy.flips)
            for task in group.tasks
            for copy in rescored[first].tasks[task].regimes[regime].plain
        ]
        flips_of_copies.append(float(np.mean(flips)))
    flip_texts = " | ".join(
        ", ".join(f"{value:.1f}" for value in row) for row in (flips_of_batches, flips_of_copies)
    )
    return f"| {group.name} | {deviation:.2f} | {deviation_max:.0f} | {flip_texts} |"


def _pairs(
    first_cells: dict[str, dict[str, ScoredRegime]],
    second_cells: dict[str, dict[str, ScoredRegime]],
    task: str,
    regime: str,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    yield from zip(
        first_cells[task][regime].predictions, second_cells[task][regime].predictions, strict=True
    )


def single_flips(seed: int) -> Iterator[str]:
    """Yield the false alarm of one comparison if predictions change independently.

    Each copy's predictions flip at a Poisson rate, to right and to wrong alike; at eight times the
    noise at eight times the rate. The claim differs from the rerun by two draws. The tail is exact
    (Skellam), the copies are simulated.
    """
    yield "| flips a plain copy | 16 stressed copies, margin 2 | 32 stressed copies, margin 1.25 |"
    yield "|---:|---:|---:|"
    rng = np.random.RandomState(seed)
    for rate in RATES:
        alarms = []
        for copies, margin in (
            (rule.COPIES_MIN, rule.MARGIN_FEW),
            (rule.MANY_COPIES, rule.MARGIN_MANY),
        ):
            farthest_flips = np.maximum(
                _farthest(rng, rule.STRESS * rate, copies),
                _farthest(rng, rate, rule.COPIES_MIN),
            )
            values, counts = np.unique(farthest_flips, return_counts=True)
            alarm_probabilities = 2 * skellam.sf(
                np.floor(margin * values + rule.UNSEEN), rate, rate
            )
            alarms.append(float((counts * alarm_probabilities).sum() / TRIALS))
        yield f"| {rate:g} | {alarms[0]:.1e} | {alarms[1]:.1e} |"


def _farthest(rng: np.random.RandomState, rate: float, copies: int) -> np.ndarray:
    shape = (TRIALS, copies)
    flip_counts: np.ndarray = np.abs(rng.poisson(rate / 2, shape) - rng.poisson(rate / 2, shape))
    farthest: np.ndarray = flip_counts.max(axis=1)
    return farthest

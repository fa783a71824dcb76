"""What a row's MCC would have been on other test sets: seeded draws from its confusion matrices.

For every task of one row in one regime, `DRAWS` deviations of MCC from what was measured. The
method, what it assumes and what it cannot know: docs/uncertainty.md.

Draws are the same on every machine and under every version of NumPy and SciPy. NumPy promises the
stream of integers of a bit generator for good, but not what a `Generator` makes of it:
`Generator.binomial` gives other numbers in 2.5 than in 2.4, and what is published may not depend on
that. So draws are inverted here from the stream. The tables of the binomial need no more than the
four operations of IEEE 754, which are exact everywhere; quantiles of the normal come from SciPy and
may differ by some 1e-16, far below what is published.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from geneb_ci.check.claims import claims_of
from geneb_ci.common.benchmark import Benchmark, Task
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.statistics.binary import BinaryTable, Classes, runs, scores, table
from geneb_ci.statistics.printed import Reading, Triple
from geneb_ci.submission.models import Submission, SubmissionV11

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SEED = 20_261_120
# The 2.5 % quantile of 2,000 draws is off by 4 % of a standard error; of 1,000, by 6 %.
DRAWS = 2_000
# How alike the right and wrong predictions of two few-shot fits of one model are, as a correlation:
# 1 would be the same predictions, 0 unrelated ones. With k-mers on six real tasks it is 0.11 on
# average and 0.49 at most in 10shot, and about 0 in 1shot (tests/bench/bench_overlap.py). The
# greatest is taken, since better models agree more with themselves; with less of it, intervals are
# too wide.
OVERLAP = 0.5
# MCC per unit of accuracy of two even classes: taken where every prediction is right.
SLOPE_EVEN = 2.0
BITS = 52
"""Of a uniform number: with a half added, each is still a float of its own."""
REACH = 9.0
"""Standard deviations from the mean to either end of a table: 1e-18 of a normal lies outside."""
REACH_MORE = 40
"""Counts more, for small means: a Poisson number of mean 1 is above 40 once in 1e48 times."""


class Spread(NamedTuple):
    """The standard deviation of a mean over seeds, and the seeds less one."""

    deviation: float
    freedom: int


class Noise(NamedTuple):
    """What one row in one regime may vary by, task by task in board order."""

    test: Floats
    """(tasks, draws): deviations of MCC from test set to test set."""
    seeds: Floats
    """(tasks, draws): deviations from training draw to training draw; 0 where nothing is known."""
    spreads: tuple[Spread | None, ...]
    """What `seeds` was drawn from."""


class _Pair(NamedTuple):
    """Two binomials: the share of right predictions in each class of a two-class task."""

    place: int
    classes: Classes
    small: float
    large: float


class _Single(NamedTuple):
    """One binomial: the share of right predictions, and how MCC moves with it."""

    place: int
    total: int
    right: float
    slope: float


def noise_of(
    submission: Submission, regime: str, benchmark: Benchmark, draws: int = DRAWS
) -> Noise:
    """Draw the deviations of a row, from its own generator: other rows change nothing.

    Raises BadConfiguration when the benchmark does not know the size of a task's test split.
    """
    seeds = len(benchmark.protocol.seeds) if regime in benchmark.protocol.few_shot_k else 1
    key = hashlib.sha256(f"{submission.model_id}/{regime}".encode()).digest()[:16]
    entropy = [SEED, int.from_bytes(key, "big")]
    bits = np.random.PCG64(np.random.SeedSequence(entropy))
    models = list(_models(submission, regime, benchmark))
    test = np.zeros((len(benchmark.tasks), draws))
    _draw_pairs([m for m in models if isinstance(m, _Pair)], bits, test)
    _draw_singles([m for m in models if isinstance(m, _Single)], bits, test)
    spreads = tuple(_spreads(submission, regime, benchmark))
    deviations = np.array([spread.deviation if spread else 0.0 for spread in spreads])
    # The variance of a mean of fits whose errors correlate, over that of one fit. What the fits do
    # not share is part of the spread of the seeds, where that is known.
    if seeds > 1:
        apart = np.where(deviations > 0, 0.0, (1 - OVERLAP) / seeds)
        test *= np.sqrt(OVERLAP + apart)[:, None]
    drawn = deviations[:, None] * normal(bits, test.shape)
    return Noise(test, drawn, spreads)


def _models(submission: Submission, regime: str, benchmark: Benchmark) -> Iterator[_Pair | _Single]:
    """Return the sampling model of each task of a row that has them all."""
    cells = {
        task: scores.model_dump() for task, scores in submission.results.get(regime, {}).items()
    }
    claims = {claim.task.id: claim for claim in claims_of({regime: cells}, {}, benchmark)}
    for place, task in enumerate(benchmark.tasks):
        claim = claims[task.id]
        if claim.classes is None:
            yield _single(place, task, claim.reading.value)
        elif claim.fits == 1:
            one = recovered_table(claim.classes, claim.reading)
            yield _pair(place, claim.classes, one.small_right, one.large_right)
        else:
            yield _pair(place, claim.classes, *near_mean(claim.classes, claim.reading.value))


def recovered_table(classes: Classes, reading: Reading) -> BinaryTable:
    """Return the likeliest table that may have been printed so, or one near it where there is none.

    Where rounding leaves several, they differ by less than the rounding, which is no noise at all.
    """
    first = next(runs(classes, reading), None)
    if first is not None:
        return table(classes, first.right, first.first + (len(first) // 2) * 2)
    small, large = (round(count) for count in near_mean(classes, reading.value))
    return BinaryTable(small, classes.small - small, large, classes.large - large)


def near_mean(classes: Classes, mean: Triple) -> tuple[float, float]:
    """Return the right predictions in each class of a table near a mean triple; not whole numbers.

    It has the mean's accuracy and, as far as a table can, its macro-F1 (inverted from the formula
    in `arithmetic.binary`); of the two such tables, that which is nearer in MCC.
    """
    n = classes.total
    right = mean.acc * n
    square = n * (right - mean.f1 * n) / (1 - mean.f1) if mean.f1 < 1 else 0.0
    size = math.sqrt(max(square, 0.0))
    # The limits of arithmetic.binary.rho_limits, for means as well.
    least, most = max(-right, right - 2 * classes.small), min(right, 2 * classes.large - right)
    places = (min(max(rho, least), most) for rho in (size, -size))
    rho = min(places, key=lambda rho: abs(scores(classes, right, rho).mcc - mean.mcc))
    return max((right - rho) / 2, 0.0), max((right + rho) / 2, 0.0)


def _pair(place: int, classes: Classes, small: float, large: float) -> _Pair:
    return _Pair(place, classes, _rate(small, classes.small), _rate(large, classes.large))


def _rate(right: float, total: int) -> float:
    """Return a share of right predictions; none or all of them need not be so on other sequences.

    Then it is Jeffreys' estimate, which adds half a sequence to either side.
    """
    return right / total if 0 < right < total else (min(right, total) + 0.5) / (total + 1)


def _single(place: int, task: Task, value: Triple) -> _Single:
    """Return the model of a task whose matrix is not known.

    Where a class is predicted as often as it occurs, MCC = (A - e) / (1 - e) with e the accuracy of
    chance (Gorodkin 2004), so MCC moves with accuracy by 1 / (1 - e) = (1 - MCC) / (1 - A).
    """
    if task.n_test is None:
        raise BadConfiguration(
            f"the benchmark does not know how many test sequences {task.id} has",
            "add n_test to the task in the benchmark definition",
        )
    right = round(value.acc * task.n_test)
    slope = (1 - value.mcc) / (1 - value.acc) if right < task.n_test else SLOPE_EVEN
    return _Single(place, task.n_test, _rate(right, task.n_test), slope)


def _draw_pairs(models: list[_Pair], bits: np.random.PCG64, out: Floats) -> None:
    if not models:
        return
    sizes = np.array([model.classes for model in models], dtype=np.int64)
    rates = np.array([(model.small, model.large) for model in models])
    at = uniform(bits, (len(models), 2, out.shape[1]))
    rows = list(zip(models, at, strict=True))
    small = np.array([binomial(m.classes.small, m.small, row[0]) for m, row in rows])
    large = np.array([binomial(m.classes.large, m.large, row[1]) for m, row in rows])
    centre = mcc_of(sizes[:, :1], sizes[:, 1:], *np.hsplit(rates * sizes, 2))
    drawn = mcc_of(sizes[:, :1], sizes[:, 1:], small, large)
    out[[model.place for model in models]] = drawn - centre


def mcc_of(
    small: npt.NDArray[np.int64],
    large: npt.NDArray[np.int64],
    small_right: npt.NDArray[np.int64] | Floats,
    large_right: npt.NDArray[np.int64] | Floats,
) -> Floats:
    """Return MCC of tables from class sizes and right predictions, all of one shape or broadcast.

    It is 0 where one class is never predicted, as scikit-learn has it.
    """
    as_small = small_right + (large - large_right)
    spread = np.sqrt(small * large * 1.0) * np.sqrt(as_small * 1.0 * (small + large - as_small))
    top = small_right * 1.0 * large_right - (small - small_right) * 1.0 * (large - large_right)
    return np.asarray(np.divide(top, spread, out=np.zeros(top.shape), where=spread > 0))


def _draw_singles(models: list[_Single], bits: np.random.PCG64, out: Floats) -> None:
    for model in models:
        right = binomial(model.total, model.right, uniform(bits, out.shape[1:]))
        out[model.place] = (right / model.total - model.right) * model.slope


def uniform(bits: np.random.PCG64, shape: tuple[int, ...]) -> Floats:
    """Return the next numbers in (0, 1) of a stream: middles of 2^52 equal parts, never 0 or 1."""
    raw = bits.random_raw(math.prod(shape)) >> np.uint64(64 - BITS)
    return ((raw.astype(np.float64) + 0.5) * 2.0**-BITS).reshape(shape)


def binomial(total: int, rate: float, at: Floats) -> Counts:
    """Return quantiles of the number of hits in `total` trials of chance `rate`, 0 < rate < 1.

    `at` holds probabilities of any shape; the result has that shape.
    """
    mean = total * rate
    reach = REACH * math.sqrt(mean * (1 - rate)) + REACH_MORE
    first, last = max(0, math.floor(mean - reach)), min(total, math.ceil(mean + reach))
    counts = np.arange(first, last, dtype=np.float64)
    # p(k + 1) / p(k), multiplied up from the likeliest count and down from it: nothing underflows.
    ratios = (total - counts) / (counts + 1) * (rate / (1 - rate))
    mode = min(max(math.floor((total + 1) * rate), first), last) - first
    up = np.cumprod(ratios[mode:])
    down = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    cumulative = np.cumsum(np.concatenate([down, [1.0], up]))
    return np.asarray(first + np.searchsorted(cumulative, at * cumulative[-1]))


def normal(bits: np.random.PCG64, shape: tuple[int, ...]) -> Floats:
    """Return the next numbers of a stream, normally distributed with mean 0 and variance 1."""
    return np.asarray(ndtri(uniform(bits, shape)))


def _spreads(submission: Submission, regime: str, benchmark: Benchmark) -> Iterator[Spread | None]:
    """Return how far the mean over seeds may lie from that over all training draws, where known."""
    evidence = submission.evidence if isinstance(submission, SubmissionV11) else {}
    drawn = regime in benchmark.protocol.few_shot_k
    for task in benchmark.task_ids:
        cell = evidence.get(regime, {}).get(task) if drawn else None
        values = cell.per_seed.MCC if cell else []
        if len(values) > 1:
            deviation = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            yield Spread(deviation, len(values) - 1)
        else:
            yield None

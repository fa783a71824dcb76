"""Whether differences of rows point to labels, what draws find, and the rule of earlier records.

The rule of records of version 1.0; `column_rule` has that of today. c is the receipt's value, r the
auditor's in float32, both divided by the receipt's scale, s the root mean square of r. A row was
the same if every coordinate had

    |c - r| <= 1/2 ulp16(c) + TAU s

and few coordinates differ from the rounding of r at all. Float32 in other batches moves a
coordinate by up to 8e-7 s; bfloat16 fails in nearly every row.

Direction. What lies within the tolerance of a row may still be a column of 1e-5 that holds the
label, and over enough rows that raises a score. For each drawn row outside of the support sets,

    e = (c - r16) . w

is the difference of the committed row from the rounding of the rerun, along the weights of the full
regime's probe: those of a class minus those of its rival. The e of one label are compared with
those of the other by a rank sum, stratified by task; many classes, by task and pair: a row belongs
to the pair of its true class and the strongest other one. The test is one-sided, in the direction
that helps. Where all rows deviate alike, as with other hardware, nothing is seen.

The statistic is van Elteren's: each stratum's rank sum less its mean, divided by its size + 1. Its
normal tail is poor where only a few e differ from 0; a significant result counts only if
relabelling within the strata, drawn from the audit's seed, confirms it.

Power. What a draw finds is bounded from a row's own confusion matrices.
An altered test row is one that is predicted right and would honestly be predicted wrong. With a
altered among the TN and b among the TP of a task, one draw there is altered with probability

    r = 1/2 (a + b) / (TN + TP) + 1/4 a / TN + 1/4 b / TP

and N draws miss all of them with probability at most exp(-N mean r), the mean by the weights v of
the cells in the macro MCC, by which the draws are divided. The cheapest alteration that raises the
macro by more than `raise_` has a mean r of at least

    max over m >= 0 of  m raise_ + sum over cells of v min over a, b of (r - m gain)

by Lagrangian duality. The minimum is taken on a grid of a and b. Tasks of more than two classes are
left out: their cells count as honest.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.embeddings import LEVEL

DIGITS = 3
"""Significant digits of what a record says of a row."""

Half = npt.NDArray[np.float16]
Wide = npt.NDArray[np.float64]


class RowComparison(NamedTuple):
    """The result of comparing n rows."""

    deviation: Wide
    """(n,) largest distance beyond half a unit of float16, in root mean squares of the rerun."""
    mismatch: npt.NDArray[np.int64]
    """(n,) coordinates that differ from the rounding of the rerun."""


def scaled(rerun: npt.NDArray[np.floating], scale_log2: int) -> Wide:
    """Return rerun rows divided by the receipt's scale, exactly."""
    return np.ldexp(rerun.astype(np.float64), -scale_log2)


def rounding(rerun: npt.NDArray[np.floating], scale_log2: int) -> Half:
    """Return what the receipt of these rows holds; infinite where that cannot hold them."""
    with np.errstate(over="ignore"):
        rounded = scaled(rerun, scale_log2).astype(np.float16)
    rounded[rounded == 0] = 0  # -0.0 becomes 0.0
    return rounded


def judge(committed: Half, rerun: npt.NDArray[np.floating], scale_log2: int) -> RowComparison:
    """Compare (n, d) finite rows of a receipt with a rerun's, as records of version 1.0 did.

    A rerun that float32 or float16 cannot hold is no row of a receipt: it deviates as far as can
    be said.
    """
    wide, receipt = scaled(rerun, scale_log2), committed.astype(np.float64)
    half = np.spacing(np.abs(committed)).astype(np.float64) / 2
    beyond = np.maximum(np.abs(receipt - wide) - half, 0).max(axis=1)
    size = np.sqrt(np.mean(wide * wide, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.where(beyond > 0, beyond / size, 0.0)
    deviation[~np.isfinite(wide).all(axis=1)] = np.inf
    mismatch = (rounding(rerun, scale_log2) != committed).sum(axis=1)
    return RowComparison(recorded(deviation), mismatch.astype(np.int64))


def recorded(deviation: Wide) -> Wide:
    """Return deviations as a record has them: rounded to `DIGITS`, the largest float at most."""
    capped = np.minimum(deviation, np.finfo(np.float64).max / 2)
    return np.array([float(f"{value:.{DIGITS - 1}e}") for value in capped.tolist()])


RELABELLINGS = 20_000
"""At level 0.001, 20 of them are as large by chance: enough to tell 0.001 from 0.002."""
BATCH = 500
"""Relabellings at once: 500 x 7,500 rows take 30 MB."""

Labels = npt.NDArray[np.int64]


TIE = 1e-6
"""Decision values that differ by less than this share of the largest are equal: as in the harness,
since probes of word counts have exact ties."""


class Probe(NamedTuple):
    """A fitted probe."""

    weights: Wide
    """(d, c)."""
    intercepts: Wide
    """(c,)."""
    classes: Labels
    """(c,) ascending."""

    def predict(self, features: Wide) -> Labels:
        """Return the (n,) labels of (n, d) finite features, ties going to the lower label."""
        values = features @ self.weights + self.intercepts
        centred = values - values.mean(axis=1, keepdims=True)
        slack = TIE * float(np.abs(centred).max(initial=0.0))
        best = values.max(axis=1, keepdims=True)
        labels: Labels = self.classes[np.argmax(values >= best - slack, axis=1)]
        return labels


class Decider(NamedTuple):
    """The probes of one regime, canonical ones or those of record."""

    predicted: Labels
    """(s, m) labels of the m test rows, by each probe."""
    probes: list[Probe]


class Stratum(NamedTuple):
    """Rows of one task and one pair of labels."""

    name: str
    values: Wide
    """(n,) e."""
    upper: npt.NDArray[np.bool_]
    """(n,) whether the row has the label that e counts for."""


class DirectionTest(NamedTuple):
    """The result of the test of direction."""

    rows: int
    """Rows in strata with both labels."""
    statistic: float
    """Standard deviations above the mean."""
    p: float
    """One-sided; the larger of the normal and the relabelled one where the first is significant."""

    @property
    def is_significant(self) -> bool:
        """Whether the receipt differs from the rerun in the direction of the labels."""
        return self.p < LEVEL


def directions_of(
    task: str, difference: Wide, committed: Wide, labels: Labels, probe: Probe
) -> list[Stratum]:
    """Return the strata of a task from (n, d) differences and committed rows, and (n,) labels.

    The committed rows are features, multiplied by the receipt's scale; that of the differences
    changes no rank. Rows of a label that the probe does not know are left out.
    """
    along = difference @ probe.weights
    column = np.searchsorted(probe.classes, labels)
    known = column < len(probe.classes)
    known[known] = probe.classes[column[known]] == labels[known]
    own = np.where(known, column, 0)
    decision = committed @ probe.weights + probe.intercepts
    decision[np.arange(len(own)), own] = -np.inf
    rival = decision.argmax(axis=1)
    strata = []
    low, high = np.minimum(own, rival), np.maximum(own, rival)
    for pair in sorted(set(zip(low[known].tolist(), high[known].tolist(), strict=True))):
        rows = known & (low == pair[0]) & (high == pair[1])
        values = along[rows, pair[1]] - along[rows, pair[0]]
        strata.append(
            Stratum(
                f"{task} {probe.classes[pair[0]]} {probe.classes[pair[1]]}",
                values,
                own[rows] == pair[1],
            )
        )
    return strata


class _RankedStratum(NamedTuple):
    """A stratum with both labels: centred midranks, divided by its size + 1."""

    scores: Wide
    upper: npt.NDArray[np.bool_]
    variance: float
    """Of the sum of the scores of the upper rows over all relabellings."""


def direction_test(strata: Iterable[Stratum], seed: str) -> DirectionTest:
    """Return the result over all strata; `seed` is that of the audit, in hex digits."""
    ranked = [stratum for stratum in map(_ranked, strata) if stratum is not None]
    variance = math.fsum(stratum.variance for stratum in ranked)
    total = math.fsum(float(stratum.scores[stratum.upper].sum()) for stratum in ranked)
    statistic = total / math.sqrt(variance) if variance > 0 else 0.0
    p = 0.5 * math.erfc(statistic / math.sqrt(2))
    if p < LEVEL:
        p = max(p, _relabelled(ranked, total, seed))
    return DirectionTest(sum(len(stratum.scores) for stratum in ranked), statistic, p)


def _ranked(stratum: Stratum) -> _RankedStratum | None:
    count, upper = len(stratum.values), int(stratum.upper.sum())
    if not 0 < upper < count:
        return None
    scores = (midranks(stratum.values) - (count + 1) / 2) / (count + 1)
    spread = float(scores @ scores)
    variance = upper * (count - upper) * spread / (count * (count - 1))
    return _RankedStratum(scores, stratum.upper, variance)


def midranks(values: Wide) -> Wide:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Wide = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks


def _relabelled(ranked: list[_RankedStratum], total: float, seed: str) -> float:
    """Return the share of relabellings with as large a sum, the given one among them."""
    key = np.frombuffer(hashlib.sha256(bytes.fromhex(seed) + b"direction").digest(), dtype="<u4")
    # Of the generators of NumPy this one alone keeps its stream.
    draw = np.random.RandomState(key)
    reached = 1
    for _ in range(RELABELLINGS // BATCH):
        sums = np.zeros(BATCH)
        for stratum in ranked:
            order = draw.random_sample((BATCH, len(stratum.scores))).argsort(axis=1)
            sums += stratum.scores[order[:, : int(stratum.upper.sum())]].sum(axis=1)
        reached += int((sums >= total * (1 - 1e-12)).sum())
    return reached / (RELABELLINGS + 1)


RAISES = (0.005, 0.01, 0.02)
"""Raises of the macro MCC whose detection is shown."""
SHARES = (0.001, 0.003, 0.01)
"""Shares of altered training rows whose detection is shown."""
MEASURED_GAIN = {0.001: (0.010, 0.050), 0.003: (0.021, 0.058), 0.01: (0.056, 0.183)}
"""Mean and largest gain of MCC, over 13 cells, that the greedy attack of
docs/research/receipt-audits.md had with each share of training rows."""
GRID = 16
"""Values of a and of b that are tried: 0, and up to so many more, closer to 0 the denser."""
STEPS = 32
"""Steps of the search for the multiplier: it is known to 2e-6 of its range then."""
BINARY = 2


class Alterations(NamedTuple):
    """Alterations of one cell: (k,) arrays, one entry for each a and b of the grid."""

    hit: Wide
    """r."""
    gain: Wide
    """MCC of the claim less that of the honest matrix."""
    weight: float
    """Weight of the cell in the macro MCC, and its share of the draws."""


def mcc(tn: Wide, fp: Wide, fn: Wide, tp: Wide) -> Wide:
    """Return the MCC of 2 x 2 matrices; 0 where a row or column is empty."""
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    with np.errstate(divide="ignore", invalid="ignore"):
        values: Wide = np.where(spread > 0, (tp * tn - fp * fn) / np.sqrt(spread), 0.0)
    return values


def grid(most: int) -> Wide:
    """Return the numbers of altered rows that are tried, of `most`."""
    if most <= GRID:
        return np.arange(most + 1, dtype=np.float64)
    return np.unique(np.r_[0, np.round(np.geomspace(1, most, GRID))])


def hit_of(a: Wide, b: Wide, tn: float, tp: float) -> Wide:
    """Return the probability that one draw in a task is altered; NumPy broadcasts a and b."""
    if not tn + tp:
        return 0 * a
    # Without right predictions of one class, the second half of the draws falls on the other.
    half = 0.25 if tn and tp else 0.5
    probability: Wide = 0.5 * (a + b) / (tn + tp) + half * (a / max(1.0, tn) + b / max(1.0, tp))
    return probability


def alterations_of(matrix: Sequence[Sequence[int]], weight: float) -> Alterations:
    """Return the alterations of a cell with a claimed 2 x 2 matrix."""
    (tn, fp), (fn, tp) = (tuple(map(float, row)) for row in matrix)
    a, b = (
        values.reshape(-1) for values in np.meshgrid(grid(int(tn)), grid(int(tp)), indexing="ij")
    )
    ones = np.ones_like(a)
    gain = mcc(tn * ones, fp * ones, fn * ones, tp * ones) - mcc(tn - a, fp + a, fn + b, tp - b)
    return Alterations(hit_of(a, b, tn, tp), gain, weight)


def cells_of(
    matrices: Mapping[str, Sequence[Sequence[Sequence[int]]]],
    categories: Mapping[str, Sequence[str]],
) -> list[Alterations]:
    """Return the binary cells of a regime; `matrices` has those of each task, one a probe."""
    weights = {
        task: 1 / len(categories) / len(tasks) for tasks in categories.values() for task in tasks
    }
    return [
        alterations_of(matrix, weights[task] / len(of_task))
        for task, of_task in matrices.items()
        for matrix in of_task
        if len(matrix) == BINARY
    ]


def needed_hit(cells: Sequence[Alterations], raise_: float) -> float:
    """Return a lower bound of the mean r of any alteration that raises the macro by `raise_`.

    Infinite where no alteration of these cells raises it so far.
    """
    if math.fsum(cell.weight * float(cell.gain.max()) for cell in cells) < raise_:
        return math.inf

    hits = np.concatenate([cell.weight * cell.hit for cell in cells])
    gains = np.concatenate([cell.weight * cell.gain for cell in cells])
    begins = np.cumsum([0, *(len(cell.hit) for cell in cells[:-1])])

    def dual(multiplier: float) -> float:
        least = np.minimum.reduceat(hits - multiplier * gains, begins)
        return multiplier * raise_ + float(least.sum())

    high = 1.0
    while dual(2 * high) > dual(high):
        high *= 2
    low, high = 0.0, 2 * high
    for _ in range(STEPS):
        third = (high - low) / 3
        if dual(low + third) < dual(high - third):
            low += third
        else:
            high -= third
    return max(0.0, dual((low + high) / 2))


def found_test(cells: Sequence[Alterations], raise_: float, draws: int) -> float:
    """Return the probability, at least, that `draws` test rows of a regime hit an altered one."""
    needed = needed_hit(cells, raise_)
    return 1.0 if math.isinf(needed) else -math.expm1(-draws * needed)


def found_training(share: float, draws: int) -> float:
    """Return the probability that `draws` training rows hit an altered one.

    `share` is that of altered rows, in the mean over the tasks.
    """
    return -math.expm1(draws * math.log1p(-share))

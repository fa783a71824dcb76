"""Whether rows are those that the extractor gives, and whether differences point to labels.

The rule of a row. c is the receipt's value, r the auditor's in float32, both divided by the
receipt's scale, s the root mean square of r. A row is the same if every coordinate has

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
"""

import hashlib
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.embeddings import LEVEL, TAU, allowed

DIGITS = 3
"""Significant digits of what a record says of a row."""

Half = npt.NDArray[np.float16]
Wide = npt.NDArray[np.float64]


class RowsJudged(NamedTuple):
    """What the comparison of n rows shows."""

    deviation: Wide
    """(n,) largest distance beyond half a unit of float16, in root mean squares of the rerun."""
    mismatch: npt.NDArray[np.int64]
    """(n,) coordinates that differ from the rounding of the rerun."""

    def failed(self, width: int) -> npt.NDArray[np.bool_]:
        """Return which rows are not the same."""
        return ~is_same(self.deviation, self.mismatch, width)


def is_same(deviation: npt.ArrayLike, mismatch: npt.ArrayLike, width: int) -> npt.NDArray[np.bool_]:
    """Return whether rows with these statistics follow the rule."""
    found: npt.NDArray[np.bool_] = (np.asarray(deviation) <= TAU) & (
        np.asarray(mismatch) <= allowed(width)
    )
    return found


def scaled(rerun: npt.NDArray[np.floating], scale_log2: int) -> Wide:
    """Return rerun rows divided by the receipt's scale, exactly."""
    return np.ldexp(rerun.astype(np.float64), -scale_log2)


def rounding(rerun: npt.NDArray[np.floating], scale_log2: int) -> Half:
    """Return what the receipt of these rows holds; infinite where that cannot hold them."""
    with np.errstate(over="ignore"):
        found = scaled(rerun, scale_log2).astype(np.float16)
    found[found == 0] = 0  # -0.0 becomes 0.0
    return found


def judge(committed: Half, rerun: npt.NDArray[np.floating], scale_log2: int) -> RowsJudged:
    """Compare (n, d) finite rows of a receipt with the (n, d) rows of a rerun.

    A rerun that float32 or float16 cannot hold is no row of a receipt: it deviates as far as can
    be said.
    """
    wide, said = scaled(rerun, scale_log2), committed.astype(np.float64)
    half = np.spacing(np.abs(committed)).astype(np.float64) / 2
    beyond = np.maximum(np.abs(said - wide) - half, 0).max(axis=1)
    size = np.sqrt(np.mean(wide * wide, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.where(beyond > 0, beyond / size, 0.0)
    deviation[~np.isfinite(wide).all(axis=1)] = np.inf
    mismatch = (rounding(rerun, scale_log2) != committed).sum(axis=1)
    return RowsJudged(shown(deviation), mismatch.astype(np.int64))


def shown(deviation: Wide) -> Wide:
    """Return deviations as a record has them: rounded to `DIGITS`, the largest float at most."""
    capped = np.minimum(deviation, np.finfo(np.float64).max / 2)
    return np.array([float(f"{one:.{DIGITS - 1}e}") for one in capped.tolist()])


RELABELLINGS = 20_000
"""At level 0.001, 20 of them are as large by chance: enough to tell 0.001 from 0.002."""
BATCH = 500
"""Relabellings at once: 500 x 7,500 rows take 30 MB."""

Labels = npt.NDArray[np.int64]


TIE = 1e-6
"""Decision values that differ by less than this share of the largest are equal: as in the harness,
since probes of word counts have exact ties."""


class Probe(NamedTuple):
    """A canonical probe."""

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
        found: Labels = self.classes[np.argmax(values >= best - slack, axis=1)]
        return found


class Stratum(NamedTuple):
    """Rows of one task and one pair of labels."""

    name: str
    values: Wide
    """(n,) e."""
    upper: npt.NDArray[np.bool_]
    """(n,) whether the row has the label that e counts for."""


class Directed(NamedTuple):
    """What the test shows."""

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
    found = []
    low, high = np.minimum(own, rival), np.maximum(own, rival)
    for pair in sorted(set(zip(low[known].tolist(), high[known].tolist(), strict=True))):
        rows = known & (low == pair[0]) & (high == pair[1])
        values = along[rows, pair[1]] - along[rows, pair[0]]
        found.append(
            Stratum(
                f"{task} {probe.classes[pair[0]]} {probe.classes[pair[1]]}",
                values,
                own[rows] == pair[1],
            )
        )
    return found


class _Ranked(NamedTuple):
    """A stratum with both labels: centred midranks, divided by its size + 1."""

    scores: Wide
    upper: npt.NDArray[np.bool_]
    variance: float
    """Of the sum of the scores of the upper rows over all relabellings."""


def directed(strata: Iterable[Stratum], seed: str) -> Directed:
    """Return the result over all strata; `seed` is that of the audit, in hex digits."""
    ranked = [one for one in map(_ranked, strata) if one is not None]
    variance = math.fsum(one.variance for one in ranked)
    total = math.fsum(float(one.scores[one.upper].sum()) for one in ranked)
    statistic = total / math.sqrt(variance) if variance > 0 else 0.0
    p = 0.5 * math.erfc(statistic / math.sqrt(2))
    if p < LEVEL:
        p = max(p, _relabelled(ranked, total, seed))
    return Directed(sum(len(one.scores) for one in ranked), statistic, p)


def _ranked(one: Stratum) -> _Ranked | None:
    count, upper = len(one.values), int(one.upper.sum())
    if not 0 < upper < count:
        return None
    scores = (midranks(one.values) - (count + 1) / 2) / (count + 1)
    spread = float(scores @ scores)
    variance = upper * (count - upper) * spread / (count * (count - 1))
    return _Ranked(scores, one.upper, variance)


def midranks(values: Wide) -> Wide:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: Wide = (last - (counts - 1) / 2)[place.reshape(-1)]
    return found


def _relabelled(ranked: list[_Ranked], total: float, seed: str) -> float:
    """Return the share of relabellings with as large a sum, the given one among them."""
    key = np.frombuffer(hashlib.sha256(bytes.fromhex(seed) + b"direction").digest(), dtype="<u4")
    # Of the generators of NumPy this one alone keeps its stream.
    draw = np.random.RandomState(key)
    reached = 1
    for _ in range(RELABELLINGS // BATCH):
        sums = np.zeros(BATCH)
        for one in ranked:
            order = draw.random_sample((BATCH, len(one.scores))).argsort(axis=1)
            sums += one.scores[order[:, : int(one.upper.sum())]].sum(axis=1)
        reached += int((sums >= total * (1 - 1e-12)).sum())
    return reached / (RELABELLINGS + 1)

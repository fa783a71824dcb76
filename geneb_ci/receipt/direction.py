"""Whether differences of embeddings point to labels: the test of direction.

The difference of an embedding within its tolerance may still be a column of 1e-5 that holds the
label, and over enough embeddings that raises a score. For each drawn embedding outside of the
support sets,

    e = (c - r16) . w

is the difference of the committed embedding from the rounding of the rerun, along the weights of
the full regime's probe: those of a class minus those of its rival. The e of one label are compared
with those of the other by a rank sum, stratified by task; many classes, by task and pair: an
embedding belongs to the pair of its true class and the strongest other one. The test is one-sided,
in the direction that helps. Where all embeddings deviate alike, as with other hardware, nothing is
detected.

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

from geneb_ci.receipt.embeddings import LEVEL
from geneb_ci.receipt.rounding import Wide

RELABELLINGS = 20_000
"""At level 0.001, 20 of them are as large by chance: enough to tell 0.001 from 0.002."""
BATCH = 500
"""Relabellings at once: 500 x 7,500 embeddings take 30 MB."""

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
    """(s, m) labels of the m test embeddings, by each probe."""
    probes: list[Probe]


class Stratum(NamedTuple):
    """Embeddings of one task and one pair of labels."""

    name: str
    values: Wide
    """(n,) e."""
    has_upper_label: npt.NDArray[np.bool_]
    """(n,) whether the embedding has the label that e counts for."""


class DirectionTest(NamedTuple):
    """The result of the test of direction."""

    rows: int
    """Embeddings in strata with both labels."""
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
    """Return the strata of a task from (n, d) differences and embeddings, and (n,) labels.

    The committed embeddings are features, multiplied by the receipt's scale; that of the
    differences changes no rank. Embeddings of a label that the probe does not know are left out.
    """
    along = difference @ probe.weights
    column = np.searchsorted(probe.classes, labels)
    has_column = column < len(probe.classes)
    has_column[has_column] = probe.classes[column[has_column]] == labels[has_column]
    columns = np.where(has_column, column, 0)
    decision = committed @ probe.weights + probe.intercepts
    decision[np.arange(len(columns)), columns] = -np.inf
    rival = decision.argmax(axis=1)
    strata = []
    low, high = np.minimum(columns, rival), np.maximum(columns, rival)
    for pair in sorted(set(zip(low[has_column].tolist(), high[has_column].tolist(), strict=True))):
        rows = has_column & (low == pair[0]) & (high == pair[1])
        values = along[rows, pair[1]] - along[rows, pair[0]]
        strata.append(
            Stratum(
                f"{task} {probe.classes[pair[0]]} {probe.classes[pair[1]]}",
                values,
                columns[rows] == pair[1],
            )
        )
    return strata


class _RankedStratum(NamedTuple):
    """A stratum with both labels: centred midranks, divided by its size + 1."""

    scores: Wide
    has_upper_label: npt.NDArray[np.bool_]
    variance: float
    """Of the sum of the scores of the upper embeddings over all relabellings."""


def direction_test(strata: Iterable[Stratum], seed: str) -> DirectionTest:
    """Return the result over all strata; `seed` is that of the audit, in hex digits."""
    ranked = [stratum for stratum in map(_ranked, strata) if stratum is not None]
    variance = math.fsum(stratum.variance for stratum in ranked)
    total = math.fsum(float(stratum.scores[stratum.has_upper_label].sum()) for stratum in ranked)
    statistic = total / math.sqrt(variance) if variance > 0 else 0.0
    p = 0.5 * math.erfc(statistic / math.sqrt(2))
    if p < LEVEL:
        p = max(p, _relabelled(ranked, total, seed))
    return DirectionTest(sum(len(stratum.scores) for stratum in ranked), statistic, p)


def _ranked(stratum: Stratum) -> _RankedStratum | None:
    count, upper = len(stratum.values), int(stratum.has_upper_label.sum())
    if not 0 < upper < count:
        return None
    scores = (midranks(stratum.values) - (count + 1) / 2) / (count + 1)
    spread = float(scores @ scores)
    variance = upper * (count - upper) * spread / (count * (count - 1))
    return _RankedStratum(scores, stratum.has_upper_label, variance)


def midranks(values: Wide) -> Wide:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Wide = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks


def _relabelled(strata: list[_RankedStratum], total: float, seed: str) -> float:
    """Return the share of relabellings with as large a sum, the given one among them."""
    key = np.frombuffer(hashlib.sha256(bytes.fromhex(seed) + b"direction").digest(), dtype="<u4")
    # Of the generators of NumPy this one alone keeps its stream.
    draw = np.random.RandomState(key)
    reached = 1
    for _ in range(RELABELLINGS // BATCH):
        sums = np.zeros(BATCH)
        for stratum in strata:
            order = draw.random_sample((BATCH, len(stratum.scores))).argsort(axis=1)
            sums += stratum.scores[order[:, : int(stratum.has_upper_label.sum())]].sum(axis=1)
        reached += int((sums >= total * (1 - 1e-12)).sum())
    return reached / (RELABELLINGS + 1)

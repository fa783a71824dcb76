"""The directional test: whether the deviations of embeddings point towards their labels.

A deviation within the tolerance may still encode the label, for example as 1e-5 in one column, and
over many embeddings that raises a score. For each drawn embedding outside of the support sets,

    e = (c - r16) . w

is the deviation of the committed embedding from the rounded rerun, along the weights of a class
minus those of its rival in the full regime's probe. The e of one label are compared with those of
the other by a rank sum, stratified by task and, for many classes, by pair: an embedding belongs to
the pair of its true class and the strongest other class. The test is one-sided, in the direction
that raises scores. A deviation that all embeddings share, as from other hardware, is not detected.

The statistic is van Elteren's: each stratum's rank sum minus its mean, divided by its size + 1. If
only a few e differ from 0, its tail is not normal; a significant result therefore counts only if
random relabellings within the strata, by the audit's seed, confirm it.
"""

import hashlib
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.embeddings import LEVEL
from geneb_ci.receipt.rounding import Float64Array

RELABELLINGS = 20_000
"""Number of random relabellings: at a p-value of 0.001, about 20 of them have a rank sum at least
as large as the observed one."""
RELABELLINGS_AT_ONCE = 500
"""Number of relabellings in memory at a time: with 7,500 embeddings they take 30 MB."""

Labels = npt.NDArray[np.int64]
"""Labels of embeddings, as an array."""


TIE = 1e-6
"""Decision values that differ by less than this share of the largest count as equal, as in the
harness: probes of word counts have exact ties."""


class Probe(NamedTuple):
    """A fitted probe, which predicts the label of an embedding."""

    weights: Float64Array
    """(d, c) weights of c classes."""
    intercepts: Float64Array
    """(c,) intercepts."""
    classes: Labels
    """(c,) labels of the classes, ascending."""

    def predict(self, features: Float64Array) -> Labels:
        """Return the (n,) labels of (n, d) finite features, ties going to the lower label."""
        class_scores = features @ self.weights + self.intercepts
        centred = class_scores - class_scores.mean(axis=1, keepdims=True)
        slack = TIE * float(np.abs(centred).max(initial=0.0))
        highest = class_scores.max(axis=1, keepdims=True)
        labels: Labels = self.classes[np.argmax(class_scores >= highest - slack, axis=1)]
        return labels


class ProbeSet(NamedTuple):
    """The probes of one regime and one protocol, canonical or of record, and their predictions."""

    predicted: Labels
    """(s, m) labels of the m test embeddings, by each probe."""
    probes: list[Probe]
    """The s probes, one or one per seed."""


class Stratum(NamedTuple):
    """The deviations of embeddings of one task and one pair of labels."""

    name: str
    """Task and pair of labels."""
    deviations: Float64Array
    """(n,) deviations e along the weights."""
    has_upper_label: npt.NDArray[np.bool_]
    """(n,) whether the embedding has the label towards which e is positive."""


class DirectionTest(NamedTuple):
    """The result of testing whether deviations point towards the labels."""

    rows: int
    """Number of embeddings in strata with both labels."""
    statistic: float
    """Van Elteren's statistic, in standard deviations."""
    p: float
    """One-sided p-value; if the normal approximation is significant, the larger of that and the
    share of relabellings that reach the sum."""

    @property
    def is_significant(self) -> bool:
        """Whether the receipt differs from the rerun in the direction of the labels."""
        return self.p < LEVEL


def label_strata(
    task: str, difference: Float64Array, committed: Float64Array, labels: Labels, probe: Probe
) -> list[Stratum]:
    """Return the strata of a task for the directional test: one for each pair of labels.

    `committed` has n embeddings multiplied by the receipt's scale, `difference` their differences
    from the rerun, `labels` their labels. Embeddings with a label that the probe lacks are left
    out.
    """
    along_weights = difference @ probe.weights
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
        deviations = along_weights[rows, pair[1]] - along_weights[rows, pair[0]]
        strata.append(
            Stratum(
                f"{task} {probe.classes[pair[0]]} {probe.classes[pair[1]]}",
                deviations,
                columns[rows] == pair[1],
            )
        )
    return strata


class _RankedStratum(NamedTuple):
    """The ranks of the deviations of a stratum that has embeddings of both labels."""

    scores: Float64Array
    """(n,) ranks minus their mean, divided by the size of the stratum + 1."""
    has_upper_label: npt.NDArray[np.bool_]
    variance: float
    """Variance, over all relabellings, of the sum of the scores of the upper label."""


def direction_test(strata: Iterable[Stratum], seed: str) -> DirectionTest:
    """Return the result of the directional test; `seed` is that of the audit, in hex digits."""
    ranked = [stratum for stratum in map(_ranked_stratum, strata) if stratum is not None]
    variance = math.fsum(stratum.variance for stratum in ranked)
    total = math.fsum(float(stratum.scores[stratum.has_upper_label].sum()) for stratum in ranked)
    statistic = total / math.sqrt(variance) if variance > 0 else 0.0
    p = 0.5 * math.erfc(statistic / math.sqrt(2))
    if p < LEVEL:
        p = max(p, _share_of_relabellings_reaching(ranked, total, seed))
    return DirectionTest(sum(len(stratum.scores) for stratum in ranked), statistic, p)


def _ranked_stratum(stratum: Stratum) -> _RankedStratum | None:
    """Return a stratum with ranks; None unless its embeddings have both labels."""
    count, upper = len(stratum.deviations), int(stratum.has_upper_label.sum())
    if not 0 < upper < count:
        return None
    scores = (midranks(stratum.deviations) - (count + 1) / 2) / (count + 1)
    spread = float(scores @ scores)
    variance = upper * (count - upper) * spread / (count * (count - 1))
    return _RankedStratum(scores, stratum.has_upper_label, variance)


def midranks(values: Float64Array) -> Float64Array:
    """Return ranks from 1; equal values get their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last_ranks = np.cumsum(counts)
    ranks: Float64Array = (last_ranks - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks


def _share_of_relabellings_reaching(strata: list[_RankedStratum], total: float, seed: str) -> float:
    """Return the share of relabellings, the true labels included, whose sum is at least `total`."""
    seed_words = np.frombuffer(
        hashlib.sha256(bytes.fromhex(seed) + b"direction").digest(), dtype="<u4"
    )
    # The only generator whose stream NumPy guarantees.
    generator = np.random.RandomState(seed_words)
    reached_count = 1
    for _ in range(RELABELLINGS // RELABELLINGS_AT_ONCE):
        sums = np.zeros(RELABELLINGS_AT_ONCE)
        for stratum in strata:
            order = generator.random_sample((RELABELLINGS_AT_ONCE, len(stratum.scores))).argsort(
                axis=1
            )
            sums += stratum.scores[order[:, : int(stratum.has_upper_label.sum())]].sum(axis=1)
        reached_count += int((sums >= total * (1 - 1e-12)).sum())
    return reached_count / (RELABELLINGS + 1)

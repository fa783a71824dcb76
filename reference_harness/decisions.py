"""Decisions of the probe on further sequences: variants of a task's, and fresh ones with labels.

The probe is fitted on the training sequences as published, once. For each kind of variant of a test
sequence the decisions on original and variant are counted against each other. For variants of
training sequences the probe is fitted on these sequences alone, as published and as variants, and
both predict the test sequences as published.

Every probe whose scores a claim has decides: those of few-shot regimes see few sequences, so that
each can use what the others ignore.

Anybody knows the few sequences that a few-shot probe is fitted on. Its probes are therefore fitted
on sequences that other seeds draw, and on variants of the published ones, as well.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import probe
from .formats.rescored import (
    OTHER_DRAWS,
    ChangedDecisions,
    Decisions,
    FewShotScores,
    LabelledDecisions,
    ProbeDecisions,
)
from .metrics import confusion_matrix, scores
from .tasks import Labels
from .variants import SUPPORT

RECORD = "record"
"""The name of the probes of record, after that of their regime."""
FRESH = "fresh"
"""Split of sequences whose label the sequences themselves bring."""

Features = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FurtherEmbeddings:
    """(n,) sequences beside those of a task, with their (n, d) embeddings."""

    splits: Sequence[str]
    kinds: Sequence[str]
    rows: npt.NDArray[np.int64]
    """Sequence of the split that a sequence is a variant of; for a fresh sequence its own
    number."""
    labels: Labels
    """Labels of the fresh sequences; anything for variants."""
    values: Features

    def of(self, split: str, kind: str | None = None) -> npt.NDArray[np.int64]:
        """Return the places of the sequences of a split and kind."""
        kinds = self.kinds
        return np.array(
            [
                i
                for i, (row_split, row_kind) in enumerate(zip(self.splits, kinds, strict=True))
                if row_split == split and kind in {None, row_kind}
            ],
            dtype=np.int64,
        )


def predictions(train: Features, labels: Labels, test: Features) -> Labels:
    """Return the (m,) labels of (m, d) features by the probe of record, fitted on (n, d) features.

    Raises ProbeError when it cannot be fitted.
    """
    return probe.fit(train, labels, test).predictions


def count_changes(before: Flags, after: Flags) -> ChangedDecisions:
    """Count the changes between two (n,) arrays of right decisions."""
    return ChangedDecisions(
        rows=len(before),
        worse=int((before & ~after).sum()),
        better=int((~before & after).sum()),
    )


def score_predictions(truth: Labels, predicted: Labels) -> LabelledDecisions:
    """Score (n,) predictions, n at least 1."""
    classes = np.unique(np.concatenate([truth, predicted]))
    mcc = scores(confusion_matrix(truth, predicted, classes)).MCC
    return LabelledDecisions(rows=len(truth), right=int((truth == predicted).sum()), MCC=mcc)


Drawn = npt.NDArray[np.int64] | None
"""Training sequences of a fit; None for all."""


def decide(
    problem: probe.Problem,
    further_embeddings: FurtherEmbeddings,
    drawn: Mapping[str, Sequence[Drawn]] | None = None,
    few_shot: "Mapping[str, FewShotDraws] | None" = None,
) -> Decisions:
    """Return the decisions on the sequences beside a task's; raises ProbeError.

    `drawn` has the training sequences of each fit of every regime that is scored, `few_shot` those
    of the few-shot regimes that are fitted on other sequences, too.
    """
    embeddings = np.concatenate([problem.test, further_embeddings.values])
    labels = predictions(problem.train, problem.train_labels, embeddings)
    whole = _decision_counts(problem, further_embeddings, [labels])
    return Decisions(
        public=whole.public,
        kinds=whole.kinds,
        training=training_changes(problem, further_embeddings),
        fresh=whole.fresh,
        others={
            f"{regime}, {RECORD}": _decision_counts(
                problem, further_embeddings, [_fitted(problem, rows, embeddings) for rows in fits]
            )
            for regime, fits in (drawn or {}).items()
            if fits[0] is not None
        },
        few_shot=few_shot_scores(problem, few_shot or {}),
        varied=varied_scores(problem, further_embeddings, few_shot or {}),
    )


def _fitted(problem: probe.Problem, rows: Drawn, all_features: Features) -> Labels:
    return predictions(*problem.training(rows), all_features)


def _decision_counts(
    problem: probe.Problem, further_embeddings: FurtherEmbeddings, fits: Sequence[Labels]
) -> ProbeDecisions:
    """Count what fits predict, test sequences first and then the further sequences."""
    truth, tests = problem.test_labels, len(problem.test_labels)
    kinds = {}
    for kind in dict.fromkeys(further_embeddings.kinds[i] for i in further_embeddings.of("test")):
        places = further_embeddings.of("test", kind)
        rows = further_embeddings.rows[places]
        parts = [
            count_changes(
                (labels_of_fit[:tests] == truth)[rows], labels_of_fit[tests:][places] == truth[rows]
            )
            for labels_of_fit in fits
        ]
        kinds[kind] = ChangedDecisions(
            rows=sum(part.rows for part in parts),
            worse=sum(part.worse for part in parts),
            better=sum(part.better for part in parts),
        )
    fresh = further_embeddings.of(FRESH)
    labels = further_embeddings.labels[fresh]
    return ProbeDecisions(
        fits=len(fits),
        public=_summed([score_predictions(truth, labels_of_fit[:tests]) for labels_of_fit in fits]),
        kinds=kinds,
        fresh=_summed(
            [score_predictions(labels, labels_of_fit[tests:][fresh]) for labels_of_fit in fits]
        )
        if len(fresh)
        else None,
    )


def _summed(parts: Sequence[LabelledDecisions]) -> LabelledDecisions:
    return LabelledDecisions(
        rows=sum(part.rows for part in parts),
        right=sum(part.right for part in parts),
        MCC=float(np.mean([part.MCC for part in parts])),
    )


def training_changes(
    problem: probe.Problem, further_embeddings: FurtherEmbeddings
) -> ChangedDecisions | None:
    """Return what changes on the test sequences when some training sequences are their variants.

    One probe is fitted on these sequences as published, one on the variants. None where a class has
    no such sequence. Raises ProbeError.
    """
    places = further_embeddings.of("train")
    rows = further_embeddings.rows[places]
    labels = problem.train_labels[rows]
    if set(labels.tolist()) != set(problem.train_labels.tolist()):
        return None  # a class without a sequence: the probe could never predict it
    truth = problem.test_labels
    before = predictions(problem.train[rows], labels, problem.test) == truth
    after = predictions(further_embeddings.values[places], labels, problem.test) == truth
    return count_changes(before, after)


class FewShotDraws(NamedTuple):
    """The training sequences of each fit of a few-shot regime."""

    published: Sequence[npt.NDArray[np.int64]]
    """By the seeds of the benchmark."""
    others: Sequence[npt.NDArray[np.int64]]
    """By other seeds."""


def few_shot_draws(
    labels: Labels, few_shot_k: Mapping[str, int], seeds: Sequence[int], other_draws: str
) -> dict[str, FewShotDraws]:
    """Return the draws of each few-shot regime; the text `other_draws` decides the other ones."""
    others = [
        int.from_bytes(hashlib.sha256(f"{other_draws}\n{number}".encode()).digest()[:4], "little")
        for number in range(OTHER_DRAWS)
    ]
    return {
        regime: FewShotDraws(
            [probe.few_shot_indices(labels, shots, seed) for seed in seeds],
            [probe.few_shot_indices(labels, shots, seed) for seed in others],
        )
        for regime, shots in few_shot_k.items()
    }


def support_of(draws: Mapping[str, FewShotDraws]) -> list[int]:
    """Return the training sequences that any published few-shot probe is fitted on, ascending."""
    return sorted({int(row) for each in draws.values() for rows in each.published for row in rows})


def few_shot_scores(
    problem: probe.Problem, draws: Mapping[str, FewShotDraws]
) -> dict[str, FewShotScores]:
    """Return the scores of the few-shot probes of each regime. Raises ProbeError."""

    def scores_of(fits: Sequence[npt.NDArray[np.int64]]) -> list[float]:
        return [_correlation(problem, *problem.training(rows)) for rows in fits]

    return {
        regime: FewShotScores(published=scores_of(each.published), others=scores_of(each.others))
        for regime, each in draws.items()
    }


def varied_scores(
    problem: probe.Problem,
    further_embeddings: FurtherEmbeddings,
    draws: Mapping[str, FewShotDraws],
) -> dict[str, list[float]]:
    """Return the scores of the published few-shot probes, fitted on variants of their sequences.

    A sequence without a variant is its own. Raises ProbeError.
    """
    places = further_embeddings.of(SUPPORT)
    place_of = dict(zip(further_embeddings.rows[places].tolist(), places.tolist(), strict=True))
    varied: dict[str, list[float]] = {}
    for regime, each in draws.items():
        varied[regime] = []
        for rows in each.published:
            features, labels = problem.training(rows)
            features = features.copy()
            for index, row in enumerate(rows.tolist()):
                if row in place_of:
                    features[index] = further_embeddings.values[place_of[row]]
            varied[regime].append(_correlation(problem, features, labels))
    return varied


def _correlation(problem: probe.Problem, features: Features, labels: Labels) -> float:
    """Return the MCC on the test sequences of a probe that is fitted on (n, d) features."""
    predicted = predictions(features, labels, problem.test)
    return score_predictions(problem.test_labels, predicted).MCC

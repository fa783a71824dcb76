"""Decisions (predicted labels) for further sequences: variants of a task's sequences, and new ones.

For test variants, the probe is fitted on the published training sequences; the numbers of right
decisions on originals and on variants are compared, per kind of variant. For training variants, two
probes are fitted, one on the originals and one on the variants, and both predict the published test
sequences.

This is done with every probe whose scores a submission claims: few-shot probes see few sequences,
so each may rely on other letters.

Everyone knows the few sequences on which a few-shot probe is fitted. So these probes are also
fitted on sequences drawn by other seeds, and on variants of the published ones.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.embedding.variants import SUPPORT_SPLIT
from reference_harness.formats.rescored import (
    OTHER_DRAWS,
    TEST_TIMES,
    ChangedDecisions,
    Decisions,
    FewShotScores,
    LabelledDecisions,
    ProbeDecisions,
)

from . import logistic
from .metrics import confusion_matrix, scores_of

RECORD_PROBE = "record"
"""Name of the probe of record; the keys of `Decisions.others` are "<regime>, record"."""
FRESH_SPLIT = "fresh"
"""Name of the split of fresh sequences, which are generated with their labels."""

Features = npt.NDArray[np.floating]
"""(n, d) embeddings of n sequences."""
Flags = npt.NDArray[np.bool_]
"""(n,) truth values."""


@dataclass(frozen=True)
class FurtherEmbeddings:
    """(n,) further sequences, variants or new ones, with their (n, d) embeddings."""

    splits: Sequence[str]
    """Split of each sequence, such as "test"; `FRESH_SPLIT` for new sequences."""
    kinds: Sequence[str]
    rows: npt.NDArray[np.int64]
    """Index, in its split, of each variant's original sequence; a running number of a fresh one."""
    labels: Labels
    """Labels of the fresh sequences; meaningless for variants."""
    embeddings: Features

    def indices_of(self, split: str, kind: str | None = None) -> npt.NDArray[np.int64]:
        """Return the indices of the sequences with this split and, unless it is None, this kind."""
        kinds = self.kinds
        return np.array(
            [
                i
                for i, (row_split, row_kind) in enumerate(zip(self.splits, kinds, strict=True))
                if row_split == split and kind in {None, row_kind}
            ],
            dtype=np.int64,
        )


def predicted_labels(train: Features, labels: Labels, test: Features) -> Labels:
    """Return the (m,) labels of (m, d) features by the probe of record, fitted on (n, d) features.

    Raise ProbeError if it cannot be fitted.
    """
    return logistic.fit(train, labels, test).predictions


def count_changes(was_right: Flags, is_right: Flags) -> ChangedDecisions:
    """Count the changes between two (n,) arrays that hold whether each decision is right."""
    return ChangedDecisions(
        rows=len(was_right),
        worse=int((was_right & ~is_right).sum()),
        better=int((~was_right & is_right).sum()),
    )


def score_predictions(truth: Labels, predicted: Labels) -> LabelledDecisions:
    """Score (n,) predicted labels, n at least 1."""
    classes = np.unique(np.concatenate([truth, predicted]))
    mcc = scores_of(confusion_matrix(truth, predicted, classes)).MCC
    return LabelledDecisions(rows=len(truth), right=int((truth == predicted).sum()), MCC=mcc)


FitRows = npt.NDArray[np.int64] | None
"""Indices of the training sequences of a fit; None for all."""


def further_decisions(
    problem: logistic.Problem,
    further_embeddings: FurtherEmbeddings,
    fit_rows: Mapping[str, Sequence[FitRows]] | None = None,
    few_shot: "Mapping[str, FewShotDraws] | None" = None,
) -> Decisions:
    """Return how often the probes are right on the further sequences of a task. Raise ProbeError.

    `fit_rows` has the indices of the training sequences of each fit, by scored regime; `few_shot`
    has them for the few-shot regimes, whose probes are also fitted on other sequences.
    """
    embeddings = np.concatenate([problem.test, further_embeddings.embeddings])
    labels = predicted_labels(problem.train, problem.train_labels, embeddings)
    record_counts = _decision_counts(problem, further_embeddings, [labels])
    return Decisions(
        public=record_counts.public,
        kinds=record_counts.kinds,
        training=training_changes(problem, further_embeddings),
        fresh=record_counts.fresh,
        others={
            f"{regime}, {RECORD_PROBE}": _decision_counts(
                problem,
                further_embeddings,
                [_predicted_labels(problem, rows, embeddings) for rows in rows_by_fit],
            )
            for regime, rows_by_fit in (fit_rows or {}).items()
            if rows_by_fit[0] is not None
        },
        few_shot=few_shot_scores(problem, few_shot or {}),
        varied=scores_fitted_on_variants(problem, further_embeddings, few_shot or {}),
    )


def _predicted_labels(problem: logistic.Problem, rows: FitRows, all_features: Features) -> Labels:
    """Return the labels of all features by a probe fitted on some training sequences.

    `rows` are the indices of these sequences, or None for all.
    """
    return predicted_labels(*problem.training(rows), all_features)


def _decision_counts(
    problem: logistic.Problem,
    further_embeddings: FurtherEmbeddings,
    labels_by_fit: Sequence[Labels],
) -> ProbeDecisions:
    """Count the right decisions of several fits.

    The labels of each fit are those of the test sequences, followed by the further sequences.
    """
    truth, test_count = problem.test_labels, len(problem.test_labels)
    changes_by_kind = {}
    for kind in dict.fromkeys(
        further_embeddings.kinds[i] for i in further_embeddings.indices_of("test")
    ):
        indices = further_embeddings.indices_of("test", kind)
        rows = further_embeddings.rows[indices]
        changes_by_fit = [
            count_changes(
                (labels_of_fit[:test_count] == truth)[rows],
                labels_of_fit[test_count:][indices] == truth[rows],
            )
            for labels_of_fit in labels_by_fit
        ]
        changes_by_kind[kind] = ChangedDecisions(
            rows=sum(changes.rows for changes in changes_by_fit),
            worse=sum(changes.worse for changes in changes_by_fit),
            better=sum(changes.better for changes in changes_by_fit),
        )
    fresh = further_embeddings.indices_of(FRESH_SPLIT)
    labels = further_embeddings.labels[fresh]
    return ProbeDecisions(
        fits=len(labels_by_fit),
        public=_summed(
            [
                score_predictions(truth, labels_of_fit[:test_count])
                for labels_of_fit in labels_by_fit
            ]
        ),
        kinds=changes_by_kind,
        fresh=_summed(
            [
                score_predictions(labels, labels_of_fit[test_count:][fresh])
                for labels_of_fit in labels_by_fit
            ]
        )
        if len(fresh)
        else None,
    )


def _summed(decisions_by_fit: Sequence[LabelledDecisions]) -> LabelledDecisions:
    """Return the counts added over the fits, with the mean of the fits' MCC."""
    return LabelledDecisions(
        rows=sum(decisions.rows for decisions in decisions_by_fit),
        right=sum(decisions.right for decisions in decisions_by_fit),
        MCC=float(np.mean([decisions.MCC for decisions in decisions_by_fit])),
    )


def training_changes(
    problem: logistic.Problem, further_embeddings: FurtherEmbeddings
) -> ChangedDecisions | None:
    """Count the decisions on test sequences that change when the probe is fitted on variants.

    One probe is fitted on the originals of all training variants, one on the variants. Return None
    if a class has no variant. Raise ProbeError.
    """
    indices = further_embeddings.indices_of("train")
    rows = further_embeddings.rows[indices]
    labels = problem.train_labels[rows]
    if set(labels.tolist()) != set(problem.train_labels.tolist()):
        return None  # a class without a sequence: the probe could never predict it
    truth = problem.test_labels
    was_right = predicted_labels(problem.train[rows], labels, problem.test) == truth
    is_right = (
        predicted_labels(further_embeddings.embeddings[indices], labels, problem.test) == truth
    )
    return count_changes(was_right, is_right)


class FewShotDraws(NamedTuple):
    """The training sequences drawn for each fit of one few-shot regime, as indices."""

    published: Sequence[npt.NDArray[np.int64]]
    """Indices that each seed of the benchmark draws."""
    others: Sequence[npt.NDArray[np.int64]]
    """Indices that each other seed draws."""
    shots: int
    """Number of sequences drawn of each class."""
    seeds: Sequence[int]
    """The other seeds, in the order of `others`."""


def few_shot_draws(
    labels: Labels, few_shot_k: Mapping[str, int], seeds: Sequence[int], other_draws: str
) -> dict[str, FewShotDraws]:
    """Return the draws by few-shot regime; other seeds are derived from the text `other_draws`."""
    other_seeds = [
        int.from_bytes(hashlib.sha256(f"{other_draws}\n{number}".encode()).digest()[:4], "little")
        for number in range(OTHER_DRAWS)
    ]
    return {
        regime: FewShotDraws(
            logistic.few_shot_indices_by_seed(labels, shots, seeds),
            logistic.few_shot_indices_by_seed(labels, shots, other_seeds),
            shots,
            other_seeds,
        )
        for regime, shots in few_shot_k.items()
    }


def support_indices(draws: Mapping[str, FewShotDraws]) -> list[int]:
    """Return the indices of all training sequences of published few-shot probes, ascending."""
    return sorted(
        {
            int(row)
            for draws_of_regime in draws.values()
            for rows in draws_of_regime.published
            for row in rows
        }
    )


def few_shot_scores(
    problem: logistic.Problem, draws: Mapping[str, FewShotDraws]
) -> dict[str, FewShotScores]:
    """Return the scores of the few-shot probes of each regime. Raise ProbeError."""

    def scores_of(rows_by_fit: Sequence[npt.NDArray[np.int64]]) -> list[float]:
        return [_test_mcc(problem, *problem.training(rows)) for rows in rows_by_fit]

    return {
        regime: FewShotScores(
            published=scores_of(draws_of_regime.published),
            others=scores_of(draws_of_regime.others),
            tests=list(_scores_fitted_on_test_sequences(problem, draws_of_regime)),
        )
        for regime, draws_of_regime in draws.items()
    }


def _scores_fitted_on_test_sequences(
    problem: logistic.Problem, draws: FewShotDraws
) -> Iterator[float]:
    """Yield, for each seed, the MCC of a probe that is fitted on drawn test sequences.

    It is scored on the other test sequences. Nothing is yielded if a class is too small for that.
    """
    features, labels = problem.test, problem.test_labels
    if np.unique(labels, return_counts=True)[1].min() < TEST_TIMES * draws.shots:
        return
    for rows in logistic.few_shot_indices_by_seed(labels, draws.shots, draws.seeds):
        predicted = predicted_labels(features[rows], labels[rows], features)
        yield score_predictions(np.delete(labels, rows), np.delete(predicted, rows)).MCC


def scores_fitted_on_variants(
    problem: logistic.Problem,
    further_embeddings: FurtherEmbeddings,
    draws: Mapping[str, FewShotDraws],
) -> dict[str, list[float]]:
    """Return the MCC of each benchmark seed's few-shot probe, fitted on variants, by regime.

    Each training sequence that the seed draws is replaced by its variant; one without a variant is
    used unchanged. Raise ProbeError.
    """
    indices = further_embeddings.indices_of(SUPPORT_SPLIT)
    index_of = dict(zip(further_embeddings.rows[indices].tolist(), indices.tolist(), strict=True))
    scores_by_regime: dict[str, list[float]] = {}
    for regime, draws_of_regime in draws.items():
        scores_by_regime[regime] = []
        for rows in draws_of_regime.published:
            features, labels = problem.training(rows)
            features = features.copy()
            for index, row in enumerate(rows.tolist()):
                if row in index_of:
                    features[index] = further_embeddings.embeddings[index_of[row]]
            scores_by_regime[regime].append(_test_mcc(problem, features, labels))
    return scores_by_regime


def _test_mcc(problem: logistic.Problem, features: Features, labels: Labels) -> float:
    """Return the MCC on the test sequences of a probe fitted on (n, d) features."""
    predicted = predicted_labels(features, labels, problem.test)
    return score_predictions(problem.test_labels, predicted).MCC

"""Decisions of the probe on further rows: variants of a task's rows, and fresh labelled sequences.

The probe is fitted on the training rows as published, once. For each kind of variant of a test row
the decisions on original and variant are counted against each other. For variants of training rows
the probe is fitted on these rows alone, as published and as variants, and both predict the test
rows as published.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import canonical, probe
from .metrics import confusion_matrix, scores
from .rescored import Changed, Decisions, Tested
from .tasks import Labels

FRESH = "fresh"
"""Split of rows whose label the rows themselves bring."""

Features = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FurtherRows:
    """(n,) rows beside those of a task, with their (n, d) embeddings."""

    splits: Sequence[str]
    kinds: Sequence[str]
    rows: npt.NDArray[np.int64]
    """Row of the split that a row is a variant of; for a fresh row its own number."""
    labels: Labels
    """Labels of the fresh rows; anything for variants."""
    values: Features

    def of(self, split: str, kind: str | None = None) -> npt.NDArray[np.int64]:
        """Return the places of the rows of a split and kind."""
        kinds = self.kinds
        return np.array(
            [
                i
                for i, (one, other) in enumerate(zip(self.splits, kinds, strict=True))
                if one == split and kind in {None, other}
            ],
            dtype=np.int64,
        )


def solver(rows: int, dim: int) -> str:
    """Return which probe decides: `canonical` where its cost is bounded, else `record`."""
    return "canonical" if canonical.affordable(rows, dim) else "record"


def predictions(train: Features, labels: Labels, test: Features) -> Labels:
    """Return the (m,) labels of (m, d) features by a probe fitted on (n, d) features.

    Raises ProbeError when it cannot be fitted.
    """
    if solver(*train.shape) == "canonical":
        return canonical.solve(train, labels).predict(test)
    return probe.fit(train, labels, test).predictions


def changed(before: Flags, after: Flags) -> Changed:
    """Count the changes between two (n,) arrays of right decisions."""
    return Changed(
        rows=len(before),
        worse=int((before & ~after).sum()),
        better=int((~before & after).sum()),
    )


def tested(truth: Labels, predicted: Labels) -> Tested:
    """Score (n,) predictions, n at least 1."""
    classes = np.unique(np.concatenate([truth, predicted]))
    mcc = scores(confusion_matrix(truth, predicted, classes)).MCC
    return Tested(rows=len(truth), right=int((truth == predicted).sum()), MCC=mcc)


def decide(problem: probe.Problem, further: FurtherRows) -> Decisions:
    """Return the decisions on the rows beside a task's; raises ProbeError."""
    tests = len(problem.test_labels)
    both = np.concatenate([problem.test, further.values])
    found = predictions(problem.train, problem.train_labels, both)
    truth, original, beside = problem.test_labels, found[:tests], found[tests:]
    right = original == truth
    kinds = {}
    for kind in dict.fromkeys(further.kinds[i] for i in further.of("test")):
        places = further.of("test", kind)
        rows = further.rows[places]
        kinds[kind] = changed(right[rows], beside[places] == truth[rows])
    fresh = further.of(FRESH)
    return Decisions(
        public=tested(truth, original),
        kinds=kinds,
        training=_training(problem, further),
        fresh=tested(further.labels[fresh], beside[fresh]) if len(fresh) else None,
    )


def _training(problem: probe.Problem, further: FurtherRows) -> Changed | None:
    places = further.of("train")
    rows = further.rows[places]
    labels = problem.train_labels[rows]
    if set(labels.tolist()) != set(problem.train_labels.tolist()):
        return None  # a class without a row: the probe could never predict it
    truth = problem.test_labels
    before = predictions(problem.train[rows], labels, problem.test) == truth
    after = predictions(further.values[places], labels, problem.test) == truth
    return changed(before, after)

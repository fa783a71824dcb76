"""The kinds of probe: fitted on training sequences, each gives labels to test sequences.

Every seed is given; none is taken from the clock or from a generator that other code shares.
"""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness import optimum
from reference_harness.errors import ProbeError
from reference_harness.receipt.rounding import BLOCK_EMBEDDINGS, WidenedEmbeddings
from reference_harness.tasks import Labels

NEIGHBOURS = 5
"""Embeddings that vote; fewer where a regime has fewer embeddings of a class, so that one class
cannot fill the vote of a few-shot sample. An odd number leaves no tie of two classes."""
RIDGE_ALPHA = 1.0
"""scikit-learn's default."""
HIDDEN = 64
"""Units of the one hidden layer: enough to bend a border, few enough for minutes on a CPU."""
BATCH = 200
"""scikit-learn's default."""
CONSTANT = 1e-6
"""Deviation of a column relative to its mean up to which it is constant but for rounding."""
EPOCHS, STEPS_MIN = 30, 300
"""Passes over the training sequences; more where these give fewer steps, as in few-shot regimes."""

Rows = npt.NDArray[np.float32]


class TrainingData(NamedTuple):
    """The data that a probe is fitted on: (n, d) embeddings, (n,) labels."""

    train: WidenedEmbeddings
    labels: Labels


class ColumnStatistics(NamedTuple):
    """Mean and deviation of each column over all training sequences of a task, (d,) each.

    Few-shot probes are prepared with them, too: two embeddings have no deviation worth the name,
    and no label is read for it.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    """1 where a column is constant."""

    def standardised(self, rows: WidenedEmbeddings) -> Rows:
        """Return embeddings of mean 0 and deviation 1 in each column."""
        standard = np.subtract(rows[:], self.mean, dtype=np.float32, casting="same_kind")
        standard /= self.deviation.astype(np.float32)
        return standard


def columns_of(train: WidenedEmbeddings) -> ColumnStatistics:
    """Return mean and deviation of the columns, over blocks of embeddings."""
    total = np.zeros(train.shape[1])
    for start in range(0, len(train), BLOCK_EMBEDDINGS):
        total += train[start : start + BLOCK_EMBEDDINGS].sum(axis=0, dtype=np.float64)
    mean = total / len(train)
    squares = np.zeros(train.shape[1])
    for start in range(0, len(train), BLOCK_EMBEDDINGS):
        squares += ((train[start : start + BLOCK_EMBEDDINGS] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / len(train))
    return ColumnStatistics(mean, np.where(deviation > CONSTANT * np.abs(mean), deviation, 1.0))


def predict(
    kind: str,
    fit: TrainingData,
    test: WidenedEmbeddings,
    columns: ColumnStatistics,
    *,
    seed: int,
    shot: int | None,
) -> Labels:
    """Fit a probe of a kind on training sequences, and return the labels of (m, d) test sequences.

    `shot` is the number of embeddings of each class in a few-shot regime. Raises ProbeError where
    the probe cannot be fitted.
    """
    train, labels = fit
    if kind == "logistic":
        return optimum.solve(train, labels).predict(test)
    try:
        with warnings.catch_warnings():
            # An MLP is stopped after its epochs, which scikit-learn says each time.
            warnings.simplefilter("ignore")
            if kind == "knn":
                return _knn(train[:], labels, test[:], shot)
            rows = columns.standardised(train), columns.standardised(test)
            return _ridge(*rows, labels) if kind == "ridge" else _mlp(*rows, labels, seed)
    except (ValueError, FloatingPointError, MemoryError) as error:
        msg = f"{kind}: the probe cannot be fitted: {type(error).__name__}: {error}"
        raise ProbeError(msg) from error


def is_seeded(kind: str) -> bool:
    """Whether two fits of a kind on the same embeddings differ when their seeds do."""
    return kind == "mlp"


def epochs(rows: int) -> int:
    """Return the passes of an MLP over so many training sequences."""
    return max(EPOCHS, math.ceil(STEPS_MIN / math.ceil(rows / BATCH)))


def _ridge(train: Rows, test: Rows, labels: Labels) -> Labels:
    from sklearn.linear_model import RidgeClassifier  # see `probe`

    return _labels(RidgeClassifier(alpha=RIDGE_ALPHA).fit(train, labels).predict(test))


def _knn(train: Rows, labels: Labels, test: Rows, shot: int | None) -> Labels:
    from sklearn.neighbors import KNeighborsClassifier  # see `probe`
    from sklearn.preprocessing import normalize

    near = min(NEIGHBOURS, shot or NEIGHBOURS, len(train))
    # Of embeddings of length 1 the nearest by Euclidean distance are the nearest by angle.
    train, test = normalize(train, copy=False), normalize(test, copy=False)
    classifier = KNeighborsClassifier(near, algorithm="brute").fit(train, labels)
    return _labels(classifier.predict(test))


def _mlp(train: Rows, test: Rows, labels: Labels, seed: int) -> Labels:
    from sklearn.neural_network import MLPClassifier  # see `probe`

    classifier = MLPClassifier(
        (HIDDEN,), batch_size=min(BATCH, len(train)), max_iter=epochs(len(train)), random_state=seed
    )
    return _labels(classifier.fit(train, labels).predict(test))


def _labels(predicted: Any) -> Labels:  # scikit-learn has no types
    return np.asarray(predicted).astype(np.int64)

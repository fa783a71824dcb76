"""The kinds of probe: each is fitted on training sequences and predicts labels of test sequences.

Random numbers depend only on the given seed.
"""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.errors import ProbeError
from reference_harness.probe import optimum
from reference_harness.receipt.rounding import BLOCK_EMBEDDINGS, WidenedEmbeddings

NEIGHBOURS = 5
"""Number of neighbours that vote; fewer in a regime with fewer embeddings per class. An odd number
leaves no tie of two classes."""
RIDGE_ALPHA = 1.0
"""Penalty of the ridge classifier, scikit-learn's default."""
HIDDEN_UNITS = 64
"""Units of the hidden layer: few enough to take minutes on a CPU."""
MLP_BATCH_SEQUENCES = 200
"""Sequences per batch of the MLP, scikit-learn's default."""
CONSTANT_DEVIATION_MAX = 1e-6
"""Relative standard deviation up to which a column counts as constant, apart from rounding."""
EPOCHS_MIN, STEPS_MIN = 30, 300
"""Minimum numbers of passes of the MLP over the training sequences, and of its gradient steps."""

EmbeddingMatrix = npt.NDArray[np.float32]


class TrainingData(NamedTuple):
    """Training data of a probe: (n, d) embeddings, (n,) labels."""

    embeddings: WidenedEmbeddings
    labels: Labels


class ColumnStatistics(NamedTuple):
    """Mean and standard deviation of each column over all training sequences of a task, (d,) each.

    They are also used for few-shot probes, as few embeddings have no meaningful deviation; no label
    is used.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    """Standard deviation; 1 for a constant column."""

    def standardised(self, rows: WidenedEmbeddings) -> EmbeddingMatrix:
        """Return embeddings with mean 0 and standard deviation 1 in each column."""
        standard = np.subtract(rows[:], self.mean, dtype=np.float32, casting="same_kind")
        standard /= self.deviation.astype(np.float32)
        return standard


def column_statistics(train: WidenedEmbeddings) -> ColumnStatistics:
    """Return mean and standard deviation of the columns, computed over blocks of embeddings."""
    column_sums = np.zeros(train.shape[1])
    for start in range(0, len(train), BLOCK_EMBEDDINGS):
        column_sums += train[start : start + BLOCK_EMBEDDINGS].sum(axis=0, dtype=np.float64)
    mean = column_sums / len(train)
    squares = np.zeros(train.shape[1])
    for start in range(0, len(train), BLOCK_EMBEDDINGS):
        squares += ((train[start : start + BLOCK_EMBEDDINGS] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / len(train))
    return ColumnStatistics(
        mean, np.where(deviation > CONSTANT_DEVIATION_MAX * np.abs(mean), deviation, 1.0)
    )


def fit_and_predict(
    kind: str,
    fit: TrainingData,
    test: WidenedEmbeddings,
    columns: ColumnStatistics,
    *,
    seed: int,
    shots: int | None,
) -> Labels:
    """Fit a probe of a kind on training sequences; return the labels of (m, d) test sequences.

    `shots` is the number of embeddings per class in a few-shot regime, else None. Raise ProbeError
    if the probe cannot be fitted.
    """
    train, labels = fit
    if kind == "logistic":
        return optimum.solve(train, labels).predict(test)
    try:
        with warnings.catch_warnings():
            # scikit-learn warns each time an MLP stops after its epochs.
            warnings.simplefilter("ignore")
            if kind == "knn":
                return _knn(train[:], labels, test[:], shots)
            matrices = columns.standardised(train), columns.standardised(test)
            return _ridge(*matrices, labels) if kind == "ridge" else _mlp(*matrices, labels, seed)
    except (ValueError, FloatingPointError, MemoryError) as error:
        msg = f"{kind}: the probe cannot be fitted: {type(error).__name__}: {error}"
        raise ProbeError(msg) from error


def is_seeded(kind: str) -> bool:
    """Whether the result of a fit of a kind depends on its seed."""
    return kind == "mlp"


def mlp_epochs(rows: int) -> int:
    """Return the number of passes of an MLP over `rows` training sequences."""
    return max(EPOCHS_MIN, math.ceil(STEPS_MIN / math.ceil(rows / MLP_BATCH_SEQUENCES)))


def _ridge(train: EmbeddingMatrix, test: EmbeddingMatrix, labels: Labels) -> Labels:
    """Return the labels of the test embeddings by a ridge classifier."""
    from sklearn.linear_model import RidgeClassifier  # see `logistic`

    return _labels(RidgeClassifier(alpha=RIDGE_ALPHA).fit(train, labels).predict(test))


def _knn(
    train: EmbeddingMatrix, labels: Labels, test: EmbeddingMatrix, shots: int | None
) -> Labels:
    """Return the labels of the test embeddings by their nearest neighbours."""
    from sklearn.neighbors import KNeighborsClassifier  # see `logistic`
    from sklearn.preprocessing import normalize

    neighbours = min(NEIGHBOURS, shots or NEIGHBOURS, len(train))
    # For embeddings of length 1, the order by Euclidean distance is that by angle.
    train, test = normalize(train, copy=False), normalize(test, copy=False)
    classifier = KNeighborsClassifier(neighbours, algorithm="brute").fit(train, labels)
    return _labels(classifier.predict(test))


def _mlp(train: EmbeddingMatrix, test: EmbeddingMatrix, labels: Labels, seed: int) -> Labels:
    """Return the labels of the test embeddings by a network with one hidden layer."""
    from sklearn.neural_network import MLPClassifier  # see `logistic`

    classifier = MLPClassifier(
        (HIDDEN_UNITS,),
        batch_size=min(MLP_BATCH_SEQUENCES, len(train)),
        max_iter=mlp_epochs(len(train)),
        random_state=seed,
    )
    return _labels(classifier.fit(train, labels).predict(test))


def _labels(predicted: Any) -> Labels:  # scikit-learn has no types
    """Return predicted labels as int64."""
    return np.asarray(predicted).astype(np.int64)

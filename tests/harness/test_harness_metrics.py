"""The metrics are scikit-learn's, computed from the confusion matrix alone."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef

from reference_harness.probe import metrics

TOLERANCE = 1e-13  # an order of magnitude below what the oracle allows

pairs = st.integers(2, 6).flatmap(
    lambda classes: st.lists(
        st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=80
    )
)


@given(pairs)
def test_equals_scikit_learn(rows: list[tuple[int, int]]) -> None:
    truth, predicted = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    classes = np.arange(7)
    matrix = metrics.confusion_matrix(truth, predicted, classes)
    assert (matrix == confusion_matrix(truth, predicted, labels=classes)).all()
    score_values = metrics.scores_of(matrix)
    f1 = f1_score(truth, predicted, average="macro")
    assert abs(score_values.F1 - f1) <= TOLERANCE
    assert score_values.Acc == accuracy_score(truth, predicted)
    if len(set(truth) | set(predicted)) > 1:  # of one label scikit-learn warns, and gives 0
        assert abs(score_values.MCC - matthews_corrcoef(truth, predicted)) <= TOLERANCE


def test_labels_need_not_be_small_or_positive() -> None:
    classes = np.array([-3, 5, 1000])
    matrix = metrics.confusion_matrix(np.array([5, 1000, -3]), np.array([5, -3, -3]), classes)
    assert matrix.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_one_class_predicted_gives_mcc_zero() -> None:
    assert metrics.scores_of(np.array([[10, 0], [5, 0]])).MCC == 0.0


def test_perfect_is_one() -> None:
    score_values = metrics.scores_of(np.diag([123_457, 99_991, 7]))
    assert tuple(score_values) == (1.0, 1.0, 1.0)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(ValueError, match="no prediction"):
        metrics.scores_of(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(ValueError, match="no seed"):
        metrics.mean_scores([])


def test_mean_is_not_rounded() -> None:
    triples = [metrics.Scores(v, v, v) for v in (0.1, 0.2, 0.4)]
    assert float(np.mean([0.1, 0.2, 0.4])) == metrics.mean_scores(triples).MCC


def test_digest_is_over_little_endian_labels_seed_by_seed() -> None:
    seeds = [np.array([0, 1], dtype=np.int64), np.array([1, -1], dtype=np.int64)]
    data = b"".join(v.to_bytes(8, "little", signed=True) for v in (0, 1, 1, -1))
    assert metrics.predictions_sha256(seeds) == hashlib.sha256(data).hexdigest()
    assert metrics.predictions_sha256(seeds[::-1]) != metrics.predictions_sha256(seeds)

"""Where rounding of the loss may stop a fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reference_harness import mini
from reference_harness.errors import ProbeError
from reference_harness.loading.loader import load
from reference_harness.probe import logistic, stopping_points

SEEDS = [13, 17, 42, 123, 997]


def word_counts(task_id: str) -> logistic.Problem:
    task, embed = mini.load(task_id), load("kmer").extractor.extract_embeddings
    return logistic.Problem(
        embed(task.train.sequences),
        task.train.labels,
        embed(task.test.sequences),
        task.test.labels,
    )


def fits_and_predictions(
    problem: logistic.Problem, regime: str
) -> tuple[list[logistic.Fit], list[list[np.ndarray]]]:
    rows = logistic.fit_indices(problem.train_labels, regime, SEEDS, {"10shot": 10, "1shot": 1})
    fits = logistic.fit_all(problem, rows)
    return fits, stopping_points.predictions_at_stops(problem, rows, fits)


def test_the_first_is_the_stock_fit_in_float64() -> None:
    problem = word_counts("mini_splice")
    _, stops = fits_and_predictions(problem, "full")
    stock = LogisticRegression(max_iter=1000).fit(
        problem.train.astype(np.float64), problem.train_labels
    )
    assert (stops[0][0] == stock.predict(problem.test.astype(np.float64))).all()


def test_a_fit_stuck_by_rounding_has_an_outcome_far_off() -> None:
    """In float32 the loss of seed 42 cannot fall further, though the gradient is above the limit.

    One jittered copy in fifty went on, and changed 15 of 160 predictions.
    """
    fits, stops = fits_and_predictions(word_counts("mini_methylation"), "10shot")
    flips = [
        max(int((p != f.predictions).sum()) for p in s) for f, s in zip(fits, stops, strict=True)
    ]
    assert flips[SEEDS.index(42)] >= 9


def test_features_of_usual_size_leave_nothing_to_rounding() -> None:
    rng = np.random.RandomState(1)
    x = rng.standard_normal((600, 64)).astype(np.float32)
    y = (x[:, :4].sum(axis=1) + rng.standard_normal(600) > 0).astype(np.int64)
    problem = logistic.Problem(x[:300], y[:300], x[300:], y[300:])
    fits, stops = fits_and_predictions(problem, "10shot")
    for fit, outcomes in zip(fits, stops, strict=True):
        assert outcomes
        assert all((outcome != fit.predictions).sum() <= 1 for outcome in outcomes)


def test_long_fits_are_left_to_their_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping_points, "STEPS_MAX", 2)
    fits, stops = fits_and_predictions(word_counts("mini_splice"), "full")
    assert fits[0].iterations > 2
    assert stops == [[]]


def test_what_cannot_be_fitted_is_said() -> None:
    problem = word_counts("mini_splice")
    fits, _ = fits_and_predictions(problem, "full")
    one_class = np.flatnonzero(problem.train_labels == problem.train_labels[0])
    with pytest.raises(ProbeError, match=r"the probe cannot be fitted: ValueError: .* 2 classes"):
        stopping_points.predictions_at_stops(problem, [one_class], fits)

"""Find possible stopping points of a short fit, where rounding of its loss decides the stop.

lbfgs computes its loss in the dtype of the features. Whether it takes a step that changes the loss
by less than the rounding error is a matter of chance. On k-mer counts this changed a tenth of a
fit's predictions at once for one jittered copy in fifty, which a few dozen copies may miss. So the
fit is repeated in float64, and the steps before and after its stopping point are examined as long
as they change the loss by less than the resolution of float32.
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.errors import ProbeError

from .logistic import CPU, ITERATIONS_MAX, Fit, Problem

UNNOTICED_UNITS = 2.0
"""Change of the loss by a step, in units of roundoff, that may go unnoticed: one unit each for the
losses before and after it."""
STEPS_MAX = 64
"""Maximum number of steps of a fit whose stopping points are examined. Longer fits stop at a
different point for each copy, so the spread over the copies contains the effect."""
GRADIENT_TOL = 1e-8
"""Tolerance of the gradient, too small to end a fit before the requested number of steps."""
SMALLEST_CHANCE = float(np.finfo(np.float64).eps)
"""Lower bound to which the probability of a label is clipped, as in scikit-learn's log-loss."""
STEPS_BEYOND_MAX = 32
"""Maximum number of steps after the stop that are examined; fits of word counts take up to five to
the optimum."""

Matrix = npt.NDArray[np.float64]


def predictions_at_stops(
    problem: Problem, rows_by_fit: list[npt.NDArray[np.int64] | None], fits: list[Fit]
) -> list[list[Labels]]:
    """Return for each fit the (m,) predictions at every possible stopping point.

    The first is the stop of the float64 fit. The list is empty for a fit of more than `STEPS_MAX`
    steps. Raise ProbeError if a fit fails.
    """
    return [
        _FitSteps(problem, rows).labels_at_stops() if fit.iterations <= STEPS_MAX else []
        for rows, fit in zip(rows_by_fit, fits, strict=True)
    ]


class _FitSteps:
    """The steps of one fit in float64."""

    def __init__(self, problem: Problem, rows: npt.NDArray[np.int64] | None) -> None:
        used_rows = slice(None) if rows is None else rows
        self.x: Matrix = problem.train[used_rows].astype(np.float64)
        self.y = problem.train_labels[used_rows]
        self.test: Matrix = problem.test.astype(np.float64)
        # scikit-learn fits float16 in float64.
        is_float32 = problem.train.dtype == np.float32
        self.roundoff = float(np.finfo(np.float32 if is_float32 else np.float64).eps) / 2

    def labels_at_stops(self) -> list[Labels]:
        """Return the labels of the test sequences at the float64 stop, then at each other stop."""
        stop = self._fit(max_iter=ITERATIONS_MAX)
        stop_step, loss = int(np.max(stop.n_iter_)), self._loss(stop)
        unnoticed_change = UNNOTICED_UNITS * self.roundoff * loss
        labels = [self._labels(stop)]
        for steps in range(min(stop_step, STEPS_MAX) - 1, 0, -1):
            earlier_fit = self._fit(max_iter=steps, tol=GRADIENT_TOL)
            if self._loss(earlier_fit) - loss > unnoticed_change:
                break
            labels.append(self._labels(earlier_fit))
        for steps in range(stop_step + 1, stop_step + 1 + STEPS_BEYOND_MAX):
            later_fit = self._fit(max_iter=steps, tol=GRADIENT_TOL)
            if loss - self._loss(later_fit) > unnoticed_change:
                break
            labels.append(self._labels(later_fit))
            if int(np.max(later_fit.n_iter_)) < steps:
                break
        return labels

    def _fit(self, **settings: float) -> Any:  # scikit-learn has no types
        """Return scikit-learn's probe, fitted with these settings. Raise ProbeError."""
        from sklearn.exceptions import ConvergenceWarning  # see `logistic`
        from sklearn.linear_model import LogisticRegression

        with warnings.catch_warnings(), CPU.context():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                return LogisticRegression(**settings).fit(self.x, self.y)
            except (ValueError, FloatingPointError, MemoryError) as error:
                msg = f"the probe cannot be fitted: {type(error).__name__}: {error}"
                raise ProbeError(msg) from error

    def _loss(self, fitted: Any) -> float:
        """Return the objective of lbfgs at C = 1: mean log-loss plus squared weights / 2n."""
        probabilities = fitted.predict_proba(self.x)
        label_probabilities = probabilities[
            np.arange(len(self.y)), np.searchsorted(fitted.classes_, self.y)
        ]
        mean = -float(np.log(label_probabilities.clip(SMALLEST_CHANCE, 1 - SMALLEST_CHANCE)).mean())
        return mean + 0.5 * float(np.sum(fitted.coef_**2)) / len(self.y)

    def _labels(self, fitted: Any) -> Labels:
        """Return the predicted labels of the test sequences."""
        return np.asarray(fitted.predict(self.test)).astype(np.int64)

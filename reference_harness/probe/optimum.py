"""Solve the probe of record to its optimum, by which an audit of a receipt judges deviations.

Default lbfgs stops early, at a point that depends on the last bit of each feature. The problem is
strictly convex, so its optimum is unique; influence and direction of deviations of a receipt's
embeddings are derivatives at it. `newton` finds it in float64 by sums over blocks of embeddings,
without a copy of the features. If Newton's method fails, lbfgs is used with a tolerance a thousand
times smaller than the default. No score of the board is computed here.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.embedding.matrix import AnyMatrix
from reference_harness.errors import ProbeError

from . import newton

LBFGS_TOL = 1e-8
"""Tolerance of the gradient of the mean loss: the largest with which no prediction differed between
four BLAS kernels and two float32 batchings on measured data; all agree with Newton's method."""
LBFGS_MAX_ITER = 50_000
"""Maximum number of iterations; measured data sets needed up to 2,344."""
TIE_DIFFERENCE_MAX = 1e-6
"""If the decision values of the best classes differ by less, relative to the largest value of the
test split, the lower label is predicted. Few-shot probes on k-mer counts have exact ties, which
rounding would decide. 1e-6 exceeds the effect of float32 features; about one embedding in a
million of continuous features is within it."""
FLOAT64_BYTES_MAX = 1 << 28
"""Maximum number of bytes of features in float64 that are copied for scikit-learn: 40,000 x 768 are
copied, 100,000 x 768 are not."""
PREDICTED_EMBEDDINGS = 4096
"""Number of test embeddings that are converted to float64 at once."""

SPAN_FACTOR = 16
"""Columns per embedding from which the problem is solved in the span of the embeddings: its basis
costs n^2 d operations, which is little for few-shot fits only."""

Matrix = npt.NDArray[np.float64]


class SolvedProbe(NamedTuple):
    """The optimum: decision values are `x @ weights + intercepts`, one column per class."""

    weights: Matrix
    intercepts: Matrix
    classes: Labels
    solver: str
    iterations: int

    def predict(self, test: AnyMatrix) -> Labels:
        """Return the (m,) labels of (m, d) features; of tied classes the lower label."""
        logits = np.empty((len(test), self.weights.shape[1]))
        for start in range(0, len(test), PREDICTED_EMBEDDINGS):
            block = np.asarray(test[start : start + PREDICTED_EMBEDDINGS], dtype=np.float64)
            np.matmul(block, self.weights, out=logits[start : start + PREDICTED_EMBEDDINGS])
        logits += self.intercepts
        largest_values = logits.max(axis=1, keepdims=True)
        scale = float(np.abs(logits - logits.mean(axis=1, keepdims=True)).max())
        labels: Labels = self.classes[
            np.argmax(logits >= largest_values - TIE_DIFFERENCE_MAX * scale, axis=1)
        ]
        return labels


def solve(train: AnyMatrix, labels: Labels, solver: str | None = None) -> SolvedProbe:
    """Return the optimum of the probe on (n, d) features and (n,) labels.

    The weights are in the span of the embeddings, so for few embeddings the problem is solved there
    exactly, with n unknowns per class instead of d. `solver` forces "newton-cg" or "lbfgs". Raise
    ProbeError if the optimum is not reached.
    """
    classes, class_indices = np.unique(labels, return_inverse=True)
    targets = class_indices.astype(np.int64)
    is_few = SPAN_FACTOR * train.shape[0] <= train.shape[1]
    basis, features = _in_span(train) if is_few else (None, train)
    fitted = _solver_result(features, targets, len(classes), solver)
    weights = fitted.weights if basis is None else basis @ fitted.weights
    intercepts = fitted.intercepts
    if len(classes) == 2:  # noqa: PLR2004 - one column stands for two
        weights = np.hstack([np.zeros_like(weights), weights])
        intercepts = np.concatenate([[0.0], intercepts])
    return SolvedProbe(weights, intercepts, classes, fitted.solver, fitted.steps)


class _SolverResult(NamedTuple):
    """An optimum: weights (d, c) and intercepts (c,), c as in `newton.Optimum`."""

    weights: Matrix
    intercepts: Matrix
    solver: str
    steps: int


def _in_span(x: AnyMatrix) -> tuple[Matrix, Matrix]:
    """Return an orthonormal basis (d, n) of n < d embeddings, and their coordinates (n, n)."""
    basis, triangle = np.linalg.qr(np.asarray(x, dtype=np.float64).T)
    return basis, np.ascontiguousarray(triangle.T)


def _solver_result(
    x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, solver: str | None
) -> _SolverResult:
    """Return the optimum by Newton's method, or by lbfgs if that fails for small features."""
    if solver != "lbfgs":
        try:
            optimum = newton.minimise(x, targets, classes)
            return _SolverResult(optimum.weights, optimum.intercepts, "newton-cg", optimum.steps)
        except newton.NotSolvedError as error:
            is_small = x.size * np.dtype(np.float64).itemsize <= FLOAT64_BYTES_MAX
            if solver or not is_small:
                msg = f"the optimum of the probe was not reached: {error}"
                raise ProbeError(msg) from error
    fitted = _lbfgs(np.asarray(x, dtype=np.float64), targets)
    return _SolverResult(fitted.coef_.T, fitted.intercept_, "lbfgs", int(np.max(fitted.n_iter_)))


def _lbfgs(x: Matrix, labels: Labels) -> Any:  # scikit-learn has no types
    """Return scikit-learn's probe, solved by lbfgs. Raise ProbeError if it does not converge."""
    import sklearn  # see `logistic`
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(tol=LBFGS_TOL, max_iter=LBFGS_MAX_ITER)
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True):
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return probe.fit(x, labels)
        except ConvergenceWarning as error:
            msg = "the optimum of the probe was not reached: lbfgs did not reach the tolerance "
            msg += f"{LBFGS_TOL} in {LBFGS_MAX_ITER} steps"
            raise ProbeError(msg) from error

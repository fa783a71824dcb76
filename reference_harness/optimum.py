"""The probe of record solved to its optimum: what an audit by receipt judges deviations with.

Default lbfgs stops early, at a point that depends on the last bit of each feature. The problem is
strictly convex, so its optimum is unique; influence and direction of deviations of a receipt's
embeddings are derivatives there. It is found in float64 by `newton`, which sums over blocks of
embeddings and so takes no copy of the features. Where Newton does not get there, lbfgs with a
tolerance a thousand times tighter than the default does. No score that a board shows is computed
here.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import newton
from .errors import ProbeError
from .matrix import AnyMatrix
from .tasks import Labels

LBFGS_TOL = 1e-8
"""Tolerance of the gradient of the mean loss: the largest at which no prediction changed over four
BLAS kernels and two float32 batchings on the data sets measured; all agree with Newton's method."""
LBFGS_MAX_ITER = 50_000
"""Limit of iterations; the data sets measured needed up to 2,344."""
TIE = 1e-6
"""Relative to the largest decision value of the test split: an embedding whose two best classes
differ by less gets the lower label. Few-shot probes on k-mer counts have exact ties, which rounding
would decide. 1e-6 exceeds the effect of float32 features; about one embedding in a million of
continuous features is within it."""
FLOAT64_BYTES_MAX = 1 << 28
"""Size of the features in float64, in bytes, up to which they are copied for scikit-learn: 40,000 x
768 are, 100,000 x 768 are not."""
PREDICTED_EMBEDDINGS = 4096
"""Test sequences that are converted to float64 at once."""

SPAN_FACTOR = 16
"""Columns for each embedding from which the span of the embeddings is solved in: its basis costs
n^2 d operations, which few-shot fits do not notice and larger ones do."""

Matrix = npt.NDArray[np.float64]


class SolvedProbe(NamedTuple):
    """The optimum: decision values `x @ weights + intercepts`, one column per class."""

    weights: Matrix
    intercepts: Matrix
    classes: Labels
    solver: str
    iterations: int

    def predict(self, test: AnyMatrix) -> Labels:
        """Return the (m,) labels of (m, d) features, ties going to the lower label."""
        values = np.empty((len(test), self.weights.shape[1]))
        for start in range(0, len(test), PREDICTED_EMBEDDINGS):
            block = np.asarray(test[start : start + PREDICTED_EMBEDDINGS], dtype=np.float64)
            np.matmul(block, self.weights, out=values[start : start + PREDICTED_EMBEDDINGS])
        values += self.intercepts
        best = values.max(axis=1, keepdims=True)
        scale = float(np.abs(values - values.mean(axis=1, keepdims=True)).max())
        labels: Labels = self.classes[np.argmax(values >= best - TIE * scale, axis=1)]
        return labels


def solve(train: AnyMatrix, labels: Labels, solver: str | None = None) -> SolvedProbe:
    """Solve the probe on (n, d) features and (n,) labels.

    The weights are in the span of the embeddings, so those of few embeddings are solved for there
    exactly, with n unknowns per class instead of d. `solver` forces "newton-cg" or
    "lbfgs".

    Raises ProbeError if none reaches the optimum.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    targets = numbers.astype(np.int64)
    is_few = SPAN_FACTOR * train.shape[0] <= train.shape[1]
    basis, rows = _in_span(train) if is_few else (None, train)
    fitted = _fitted(rows, targets, len(classes), solver)
    weights = fitted.weights if basis is None else basis @ fitted.weights
    intercepts = fitted.intercepts
    if len(classes) == 2:  # noqa: PLR2004 - one column stands for two
        weights = np.hstack([np.zeros_like(weights), weights])
        intercepts = np.concatenate([[0.0], intercepts])
    return SolvedProbe(weights, intercepts, classes, fitted.solver, fitted.steps)


class _Fitted(NamedTuple):
    """An optimum: weights (d, c) and intercepts (c,), c as in `newton.Optimum`."""

    weights: Matrix
    intercepts: Matrix
    solver: str
    steps: int


def _in_span(x: AnyMatrix) -> tuple[Matrix, Matrix]:
    """Return an orthonormal basis (d, n) of n < d embeddings, and the embeddings (n, n) in it."""
    basis, triangle = np.linalg.qr(np.asarray(x, dtype=np.float64).T)
    return basis, np.ascontiguousarray(triangle.T)


def _fitted(
    x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, solver: str | None
) -> _Fitted:
    """Solve by the first method that takes the problem and reaches the optimum."""
    if solver != "lbfgs":
        try:
            optimum = newton.minimise(x, targets, classes)
            return _Fitted(optimum.weights, optimum.intercepts, "newton-cg", optimum.steps)
        except newton.NotSolvedError as error:
            small = x.size * np.dtype(np.float64).itemsize <= FLOAT64_BYTES_MAX
            if solver or not small:
                msg = f"the optimum of the probe: {error}"
                raise ProbeError(msg) from error
    fitted = _lbfgs(np.asarray(x, dtype=np.float64), targets)
    return _Fitted(fitted.coef_.T, fitted.intercept_, "lbfgs", int(np.max(fitted.n_iter_)))


def _lbfgs(x: Matrix, labels: Labels) -> Any:  # scikit-learn has no types
    import sklearn  # see `probe`
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(tol=LBFGS_TOL, max_iter=LBFGS_MAX_ITER)
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True):
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return probe.fit(x, labels)
        except ConvergenceWarning as error:
            msg = "the optimum of the probe: lbfgs did not reach "
            msg += f"{LBFGS_TOL} in {LBFGS_MAX_ITER} steps"
            raise ProbeError(msg) from error

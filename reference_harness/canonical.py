"""The canonical score: the same probe solved to its optimum, so that it depends only on the data.

Default lbfgs stops early, at a point that depends on the BLAS kernel, its threads and the last bit
of each feature. The problem is strictly convex, so its optimum is unique. It is found in float64 by
Newton's method if that is cheap, else by lbfgs with a tolerance a thousand times tighter than the
default; both agree. The canonical score differs from the score of record.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import ProbeError
from .tasks import Labels

LBFGS_TOL = 1e-8
"""Tolerance of the gradient of the mean loss: the largest at which no prediction changed over four
BLAS kernels and two float32 batchings on the data sets measured; all agree with Newton's method."""
LBFGS_MAX_ITER = 50_000
"""Limit of iterations; the data sets measured needed up to 2,344."""
NEWTON_TOL = 1e-10
"""Newton's last step squares the error, from 1e-5 to below the resolution of float64."""
NEWTON_WIDTH = 2048
"""Unknowns up to which Newton is used: its cost is rows x unknowns^2, and a Hessian of 2,048
unknowns takes 32 MiB."""
TIE = 1e-6
"""Relative to the largest decision value of the test split: a row whose two best classes differ by
less gets the lower label. Few-shot probes on k-mer counts have exact ties, which rounding would
decide. 1e-6 exceeds the effect of float32 features; about one row in a million of continuous
features is within it."""
FLOAT64_BYTES_MAX = 1 << 30
"""Size of the features in float64, in bytes, above which no canonical score is computed, to limit
memory: 100,000 x 768 passes, 100,000 x 4,096 does not."""

Matrix = npt.NDArray[np.float64]


class Solved(NamedTuple):
    """The optimum: decision values `x @ weights + intercepts`, one column per class."""

    weights: Matrix
    intercepts: Matrix
    classes: Labels
    solver: str
    iterations: int

    def predict(self, test: npt.NDArray[Any]) -> Labels:
        """Return the (m,) labels of (m, d) features, ties going to the lower label."""
        values = np.asarray(test, dtype=np.float64) @ self.weights + self.intercepts
        best = values.max(axis=1, keepdims=True)
        scale = float(np.abs(values - values.mean(axis=1, keepdims=True)).max())
        labels: Labels = self.classes[np.argmax(values >= best - TIE * scale, axis=1)]
        return labels


def affordable(rows: int, dim: int) -> bool:
    """Whether a canonical score of (rows, dim) features is computed."""
    return rows * dim * np.dtype(np.float64).itemsize <= FLOAT64_BYTES_MAX


def solve(train: npt.NDArray[Any], labels: Labels, solver: str | None = None) -> Solved:
    """Solve the probe on (n, d) features and (n,) labels.

    With fewer rows than columns the weights are in the span of the rows, so the problem is solved
    there exactly, with n unknowns per class instead of d. `solver` forces "newton-cholesky" or
    "lbfgs".

    Raises ProbeError if neither solver reaches the optimum.
    """
    x = np.asarray(train, dtype=np.float64)
    basis: Matrix | None = None
    if x.shape[0] < x.shape[1]:
        basis, triangle = np.linalg.qr(x.T)
        x = np.ascontiguousarray(triangle.T)
    count = len(np.unique(labels))
    unknowns = (x.shape[1] + 1) * (count if count > 2 else 1)  # noqa: PLR2004 - two classes, one set
    fitted = None
    if solver == "newton-cholesky" or (solver is None and unknowns <= NEWTON_WIDTH):
        fitted = _newton(x, labels)
    if fitted is None and solver != "newton-cholesky":
        fitted = _lbfgs(x, labels)
    if fitted is None:
        msg = "canonical score: the Hessian of newton-cholesky is singular"
        raise ProbeError(msg)
    weights = fitted.coef_.T if basis is None else basis @ fitted.coef_.T
    intercepts = fitted.intercept_
    if count == 2:  # noqa: PLR2004 - one column stands for two
        weights = np.hstack([np.zeros_like(weights), weights])
        intercepts = np.concatenate([[0.0], intercepts])
    return Solved(weights, intercepts, fitted.classes_, fitted.solver, int(np.max(fitted.n_iter_)))


def _newton(x: Matrix, labels: Labels) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Fit by Newton; None if scikit-learn falls back to lbfgs, which it only warns about."""
    import sklearn  # noqa: PLC0415 - see `probe`
    from scipy.linalg import LinAlgWarning  # noqa: PLC0415
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    probe = LogisticRegression(solver="newton-cholesky", tol=NEWTON_TOL)
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True):
        warnings.simplefilter("error", LinAlgWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return probe.fit(x, labels)
        except (LinAlgWarning, ConvergenceWarning):
            return None


def _lbfgs(x: Matrix, labels: Labels) -> Any:  # noqa: ANN401 - scikit-learn has no types
    import sklearn  # noqa: PLC0415 - see `probe`
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    probe = LogisticRegression(tol=LBFGS_TOL, max_iter=LBFGS_MAX_ITER)
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True):
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return probe.fit(x, labels)
        except ConvergenceWarning as error:
            msg = f"canonical score: lbfgs did not reach {LBFGS_TOL} in {LBFGS_MAX_ITER} steps"
            raise ProbeError(msg) from error

"""The canonical score: the same probe solved to its optimum, so that it depends only on the data.

Default lbfgs stops early, at a point that depends on the BLAS kernel, its threads and the last bit
of each feature. The problem is strictly convex, so its optimum is unique. It is found in float64 by
`newton`, which sums over blocks of rows and so takes no copy of the features. Several classes whose
decisions depend on each other may take it many steps: where the whole Hessian is small,
scikit-learn's Newton method takes over when it would have been faster; both agree. Where Newton
does not get there, lbfgs with a tolerance a thousand times tighter than the default does. On a
device `newton` alone is tried, and the CPU takes what it leaves. The canonical score differs from
the score of record.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import newton
from .arithmetic import HOST, HostArithmetic
from .errors import ProbeError
from .matrix import AnyMatrix
from .memory import is_out_of_memory
from .tasks import Labels

ON_DEVICE = "newton-cg, torch"
"""What a record calls the solver where it ran on the device of the probe."""
LBFGS_TOL = 1e-8
"""Tolerance of the gradient of the mean loss: the largest at which no prediction changed over four
BLAS kernels and two float32 batchings on the data sets measured; all agree with Newton's method."""
LBFGS_MAX_ITER = 50_000
"""Limit of iterations; the data sets measured needed up to 2,344."""
NEWTON_TOL = 1e-10
"""Newton's last step squares the error, from 1e-5 to below the resolution of float64."""
NEWTON_WIDTH = 2048
"""Unknowns up to which scikit-learn's Newton is used: its cost is rows x unknowns^2, and a Hessian
of 2,048 unknowns takes 32 MiB."""
NEWTON_STEPS = 8
"""Steps that scikit-learn's Newton takes: 6 to 18 on the data sets measured, most of them 8."""
PRODUCT_COST = 12
"""A multiplication in a product with the Hessian against one in forming it, in time: the former
reads a number for each, the latter uses it many times. Measured on 4,000 x 128 of three classes."""
INNER_STEPS_LEAST = 64
"""Products that take about as long as scikit-learn needs to begin, whatever the size."""
TIE = 1e-6
"""Relative to the largest decision value of the test split: a row whose two best classes differ by
less gets the lower label. Few-shot probes on k-mer counts have exact ties, which rounding would
decide. 1e-6 exceeds the effect of float32 features; about one row in a million of continuous
features is within it."""
FLOAT64_BYTES_MAX = 1 << 28
"""Size of the features in float64, in bytes, up to which they are copied for scikit-learn: 40,000 x
768 are, 100,000 x 768 are not."""
AFFORDABLE_BYTES = 1 << 30
"""Size of the features in float64, in bytes, up to which a canonical score is computed unless every
cell needs one: 100,000 x 768 is, 100,000 x 4,096, which takes minutes for each fit, is not."""
PREDICTED_ROWS = 4096
"""Test rows that are converted to float64 at once."""

Matrix = npt.NDArray[np.float64]


class Solved(NamedTuple):
    """The optimum: decision values `x @ weights + intercepts`, one column per class."""

    weights: Matrix
    intercepts: Matrix
    classes: Labels
    solver: str
    iterations: int

    def predict(self, test: AnyMatrix) -> Labels:
        """Return the (m,) labels of (m, d) features, ties going to the lower label."""
        values = np.empty((len(test), self.weights.shape[1]))
        for start in range(0, len(test), PREDICTED_ROWS):
            block = np.asarray(test[start : start + PREDICTED_ROWS], dtype=np.float64)
            np.matmul(block, self.weights, out=values[start : start + PREDICTED_ROWS])
        values += self.intercepts
        best = values.max(axis=1, keepdims=True)
        scale = float(np.abs(values - values.mean(axis=1, keepdims=True)).max())
        labels: Labels = self.classes[np.argmax(values >= best - TIE * scale, axis=1)]
        return labels


def affordable(rows: int, dim: int) -> bool:
    """Whether a canonical score of (rows, dim) features is computed without being insisted on."""
    return rows * dim * np.dtype(np.float64).itemsize <= AFFORDABLE_BYTES


def solve(
    train: AnyMatrix, labels: Labels, solver: str | None = None, on: HostArithmetic = HOST
) -> Solved:
    """Solve the probe on (n, d) features and (n,) labels.

    With fewer rows than columns the weights are in the span of the rows, so the problem is solved
    there exactly, with n unknowns per class instead of d. `solver` forces "newton-cholesky",
    "newton-cg" or "lbfgs". `on` is what to compute with; on a device `solver` plays no part unless
    the CPU has to take over.

    Raises ProbeError if none reaches the optimum.
    """
    classes, targets = np.unique(labels, return_inverse=True)
    given = targets.astype(np.int64), len(classes)
    basis, fitted = (None if on is HOST else _on_device(train, *given, on)) or _on_host(
        train, *given, solver
    )
    weights = fitted.weights if basis is None else basis @ fitted.weights
    intercepts = fitted.intercepts
    if len(classes) == 2:  # noqa: PLR2004 - one column stands for two
        weights = np.hstack([np.zeros_like(weights), weights])
        intercepts = np.concatenate([[0.0], intercepts])
    return Solved(weights, intercepts, classes, fitted.solver, fitted.steps)


class _Fitted(NamedTuple):
    """An optimum: weights (d, c) and intercepts (c,), c as in `newton.Optimum`."""

    weights: Matrix
    intercepts: Matrix
    solver: str
    steps: int


def _on_device(
    x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, on: HostArithmetic
) -> tuple[Matrix | None, _Fitted] | None:
    """Solve on a device; None where Newton does not get there, or memory runs out."""
    try:
        basis, held = _in_span(x, on)
        optimum = newton.minimise(held, targets, classes, on=on)
    except newton.NotSolvedError:
        return None
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None
    fitted = _Fitted(optimum.weights, optimum.intercepts, ON_DEVICE, optimum.steps)
    return None if basis is None else on.numpy(basis), fitted


def _on_host(
    x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, solver: str | None
) -> tuple[Matrix | None, _Fitted]:
    basis, held = _in_span(x, HOST)
    return basis, _fitted(held, targets, classes, solver)


def _in_span(x: AnyMatrix, on: HostArithmetic) -> tuple[Matrix | None, AnyMatrix]:
    """Return the problem in the span of its rows with a basis of that, where they are fewer."""
    return on.span(x) if x.shape[0] < x.shape[1] else (None, x)


def _fitted(
    x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, solver: str | None
) -> _Fitted:
    """Solve by the first method that takes the problem and reaches the optimum."""
    unknowns = (x.shape[1] + 1) * (classes if classes > 2 else 1)  # noqa: PLR2004 - one column
    small = x.size * np.dtype(np.float64).itemsize <= FLOAT64_BYTES_MAX
    ways: list[tuple[str, int | None]] = [("newton-cg", None)]
    if solver:
        ways = [(solver, None)]
    elif small:
        ways.append(("lbfgs", None))
        if unknowns <= NEWTON_WIDTH and classes > 2:  # noqa: PLR2004 - several columns
            ways[:0] = [("newton-cg", _inner_steps(len(x), unknowns)), ("newton-cholesky", None)]
    why = ""
    for way, inner_max in ways:
        if way == "newton-cg":
            try:
                optimum = newton.minimise(x, targets, classes, inner_max)
                return _Fitted(optimum.weights, optimum.intercepts, way, optimum.steps)
            except newton.NotSolvedError as error:
                why = str(error)
                continue
        wide = np.asarray(x, dtype=np.float64)
        fitted = _newton(wide, targets) if way == "newton-cholesky" else _lbfgs(wide, targets)
        if fitted is not None:
            return _Fitted(fitted.coef_.T, fitted.intercept_, way, int(np.max(fitted.n_iter_)))
        why = "the Hessian of newton-cholesky is singular"
    msg = f"canonical score: {why}"
    raise ProbeError(msg)


def _inner_steps(rows: int, unknowns: int) -> int:
    """Return the steps of conjugate gradients that cost what scikit-learn's Newton does.

    A step there sums the Hessian and factors it, rows u^2 + u^3 / 3 multiplications; a product with
    the Hessian takes 2 rows u here, which wait for memory (`PRODUCT_COST`).
    """
    step = rows * unknowns**2 + unknowns**3 // 3
    return max(INNER_STEPS_LEAST, NEWTON_STEPS * step // (PRODUCT_COST * 2 * rows * unknowns))


def _newton(x: Matrix, labels: Labels) -> Any:  # scikit-learn has no types
    """Fit by Newton; None if scikit-learn falls back to lbfgs, which it only warns about."""
    import sklearn  # see `probe`
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(solver="newton-cholesky", tol=NEWTON_TOL)
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True):
        warnings.simplefilter("error", LinAlgWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return probe.fit(x, labels)
        except (LinAlgWarning, ConvergenceWarning):
            return None


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
            msg = f"canonical score: lbfgs did not reach {LBFGS_TOL} in {LBFGS_MAX_ITER} steps"
            raise ProbeError(msg) from error

"""Newton's method for the probe's problem, in memory bounded by blocks of embeddings.

For n embeddings X (n, d), of classes y(i) out of K, it minimises over weights W (d, K) and
intercepts b (K,), with Z = X W + b,

    sum_i [log sum_k exp Z_ik - Z_i,y(i)] + |W|^2 / 2

which is scikit-learn's logistic regression with C = 1; two classes have one column, as there. Each
step solves the Newton system by conjugate gradients, whose products with the Hessian are sums over
blocks of embeddings: the features are converted to float64 block by block, and no matrix is larger
than (d + 1, d + 1). The first steps have no preconditioner, since word counts need none. Once they
have taken as long as making one does, a preconditioner is used: the Hessian of a sample of the
embeddings, averaged over the classes, with which few steps remain, whatever the scales of the
features. It is factored in float32 if that is precise enough, and as an (n, n) matrix if the sample
has fewer embeddings than columns. Gradients, products and steps are in float64, so the
preconditioner changes the number of steps and not the optimum.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from reference_harness.embedding.matrix import AnyMatrix

Matrix = npt.NDArray[np.float64]

PASS_BYTES = 1 << 20
"""Bytes of a float64 block that is multiplied by vectors. It stays in the cache between its
conversion and its two products: a pass over 32,378 x 768 features takes a fifth of the time of
blocks of 32 MiB, which are read from memory three times."""
BLOCK_BYTES = 32 << 20
"""Bytes of a float64 block of features whose Hessian is summed: large enough for BLAS, small
compared with a task."""
CACHED_BYTES = 128 << 20
"""Most bytes of features that are kept in memory as float32: converting them from float16 in each
pass more than doubles its time."""
SAMPLE_EMBEDDINGS = 8192
"""Minimum number of embeddings in the preconditioner's sample, or `SAMPLE_FACTOR` per column if
these are more. With four or more, the sample's Hessian is within a factor of about two to four of
the complete one in every direction."""
SAMPLE_FACTOR = 4
"""Number of sampled embeddings per column."""
CHANGE_ACCEPTED = 1e-9
"""Largest accepted difference between decision values of a solution and of the optimum, divided by
the largest decision value: far below 1e-6, within which `optimum` takes classes to be tied."""
EXPECTED_SAFETY = 100.0
"""Safety factor on the change expected of another step, which is estimated from the last step: the
part of its residual that was left, and its square, the error of Newton's method."""
STEPS_MAX = 100
"""Most Newton steps; measured data sets took 3 to 18."""
INNER_STEPS_MAX = 2000
"""Most conjugate gradient steps per Newton step; measured data sets took up to 160."""
FORCING_MAX = 0.1
"""Largest relative residual up to which a Newton system is solved. The residual is smaller if the
expected change of decision values is, to which the error of Newton's method is proportional."""
FORCING_MIN = 1e-5
"""Smallest relative residual up to which a Newton system is solved."""
ARMIJO_SHARE = 1e-4
"""Armijo's constant: share of the expected decrease that a step must reach."""
STEP_HALVINGS_MAX = 40
"""Maximum number of times that a Newton step is halved until it lowers the objective."""
PRODUCTS_PER_NUMBER = 45
"""Number of float32 multiplications in a matrix product in the time in which an inner step reads
one number of the features: 21 ps and 0.47 ns on the measured processor."""
PRODUCT_NOISE_MAX = 0.01
"""Largest relative rounding error of a product with the Hessian that is computed in float32."""
TRACE_NOISE_MAX = 4.0
"""Largest rounding error of the trace of a Hessian that is factored in float32. The penalty adds 1
to each eigenvalue, and the largest is far below the trace."""
LENGTH_SAFETY = 1.01
"""Safety factor on a length computed in float32 over at most 8,192 columns."""
PREDICTION_STEP = 5
"""Inner steps after which their total number is predicted from the decrease of the residual."""


class NotSolvedError(Exception):
    """The optimum was not reached; the message contains the size of the last step."""


class Optimum(NamedTuple):
    """Weights (d, c) and intercepts (c,): c is 1 for two classes, else their number."""

    weights: Matrix
    intercepts: Matrix
    steps: int


def block_features(x: AnyMatrix) -> AnyMatrix:
    """Return (n, d) features for reading block by block, in their floating-point type."""
    if not isinstance(x, np.ndarray) and x.size * 4 <= CACHED_BYTES:
        return np.asarray(x, dtype=np.float32)  # the type in which it returns its embeddings
    return x


def float64_block(block: npt.NDArray[np.floating[Any]], buffer: Matrix | None = None) -> Matrix:
    """Return a block in float64: itself, or a copy, written to `buffer` if that is given."""
    if buffer is None or block.dtype == np.float64:
        return np.asarray(block, dtype=np.float64)
    converted = buffer[: len(block)]
    converted[:] = block
    return converted


def minimise(
    x: AnyMatrix,
    targets: npt.NDArray[np.int64],
    classes: int,
) -> Optimum:
    """Return the optimum for (n, d) features and (n,) targets in 0..classes-1.

    Raise NotSolvedError if it is not reached, because the features exceed the precision of float64.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are refused below
        return _Problem(x, targets, classes).solved()


class _Problem:
    """The minimisation for one set of features and targets."""

    def __init__(self, x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int) -> None:
        self.rows: int = x.shape[0]
        self.width: int = x.shape[1]
        self.is_binary = classes == 2  # noqa: PLR2004 - one column stands for two classes
        self.columns = 1 if self.is_binary else classes
        self.targets = targets
        self.row_indices = np.arange(self.rows)
        self.x = block_features(x)
        self.block_rows = max(1, BLOCK_BYTES // (8 * self.width))
        self.buffer = np.empty((min(self.rows, max(1, PASS_BYTES // (8 * self.width))), self.width))
        self.length_max = self._length_bound()
        noise = self.length_max * self.width**0.5 * np.finfo(np.float32).eps
        self.product_type = np.float32 if noise < PRODUCT_NOISE_MAX else np.float64

    def _length_bound(self) -> float:
        """Return an upper bound of the length of the longest embedding."""
        blocks = self.blocks(np.float32)
        squares = (np.einsum("ij,ij->i", block, block).max() for _, block in blocks)
        return LENGTH_SAFETY * float(np.sqrt(max(squares)))

    def blocks(self, dtype: type = np.float64) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield slices of rows and their features in a type; the next block overwrites each."""
        step = len(self.buffer)
        for start in range(0, self.rows, step):
            row_slice = slice(start, min(start + step, self.rows))
            block = self.x[row_slice]
            is_single = dtype == np.float32
            yield (
                row_slice,
                np.asarray(block, dtype) if is_single else float64_block(block, self.buffer),
            )

    def at(self, solution: Matrix) -> "_Point":
        """Return decision values and derivatives at a solution, in one pass over the features."""
        values, probabilities = np.empty((2, self.rows, self.columns))
        gradient = np.zeros(solution.shape)
        for row_slice, block in self.blocks():
            np.matmul(block, solution[:-1], out=values[row_slice])
            values[row_slice] += solution[-1]
            probabilities[row_slice] = self.probabilities(values[row_slice])
            residuals = self.residuals(probabilities[row_slice], self.targets[row_slice])
            gradient[:-1] += block.T @ residuals
            gradient[-1] += residuals.sum(axis=0)
        gradient[:-1] += solution[:-1]
        return _Point(values, gradient, _Curvature(probabilities, is_binary=self.is_binary))

    def hessian_product(self, direction: Matrix, curvature: "_Curvature") -> tuple[Matrix, Matrix]:
        """Return the Hessian's product with a direction, and the change of decision values.

        Both are computed in one pass over the features.
        """
        product = np.zeros(direction.shape)
        value_change = np.empty((self.rows, self.columns))
        weight_direction = direction[:-1].astype(self.product_type)
        for row_slice, block in self.blocks(self.product_type):
            value_change[row_slice] = block @ weight_direction
            value_change[row_slice] += direction[-1]
            curved_change = curvature.product(row_slice, value_change[row_slice])
            product[:-1] += block.T @ curved_change.astype(self.product_type)
            product[-1] += curved_change.sum(axis=0)
        product[:-1] += direction[:-1]
        return product, value_change

    def without_common_part(self, solution: Matrix) -> Matrix:
        """Return a solution without the part that is equal for all classes.

        This part is zero in the optimum and does not change the losses, so that removing what
        rounding adds to it would take many inner steps.
        """
        return solution if self.is_binary else solution - solution.mean(axis=1, keepdims=True)

    def loss(self, decisions: Matrix) -> float:
        """Return the sum of the losses, without the penalty."""
        if self.is_binary:
            z = decisions[:, 0]
            return float(np.logaddexp(0.0, np.where(self.targets == 1, -z, z)).sum())
        largest = np.amax(decisions, axis=1)
        log_sums = np.log(np.exp(decisions - largest[:, None]).sum(axis=1)) + largest
        return float((log_sums - decisions[self.row_indices, self.targets]).sum())

    def probabilities(self, decisions: Matrix) -> Matrix:
        """Return the probability of each column's class, (n, c), for decision values (n, c)."""
        if self.is_binary:
            from scipy.special import expit  # slow to import, see `logistic`

            logistic: Matrix = expit(decisions)
            return logistic
        probabilities: Matrix = np.exp(decisions - np.amax(decisions, axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return probabilities

    def residuals(self, probabilities: Matrix, targets: npt.NDArray[np.int64]) -> Matrix:
        """Return the probabilities minus the one-hot targets, (n, c)."""
        differences = probabilities.copy()
        if self.is_binary:
            differences[:, 0] -= targets
        else:
            differences[self.row_indices[: len(targets)], targets] -= 1.0
        return differences

    def solved(self) -> Optimum:
        """Return the optimum. Raise NotSolvedError if it is not reached."""
        solution = np.zeros((self.width + 1, self.columns))
        last_change = expected = np.inf
        preconditioner: _Preconditioner | None = None
        preconditioner_steps = steps_left = self._inner_steps_worth_a_factor
        for step in range(1, STEPS_MAX + 1):
            decisions, gradient, curvature = self.at(solution)
            if not np.isfinite(gradient).all():
                msg = "the features are not finite, or exceed the range of float64"
                raise NotSolvedError(msg)
            largest_value = float(np.abs(decisions).max())
            accepted_distance = max(CHANGE_ACCEPTED * largest_value, np.finfo(np.float64).tiny)
            distance_ratio = self._distance(gradient, curvature) / accepted_distance
            if distance_ratio <= 1.0:
                return self._optimum(solution, step - 1)
            # A preconditioner is kept until its inner steps took as long as making a new one.
            is_new = steps_left <= 0
            if is_new:
                preconditioner, steps_left = self._factored(curvature), preconditioner_steps
            forcing = min(FORCING_MAX, max(FORCING_MIN, expected, FORCING_MAX / distance_ratio))
            direction, change, inner_steps, residual_share = self._direction(
                gradient,
                curvature,
                preconditioner or _PenaltyPreconditioner(curvature),
                forcing,
                INNER_STEPS_MAX if is_new else steps_left,
            )
            steps_left -= 0 if is_new else inner_steps
            share = self._step_share(solution, direction, decisions, change, gradient)
            if share == 0.0:
                # No step lowers the loss in float64: the previous step was the last.
                if last_change <= np.sqrt(CHANGE_ACCEPTED):
                    return self._optimum(solution, step)
                break
            solution += share * direction
            largest_value = float(np.abs(decisions + share * change).max())
            largest_change = share * float(np.abs(change).max())
            last_change, expected = (
                largest_change / largest_value,
                (residual_share + largest_change / 2) * largest_change,
            )
            if share == 1.0 and EXPECTED_SAFETY * expected <= CHANGE_ACCEPTED * largest_value:
                return self._optimum(solution, step)
        msg = (
            f"the last of {step} Newton steps changed decision values by {last_change:.1e} of the "
        )
        msg += f"largest, expected {CHANGE_ACCEPTED:.0e} at most"
        raise NotSolvedError(msg)

    def _distance(self, gradient: Matrix, curvature: "_Curvature") -> float:
        """Return an upper bound on how far decision values are from those at the optimum.

        With the best intercepts for the weights, the objective is strongly convex in the weights
        with the penalty's modulus 1: the weights are at most the length of the gradient away.
        Reaching the best intercepts changes the sum of residuals by the intercepts' gradient.
        """
        intercepts = float(np.linalg.norm(gradient[-1]))
        weights = float(np.linalg.norm(gradient[:-1])) + self.length_max * intercepts
        return 2.0 * self.length_max * weights + intercepts / curvature.total

    def _optimum(self, solution: Matrix, steps: int) -> Optimum:
        """Return a solution, (d + 1, c), divided into weights and intercepts."""
        return Optimum(solution[:-1], solution[-1], steps)

    def _step_share(
        self,
        solution: Matrix,
        direction: Matrix,
        decisions: Matrix,
        change: Matrix,
        gradient: Matrix,
    ) -> float:
        """Return the share of a step that lowers the objective enough; 0 if none does."""
        loss = self.loss(decisions) + float((solution[:-1] * solution[:-1]).sum()) / 2
        slope = float((gradient * direction).sum())
        share = 1.0
        resolution = np.finfo(np.float64).eps * max(1.0, abs(loss))
        for _ in range(STEP_HALVINGS_MAX):
            weights = solution[:-1] + share * direction[:-1]
            new_loss = self.loss(decisions + share * change) + float((weights * weights).sum()) / 2
            # Near the optimum, the gain of a full step is below the rounding error of the loss.
            if new_loss <= loss + ARMIJO_SHARE * share * slope or (
                share == 1.0 and -slope <= resolution * self.rows and np.isfinite(new_loss)
            ):
                return share
            share /= 2
        return 0.0

    @property
    def _sample_stride(self) -> int:
        """Every how many embeddings one is in the preconditioner's sample."""
        return max(1, round(self.rows / max(SAMPLE_EMBEDDINGS, SAMPLE_FACTOR * self.width)))

    @property
    def _inner_steps_worth_a_factor(self) -> int:
        """Number of inner steps that take about as long as making a preconditioner."""
        smaller_size, larger_size = sorted((-(-self.rows // self._sample_stride), self.width))
        products = smaller_size * smaller_size * (larger_size + smaller_size / 2)
        numbers_read = self.rows * self.width * (1 + self.columns) / 2
        return int(products / (PRODUCTS_PER_NUMBER * numbers_read))

    def _direction(
        self,
        gradient: Matrix,
        curvature: "_Curvature",
        preconditioner: "_Preconditioner",
        forcing: float,
        steps_max: int,
    ) -> tuple[Matrix, Matrix, int, float]:
        """Solve the Newton system by preconditioned conjugate gradients.

        Return the direction, the change of decision values along it, the number of inner steps, and
        the remaining share of the residual. The number is `steps_max` if more would be needed.
        """
        solution, change = np.zeros(gradient.shape), np.zeros((self.rows, self.columns))
        residual = -gradient
        preconditioned = self.without_common_part(preconditioner.apply(residual))
        direction = preconditioned.copy()
        energy = first_energy = float((residual * preconditioned).sum())
        target = forcing**2 * first_energy
        inner_steps = 0
        while inner_steps < steps_max and energy > target:
            inner_steps += 1
            hessian_product, value_change = self.hessian_product(direction, curvature)
            stiffness = float((direction * hessian_product).sum())
            if not stiffness > 0.0:
                break
            length = energy / stiffness
            solution += length * direction
            change += length * value_change
            residual -= length * hessian_product
            preconditioned = self.without_common_part(preconditioner.apply(residual))
            energy, energy_before = float((residual * preconditioned).sum()), energy
            if inner_steps == PREDICTION_STEP and target < energy:
                log_decrease = np.log(max(energy / first_energy, np.finfo(float).tiny))
                if (
                    log_decrease >= 0.0
                    or PREDICTION_STEP * np.log(target / first_energy) / log_decrease > steps_max
                ):
                    inner_steps = steps_max
                    break
            direction = preconditioned + (energy / energy_before) * direction
        return (
            solution,
            change,
            inner_steps,
            (max(energy, 0.0) / first_energy) ** 0.5 if first_energy else 0.0,
        )

    def _factored(self, curvature: "_Curvature") -> "_FactoredPreconditioner":
        """Return the factored Hessian of a sample: (d, d), or (n, n) if it has n < d embeddings."""
        stride = self._sample_stride
        sample = self.x[::stride]
        weights = curvature.mean[::stride, None]
        centre = np.zeros(self.width)
        for row_slice in self._block_slices(len(sample)):
            centre += (float64_block(sample[row_slice]).T @ weights[row_slice])[:, 0]
        centre /= max(float(weights.sum()), np.finfo(np.float64).tiny)
        weights = weights * (self.rows / len(weights))
        first_block = _weighted(
            sample[: self.block_rows], weights[: self.block_rows], centre, np.float64
        )
        trace = float((first_block * first_block).sum()) * len(sample) / len(first_block)
        is_float32_enough = trace * np.finfo(np.float32).eps < TRACE_NOISE_MAX
        for dtype in (np.float32, np.float64) if is_float32_enough else (np.float64,):
            factored = self._factored_in(dtype, sample, weights, centre)
            if factored is not None:
                return _FactoredPreconditioner(*factored, centre, curvature.total)
        msg = "the Hessian of the features cannot be factored"
        raise NotSolvedError(msg)

    def _block_slices(self, rows: int) -> list[slice]:
        """Return the slices of the blocks into which `rows` embeddings are divided."""
        return [slice(start, start + self.block_rows) for start in range(0, rows, self.block_rows)]

    def _factored_in(
        self, dtype: type, sample: npt.NDArray[Any], weights: Matrix, centre: Matrix
    ) -> tuple[Any, npt.NDArray[Any] | None] | None:
        """Return a Cholesky factor of the Hessian I + A^T A of weighted embeddings A, and None.

        With fewer embeddings than dimensions, return the factor of the smaller I + A A^T, and A.
        Return None alone if the matrix cannot be factored.
        """
        from scipy.linalg import LinAlgError, cho_factor  # slow to import, see `logistic`

        embeddings = None
        if len(sample) < self.width:
            embeddings = _weighted(sample, weights, centre, dtype)
            matrix = embeddings @ embeddings.T
        else:
            matrix = np.zeros((self.width, self.width), dtype=dtype)
            for row_slice in self._block_slices(len(sample)):
                weighed = _weighted(sample[row_slice], weights[row_slice], centre, dtype)
                matrix += weighed.T @ weighed
        matrix[np.diag_indices(len(matrix))] += 1.0
        try:
            factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except (LinAlgError, ValueError):
            return None
        return factor, embeddings


def _weighted(
    rows: npt.NDArray[Any], weights: Matrix, centre: Matrix, dtype: type
) -> npt.NDArray[Any]:
    """Return the centred embeddings, multiplied by the square roots of their weights."""
    weighed: npt.NDArray[Any] = np.asarray(rows, dtype) - centre.astype(dtype)
    weighed *= np.sqrt(weights)
    return weighed


class _Preconditioner(Protocol):
    """An approximate inverse of the Hessian."""

    def apply(self, residual: Matrix) -> Matrix:
        """Return the product of the approximate inverse and a residual (d + 1, c)."""


class _PenaltyPreconditioner:
    """Preconditioner by the penalty and the curvature along the intercept only."""

    def __init__(self, curvature: "_Curvature") -> None:
        self.total = curvature.total

    def apply(self, residual: Matrix) -> Matrix:
        scaled = residual.copy()
        scaled[-1] /= self.total
        return scaled


class _FactoredPreconditioner:
    """Preconditioner by the factored Hessian of centred embeddings.

    Centring decouples weights and intercepts. With embeddings A, the factor is that of I + A A^T,
    and the inverse of I + A^T A follows from Woodbury's identity.
    """

    def __init__(
        self, factor: Any, embeddings: npt.NDArray[Any] | None, centre: Matrix, total: float
    ) -> None:
        self.factor = factor
        self.embeddings = embeddings
        self.centre = centre[:, None]
        self.total = total

    def apply(self, residual: Matrix) -> Matrix:
        from scipy.linalg import cho_solve  # slow to import, see `logistic`

        dtype = self.factor[0].dtype
        centred_residual = residual[:-1] - self.centre * residual[-1]
        if self.embeddings is None:
            weights = cho_solve(self.factor, centred_residual.astype(dtype), check_finite=False)
        else:
            sample_products = self.embeddings @ centred_residual.astype(dtype)
            sample_products = cho_solve(self.factor, sample_products, check_finite=False)
            weights = centred_residual - self.embeddings.T @ sample_products
        intercepts = residual[-1] / self.total - (self.centre * weights).sum(axis=0)
        return np.concatenate([weights, intercepts[None]]).astype(np.float64)


class _Point(NamedTuple):
    """Decision values at a solution, and the derivatives of the objective."""

    values: Matrix
    """Decision values (n, c)."""
    gradient: Matrix
    curvature: "_Curvature"


class _Curvature:
    """Second derivatives of the losses for probabilities (n, c)."""

    def __init__(self, probabilities: Matrix, *, is_binary: bool) -> None:
        self.probabilities = probabilities
        self.is_binary = is_binary
        variance = probabilities * (1.0 - probabilities)
        self.mean: Matrix = variance.mean(axis=1)
        # Added, as the curvature of the intercept vanishes if all probabilities are 0 or 1.
        self.total = float(self.mean.sum()) + 1e-10 * len(variance) + np.finfo(np.float64).tiny
        self.variance = variance

    def product(self, row_slice: slice, value_change: Matrix) -> Matrix:
        """Return the second derivative times a change of decision values of some embeddings."""
        if self.is_binary:
            return self.variance[row_slice] * value_change
        probabilities = self.probabilities[row_slice]
        change: Matrix = probabilities * (
            value_change - (probabilities * value_change).sum(axis=1, keepdims=True)
        )
        return change

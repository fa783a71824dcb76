"""Newton's method for the probe's problem, in memory bounded by blocks of embeddings.

Minimises, over weights W (d, K) and intercepts b (K,), with Z = X W + b,

    sum_i [log sum_k exp Z_ik - Z_i,y(i)] + |W|^2 / 2

which is scikit-learn's logistic regression with C = 1; two classes have one column, as there. Each
step solves the Newton system by conjugate gradients, whose products with the Hessian are sums over
blocks of embeddings: the features are converted to float64 block by block, and no matrix is larger
than (d + 1, d + 1). The preconditioner is the Hessian of a sample of the embeddings, averaged over
the classes, which leaves few steps whatever the features' scales are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .matrix import AnyMatrix

Matrix = npt.NDArray[np.float64]

PASS_BYTES = 1 << 20
"""Size of a block in float64 that is multiplied by vectors. It stays in the cache between its
conversion and its two products: a pass over 32,378 x 768 features takes a fifth of the time that
blocks of 32 MiB take, which all go through memory three times."""
BLOCK_BYTES = 32 << 20
"""Size of a block of features in float64 whose Hessian is summed: large enough for BLAS, small
beside one task."""
CACHED_BYTES = 128 << 20
"""Size of features in float32 up to which embeddings that are converted when they are read are
held: from float16 each pass takes more than twice as long."""
SAMPLE_EMBEDDINGS = 8192
"""Embeddings of the preconditioner's sample, or four for each column where those are more: from
four on, the sample's Hessian is within a factor of about two to four of the whole one in every
direction."""
SAMPLE_FACTOR = 4
CHANGE_MIN = 1e-9
"""A full step that moves no decision value by more than this share of the largest one is the last:
the next would move it by the square. Far below the tie of a canonical prediction, 1e-6."""
STEPS = 100
"""Steps of Newton; data sets measured took 6 to 18."""
INNER_STEPS = 2000
"""Steps of conjugate gradients in one step of Newton; data sets measured took up to 160."""
FORCING = 0.1
"""Largest relative residual of a Newton system; it shrinks with the gradient."""
FORCING_LEAST = 1e-4
SUFFICIENT = 1e-4
"""Armijo's constant."""
HALVINGS = 40


class NotSolvedError(Exception):
    """The optimum was not reached; the message says how far the last step went."""


class Optimum(NamedTuple):
    """Weights (d, c) and intercepts (c,): c is 1 for two classes, else their number."""

    weights: Matrix
    intercepts: Matrix
    steps: int


def held(x: AnyMatrix) -> AnyMatrix:
    """Return (n, d) features as they are read block by block, of their own floating type."""
    if not isinstance(x, np.ndarray) and x.size * 4 <= CACHED_BYTES:
        return np.asarray(x, dtype=np.float32)  # as it gives its embeddings
    return x


def float64_block(block: npt.NDArray[np.floating[Any]], room: Matrix | None = None) -> Matrix:
    """Return a block in float64: itself, or a copy, in `room` where that is given."""
    if room is None or block.dtype == np.float64:
        return np.asarray(block, dtype=np.float64)
    converted = room[: len(block)]
    converted[:] = block
    return converted


def minimise(
    x: AnyMatrix,
    targets: npt.NDArray[np.int64],
    classes: int,
) -> Optimum:
    """Return the optimum for (n, d) features of any floating type and (n,) targets in 0..classes-1.

    Raises NotSolvedError where it is not reached: for features beyond what float64 resolves.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        return _Problem(x, targets, classes).solved()


class _Problem:
    def __init__(self, x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int) -> None:
        self.rows: int = x.shape[0]
        self.width: int = x.shape[1]
        self.binary = classes == 2  # noqa: PLR2004 - one column stands for two classes
        self.columns = 1 if self.binary else classes
        self.targets = targets
        self.each = np.arange(self.rows)
        self.x = held(x)
        self.block = max(1, BLOCK_BYTES // (8 * self.width))
        self.room = np.empty((min(self.rows, max(1, PASS_BYTES // (8 * self.width))), self.width))

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the features block by block; a block is overwritten by the next."""
        step = len(self.room)
        for start in range(0, self.rows, step):
            part = slice(start, min(start + step, self.rows))
            yield part, float64_block(self.x[part], self.room)

    def values(self, solution: Matrix) -> Matrix:
        """Return X W + b, (n, c); the last line of `solution` is b."""
        products = np.empty((self.rows, self.columns))
        for part, block in self.blocks():
            np.matmul(block, solution[:-1], out=products[part])
        products += solution[-1]
        return products

    def pulled(self, values: Matrix) -> Matrix:
        """Return [X 1]^T values, (d + 1, c)."""
        sums = np.zeros((self.width + 1, self.columns))
        for part, block in self.blocks():
            sums[:-1] += block.T @ values[part]
        sums[-1] = values.sum(axis=0)
        return sums

    def curved(self, direction: Matrix, curvature: "_Curvature") -> Matrix:
        """Return the Hessian's product with a direction, in one pass over the features."""
        product = np.zeros(direction.shape)
        for part, block in self.blocks():
            moved = block @ direction[:-1] + direction[-1]
            bent = curvature.product(part, moved)
            product[:-1] += block.T @ bent
            product[-1] += bent.sum(axis=0)
        product[:-1] += direction[:-1]
        return product

    def loss(self, values: Matrix) -> float:
        """Return the sum of the losses, without the penalty."""
        if self.binary:
            z = values[:, 0]
            return float(np.logaddexp(0.0, np.where(self.targets == 1, -z, z)).sum())
        top = np.amax(values, axis=1)
        spread = np.log(np.exp(values - top[:, None]).sum(axis=1)) + top
        return float((spread - values[self.each, self.targets]).sum())

    def probabilities(self, values: Matrix) -> Matrix:
        """Return the probability of each column's class, (n, c)."""
        if self.binary:
            from scipy.special import expit  # slow to import, see `probe`

            logistic: Matrix = expit(values)
            return logistic
        chances: Matrix = np.exp(values - np.amax(values, axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances

    def residuals(self, probabilities: Matrix) -> Matrix:
        """Return probability minus target, (n, c)."""
        differences = probabilities.copy()
        if self.binary:
            differences[:, 0] -= self.targets
        else:
            differences[self.each, self.targets] -= 1.0
        return differences

    def solved(self) -> Optimum:
        solution = np.zeros((self.width + 1, self.columns))
        values = np.zeros((self.rows, self.columns))
        loss = self.loss(values)
        moved = np.inf
        factor, most = None, 0
        for step in range(1, STEPS + 1):
            curvature = _Curvature(self.probabilities(values), binary=self.binary)
            gradient = self.pulled(self.residuals(curvature.probabilities))
            gradient[:-1] += solution[:-1]
            if not np.isfinite(gradient).all():
                msg = "the features are not finite, or beyond the range of float64"
                raise NotSolvedError(msg)
            if factor is None:
                factor, most = self._preconditioner(curvature), INNER_STEPS
            direction, inner = self._direction(gradient, curvature, factor, most)
            # An older preconditioner is kept as long as it saves more than a new one costs.
            most = self._inner_steps_worth_a_factor
            factor = factor if inner < most else None
            change = self.values(direction)
            share, loss = self._along(solution, direction, values, change, gradient, loss)
            if share == 0.0:
                # Nothing lowers the loss in float64 any more: the step before was the last.
                if moved <= np.sqrt(CHANGE_MIN):
                    return self._optimum(solution, step)
                break
            solution += share * direction
            values += share * change
            largest = max(1.0, float(np.abs(values).max()))
            moved = share * float(np.abs(change).max()) / largest
            if share == 1.0 and moved <= CHANGE_MIN:
                return self._optimum(solution, step)
        msg = f"the last of {step} steps of Newton moved decision values by {moved:.1e} of the "
        msg += f"largest, expected {CHANGE_MIN:.0e} at most"
        raise NotSolvedError(msg)

    def _optimum(self, solution: Matrix, steps: int) -> Optimum:
        return Optimum(solution[:-1], solution[-1], steps)

    def _along(
        self,
        solution: Matrix,
        direction: Matrix,
        values: Matrix,
        change: Matrix,
        gradient: Matrix,
        loss: float,
    ) -> tuple[float, float]:
        """Return the share of a step that lowers the objective enough, and the objective there.

        The share is 0 where none does.
        """
        slope = float((gradient * direction).sum())
        share = 1.0
        resolution = np.finfo(np.float64).eps * max(1.0, abs(loss))
        for _ in range(HALVINGS):
            weights = solution[:-1] + share * direction[:-1]
            now = self.loss(values + share * change) + float((weights * weights).sum()) / 2
            # Near the optimum the loss no longer resolves what a full step gains.
            if now <= loss + SUFFICIENT * share * slope or (
                share == 1.0 and -slope <= resolution * self.rows and np.isfinite(now)
            ):
                return share, now
            share /= 2
        return 0.0, loss

    @property
    def _sample_stride(self) -> int:
        return max(1, self.rows // max(SAMPLE_EMBEDDINGS, SAMPLE_FACTOR * self.width))

    @property
    def _inner_steps_worth_a_factor(self) -> int:
        """Inner steps that take about as long as a new preconditioner.

        Half as many as operations say, since they wait for memory.
        """
        return int(self.width // (8 * self.columns * self._sample_stride))

    def _direction(
        self, gradient: Matrix, curvature: "_Curvature", factor: Any, maximum: int
    ) -> tuple[Matrix, int]:
        """Solve the Newton system by preconditioned conjugate gradients; return the inner steps."""
        from scipy.linalg import cho_solve  # slow to import, see `probe`

        solution = np.zeros(gradient.shape)
        residual = -gradient
        eased: Matrix = cho_solve(factor, residual, check_finite=False)
        direction = eased.copy()
        energy = first = float((residual * eased).sum())
        size = np.sqrt(max(first, 0.0)) / self.rows
        target_energy = min(FORCING, max(FORCING_LEAST, size)) ** 2 * first
        inner = 0
        while inner < maximum and energy > target_energy:
            inner += 1
            bent = self.curved(direction, curvature)
            stiffness = float((direction * bent).sum())
            if not stiffness > 0.0:
                break
            length = energy / stiffness
            solution += length * direction
            residual -= length * bent
            eased = cho_solve(factor, residual, check_finite=False)
            energy, before = float((residual * eased).sum()), energy
            direction = eased + (energy / before) * direction
        return solution, inner

    def _preconditioner(self, curvature: "_Curvature") -> Any:
        """Return the Cholesky factor of the sample's Hessian, (d + 1, d + 1)."""
        from scipy.linalg import LinAlgError, cho_factor  # slow to import, see `probe`

        stride = self._sample_stride
        weights = curvature.mean[::stride]
        weights = weights * (self.rows / len(weights))
        hessian = np.zeros((self.width + 1, self.width + 1))
        picked = self.x[::stride]
        for start in range(0, len(picked), self.block):
            block = float64_block(picked[start : start + self.block])
            weight = weights[start : start + self.block, None]
            bent = block * np.sqrt(weight)
            hessian[:-1, :-1] += bent.T @ bent
            hessian[-1, :-1] += (block * weight).sum(axis=0)
        hessian[:-1, -1] = hessian[-1, :-1]
        hessian[-1, -1] = weights.sum()
        diagonal = np.arange(self.width)
        hessian[diagonal, diagonal] += 1.0
        # Where every embedding is sure of its class, the intercept has no curvature left.
        hessian[-1, -1] += 1e-10 * self.rows + np.finfo(np.float64).tiny
        try:
            return cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
        except (LinAlgError, ValueError) as error:
            msg = f"the Hessian of the features cannot be factored: {error}"
            raise NotSolvedError(msg) from error


class _Curvature:
    """Second derivatives of the losses at some probabilities (n, c)."""

    def __init__(self, probabilities: Matrix, *, binary: bool) -> None:
        self.probabilities = probabilities
        self.binary = binary
        variance = probabilities * (1.0 - probabilities)
        self.mean: Matrix = variance.mean(axis=1)
        self.variance = variance

    def product(self, part: slice, moved: Matrix) -> Matrix:
        """Return the second derivative times a change of the decision values of some embeddings."""
        if self.binary:
            return self.variance[part] * moved
        chances = self.probabilities[part]
        change: Matrix = chances * (moved - (chances * moved).sum(axis=1, keepdims=True))
        return change

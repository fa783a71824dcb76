"""Newton's method for the probe's problem, in memory bounded by blocks of rows.

Minimises, over weights W (d, K) and intercepts b (K,), with Z = X W + b,

    sum_i [log sum_k exp Z_ik - Z_i,y(i)] + |W|^2 / 2

which is scikit-learn's logistic regression with C = 1; two classes have one column, as there. Each
step solves the Newton system by conjugate gradients, whose products with the Hessian are sums over
blocks of rows: the features are converted to float64 block by block, and no matrix is larger than
(d + 1, d + 1). The preconditioner is the Hessian of a sample of the rows, averaged over the
classes, which leaves few steps whatever the features' scales are. Where the sums are done, by NumPy
or by torch on a device, is `arithmetic`'s; the optimum is one.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .arithmetic import HOST, HostArithmetic, Matrix, SingularError
from .matrix import AnyMatrix

SAMPLE_ROWS = 8192
"""Rows of the preconditioner's sample, or four for each column where those are more: from four on,
the sample's Hessian is within a factor of about two to four of the whole one in every direction."""
SAMPLE_FACTOR = 4
CHANGE = 1e-9
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


def minimise(
    x: AnyMatrix,
    targets: npt.NDArray[np.int64],
    classes: int,
    inner_max: int | None = None,
    on: HostArithmetic = HOST,
) -> Optimum:
    """Return the optimum for (n, d) features of any floating type and (n,) targets in 0..classes-1.

    Raises NotSolvedError where it is not reached: for features beyond what float64 resolves, or
    after `inner_max` steps of conjugate gradients in all, where another method is faster. What a
    device raises passes through, as when its memory runs out.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        return _Problem(x, targets, classes, on).solved(inner_max)


class _Problem:
    def __init__(
        self, x: AnyMatrix, targets: npt.NDArray[np.int64], classes: int, on: HostArithmetic
    ) -> None:
        self.on = on
        self.rows: int = x.shape[0]
        self.width: int = x.shape[1]
        self.binary = classes == 2  # noqa: PLR2004 - one column stands for two classes
        self.columns = 1 if self.binary else classes
        self.targets = on.targets(targets)
        self.each = on.arange(self.rows)
        self.x = on.held(x)
        self.block = max(1, on.block_bytes // (8 * self.width))
        self.room = on.empty(min(self.rows, max(1, on.pass_bytes // (8 * self.width))), self.width)

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the features block by block; a block is overwritten by the next."""
        step = len(self.room)
        for start in range(0, self.rows, step):
            part = slice(start, min(start + step, self.rows))
            yield part, self.on.wide(self.x[part], self.room)

    def values(self, solution: Matrix) -> Matrix:
        """Return X W + b, (n, c); the last row of `solution` is b."""
        products = self.on.empty(self.rows, self.columns)
        for part, block in self.blocks():
            self.on.xp.matmul(block, solution[:-1], out=products[part])
        products += solution[-1]
        return products

    def pulled(self, values: Matrix) -> Matrix:
        """Return [X 1]^T values, (d + 1, c)."""
        sums = self.on.zeros(self.width + 1, self.columns)
        for part, block in self.blocks():
            sums[:-1] += block.T @ values[part]
        sums[-1] = values.sum(axis=0)
        return sums

    def curved(self, direction: Matrix, curvature: "_Curvature") -> Matrix:
        """Return the Hessian's product with a direction, in one pass over the features."""
        product = self.on.zeros(*direction.shape)
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
            return float(self.on.softplus(self.on.xp.where(self.targets == 1, -z, z)).sum())
        top = self.on.xp.amax(values, axis=1)
        spread = self.on.xp.log(self.on.xp.exp(values - top[:, None]).sum(axis=1)) + top
        return float((spread - values[self.each, self.targets]).sum())

    def probabilities(self, values: Matrix) -> Matrix:
        """Return the probability of each column's class, (n, c)."""
        if self.binary:
            return self.on.logistic(values)
        xp = self.on.xp
        chances: Matrix = xp.exp(values - xp.amax(values, axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances

    def residuals(self, probabilities: Matrix) -> Matrix:
        """Return probability minus target, (n, c)."""
        differences = self.on.copy(probabilities)
        if self.binary:
            differences[:, 0] -= self.targets
        else:
            differences[self.each, self.targets] -= 1.0
        return differences

    def solved(self, inner_max: int | None) -> Optimum:
        solution = self.on.zeros(self.width + 1, self.columns)
        values = self.on.zeros(self.rows, self.columns)
        loss = self.loss(values)
        moved = np.inf
        factor, most = None, 0
        left = STEPS * INNER_STEPS if inner_max is None else inner_max
        for step in range(1, STEPS + 1):
            curvature = _Curvature(self.probabilities(values), binary=self.binary)
            gradient = self.pulled(self.residuals(curvature.probabilities))
            gradient[:-1] += solution[:-1]
            if not self.on.xp.isfinite(gradient).all():
                msg = "the features are not finite, or beyond the range of float64"
                raise NotSolvedError(msg)
            if factor is None:
                factor, most = self._preconditioner(curvature), INNER_STEPS
            direction, inner = self._direction(gradient, curvature, factor, min(most, left))
            left -= inner
            if left <= 0:
                msg = f"{inner_max} steps of conjugate gradients did not reach the optimum"
                raise NotSolvedError(msg)
            # An older preconditioner is kept as long as it saves more than a new one costs.
            most = self._inner_steps_worth_a_factor
            factor = factor if inner < most else None
            change = self.values(direction)
            share, loss = self._along(solution, direction, values, change, gradient, loss)
            if share == 0.0:
                # Nothing lowers the loss in float64 any more: the step before was the last.
                if moved <= np.sqrt(CHANGE):
                    return self._optimum(solution, step)
                break
            solution += share * direction
            values += share * change
            largest = max(1.0, float(self.on.xp.abs(values).max()))
            moved = share * float(self.on.xp.abs(change).max()) / largest
            if share == 1.0 and moved <= CHANGE:
                return self._optimum(solution, step)
        msg = f"the last of {step} steps of Newton moved decision values by {moved:.1e} of the "
        msg += f"largest, expected {CHANGE:.0e} at most"
        raise NotSolvedError(msg)

    def _optimum(self, solution: Matrix, steps: int) -> Optimum:
        host = self.on.numpy(solution)
        return Optimum(host[:-1], host[-1], steps)

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
        return max(1, self.rows // max(SAMPLE_ROWS, SAMPLE_FACTOR * self.width))

    @property
    def _inner_steps_worth_a_factor(self) -> int:
        """Inner steps that take about as long as a new preconditioner.

        Half as many as operations say, since they wait for memory.
        """
        return int(self.width // (8 * self.columns * self._sample_stride))

    def _direction(
        self, gradient: Matrix, curvature: "_Curvature", factor: Any, most: int
    ) -> tuple[Matrix, int]:
        """Solve the Newton system by preconditioned conjugate gradients; return the inner steps."""
        solution = self.on.zeros(*gradient.shape)
        residual = -gradient
        eased = self.on.eased(factor, residual)
        direction = self.on.copy(eased)
        energy = first = float((residual * eased).sum())
        size = np.sqrt(max(first, 0.0)) / self.rows
        target_energy = min(FORCING, max(FORCING_LEAST, size)) ** 2 * first
        inner = 0
        while inner < most and energy > target_energy:
            inner += 1
            bent = self.curved(direction, curvature)
            stiffness = float((direction * bent).sum())
            if not stiffness > 0.0:
                break
            length = energy / stiffness
            solution += length * direction
            residual -= length * bent
            eased = self.on.eased(factor, residual)
            energy, before = float((residual * eased).sum()), energy
            direction = eased + (energy / before) * direction
        return solution, inner

    def _preconditioner(self, curvature: "_Curvature") -> Any:
        """Return the Cholesky factor of the sample's Hessian, (d + 1, d + 1)."""
        stride = self._sample_stride
        weights = curvature.mean[::stride]
        weights = weights * (self.rows / len(weights))
        hessian = self.on.zeros(self.width + 1, self.width + 1)
        picked = self.x[::stride]
        for start in range(0, len(picked), self.block):
            block = self.on.wide(picked[start : start + self.block])
            weight = weights[start : start + self.block, None]
            bent = block * self.on.xp.sqrt(weight)
            hessian[:-1, :-1] += bent.T @ bent
            hessian[-1, :-1] += (block * weight).sum(axis=0)
        hessian[:-1, -1] = hessian[-1, :-1]
        hessian[-1, -1] = weights.sum()
        diagonal = self.on.arange(self.width)
        hessian[diagonal, diagonal] += 1.0
        # Where every row is sure of its class, the intercept has no curvature left.
        hessian[-1, -1] += 1e-10 * self.rows + np.finfo(np.float64).tiny
        try:
            return self.on.factor(hessian)
        except SingularError as error:
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
        """Return the second derivative times a change of the decision values of some rows."""
        if self.binary:
            return self.variance[part] * moved
        chances = self.probabilities[part]
        change: Matrix = chances * (moved - (chances * moved).sum(axis=1, keepdims=True))
        return change

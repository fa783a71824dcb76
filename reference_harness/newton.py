"""Newton's method for the probe's problem, in memory bounded by blocks of embeddings.

Minimises, over weights W (d, K) and intercepts b (K,), with Z = X W + b,

    sum_i [log sum_k exp Z_ik - Z_i,y(i)] + |W|^2 / 2

which is scikit-learn's logistic regression with C = 1; two classes have one column, as there. Each
step solves the Newton system by conjugate gradients, whose products with the Hessian are sums over
blocks of embeddings: the features are converted to float64 block by block, and no matrix is larger
than (d + 1, d + 1). The first steps have no preconditioner, since word counts need none. Once they
have taken as long as one costs, it is the Hessian of a sample of the embeddings, averaged over the
classes, which leaves few steps whatever the features' scales are. It is factored in float32 where
that resolves it, and from the products of embeddings with each other where they are fewer than
columns. Gradients, products and steps are in float64, so that it decides how long the way to the
optimum is, and not where it ends.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

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
"""Share of the largest decision value by which those of a solution may differ from those of the
optimum: far below the tie of a canonical prediction, 1e-6."""
EXPECTED_SAFETY = 100.0
"""Factor on the change that is expected of a next step: the part of the last one that conjugate
gradients left open, and its square, which is Newton's own error."""
STEPS = 100
"""Steps of Newton; data sets measured took 3 to 18."""
INNER_STEPS = 2000
"""Steps of conjugate gradients in one step of Newton; data sets measured took up to 160."""
FORCING = 0.1
"""Largest relative residual of a Newton system. It shrinks with the change of decision values that
the step before lets expect, to which Newton's own error is proportional."""
FORCING_LEAST = 1e-5
SUFFICIENT = 1e-4
"""Armijo's constant."""
HALVINGS = 40
PRODUCTS_PER_NUMBER = 45
"""Multiplications in float32 of two matrices in the time in which an inner step reads one number of
the features: 21 ps and 0.47 ns on the processor measured."""
NOISE_MAX = 0.01
"""Rounding of a product with the Hessian, beside the product, up to which it is in float32."""
TRACE_NOISE_MAX = 4.0
"""Rounding of the trace of a Hessian up to which it is factored in float32. The penalty adds 1 to
each eigenvalue, and the largest is far below the trace."""
LENGTH_SAFETY = 1.01
"""Factor on a length whose square was summed in float32, over at most 8,192 columns."""
FORETOLD = 5
"""Inner steps after which their number is foretold from how fast the residual fell."""


class NotSolvedError(Exception):
    """The optimum was not reached; the message says how far the last step went."""


class Optimum(NamedTuple):
    """Weights (d, c) and intercepts (c,): c is 1 for two classes, else their number."""

    weights: Matrix
    intercepts: Matrix
    steps: int


def block_features(x: AnyMatrix) -> AnyMatrix:
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
        self.x = block_features(x)
        self.block = max(1, BLOCK_BYTES // (8 * self.width))
        self.room = np.empty((min(self.rows, max(1, PASS_BYTES // (8 * self.width))), self.width))
        self.longest = self._longest()
        noise = self.longest * self.width**0.5 * np.finfo(np.float32).eps
        self.number = np.float32 if noise < NOISE_MAX else np.float64

    def _longest(self) -> float:
        """Return at least the length of the longest embedding."""
        blocks = self.blocks(np.float32)
        squares = (np.einsum("ij,ij->i", block, block).max() for _, block in blocks)
        return LENGTH_SAFETY * float(np.sqrt(max(squares)))

    def blocks(self, number: type = np.float64) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Yield the features block by block in a floating type; the next overwrites a block."""
        step = len(self.room)
        for start in range(0, self.rows, step):
            part = slice(start, min(start + step, self.rows))
            block = self.x[part]
            is_single = number == np.float32
            yield part, np.asarray(block, number) if is_single else float64_block(block, self.room)

    def at(self, solution: Matrix) -> "_Point":
        """Return the decision values [X 1] `solution` and what follows from them, in one pass."""
        values, chances = np.empty((2, self.rows, self.columns))
        gradient = np.zeros(solution.shape)
        for part, block in self.blocks():
            np.matmul(block, solution[:-1], out=values[part])
            values[part] += solution[-1]
            chances[part] = self.probabilities(values[part])
            residuals = self.residuals(chances[part], self.targets[part])
            gradient[:-1] += block.T @ residuals
            gradient[-1] += residuals.sum(axis=0)
        gradient[:-1] += solution[:-1]
        return _Point(values, gradient, _Curvature(chances, binary=self.binary))

    def curved(self, direction: Matrix, curvature: "_Curvature") -> tuple[Matrix, Matrix]:
        """Return the Hessian's product with a direction, and the change of the values along it.

        Both take one pass over the features.
        """
        product = np.zeros(direction.shape)
        moved = np.empty((self.rows, self.columns))
        along = direction[:-1].astype(self.number)
        for part, block in self.blocks(self.number):
            moved[part] = block @ along
            moved[part] += direction[-1]
            bent = curvature.product(part, moved[part])
            product[:-1] += block.T @ bent.astype(self.number)
            product[-1] += bent.sum(axis=0)
        product[:-1] += direction[:-1]
        return product, moved

    def contrasted(self, solution: Matrix) -> Matrix:
        """Return a solution less what its classes share: of that, the optimum has nothing.

        The losses do not see it, so that what rounding adds of it would take many inner steps.
        """
        return solution if self.binary else solution - solution.mean(axis=1, keepdims=True)

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

    def residuals(self, probabilities: Matrix, targets: npt.NDArray[np.int64]) -> Matrix:
        """Return probability minus target, (n, c)."""
        differences = probabilities.copy()
        if self.binary:
            differences[:, 0] -= targets
        else:
            differences[self.each[: len(targets)], targets] -= 1.0
        return differences

    def solved(self) -> Optimum:
        solution = np.zeros((self.width + 1, self.columns))
        moved = expected = np.inf
        preconditioner: _Preconditioner | None = None
        worth = steps_left = self._inner_steps_worth_a_factor
        for step in range(1, STEPS + 1):
            values, gradient, curvature = self.at(solution)
            if not np.isfinite(gradient).all():
                msg = "the features are not finite, or beyond the range of float64"
                raise NotSolvedError(msg)
            largest = float(np.abs(values).max())
            accepted = max(CHANGE_MIN * largest, np.finfo(np.float64).tiny)
            excess = self._distance(gradient, curvature) / accepted
            if excess <= 1.0:
                return self._optimum(solution, step - 1)
            # A preconditioner is kept until it has cost as many inner steps as a new one is worth.
            is_new = steps_left <= 0
            if is_new:
                preconditioner, steps_left = self._factored(curvature), worth
            forcing = min(FORCING, max(FORCING_LEAST, expected, FORCING / excess))
            direction, change, inner, reached = self._direction(
                gradient,
                curvature,
                preconditioner or _Plain(curvature),
                forcing,
                INNER_STEPS if is_new else steps_left,
            )
            steps_left -= 0 if is_new else inner
            share = self._share(solution, direction, values, change, gradient)
            if share == 0.0:
                # Nothing lowers the loss in float64 any more: the step before was the last.
                if moved <= np.sqrt(CHANGE_MIN):
                    return self._optimum(solution, step)
                break
            solution += share * direction
            largest = float(np.abs(values + share * change).max())
            farthest = share * float(np.abs(change).max())
            moved, expected = farthest / largest, (reached + farthest / 2) * farthest
            if share == 1.0 and EXPECTED_SAFETY * expected <= CHANGE_MIN * largest:
                return self._optimum(solution, step)
        msg = f"the last of {step} steps of Newton moved decision values by {moved:.1e} of the "
        msg += f"largest, expected {CHANGE_MIN:.0e} at most"
        raise NotSolvedError(msg)

    def _distance(self, gradient: Matrix, curvature: "_Curvature") -> float:
        """Return a bound of the distance of decision values from those of the optimum.

        Once the intercepts are at their best for the weights, the objective is strongly convex in
        the weights with the penalty's modulus, 1: their distance is at most the gradient. To get
        there, intercepts shift residuals by as much as their own gradient in all.
        """
        intercepts = float(np.linalg.norm(gradient[-1]))
        weights = float(np.linalg.norm(gradient[:-1])) + self.longest * intercepts
        return 2.0 * self.longest * weights + intercepts / curvature.total

    def _optimum(self, solution: Matrix, steps: int) -> Optimum:
        return Optimum(solution[:-1], solution[-1], steps)

    def _share(
        self,
        solution: Matrix,
        direction: Matrix,
        values: Matrix,
        change: Matrix,
        gradient: Matrix,
    ) -> float:
        """Return the share of a step that lowers the objective enough; 0 where none does."""
        loss = self.loss(values) + float((solution[:-1] * solution[:-1]).sum()) / 2
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
                return share
            share /= 2
        return 0.0

    @property
    def _sample_stride(self) -> int:
        return max(1, round(self.rows / max(SAMPLE_EMBEDDINGS, SAMPLE_FACTOR * self.width)))

    @property
    def _inner_steps_worth_a_factor(self) -> int:
        """Inner steps that take about as long as a new preconditioner."""
        few, many = sorted((-(-self.rows // self._sample_stride), self.width))
        products = few * few * (many + few / 2)
        read = self.rows * self.width * (1 + self.columns) / 2
        return int(products / (PRODUCTS_PER_NUMBER * read))

    def _direction(
        self,
        gradient: Matrix,
        curvature: "_Curvature",
        preconditioner: "_Preconditioner",
        forcing: float,
        most: int,
    ) -> tuple[Matrix, Matrix, int, float]:
        """Solve the Newton system by preconditioned conjugate gradients.

        Returns the direction, the change of the values along it, the inner steps, or `most` where
        as many would not do, and the residual that is left, as a share of the first.
        """
        solution, change = np.zeros(gradient.shape), np.zeros((self.rows, self.columns))
        residual = -gradient
        eased = self.contrasted(preconditioner.eased(residual))
        direction = eased.copy()
        energy = first = float((residual * eased).sum())
        target = forcing**2 * first
        inner = 0
        while inner < most and energy > target:
            inner += 1
            bent, moved = self.curved(direction, curvature)
            stiffness = float((direction * bent).sum())
            if not stiffness > 0.0:
                break
            length = energy / stiffness
            solution += length * direction
            change += length * moved
            residual -= length * bent
            eased = self.contrasted(preconditioner.eased(residual))
            energy, before = float((residual * eased).sum()), energy
            if inner == FORETOLD and target < energy:
                fallen = np.log(max(energy / first, np.finfo(float).tiny))
                if fallen >= 0.0 or FORETOLD * np.log(target / first) / fallen > most:
                    inner = most
                    break
            direction = eased + (energy / before) * direction
        return solution, change, inner, (max(energy, 0.0) / first) ** 0.5 if first else 0.0

    def _factored(self, curvature: "_Curvature") -> "_Factored":
        """Return the sample's Hessian, factored: by columns, or by embeddings where fewer."""
        stride = self._sample_stride
        picked = self.x[::stride]
        weights = curvature.mean[::stride, None]
        centre = np.zeros(self.width)
        for part in self._parts(len(picked)):
            centre += (float64_block(picked[part]).T @ weights[part])[:, 0]
        centre /= max(float(weights.sum()), np.finfo(np.float64).tiny)
        weights = weights * (self.rows / len(weights))
        first = _weighed(picked[: self.block], weights[: self.block], centre, np.float64)
        trace = float((first * first).sum()) * len(picked) / len(first)
        resolved = trace * np.finfo(np.float32).eps < TRACE_NOISE_MAX
        for number in (np.float32, np.float64) if resolved else (np.float64,):
            factored = self._factored_in(number, picked, weights, centre)
            if factored is not None:
                return _Factored(*factored, centre, curvature.total)
        msg = "the Hessian of the features cannot be factored"
        raise NotSolvedError(msg)

    def _parts(self, rows: int) -> list[slice]:
        return [slice(start, start + self.block) for start in range(0, rows, self.block)]

    def _factored_in(
        self, number: type, picked: npt.NDArray[Any], weights: Matrix, centre: Matrix
    ) -> tuple[Any, npt.NDArray[Any] | None] | None:
        """Return a Cholesky factor, and the embeddings if it is of them; None where it has none."""
        from scipy.linalg import LinAlgError, cho_factor  # slow to import, see `probe`

        embeddings = None
        if len(picked) < self.width:
            embeddings = _weighed(picked, weights, centre, number)
            hessian = embeddings @ embeddings.T
        else:
            hessian = np.zeros((self.width, self.width), dtype=number)
            for part in self._parts(len(picked)):
                bent = _weighed(picked[part], weights[part], centre, number)
                hessian += bent.T @ bent
        hessian[np.diag_indices(len(hessian))] += 1.0
        try:
            factor = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        except (LinAlgError, ValueError):
            return None
        return factor, embeddings


def _weighed(
    rows: npt.NDArray[Any], weights: Matrix, centre: Matrix, number: type
) -> npt.NDArray[Any]:
    """Return embeddings less their centre, times the roots of their weights."""
    bent: npt.NDArray[Any] = np.asarray(rows, number) - centre.astype(number)
    bent *= np.sqrt(weights)
    return bent


class _Preconditioner(Protocol):
    """An approximate inverse of the Hessian."""

    def eased(self, residual: Matrix) -> Matrix:
        """Return its product with a residual (d + 1, c)."""


class _Plain:
    """The penalty alone, and the curvature along the intercept."""

    def __init__(self, curvature: "_Curvature") -> None:
        self.total = curvature.total

    def eased(self, residual: Matrix) -> Matrix:
        eased = residual.copy()
        eased[-1] /= self.total
        return eased


class _Factored:
    """A Hessian of centred embeddings; centred, weights and intercepts do not touch each other.

    With the embeddings A of a factor of I + A A^T, the inverse of I + A^T A is that of Woodbury.
    """

    def __init__(
        self, factor: Any, embeddings: npt.NDArray[Any] | None, centre: Matrix, total: float
    ) -> None:
        self.factor = factor
        self.embeddings = embeddings
        self.centre = centre[:, None]
        self.total = total

    def eased(self, residual: Matrix) -> Matrix:
        from scipy.linalg import cho_solve  # slow to import, see `probe`

        number = self.factor[0].dtype
        pulled = residual[:-1] - self.centre * residual[-1]
        if self.embeddings is None:
            weights = cho_solve(self.factor, pulled.astype(number), check_finite=False)
        else:
            inner = self.embeddings @ pulled.astype(number)
            inner = cho_solve(self.factor, inner, check_finite=False)
            weights = pulled - self.embeddings.T @ inner
        intercepts = residual[-1] / self.total - (self.centre * weights).sum(axis=0)
        return np.concatenate([weights, intercepts[None]]).astype(np.float64)


class _Point(NamedTuple):
    """Decision values at a solution, and the derivatives of the objective there."""

    values: Matrix
    """Decision values (n, c)."""
    gradient: Matrix
    curvature: "_Curvature"


class _Curvature:
    """Second derivatives of the losses at some probabilities (n, c)."""

    def __init__(self, probabilities: Matrix, *, binary: bool) -> None:
        self.probabilities = probabilities
        self.binary = binary
        variance = probabilities * (1.0 - probabilities)
        self.mean: Matrix = variance.mean(axis=1)
        # Where every embedding is sure of its class, an intercept has no curvature left.
        self.total = float(self.mean.sum()) + 1e-10 * len(variance) + np.finfo(np.float64).tiny
        self.variance = variance

    def product(self, part: slice, moved: Matrix) -> Matrix:
        """Return the second derivative times a change of the decision values of some embeddings."""
        if self.binary:
            return self.variance[part] * moved
        chances = self.probabilities[part]
        change: Matrix = chances * (moved - (chances * moved).sum(axis=1, keepdims=True))
        return change

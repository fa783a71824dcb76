"""The influence of the deviations of drawn embeddings on the loss of the test embeddings.

Alterations of training embeddings may have any direction, but their purpose is to change the
decisions on the test embeddings. So the effect of each deviation on the test loss is computed to
first order. D = c - r16 is the difference of a committed embedding from the rounding of its rerun;
f = W'x + b is the probe of the full regime, p its softmax, r = p - y the residual of the true label
y, and S = diag(p) - pp'. The loss L is the mean of -log p_y over the test embeddings, g is its
gradient with respect to W and b, and h = H^-1 g, where H is the Hessian of the probe's objective
over the training embeddings. Moving an embedding by D changes L by

    I = r . W'D / m                                 for one of m test embeddings
    I = -(r . h'D + (h'x + h_b) . S W'D)            for a training (or support) embedding

The statistic of a part, training or test, is Wilcoxon's of signed ranks, over all tasks together:

    t = sum z / sqrt(sum z^2),    z = sign(I) rank of |I| / (embeddings of the task and part + 1)

If the signs of honest deviations are independent of the labels, |t| exceeds T with probability at
most 2 exp(-T^2 / 2), whatever their sizes are. The test is two-sided: beyond first order an
alteration may have the opposite effect, and honest deviations prefer neither sign.

Without a tolerance, two altered training embeddings of 1,900 can raise an MCC by 0.14, and a draw
rarely includes them. But few embeddings can move the optimum that much, and they can be found: the
training embeddings whose removal would change the test loss most, |r . (h'x + h_b)|, are always
embedded again, and so are those furthest from the others in the spreads of the columns, since they
could affect a fit that stops before its optimum.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.alteration_power import BINARY_CLASSES
from geneb_ci.receipt.direction import Labels, Probe, midranks
from geneb_ci.receipt.embeddings import STRONGEST, pooled_mismatch_limit
from geneb_ci.receipt.rounding import Float16Array, Float64Array

BLOCK_EMBEDDINGS = 4096
"""Number of embeddings that are converted to float64 at a time."""
STEPS, STEPS_MAX = 100, 2000
"""Number of products with the Hessian, and their maximum if the Hessian is too large to be solved.
Most searches need a tenth of `STEPS`; but if an extractor mixes columns from parts of very
different size, thousands are needed, and after 100 products other embeddings would be the
strongest. In records before version 2.2 the search ended after `STEPS`."""
ACCURATE = 1e-3
"""Relative residual of H h = g at which the search for h ends."""
SOLVED_MAX = 4200
"""Largest number of unknowns of a Hessian that is solved directly: it takes 140 MB, and half a
minute of one core for 20,000 embeddings."""
FLAT = 1e-9
"""Number added to the diagonal of the Hessian for intercepts: they have no penalty, so that with
many classes the Hessian is singular."""
PENALTY = 1.0
"""Factor of half the squared weights in the objective of the probe, whose parameter C is 1."""
FEATURE_MAX = 2.0**50
"""Largest number in an embedding for which no sum of squares over a task overflows."""


class TaskInfluence(NamedTuple):
    """Inputs of the influence of each embedding of a task: h = H^-1 g, and a centre."""

    weights: Float64Array
    """(d, c) part of h for the weights of the probe."""
    intercepts: Float64Array
    """(c,) part of h for the intercepts of the probe."""
    centre: Float64Array
    """(d,) mean of the training embeddings, which is subtracted from features."""
    test: int
    """Number of test embeddings of the task."""


SPREAD_EMBEDDINGS = 2048
"""Largest number of training embeddings from which the spreads of the columns are computed."""


class StrongestEmbeddings(NamedTuple):
    """Indices of the training embeddings of a task that could affect its scores most.

    There are twice `STRONGEST` by each measure, the strongest first.
    """

    by_influence: list[int]
    """Those whose removal would change the test loss most."""
    by_distance: list[int]
    """Those that are farthest from the others."""

    @property
    def rows(self) -> list[int]:
        """The embeddings to embed again, ascending."""
        return sorted({*self.by_influence[:STRONGEST], *self.by_distance[:STRONGEST]})

    def allows(self, rows: Sequence[int]) -> bool:
        """Whether `rows` may be the strongest as computed on another machine.

        There, embeddings of similar strength may have other ranks.
        """
        half = STRONGEST // 2
        required = {*self.by_influence[:half], *self.by_distance[:half]}
        return required <= set(rows) <= {*self.by_influence, *self.by_distance}


def strongest_embeddings(
    embeddings: Float16Array,
    scale_log2: int,
    labels: Labels,
    influence: TaskInfluence,
    probe: Probe,
) -> StrongestEmbeddings:
    """Return which (n, d) training embeddings of a receipt could affect its scores most."""
    step = -(-len(embeddings) // SPREAD_EMBEDDINGS)
    sample = centred_features(embeddings[::step], scale_log2, influence.centre).astype(np.float64)
    median, deviation = np.median(sample, axis=0), sample.std(axis=0)
    spread = np.maximum(deviation, np.median(deviation))
    spread[spread == 0] = 1.0
    intercepts = probe.intercepts + influence.centre @ probe.weights
    influences, distances = np.empty(len(embeddings)), np.empty(len(embeddings))
    for start in range(0, len(embeddings), BLOCK_EMBEDDINGS):
        block = slice(start, start + BLOCK_EMBEDDINGS)
        features = centred_features(embeddings[block], scale_log2, influence.centre).astype(
            np.float64
        )
        _, residual = probabilities_and_residuals(
            features @ probe.weights + intercepts, labels[block], probe.classes
        )
        along_h = features @ influence.weights + influence.intercepts
        influences[block] = np.abs((residual * along_h).sum(axis=1))
        distances[block] = np.square((features - median) / spread).sum(axis=1)

    def strongest(measure: Float64Array) -> list[int]:
        rows: list[int] = np.argsort(-measure, kind="stable")[: 2 * STRONGEST].tolist()
        return rows

    return StrongestEmbeddings(strongest(influences), strongest(distances))


class EmbeddingInfluence(NamedTuple):
    """The influence of each drawn embedding of one part of a task on the test loss."""

    split: str
    """`training` or `test`."""
    influences: Float64Array
    """(n,) influence I of each embedding, 0 if it does not deviate."""


def centred_features(
    embeddings: Float16Array, scale_log2: int, centre: Float64Array
) -> npt.NDArray[np.float32]:
    """Return (n, d) embeddings of a receipt multiplied by 2**scale_log2, minus a (d,) centre."""
    features = np.empty(embeddings.shape, dtype=np.float32)
    for start in range(0, len(embeddings), BLOCK_EMBEDDINGS):
        block = np.ldexp(
            embeddings[start : start + BLOCK_EMBEDDINGS].astype(np.float64), scale_log2
        )
        features[start : start + BLOCK_EMBEDDINGS] = block - centre
    return features


def centre_of(embeddings: Float16Array, scale_log2: int) -> Float64Array:
    """Return the (d,) mean of the (n, d) embeddings of a receipt, times 2**`scale_log2`."""
    total = np.zeros(embeddings.shape[1])
    for start in range(0, len(embeddings), BLOCK_EMBEDDINGS):
        total += embeddings[start : start + BLOCK_EMBEDDINGS].astype(np.float64).sum(axis=0)
    return np.ldexp(total / max(1, len(embeddings)), scale_log2)


def softmax(decision: Float64Array) -> Float64Array:
    """Return the (n, c) probabilities of (n, c) decision values."""
    powers = np.exp(decision - decision.max(axis=1, keepdims=True))
    probabilities: Float64Array = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def probabilities_and_residuals(
    decision: Float64Array, labels: Labels, classes: Labels
) -> tuple[Float64Array, Float64Array]:
    """Return the (n, c) probabilities, and the probabilities minus the one-hot labels.

    An embedding with a label that the probe lacks has residual 0.
    """
    probabilities = softmax(decision)
    column = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    is_class = classes[column] == labels
    residual = probabilities.copy()
    residual[np.arange(len(labels)), column] -= 1
    residual[~is_class] = 0
    return probabilities, residual


def too_large_reason(embeddings: Float16Array, scale_log2: int) -> str:
    """Return why no influence of (n, d) embeddings of a receipt can be computed, or ""."""
    largest = math.ldexp(max(float(embeddings.max()), -float(embeddings.min())), scale_log2)
    if largest <= FEATURE_MAX:
        return ""
    return f"the largest feature is {largest:.1e}, expected at most {FEATURE_MAX:.1e}"


def influence_of(
    embeddings: Float16Array,
    scale_log2: int,
    train: int,
    labels: Labels,
    probe: Probe,
    *,
    by_steps: bool = False,
) -> TaskInfluence:
    """Return what the influence of each embedding of a task follows from: h = H^-1 g.

    `embeddings` are (n, d), `labels` (n,). The first `train` of them are training embeddings. With
    `by_steps`, the search has at most `STEPS` steps, as in records before version 2.2.
    """
    centre = centre_of(embeddings[:train], scale_log2)
    intercepts = probe.intercepts + centre @ probe.weights
    # With two classes the first column is 0 by definition.
    is_free = np.arange(len(probe.classes)) >= int(len(probe.classes) == BINARY_CLASSES)
    test = centred_features(embeddings[train:], scale_log2, centre)
    _, residual = probabilities_and_residuals(
        test @ probe.weights + intercepts, labels[train:], probe.classes
    )
    gradient = np.vstack([test.T @ residual, residual.sum(axis=0)]) * is_free / max(1, len(test))
    del test
    features = centred_features(embeddings[:train], scale_log2, centre)
    probabilities = softmax(features @ probe.weights + intercepts)
    curvature = probabilities * (1 - probabilities)
    diagonal = np.vstack([np.square(features).T @ curvature + PENALTY, curvature.sum(axis=0)])

    def hessian_product(step: Float64Array) -> Float64Array:
        decision_change = features @ step[:-1].astype(np.float32) + step[-1]
        residual_change = probabilities * (
            decision_change - (probabilities * decision_change).sum(axis=1, keepdims=True)
        )
        weight_product = features.T @ residual_change.astype(np.float32) + PENALTY * step[:-1]
        return np.vstack([weight_product, residual_change.sum(axis=0)]) * is_free

    positive_diagonal = np.maximum(diagonal, np.finfo(np.float64).tiny)
    search = _search_by_conjugate_gradients(hessian_product, gradient, positive_diagonal, STEPS)
    if search.is_accurate or by_steps:
        solution = search.solution
    elif (embeddings.shape[1] + 1) * int(is_free.sum()) <= SOLVED_MAX:
        solution = _solution_of_linear_equations(
            features, probabilities, gradient, is_free.nonzero()[0]
        )
    else:
        solution = _search_by_conjugate_gradients(
            hessian_product, gradient, positive_diagonal, STEPS_MAX
        ).solution
    return TaskInfluence(solution[:-1], solution[-1], centre, len(embeddings) - train)


def _solution_of_linear_equations(
    features: npt.NDArray[np.float32],
    probabilities: Float64Array,
    gradient: Float64Array,
    free_classes: Labels,
) -> Float64Array:
    """Return h = H^-1 g for a gradient g, by solving the linear equations of the free classes."""
    size, solution = len(gradient), np.zeros_like(gradient)
    loss_hessian = np.zeros((len(free_classes), size, len(free_classes), size))
    for start in range(0, len(features), BLOCK_EMBEDDINGS):
        block = features[start : start + BLOCK_EMBEDDINGS].astype(np.float64)
        extended = np.hstack([block, np.ones((len(block), 1))])  # for the intercepts
        block_probabilities = probabilities[start : start + BLOCK_EMBEDDINGS]
        for index, row in enumerate(free_classes):
            for other_index, column in enumerate(free_classes[: index + 1]):
                curvature = block_probabilities[:, row] * (
                    (row == column) - block_probabilities[:, column]
                )
                curvature_block = (extended * curvature[:, None]).T @ extended
                loss_hessian[index, :, other_index] += curvature_block
                if other_index < index:
                    loss_hessian[other_index, :, index] += curvature_block
    hessian = loss_hessian.reshape(len(free_classes) * size, -1)
    penalties = np.tile(np.r_[np.full(size - 1, PENALTY), FLAT], len(free_classes))
    hessian[np.diag_indices_from(hessian)] += penalties
    solution[:, free_classes] = (
        np.linalg.solve(hessian, gradient[:, free_classes].T.reshape(-1)).reshape(-1, size).T
    )
    return solution


class _SearchResult(NamedTuple):
    """An approximation of h = H^-1 g."""

    solution: Float64Array
    is_accurate: bool
    """Whether the relative residual is at most `ACCURATE`."""


def _search_by_conjugate_gradients(
    product: Callable[[Float64Array], Float64Array],
    gradient: Float64Array,
    diagonal: Float64Array,
    steps: int,
) -> _SearchResult:
    """Return an approximate h = H^-1 g by conjugate gradients, preconditioned by diag(H).

    `product` multiplies by H.
    """
    solution = np.zeros_like(gradient)
    remaining = gradient.copy()
    scaled = remaining / diagonal
    step, squared_norm = scaled.copy(), float((remaining * scaled).sum())
    squared_norm_min = ACCURATE**2 * squared_norm
    for _ in range(steps):
        if squared_norm <= squared_norm_min:
            break
        hessian_step = product(step)
        curvature = float((step * hessian_step).sum())
        if curvature <= 0:  # only rounding errors are left
            break
        solution += squared_norm / curvature * step
        remaining -= squared_norm / curvature * hessian_step
        scaled = remaining / diagonal
        earlier_norm, squared_norm = squared_norm, float((remaining * scaled).sum())
        step = scaled + squared_norm / earlier_norm * step
    return _SearchResult(solution, squared_norm <= squared_norm_min)


class DrawnPart(NamedTuple):
    """The n drawn embeddings of training or of test sequences of a task."""

    split: str
    committed: Float16Array
    """(n, d) embeddings of the receipt."""
    rounded: Float16Array
    """(n, d) rounded rerun; an embedding that overflows counts as not deviating."""
    labels: Labels


TRAINING, TEST = "training", "test"


def influence_gradients(
    drawn: DrawnPart, scale_log2: int, influence: TaskInfluence, probe: Probe
) -> Float64Array:
    """Return the (n, d) derivatives of the influence I with respect to the embeddings of a part."""
    centred = np.ldexp(drawn.committed.astype(np.float64), scale_log2) - influence.centre
    decision = centred @ probe.weights + probe.intercepts + influence.centre @ probe.weights
    probabilities, residual = probabilities_and_residuals(decision, drawn.labels, probe.classes)
    if drawn.split == TEST:
        test_derivatives: Float64Array = residual @ probe.weights.T / max(1, influence.test)
        return test_derivatives
    along_h = centred @ influence.weights + influence.intercepts
    curved = probabilities * (along_h - (probabilities * along_h).sum(axis=1, keepdims=True))
    has_unknown_label = ~residual.any(axis=1)
    curved[has_unknown_label] = 0
    training_derivatives: Float64Array = -(
        residual @ influence.weights.T + curved @ probe.weights.T
    )
    return training_derivatives


def influence_on_loss(
    drawn: DrawnPart, scale_log2: int, influence: TaskInfluence, probe: Probe
) -> EmbeddingInfluence:
    """Return the influence of each drawn embedding of a part."""
    is_differing = (drawn.rounded != drawn.committed).any(axis=0)
    committed = drawn.committed[:, is_differing].astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = committed - drawn.rounded[:, is_differing].astype(np.float64)
    difference[~np.isfinite(difference).all(axis=1)] = 0
    slopes = influence_gradients(drawn, scale_log2, influence, probe)[:, is_differing]
    return EmbeddingInfluence(drawn.split, (np.ldexp(difference, scale_log2) * slopes).sum(axis=1))


def largest_loss_reduction(
    drawn: DrawnPart,
    rerun: Float64Array,
    limits: Float64Array,
    slopes: Float64Array,
    scale_log2: int,
    row_count: int,
) -> float:
    """Return by how much the test loss can fall if embeddings move within their tolerances.

    The part has `row_count` embeddings. `rerun` has the (n, d) drawn ones and `limits` their
    tolerances, divided by the scale. Each coordinate can move to a neighbouring float16 value that
    passes; the number of coordinates that move is limited by `pooled_mismatch_limit`.
    """
    if not len(drawn.rounded):
        return 0.0
    steps = np.zeros(rerun.shape)
    for direction in (-np.inf, np.inf):
        neighbour = np.nextafter(drawn.rounded, np.float16(direction), dtype=np.float16).astype(
            np.float64
        )
        step = np.abs(neighbour - drawn.rounded)
        with np.errstate(invalid="ignore"):
            passes = np.abs((neighbour + drawn.rounded) / 2 - rerun) <= limits
        steps = np.maximum(steps, np.where(passes & np.isfinite(step), step, 0))
    gains = np.ldexp(np.where(steps > 0, np.maximum(steps, limits), 0) * np.abs(slopes), scale_log2)
    count_max = pooled_mismatch_limit(*gains.shape)
    largest = np.sort(gains, axis=None)[::-1][:count_max]
    return math.fsum(largest.tolist()) / len(gains) * row_count


class PartStatistic(NamedTuple):
    """The statistic t of the influences of training, or of test, embeddings over all tasks."""

    rows: int
    """Number of embeddings that deviate."""
    statistic: float
    """Signed-rank statistic t; below 0 if deviations lower the test loss."""


def part_statistic(influences: Iterable[EmbeddingInfluence]) -> PartStatistic:
    """Return the statistic t of training, or of test, embeddings; 0 if no embedding deviates."""
    totals, squares, rows = [], [], 0
    for task_influence in influences:
        nonzero = task_influence.influences[task_influence.influences != 0]
        signed_ranks = np.sign(nonzero) * midranks(np.abs(nonzero)) / (len(nonzero) + 1)
        totals.append(math.fsum(signed_ranks.tolist()))
        squares.append(math.fsum((signed_ranks * signed_ranks).tolist()))
        rows += len(nonzero)
    spread = math.sqrt(math.fsum(squares))
    return PartStatistic(rows, math.fsum(totals) / spread if spread else 0.0)

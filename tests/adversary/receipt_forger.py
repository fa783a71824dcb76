"""A forger who knows every rule of an audit by receipt: what he gains, and what bounds it.

He alters embeddings of the receipt. **Within the tolerances**, embeddings that a rerun calls the
same: a coordinate may take the other float16 value beside it where that one passes, few of each
embedding, and few of all embeddings together. What that can do to the decisions on the test
embeddings bounds his gain, whatever he looks for: a test embedding that is predicted wrong can
become right if its margin is less than what its own coordinates, and those of the training
embeddings by their influence, can move it by.

    own       sum of the largest |w_j| step_j of the embedding, as many as may round otherwise
    training  sum of the largest |dm / dx_rj| step_rj over training embeddings r and columns j, as
    many as
              may round otherwise in an embedding, and in all embeddings together

    stop      what another stop of the fit can do

m is the margin by the probe of record, the decision value of the true class less that of its rival,
w its weights at the optimum; dm/dx is of first order, there. The probe of record stops before it,
and any change of its embeddings may let it stop elsewhere, as in docs/maintainer/tolerance.md: a
short fit of few embeddings at the points that `stopping_points` finds, others beyond the optimum as
far as before it. Tasks of two classes alone.

**Few embeddings altered at will**, in the hope that none is drawn: test embeddings that become
right are bounded by `alteration_power.hit_lower_bound`; for training embeddings no bound is known,
only what was gained."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.alteration_power import MEASURED_GAINS, Alterations, hit_lower_bound, mcc
from geneb_ci.receipt.column_rule import coordinate_tolerances
from geneb_ci.receipt.direction import Probe
from geneb_ci.receipt.draw import STANDARD_TEST_DRAWS, STANDARD_TRAINING_DRAWS
from geneb_ci.receipt.embeddings import mismatch_limit, pooled_mismatch_limit
from geneb_ci.receipt.influence import influence_of, strongest_embeddings
from geneb_ci.receipt.raise_bound import CellDraw
from geneb_ci.receipt.rounding import divided_by_scale, receipt_values
from geneb_ci.statistics.metrics import scores_of_matrix
from reference_harness.data.task_data import TaskData
from reference_harness.probe import logistic, metrics, stopping_points
from reference_harness.probe.optimum import solve
from reference_harness.receipt.rounding import widened
from tests.adversary.levers import Option

Wide = npt.NDArray[np.float64]
Half = npt.NDArray[np.float16]
Rows = npt.NDArray[np.float32]
BUDGET = math.log(20)
"""Expected hits that a draw misses with 5 %."""
CAUTION = 0.8
"""Part of the tolerances that he uses: the audit measures them on the embeddings that it draws."""
STOPS = 2.0
"""Times the distance from the optimum within which a fit of all embeddings may stop."""
RAISE_MAX = 0.2
"""Largest raise that is looked for."""


class Steps(NamedTuple):
    """What the tolerances leave of (n, d) embeddings."""

    rounded: Half
    """The honest receipt."""
    other: Half
    """The value beside it that passes; the same where none does."""
    size: Wide
    """How far a coordinate may be moved, as a feature."""


def steps_of(rows: Rows, scale_log2: int = 0, part: float = 1.0) -> Steps:
    """Return the steps of the embeddings of a rerun, within a part of the tolerances."""
    rounded, wide = receipt_values(rows, scale_log2), divided_by_scale(rows, scale_log2)
    limits = part * coordinate_tolerances(rows, scale_log2)
    towards = np.where(wide > rounded, np.inf, -np.inf).astype(np.float16)
    other = np.nextafter(rounded, towards, dtype=np.float16)
    unit = np.spacing(np.abs(other)).astype(np.float64)
    other = np.where(np.abs(other - wide) - unit / 2 <= limits, other, rounded)
    step = np.abs(other.astype(np.float64) - rounded)
    # Near 0, where values lie dense, a coordinate may go further than to its neighbour.
    farthest = np.where(limits < unit / 2, step, np.where(step > 0, limits + unit, 0.0))
    return Steps(rounded, other, np.ldexp(farthest, scale_log2))


def largest(values: Wide, count: int) -> Wide:
    """Return (n, d) values without those of each embedding that are not among its `count`
    largest."""
    if count >= values.shape[1]:
        return values
    least = np.partition(values, -count, axis=1)[:, -count][:, None]
    return np.where(values >= least, values, 0.0)


class Reach(NamedTuple):
    """What shifts within the tolerances can do to one fit."""

    margins: Wide
    """(m,) of the test embeddings: below 0 where they are predicted wrong."""
    own: Wide
    """(m,) by how much shifts of the embedding itself can raise its margin."""
    training: Wide
    """(m,) by how much shifts of training embeddings can."""
    stop: Wide
    """(m,) by how much another stop can."""

    def gain(self, labels: npt.NDArray[np.int64]) -> float:
        """Return the MCC if every wrong embedding that can become right did, less that of the
        fit."""
        positive, wrong = labels == labels.max(), self.margins <= 0
        flips = wrong & (-self.margins <= self.own + self.training + self.stop)

        def score(right: npt.NDArray[np.bool_]) -> float:
            counts = (positive, right)
            tn, fp, fn, tp = (
                np.array([float(part.sum())])
                for part in (
                    ~counts[0] & counts[1], ~counts[0] & ~counts[1],
                    counts[0] & ~counts[1], counts[0] & counts[1],
                )
            )  # fmt: skip
            return float(mcc(tn, fp, fn, tp)[0])

        return score(~wrong | flips) - score(~wrong)


def reach_of(
    rows: Rows, data: TaskData, chosen: npt.NDArray[np.int64] | None, scale_log2: int = 0
) -> Reach:
    """Return the reach of one fit of a task of two classes; `rows` are those of the rerun."""
    steps = steps_of(rows, scale_log2)
    features = widened(steps.rounded, scale_log2).astype(np.float64)
    cut, width = len(data.train.labels), rows.shape[1]
    used = np.arange(cut) if chosen is None else chosen
    solved = solve(features[used], data.train.labels[used])
    weights = solved.weights[:, 1] - solved.weights[:, 0]
    decision = features @ weights + (solved.intercepts[1] - solved.intercepts[0])
    sides = np.where(data.test.labels == data.test.labels.max(), 1.0, -1.0)
    own = largest(np.abs(weights) * steps.size[cut:], mismatch_limit(width)).sum(axis=1)
    train = np.hstack([features[used], np.ones((len(used), 1))])
    probability = 1 / (1 + np.exp(-decision[used]))
    curvature = probability * (1 - probability)
    hessian = (train * curvature[:, None]).T @ train
    hessian[np.arange(width), np.arange(width)] += 1.0
    hessian[width, width] += 1e-9
    test = np.hstack([features[cut:], np.ones((len(decision) - cut, 1))])
    moved = np.linalg.solve(hessian, test.T).T
    residual = probability - (data.train.labels[used] == data.train.labels.max())
    pooled, size = pooled_mismatch_limit(len(used), width), steps.size[used]
    training = np.empty(len(test))
    for number, h in enumerate(moved):
        slopes = residual[:, None] * h[:-1] + (curvature * (train @ h))[:, None] * weights
        values = largest(np.abs(slopes) * size, mismatch_limit(width))
        most = min(pooled, values.size)
        training[number] = np.partition(values, values.size - most, axis=None)[-most:].sum()
    values = features.astype(np.float32)
    problem = logistic.Problem(values[:cut], data.train.labels, values[cut:], data.test.labels)
    (fit,) = logistic.fit_all(problem, [chosen])
    along = fit.weights[:, 1] - fit.weights[:, 0]
    margins = sides * (features[cut:] @ along + fit.intercepts[-1] - fit.intercepts[:-1].sum())
    stops = (
        stopping_points.predictions_at_stops(problem, [chosen], [fit])[0]
        if chosen is not None
        else []
    )
    if stops:
        right = np.any([labels == data.test.labels for labels in stops], axis=0)
        return Reach(margins, own, training, np.where(right, np.inf, 0.0))
    return Reach(margins, own, training, STOPS * np.abs(margins - sides * decision[cut:]))


def bound_within(
    rows: Rows, data: TaskData, shots: Mapping[str, int], seeds: Sequence[int], regime: str
) -> float:
    """Return by how much MCC of one task can rise within the tolerances, in the mean of seeds."""
    fits = logistic.fit_indices(data.train.labels, regime, list(seeds), dict(shots))
    return float(np.mean([reach_of(rows, data, fit).gain(data.test.labels) for fit in fits]))


def within(rows: Rows, data: TaskData, share: float, chosen: npt.NDArray[np.int64] | None) -> Rows:
    """Return a receipt that is altered within the tolerances, towards the labels of the test
    embeddings.

    Test embeddings take the steps that raise their margin most; training embeddings those that
    lower the loss of the test embeddings, a `share` of the embeddings of each part, those that gain
    most. It attacks the fit of all embeddings, or that of the chosen ones."""
    steps, cut = steps_of(rows, part=CAUTION), len(data.train.labels)
    features, width = widened(steps.rounded, 0).astype(np.float64), rows.shape[1]
    used = np.arange(cut) if chosen is None else chosen
    solved = solve(features[used], data.train.labels[used])
    weights = solved.weights[:, 1] - solved.weights[:, 0]
    decision = features @ weights + (solved.intercepts[1] - solved.intercepts[0])
    target = (data.test.labels == data.test.labels.max()).astype(np.float64)
    chance = 1 / (1 + np.exp(-decision))
    difference = steps.other.astype(np.float64) - steps.rounded
    slopes = np.zeros(rows.shape)
    slopes[cut:] = (chance[cut:] - target)[:, None] * weights / len(target)
    train = np.hstack([features[used], np.ones((len(used), 1))])
    curvature = chance[used] * (1 - chance[used])
    hessian = (train * curvature[:, None]).T @ train + np.diag([*np.ones(width), 1e-9])
    test = np.hstack([features[cut:], np.ones((len(target), 1))])
    h = np.linalg.solve(hessian, (chance[cut:] - target) @ test / len(target))
    residual = chance[used] - (data.train.labels[used] == data.train.labels.max())
    slopes[used] = -(residual[:, None] * h[:-1] + (curvature * (train @ h))[:, None] * weights)
    gains = largest(np.maximum(-slopes * difference, 0), mismatch_limit(width))
    receipt = steps.rounded.copy()
    for part in (used, np.arange(cut, len(rows))):
        taken = part[np.argsort(-gains[part].sum(axis=1))[: round(share * len(part))]]
        own = gains[taken]
        most = min(int(CAUTION * pooled_mismatch_limit(len(part), width)), own.size)
        if most:
            least = max(np.partition(own, own.size - most, axis=None)[-most], 1e-300)
            receipt[taken] = np.where(own >= least, steps.other[taken], receipt[taken])
    return widened(receipt, 0)


def by_test_rows(cells: Sequence[Alterations], hits: float = BUDGET) -> float:
    """Return the bound of the raise of a macro by altered test embeddings that a draw may miss.

    `hits` is how many altered embeddings it hits on average, by the standard number of draws.
    """
    low, high = 0.0, RAISE_MAX
    for _ in range(25):
        middle = (low + high) / 2
        missed = STANDARD_TEST_DRAWS * hit_lower_bound(cells, middle) <= hits
        low, high = (middle, high) if missed else (low, middle)
    return high


class Forgery(NamedTuple):
    """Test embeddings of one probe that a forger makes right, and what they honestly are."""

    altered: npt.NDArray[np.int64]
    """(k,) of each class."""
    honest: npt.NDArray[np.int64]
    """(k, k) matrix of the rerun."""

    @classmethod
    def of(cls, cell: CellDraw, altered: Sequence[int], random: np.random.Generator) -> "Forgery":
        """Return one whose embeddings are honestly taken for other classes, all of one in half of
        the cases."""
        honest, classes = cell.matrix.copy(), len(altered)
        for own, count in enumerate(altered):
            others = [other for other in range(classes) if other != own]
            weights = np.ones(len(others)) if random.random() < 0.5 else np.eye(len(others))[0]
            honest[own, own] -= count
            honest[own, others] += random.multinomial(count, weights / weights.sum())
        return cls(np.array(altered, dtype=np.int64), honest)


def hits_of(cell: CellDraw, forgery: Forgery) -> float:
    """Return how many draws hit an altered embedding in the mean."""
    among, of_class = rates_of(cell, forgery.altered)
    return cell.uniform_draws * among + cell.class_first_draws * of_class


def rates_of(cell: CellDraw, altered: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the probabilities that a draw of either way is altered."""
    drawn_from = cell.correct > 0
    of_class = (altered[drawn_from] / cell.correct[drawn_from]).mean()
    return float(altered.sum() / cell.correct.sum()), float(of_class)


def gain_of(cell: CellDraw, forgery: Forgery) -> float:
    """Return by how much the mean of the regime is raised."""
    claimed, honest = (scores_of_matrix(m.tolist()).mcc for m in (cell.matrix, forgery.honest))
    return cell.weight * (claimed - honest)


class BestForgery(NamedTuple):
    """The largest raise that was found among those that a draw misses with 5 %."""

    gain: float
    missed: float


def best_forgery(cells: Sequence[CellDraw]) -> BestForgery:
    """Return the best forgery of probes of two classes, by whole numbers of altered embeddings."""
    options = []
    for cell in cells:
        (tn, fp), (fn, tp) = cell.matrix.astype(np.float64)
        a, b = np.meshgrid(np.arange(tn + 1), np.arange(tp + 1), indexing="ij")
        gain = cell.weight * (mcc(tn, fp, fn, tp) - mcc(tn - a, fp + a, fn + b, tp - b))
        among = (a + b) / cell.correct.sum()
        of_class = (a / cell.correct[0] + b / cell.correct[1]) / 2
        with np.errstate(divide="ignore"):
            cost = -cell.uniform_draws * np.log1p(-among) - cell.class_first_draws * np.log1p(
                -of_class
            )
        options.append((gain.reshape(-1), cost.reshape(-1)))
    best = BestForgery(0.0, 1.0)
    for price in np.geomspace(1e-4, 1, 400):
        picks = [int(np.argmax(gain - price * cost)) for gain, cost in options]
        total = sum(cost[pick] for (_, cost), pick in zip(options, picks, strict=True))
        left = BUDGET - total
        if left < 0:
            continue
        for number, (gain, cost) in enumerate(options):  # what is left is spent as well
            pick = picks[number]
            more = int(np.argmax(np.where(cost <= cost[pick] + left, gain, -np.inf)))
            left -= max(0.0, cost[more] - cost[pick])
            picks[number] = more
        raised = sum(gain[pick] for (gain, _), pick in zip(options, picks, strict=True))
        if raised > best.gain:
            best = BestForgery(float(raised), math.exp(left - BUDGET))
    return best


def by_training_rows(tasks: int, hits: float = BUDGET) -> float:
    """Return the mean raise that altered training embeddings had of which a draw hits so many.

    Interpolated between the shares that were measured. It is no bound.
    """
    gains = [0.0, *(gain for gain, _ in MEASURED_GAINS.values())]
    share = hits / (tasks * STANDARD_TRAINING_DRAWS)
    return float(np.interp(share, [0.0, *MEASURED_GAINS], gains))


SIZES = (0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 30.0, 100.0)
"""Distances of a planted embedding from the centre of the training embeddings, in mean distances of
theirs."""


class PlantedGain(NamedTuple):
    """By how much one training embedding, altered at will, raises the MCC of a fit on some
    embeddings."""

    at_will: float
    missed: float
    """If it may not be one of the strongest embeddings, which are embedded again whatever is
    drawn."""


def is_strongest(rows: Rows, data: TaskData, index: int) -> bool:
    """Whether a training embedding is embedded again for its influence or its distance."""
    cut, half = len(data.train.labels), receipt_values(rows, 0)
    labels = np.concatenate([data.train.labels, data.test.labels])
    solved = solve(widened(half, 0)[:cut], data.train.labels)
    own = Probe(solved.weights, solved.intercepts, solved.classes)
    influence = influence_of(half, 0, cut, labels, own)
    return index in strongest_embeddings(half[:cut], 0, data.train.labels, influence, own).rows


def planted_gain(rows: Rows, data: TaskData, fit: npt.NDArray[np.int64], index: int) -> PlantedGain:
    """Return what a planted embedding gains.

    It is put along the weights that separate the test embeddings, on the side of its label, at the
    best of some distances."""
    cut = len(data.train.labels)
    centre = rows[:cut].mean(axis=0)
    reach = float(np.linalg.norm(rows[:cut] - centre, axis=1).mean())
    solved = solve(rows[cut:], data.test.labels)
    along = solved.weights[:, 1] - solved.weights[:, 0]
    side = 1.0 if data.train.labels[index] == data.train.labels.max() else -1.0
    direction = side * reach * along / np.linalg.norm(along)

    def score(train: Rows) -> float:
        predicted = logistic.fit(train[fit], data.train.labels[fit], rows[cut:]).predictions
        classes = np.unique(data.train.labels)
        return metrics.scores_of(metrics.confusion_matrix(data.test.labels, predicted, classes)).MCC

    honest, altered = score(rows[:cut]), rows.copy()
    at_will = missed = 0.0
    for size in SIZES:
        altered[index] = centre + size * direction
        gain = score(altered[:cut]) - honest
        at_will = max(at_will, gain)
        if gain > missed and not is_strongest(altered, data, index):
            missed = gain
    return PlantedGain(at_will, missed)


def by_support_rows(gain: float, tasks: int, shots: int, seeds: int, hits: float = BUDGET) -> float:
    """Return the mean raise of a few-shot regime by altered support embeddings that a draw may
    miss.

    Each raises the MCC of the one seed that draws it by `gain`, in tasks of two classes. The regime
    with the fewest support embeddings is embedded whole; of the others a standard draw takes a
    part."""
    drawn = -(-STANDARD_TEST_DRAWS // tasks)
    left = 2 * (shots - 1) * seeds
    return hits / (drawn / left) * gain / seeds / tasks


HITS = tuple(np.linspace(0.1, BUDGET, 30).tolist())
"""Expected hits of a draw for which a raise is an option."""


def altered_options(raised: Callable[[float], float], name: str) -> list[Option]:
    """Return what altering embeddings at will raises a mean by; `raised` is that of a number of
    hits."""
    return [Option(raised(hits), math.exp(-hits), f"{name} altered") for hits in HITS]

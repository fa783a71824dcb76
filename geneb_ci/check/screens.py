"""What settles that a rule finds nothing in a row, so that the rule is not run.

From the scores of a plain row as arrays, where many files are checked: see `statistics.plain`.
Each test is of one rule, by its id; a rule that is not settled runs as it does without.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np

from geneb_ci.check.claims import fits_of, two_classes
from geneb_ci.check.rule import Context
from geneb_ci.check.rules import plausibility as within
from geneb_ci.check.rules import plausibility_rows as among
from geneb_ci.common.finding import ROWS_MIN
from geneb_ci.statistics.beside import MARGIN, Array, Beside, Categories, Fit, Predicted, predicted
from geneb_ci.statistics.neighbours import laws_of, usual_gap
from geneb_ci.statistics.plain import CellArrays, PlainRow, cells_of, plain_row
from geneb_ci.statistics.view import TWIN, RowView, shots_of


class PlainRows:
    """Makes plain rows of contexts; the cells of each benchmark are kept."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], CellArrays | None] = {}

    def of(self, context: Context) -> PlainRow | None:
        """Return the row of a context if it is plain."""
        benchmark = context.benchmark
        key = benchmark.name, benchmark.sha256
        if key not in self._cells:
            fits = [fits_of(benchmark, regime) for regime in benchmark.regimes]
            self._cells[key] = cells_of(benchmark, fits, list(map(two_classes, benchmark.tasks)))
        return plain_row(self._cells[key], context.member("results"))


class _Among:
    """The other rows of a context as arrays, with the limits of what is compared with them."""

    def __init__(self, view: RowView) -> None:
        benchmark, table = view.benchmark, view.table
        self.beside = Beside(table)
        self.fit = None if view.reference is None else Fit(view.reference)
        self._last: tuple[Array, Predicted | None] | None = None
        self.is_full = np.isinf(view.shots)
        full = [number for number, is_full in enumerate(self.is_full) if is_full]
        rows = np.array(table.vectors).reshape(len(table.vectors), len(table.regimes), -1)
        place = {task: number for number, task in enumerate(benchmark.task_ids)}
        parts = [[place[task] for task in ids] for ids in benchmark.categories.values()]
        self.categories = Categories(rows[:, full[0]], parts) if full and all(parts) else None
        # Relations between tasks: weights of the tasks, usual difference and limit of each regime.
        laws = laws_of(benchmark)
        self.laws = np.zeros((len(laws), len(place)))
        self.usual, self.gap_max = np.zeros((2, len(full), len(laws)))
        for number, law in enumerate(laws):
            self.laws[number, law.task] = 1.0
            for task, weight in law.parts:
                self.laws[number, task] -= weight
            for regime, part in enumerate(table.regimes[k] for k in full):
                gap = usual_gap(table, laws, number, part.start, None, ROWS_MIN)
                self.usual[regime, number] = 0.0 if gap is None else gap.usual
                scale = np.inf if gap is None else gap.scale
                self.gap_max[regime, number] = within.NESTED_LIMIT * scale
        self.above_max = np.array(-np.inf)  # nothing is below it
        if self.fit is not None and full:
            noise = self.fit.scales.reshape(len(table.regimes), -1) ** 2
            sampling = [1.0 / task.n_test if task.n_test else 0.0 for task in benchmark.tasks]
            of_full = np.maximum(noise[full[:1]], sampling)
            self.above_max = within.FEW_SHOT_LIMIT * np.sqrt(of_full + noise)

    def predicted(self, row: Array) -> Predicted | None:
        """Return the prediction of a row, once for the rules on it; None where in doubt."""
        if self._last is None or self._last[0] is not row:
            self._last = row, None if self.fit is None else predicted(row, self.fit)
        return self._last[1]


def _among(context: Context) -> _Among | None:
    """Return the other rows; None if there are none, or the fit uses this one."""
    view, derived = context.view, context.peers.derived
    if not view.table.vectors:
        return None
    key = ("arrays", context.benchmark.name, context.benchmark.sha256)
    if key not in derived:
        derived[key] = _Among(view)
    found: _Among = derived[key]
    return None if found.fit is not None and view.own in found.fit.rows else found


def _has_no_evidence(_: PlainRow, context: Context) -> bool:
    return not context.table("evidence")


def _of_claims(test: Callable[[PlainRow], bool]) -> "Test":
    """Return a test of a rule on claims, of which this row has those of its results alone."""

    def settled(row: PlainRow, context: Context) -> bool:
        return _has_no_evidence(row, context) and row.is_on_grid and test(row)

    return settled


def _of_others(test: Callable[[Array, _Among, int | None], bool]) -> "Test":
    """Return a test of a rule that compares the primary metric with the other rows."""

    def settled(row: PlainRow, context: Context) -> bool:
        others = _among(context)
        return others is not None and test(row.primary, others, context.view.own)

    return settled


def _has_few_round_numbers(row: PlainRow, _: Context) -> bool:
    short = (within.decimals(value) for value in row.doubtful)
    return sum(n is not None and n <= within.FULL_DECIMALS for n in short) < within.SHORT_MAX


def _has_regimes_in_order(row: PlainRow, context: Context) -> bool:
    shots = shots_of(context.benchmark)
    for poor, rich in itertools.permutations(range(len(shots)), 2):
        if shots[poor] < shots[rich]:
            share = float((row.primary[poor] > row.primary[rich]).mean())
            limit = within.SHARE_FULL if shots[rich] == math.inf else within.SHARE_FEW_SHOT
            if share > limit - MARGIN:
                return False
    return True


def _has_usual_gaps(row: Array, others: _Among, own: int | None) -> bool:
    if own is not None:  # the usual gap is then one without it
        return False
    gaps = np.einsum("ij,kj->ik", row[others.is_full], others.laws)
    return bool((np.abs(gaps - others.usual) < others.gap_max - MARGIN).all())


def _gains_by_data(row: Array, others: _Among, _: int | None) -> bool:
    above = row - row[others.is_full.argmax()]
    return bool((above < others.above_max - MARGIN)[~others.is_full].all())


def _is_as_predicted(row: Array, others: _Among, _: int | None) -> bool:
    found, is_full = others.predicted(row), others.is_full[:, None]
    if found is None or found.largest > TWIN - MARGIN:
        return False
    near, far = found.distance, found.alone
    most = np.where(is_full, among.ABOVE, among.ABOVE_FEW_SHOT) - MARGIN
    # Above the prediction, the larger of both counts in the regime of all data.
    is_usual = (near > MARGIN - among.BELOW) & (near < most) & ((far < most) | ~is_full)
    return bool(is_usual.all())


def _is_no_blend(row: Array, others: _Among, _: int | None) -> bool:
    found = others.predicted(row)
    return found is not None and found.spread > among.BLEND_LIMIT + MARGIN


def _has_no_gain(row: Array, others: _Among, own: int | None) -> bool:
    is_ahead = others.beside.lead(row, own) > among.GAIN_LEAD - MARGIN
    return not is_ahead and not others.beside.has_affine(row, own, among.GAIN_RESIDUAL)


def _has_no_crown(row: Array, others: _Among, own: int | None) -> bool:
    return others.categories is not None and others.categories.is_behind(
        row[others.is_full][0], own
    )


Test = Callable[[PlainRow, Context], bool]
SCREENS: dict[str, Test] = {
    "percent-scores": lambda _, __: True,
    "all-scores-equal": lambda row, _: row.differs,
    "accuracy-off-grid": _of_claims(lambda _: True),
    "impossible-scores": _of_claims(PlainRow.has_tables),
    "impossible-mean": _of_claims(PlainRow.has_means),
    "inconsistent-metrics": _of_claims(PlainRow.has_bounds),
    "rounded-scores": _of_claims(lambda _: True),
    "constant-predictions": lambda row, _: bool(np.abs(row.primary).min() > within.CONSTANT_MCC),
    "round-numbers": _has_few_round_numbers,
    "regimes-out-of-order": _has_regimes_in_order,
    "nested-tasks": _of_others(_has_usual_gaps),
    "few-shot-above-full": _of_others(_gains_by_data),
    "implausible-cell": _of_others(_is_as_predicted),
    "uniform-gain": _of_others(_has_no_gain),
    "near-copy": _of_others(lambda row, others, own: not others.beside.has_copy(row, own)),
    "blended-rows": _of_others(_is_no_blend),
    "category-crown": _of_others(_has_no_crown),
} | dict.fromkeys(
    (
        "wrong-test-size",
        "wrong-seed-mean",
        "wrong-seed-count",
        "seeds-differ-in-full",
        "impossible-seed-scores",
        "wrong-matrix-size",
        "wrong-matrix-scores",
        "repeated-digest",
    ),
    _has_no_evidence,
)


def settles(rule_id: str, row: PlainRow, context: Context) -> bool:
    """Whether a rule whose needs are met finds nothing in a row, for sure."""
    test = SCREENS.get(rule_id)
    return test is not None and test(row, context)

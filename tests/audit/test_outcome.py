"""Verdict of a whole audit: mean bias and informative cells."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import skellam

from geneb_ci.audit.compare.joint import (
    UNSEEN_RATE,
    ClaimDifference,
    MeanBias,
    joint_test,
    sum_limit,
)
from geneb_ci.audit.compare.outcome import (
    INFORMATIVE_TOLERANCE,
    AuditedTask,
    CanonicalComparison,
    CellComparison,
    Decoys,
    EachMetric,
    HonestCentre,
    HonestDifference,
    InformativeCells,
    Tolerance,
    cell_verdict,
    informative_cells,
    informative_text,
    mean_biases,
    objections_to_tasks,
    task_verdict,
    verdict_from_reasons,
    verdict_of,
)
from reference_harness.formats.base import Scores

QUIET = Decoys(order_dependent=False, memorised=False, detail="none")


def cell(gain: float, tolerance: float = 0.02) -> CellComparison:
    wide = Tolerance(MCC=tolerance, Acc=1.0, F1=1.0, copies=48, flips=0.0, spread=0.0)
    claimed = Scores(MCC=max(-1.0, min(1.0, 0.5 + gain)), Acc=0.5, F1=0.5)
    rescored = Scores(MCC=0.5, Acc=0.5, F1=0.5)
    return CellComparison(
        claimed=claimed,
        rescored=rescored,
        tolerance=wide,
        predictions_equal=None,
        canonical=None,
        verdict=cell_verdict(claimed, rescored, wide),
    )


def tasks(*cells: CellComparison, regime: str = "full") -> list[AuditedTask]:
    return [
        AuditedTask(
            task=f"task-{k}",
            reason="drawn",
            verdict=task_outcome.verdict,
            regimes={regime: task_outcome},
        )
        for k, task_outcome in enumerate(cells)
    ]


def test_a_task_differs_as_soon_as_one_cell_does():
    within, outside = cell(0.019), cell(0.021)
    assert [verdict_of(cells_tried) for cells_tried in (within, outside)] == ["agrees", "differs"]
    for cells, expected in {
        (within, within): "agrees",
        (within, outside): "differs",
        (outside, within): "differs",
        (outside, outside): "differs",
    }.items():
        assert task_verdict(cells) == expected
        results = [
            AuditedTask(task="t", reason="drawn", verdict="agrees", regimes=by_regime(cells))
        ]
        assert verdict_from_reasons(objections_to_tasks(results, QUIET)) == expected


def by_regime(cells: tuple[CellComparison, ...]) -> dict[str, CellComparison]:
    return dict(zip(("full", "10shot"), cells, strict=True))


def test_a_cell_differs_with_its_canonical_score():
    within, outside = cell(0.019), cell(0.021)
    for canonical, expected in ((within, "agrees"), (outside, "differs")):
        other = CanonicalComparison(
            claimed=canonical.claimed,
            rescored=canonical.rescored,
            tolerance=canonical.tolerance,
            verdict="agrees",
        )
        assert verdict_of(other) == expected
        assert verdict_of(within.model_copy(update={"canonical": other})) == expected


def joint(audited_tasks: list[AuditedTask], regime: str = "full") -> MeanBias:
    return mean_biases(audited_tasks)[f"{regime}, MCC"]


def measured(
    gain: float, deviation: float, step: float, centre: float | None = 0.0, tolerance: float = 0.05
) -> CellComparison:
    """Return a cell of which the copies say how an honest claim differs."""
    test_cell = cell(gain, tolerance)
    each = EachMetric(MCC=deviation, Acc=1.0, F1=1.0), EachMetric(MCC=step, Acc=1.0, F1=1.0)
    middle = None if centre is None else HonestCentre(MCC=centre, Acc=0.0, F1=0.0)
    honest = HonestDifference(deviation=each[0], step=each[1], centre=middle)
    return test_cell.model_copy(
        update={"tolerance": test_cell.tolerance.model_copy(update={"honest": honest})}
    )


@pytest.mark.parametrize(
    ("share", "expected"), [(0.9, "differs"), (-0.9, "differs"), (0.4, "agrees")]
)
def test_claims_that_all_lie_on_one_side_differ_though_each_is_within(share, expected):
    """Thirteen cells, each raised by nine tenths of its tolerance: no single one tells."""
    task_list = tasks(*(cell(share * width, width) for width in [0.02, 0.03, 0.04] * 4 + [0.03]))
    assert {task_outcome.verdict for task_outcome in task_list} == {"agrees"}
    assert verdict_from_reasons(objections_to_tasks(task_list, QUIET)) == expected
    assert joint(task_list).is_biased == (expected == "differs")


def test_claims_on_both_sides_have_no_mean_bias_and_many_far_ones_are_significant():
    quiet = tasks(*(measured(0.004 * (-1) ** k, 0.002, 0.002) for k in range(14)))
    assert verdict_from_reasons(objections_to_tasks(quiet, QUIET)) == "agrees"
    loud = joint(tasks(*(measured(0.04 * (-1) ** k, 0.002, 0.002) for k in range(14))))
    assert (loud.is_biased, loud.far_cells, loud.far_limit, loud.is_significant) == (
        False,
        14,
        3,
        True,
    )


@pytest.mark.parametrize("share", [-0.5, 0.0, 0.4, 1.0, 1.5])
def test_claims_may_lie_where_rerun_or_copies_do_and_between(share):
    """Ties that noise breaks move claims and copies alike, or neither."""
    centre = 0.02
    test_result = joint(tasks(*[measured(share * centre, 0.002, 0.002, centre)] * 13))
    apart = max(0.0, -share, share - 1) * centre
    assert abs(test_result.difference) == pytest.approx(apart, abs=1e-12)
    assert test_result.is_significant == (apart > 0)
    assert test_result.far_cells == (13 if apart > 3 * 0.002 + 0.002 else 0)


def test_earlier_records_keep_the_bound_that_they_were_judged_by():
    now, before = (
        joint(tasks(*[measured(0.0, 0.002, 0.004, centre)] * 13)) for centre in (0.0, None)
    )
    log, first = math.log(2 * 3 / 1e-3), 0.004 * math.log(2 * 3 / 1e-3) / 3
    sum_ = first + math.sqrt(first**2 + 2 * log * 13 * 0.002**2)
    assert before.limit == pytest.approx(sum_ / 13)
    assert now.limit < before.limit


@pytest.mark.parametrize("steps", [(0.002,) * 13, (0.0,) * 13, (0.08,) + (0.001,) * 99, (0.05,)])
def test_the_bound_on_a_sum_is_the_least_of_its_kind(steps):
    cells = [ClaimDifference(0.0, 0.003, step) for step in steps]
    parts = [(0.003, step) for step in steps] + [(max(steps) * UNSEEN_RATE**0.5, max(steps))]
    bounds = []
    for u in np.geomspace(1, 1e5, 4000):
        with np.errstate(over="ignore", invalid="ignore"):
            logs = [
                s**2 * ((np.expm1(e * u) - e * u) / e**2 if e * u > 1e-4 else u**2 / 2)
                for s, e in parts
            ]
        bounds.append((math.log(2 / 1e-4) + sum(logs)) / u)
    assert min(bounds) <= sum_limit(cells, 1e-4) * (1 + 1e-6)
    assert sum_limit(cells, 1e-4) <= 1.02 * min(bounds)


def test_flips_exceed_the_bound_more_rarely_than_its_level():
    """Exactly: right and wrong flips, each a Poisson number, in cells of one step."""
    for rate, count in ((0.02, 13), (0.2, 13), (3.0, 13), (0.02, 100), (3.0, 100)):
        step = 0.004
        cells = [ClaimDifference(0.0, step * math.sqrt(rate), step)] * count
        most = sum_limit(cells, 1e-3) / step
        beyond = 2 * skellam.sf(math.floor(most), rate * count / 2, rate * count / 2)
        assert beyond <= 1e-3


def test_each_regime_is_looked_at_alone():
    raised, lowered = (cell(sign * 0.018) for sign in (1, -1))
    audited_tasks = [
        AuditedTask(
            task=f"t{k}", reason="drawn", verdict="agrees", regimes={"a": raised, "b": lowered}
        )
        for k in range(9)
    ]
    assert [joint(audited_tasks, name).is_significant for name in ("a", "b")] == [True, True]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 13])
def test_a_bias_is_found_in_any_number_of_cells(count):
    """Cells raised to nine tenths of a wide tolerance, whose copies hardly move."""
    for sign in (1, -1):
        task_list = tasks(*[measured(sign * 0.045, 0.002, 0.002)] * count)
        assert {task_outcome.verdict for task_outcome in task_list} == {"agrees"}
        assert verdict_from_reasons(objections_to_tasks(task_list, QUIET)) == "differs"
    assert (
        verdict_from_reasons(
            objections_to_tasks(tasks(*[measured(0.002, 0.002, 0.002)] * count), QUIET)
        )
        == "agrees"
    )


def test_canonical_scores_have_a_joint_test_of_their_own():
    tolerance_cell = measured(0.045, 0.002, 0.002)
    canonical = CanonicalComparison(
        claimed=tolerance_cell.claimed,
        rescored=tolerance_cell.rescored,
        tolerance=tolerance_cell.tolerance,
        verdict="agrees",
    )
    both = measured(0.0, 0.002, 0.002).model_copy(update={"canonical": canonical})
    biases = mean_biases(tasks(*[both] * 4))
    assert [name for name, test in biases.items() if test.is_significant] == ["full, canonical MCC"]


def test_honest_differences_are_rarely_significant():
    """Two audits in a thousand at most, of flips one by one and of normal differences."""
    rng = random.Random(20261122)
    wrong = 0
    for number in range(2000):
        count = (1, 4, 13, 100)[number % 4]
        step = 0.0025
        if number % 8 < 4:
            values = [rng.gauss(0, 0.01) for _ in range(count)]
            cells = [ClaimDifference(value, 0.01, step) for value in values]
        else:  # a flip in one cell of ten, to either side
            flips = [rng.choice((-step, step)) * (rng.random() < 0.1) for _ in range(count)]
            cells = [ClaimDifference(value, step * math.sqrt(0.1), step) for value in flips]
        wrong += joint_test(cells, 1).is_significant
    assert wrong <= 4


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(0, 1e308)), min_size=1, max_size=20))
def test_no_numbers_of_a_record_break_it(pairs):
    test_result = joint(tasks(*(cell(gain, width) for gain, width in pairs)))
    assert abs(test_result.difference) <= 1
    assert test_result.limit >= 0


def test_informative_cells_are_counted_for_each_regime():
    cells = informative_cells(
        tasks(
            cell(0, INFORMATIVE_TOLERANCE),
            cell(0, math.nextafter(INFORMATIVE_TOLERANCE, 1)),
            cell(0, 0.2),
        )
    )
    assert cells == {"full": InformativeCells(1, 3)}
    assert not cells["full"].suffices
    assert InformativeCells(2, 4).suffices
    assert (
        informative_text(cells | {"10shot": InformativeCells(3, 3)}) == "full 1 of 3, 10shot 3 of 3"
    )

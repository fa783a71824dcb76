"""Verdict of a whole audit: mean bias and informative cells."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.outcome import (
    INFORMATIVE_TOLERANCE,
    MEAN_BIAS,
    AuditedTask,
    CanonicalCompared,
    Compared,
    Decoys,
    InformativeCells,
    Tolerance,
    cell_verdict,
    informative_cells,
    informative_text,
    mean_biases,
    overall_verdict,
    task_verdict,
    verdict_of,
)
from geneb_ci.common.types import Scores

QUIET = Decoys(order_dependent=False, memorised=False, detail="none")


def cell(gain: float, tolerance: float = 0.02) -> Compared:
    wide = Tolerance(MCC=tolerance, Acc=1.0, F1=1.0, copies=48, flips=0.0, spread=0.0)
    claimed = Scores(MCC=max(-1.0, min(1.0, 0.5 + gain)), Acc=0.5, F1=0.5)
    rescored = Scores(MCC=0.5, Acc=0.5, F1=0.5)
    return Compared(
        claimed=claimed,
        rescored=rescored,
        tolerance=wide,
        predictions_equal=None,
        canonical=None,
        verdict=cell_verdict(claimed, rescored, wide),
    )


def tasks(*cells: Compared, regime: str = "full") -> list[AuditedTask]:
    return [
        AuditedTask(task=f"task-{k}", reason="drawn", verdict=one.verdict, regimes={regime: one})
        for k, one in enumerate(cells)
    ]


def test_a_task_differs_as_soon_as_one_cell_does():
    within, outside = cell(0.019), cell(0.021)
    assert [verdict_of(one) for one in (within, outside)] == ["agrees", "differs"]
    for cells, expected in {
        (within, within): "agrees",
        (within, outside): "differs",
        (outside, within): "differs",
        (outside, outside): "differs",
    }.items():
        assert task_verdict(cells) == expected
        found = [AuditedTask(task="t", reason="drawn", verdict="agrees", regimes=by_regime(cells))]
        assert overall_verdict(found, QUIET) == expected


def by_regime(cells: tuple[Compared, ...]) -> dict[str, Compared]:
    return dict(zip(("full", "10shot"), cells, strict=True))


def test_a_cell_differs_with_its_canonical_score():
    within, outside = cell(0.019), cell(0.021)
    for canonical, expected in ((within, "agrees"), (outside, "differs")):
        other = CanonicalCompared(
            claimed=canonical.claimed,
            rescored=canonical.rescored,
            tolerance=canonical.tolerance,
            verdict="agrees",
        )
        assert verdict_of(other) == expected
        assert verdict_of(within.model_copy(update={"canonical": other})) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(0.9, "differs"), (-0.9, "differs"), (0.5, "agrees")]
)
def test_claims_that_all_lie_on_one_side_differ_though_each_is_within(share, expected):
    """Thirteen cells, each raised by nine tenths of its tolerance: no single one tells."""
    found = tasks(*(cell(share * width, width) for width in [0.01, 0.03, 0.16] * 4 + [0.05]))
    assert {one.verdict for one in found} == {"agrees"}
    assert overall_verdict(found, QUIET) == expected
    assert mean_biases(found)["full"].share == pytest.approx(share)


def test_claims_on_both_sides_agree():
    found = tasks(*(cell(0.95 * 0.02 * (-1) ** k) for k in range(14)))
    assert overall_verdict(found, QUIET) == "agrees"


def test_each_regime_is_looked_at_alone():
    raised, lowered = (cell(sign * 0.018) for sign in (1, -1))
    found = [
        AuditedTask(
            task=f"t{k}", reason="drawn", verdict="agrees", regimes={"a": raised, "b": lowered}
        )
        for k in range(9)
    ]
    assert [one.is_significant for one in mean_biases(found).values()] == [True, True]


def test_fewer_than_five_cells_have_no_significant_bias():
    for count in (1, 2, 3, 4):
        assert not mean_biases(tasks(*[cell(0.02)] * count))["full"].is_significant
    assert mean_biases(tasks(*[cell(0.0199)] * 5))["full"].is_significant
    assert math.sqrt(4) == MEAN_BIAS


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(0, 1e308)), min_size=1, max_size=20))
def test_no_numbers_of_a_record_break_it(pairs):
    found = mean_biases(tasks(*(cell(gain, width) for gain, width in pairs)))["full"]
    assert abs(found.share) <= 1


def test_informative_cells_are_counted_for_each_regime():
    found = informative_cells(
        tasks(
            cell(0, INFORMATIVE_TOLERANCE),
            cell(0, math.nextafter(INFORMATIVE_TOLERANCE, 1)),
            cell(0, 0.2),
        )
    )
    assert found == {"full": InformativeCells(1, 3)}
    assert not found["full"].suffices
    assert InformativeCells(2, 4).suffices
    assert (
        informative_text(found | {"10shot": InformativeCells(3, 3)}) == "full 1 of 3, 10shot 3 of 3"
    )

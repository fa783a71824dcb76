"""The forger on made-up cells: what he gains is bounded, and honest claims pass."""

import random

import pytest

from geneb_ci.audit.compare.joint import ClaimDifference, joint_test
from geneb_ci.audit.sampling.design import miss_probability
from tests.adversary import forger
from tests.adversary.forger import (
    CAP,
    TASKS,
    TESTS,
    UNDETECTED,
    WEIGHTS,
    Cell,
    best_forgery,
    bound,
    largest_within,
    pass_rate,
    raises,
)
from tests.adversary.levers import undetected_each
from tests.gate import gated

RNG = random.Random(20261122)
POOL = [
    Cell(
        tolerance=0.01 + 0.03 * RNG.random(),
        deviation=0.002,
        step=0.0005,
        centre=0.0,
        shifts=tuple(RNG.gauss(0, 0.002) for _ in range(16)),
    )
    for _ in range(20)
]


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forger, "TRIALS", 80)
    monkeypatch.setattr(forger, "STEPS", 8)


@pytest.mark.parametrize("drawn", [1, 5, 13, 100])
def test_honest_claims_pass(drawn):
    assert pass_rate(POOL, drawn, 0.0, WEIGHTS["alike"], 1)[0] >= 0.98


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_raise_is_divided_within_the_tolerances(weight):
    for mean in (0.001, 0.01, 0.5):
        arguments = raises(POOL, mean, WEIGHTS[weight])
        room = [comparison.tolerance - 3 * comparison.deviation for comparison in POOL]
        assert all(more <= most + 1e-12 for more, most in zip(arguments, room, strict=True))
        held = sum(arguments) / len(POOL)
        assert held == pytest.approx(min(mean, sum(room) / len(POOL)), rel=1e-6)


@pytest.mark.nightly
def test_a_larger_sample_leaves_less_room():
    within = [largest_within(POOL, drawn, UNDETECTED)[0] for drawn in (4, 13, 100)]
    assert within == sorted(within, reverse=True)
    assert within[-1] < 0.003
    # The rule before, |mean of shares| <= 2 / sqrt(n), let every cell of four be raised to its
    # tolerance: 0.025 in the mean.
    assert within[0] < 0.012


@pytest.mark.nightly  # a simulation; in the gate: the bound of what an audit says could be hidden
def test_a_whole_board_audit_leaves_no_task_elsewhere_and_a_draw_does():
    whole = best_forgery(POOL, TASKS)
    assert whole.elsewhere == 0
    assert whole.raised == pytest.approx(whole.within)
    assert whole.raised < 0.005
    some = best_forgery(POOL, 13)
    assert float(miss_probability(TASKS, some.elsewhere, 13)) >= UNDETECTED
    assert some.raised >= CAP * some.elsewhere / TASKS
    assert some.elsewhere >= 10


@pytest.mark.parametrize("centre", gated([0.0, -0.003], -0.003))
def test_what_an_audit_says_could_be_hidden_bounds_the_forger(centre, monkeypatch):
    """Also where honest claims lie below the rerun, and one equal to it has to pass as well."""
    monkeypatch.setattr(forger, "RESOLUTION", 0.016)
    monkeypatch.setattr(forger, "TRIALS", 40)
    pool = [
        cell._replace(centre=centre, shifts=tuple(centre + shift for shift in cell.shifts))
        for cell in POOL
    ]
    cells = [ClaimDifference(0.0, cell.deviation, cell.step, cell.centre) for cell in pool * 5]
    room = joint_test(cells, TESTS).hidden_raise
    # The made-up shifts have means of their own, and a rate is found with 40 trials.
    assert 0.75 * room < best_forgery(pool, TASKS).raised <= 1.15 * room


@pytest.mark.nightly
def test_a_draw_for_each_name_is_worth_more():
    one_raise, sixteen = best_forgery(POOL, 13), best_forgery(POOL, 13, undetected_each(16))
    assert sixteen.elsewhere > one_raise.elsewhere
    assert sixteen.raised > one_raise.raised


@pytest.mark.nightly  # a simulation; in the gate: the bound of what an audit says could be hidden
@pytest.mark.parametrize("drawn", [5, 13, 25, 100])
def test_no_forger_beats_the_bound_that_follows_from_draw_and_tolerances(drawn, monkeypatch):
    monkeypatch.setattr(forger, "RESOLUTION", 0.06)
    best, most = best_forgery(POOL, drawn), bound(POOL, drawn)
    assert best.raised <= most
    assert best.raised > 0.5 * most, "the bound is near what can be done"

"""Laws of the tolerance: what it must never do, whatever the copies say."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.audit.compare import tolerance as rule
from geneb_ci.audit.compare.outcome import (
    METRICS,
    CanonicalComparison,
    Tolerance,
    differing_metrics,
)
from geneb_ci.audit.compare.tolerance import two_sided_quantile
from geneb_ci.common.errors import NothingChecked
from geneb_ci.statistics.metrics import Triple, largest_effect
from reference_harness.formats.base import Scores
from tests.audit.rescoring import SEEDS, measured
from tests.examples import examples

NONE = Triple(0.0, 0.0, 0.0)
ALARM = rule.alarm_rate_per_comparison(13 * 3 * 3 * 2)
BASE = [np.array([[150 - s, 50 + s], [60, 140]]) for s in range(SEEDS)]
FULL = [BASE[0]] * SEEDS

flips = st.lists(st.integers(0, 12), min_size=SEEDS, max_size=SEEDS)
copies = st.tuples(
    st.lists(flips, min_size=rule.COPIES_MIN, max_size=rule.COPIES_MIN),
    st.lists(flips, min_size=rule.MANY_COPIES, max_size=rule.MANY_COPIES),
)
quick = settings(max_examples=examples(40))


def agree(claim: Triple, rerun: Triple, allowed: Tolerance) -> bool:
    values = [Scores(MCC=triple.mcc, Acc=triple.acc, F1=triple.f1) for triple in (claim, rerun)]
    cell = CanonicalComparison(
        claimed=values[0], rescored=values[1], tolerance=allowed, verdict="agrees"
    )
    return not differing_metrics(cell)


def limits(tolerance: Tolerance) -> Triple:
    return Triple(tolerance.MCC, tolerance.Acc, tolerance.F1)


def test_copies_that_never_move_still_allow_the_flips_they_cannot_exclude():
    tolerance = rule.tolerance(measured(BASE), ALARM, NONE)
    most = [
        max(column)
        for column in zip(*map(largest_effect, map(np.ndarray.tolist, BASE)), strict=True)
    ]
    assert limits(tolerance) == pytest.approx([rule.UNSEEN * value / SEEDS for value in most])
    assert (tolerance.copies, tolerance.flips, tolerance.spread) == (
        rule.COPIES_MIN + rule.MANY_COPIES,
        0.0,
        0.0,
    )
    assert tolerance.Acc == pytest.approx(rule.UNSEEN / (400 * SEEDS))


def test_one_fit_counts_its_flips_once():
    """Five copies of one fit are one fit: a flip moves the mean by a whole n-th."""
    tolerance = rule.tolerance(measured(FULL, one_fit=True), ALARM, NONE)
    assert tolerance.Acc == pytest.approx(rule.UNSEEN / 400)


def test_a_printed_claim_gets_its_rounding():
    bare = rule.tolerance(measured(BASE), ALARM, NONE)
    wide = rule.tolerance(measured(BASE), ALARM, Triple(0.005, 0.0005, 0.05))
    gained = [a - b for a, b in zip(limits(wide), limits(bare), strict=True)]
    assert gained == pytest.approx([0.005, 0.0005, 0.05])


@quick
@given(copies, st.booleans(), st.integers(0, 99))
def test_every_outcome_of_a_plain_copy_is_allowed(both, one_fit, seed):
    """A claim equal to what a copy gave at the noise of the dtype agrees."""
    cell = measured(FULL if one_fit else BASE, *both, one_fit=one_fit, seed=seed)
    tolerance = rule.tolerance(cell, ALARM, NONE)
    rerun = Triple(*(float(np.mean(getattr(cell.scores_by_seed, m))) for m in METRICS))
    for copy in cell.plain:
        claim = Triple(*(float(np.mean(getattr(copy.per_seed, m))) for m in METRICS))
        assert agree(claim, rerun, tolerance)


@pytest.mark.nightly  # in the gate, honest and forged claims
@quick
@given(copies, st.integers(0, 99), st.integers(2, 4))
def test_the_allowance_of_stressed_copies_grows_with_their_deviation(both, seed, times):
    plain, stressed = both
    small = measured(BASE, None, stressed, seed=seed)
    large = small._replace(
        stressed=[
            copy.model_copy(
                update={
                    "per_seed": copy.per_seed.model_copy(
                        update={
                            metric: [
                                was + times * (now - was)
                                for now, was in zip(
                                    getattr(copy.per_seed, metric),
                                    getattr(small.scores_by_seed, metric),
                                    strict=True,
                                )
                            ]
                            for metric in METRICS
                        }
                    )
                }
            )
            for copy in small.stressed
        ]
    )
    del plain
    for wide, narrow in zip(
        limits(rule.tolerance(large, ALARM, NONE)),
        limits(rule.tolerance(small, ALARM, NONE)),
        strict=True,
    ):
        assert wide >= narrow


@quick
@given(copies, st.integers(0, 99), st.floats(1e-9, 1e-3), st.floats(1e-9, 1e-3))
def test_fewer_false_alarms_ask_for_more_room(both, seed, single_alarm, other):
    cell = measured(FULL, *both, one_fit=True, seed=seed)
    strict, loose = sorted((single_alarm, other))
    wide, narrow = (limits(rule.tolerance(cell, alarm, NONE)) for alarm in (strict, loose))
    assert all(w >= n for w, n in zip(wide, narrow, strict=True))


@given(*(st.floats(-1, 1) for _ in range(3)), st.floats(0, 0.2))
def test_a_claim_equal_to_the_rerun_agrees(mcc, acc, f1, width):
    value = Triple(mcc, abs(acc), abs(f1))
    allowed = Tolerance(MCC=width, Acc=width, F1=width, copies=48, flips=0.0, spread=0.0)
    assert agree(value, value, allowed)


@given(st.floats(-0.5, 0.5), st.floats(0, 0.25), st.floats(0, 2), st.sampled_from([-1, 1]))
def test_farther_off_never_agrees_better(rerun, width, times, side):
    """And a claim that is too low counts as one that is too high."""
    allowed = Tolerance(MCC=width, Acc=1.0, F1=1.0, copies=48, flips=0.0, spread=0.0)
    rescored = Triple(rerun, 0.5, 0.5)

    def agrees(away: float) -> bool:
        return agree(Triple(rerun + side * away, 0.5, 0.5), rescored, allowed)

    near, far = sorted((width * times, 0.25))
    assert agrees(near) >= agrees(far)


def test_a_few_outcomes_far_apart_are_allowed_and_not_blown_up():
    """Nine of ten fits stop at one step, one at the next: 14 flips or none."""
    moved = [[14, 0, 0, 0, 0] if k % 10 == 0 else [0] * SEEDS for k in range(48)]
    cell = measured(BASE, moved[:16], moved[16:])
    tolerance = rule.tolerance(cell, ALARM, NONE)
    farthest = max(
        abs(float(np.mean(copy.per_seed.MCC)) - float(np.mean(cell.scores_by_seed.MCC)))
        for copy in (*cell.plain, *cell.stressed)
    )
    unseen = rule.tolerance(measured(BASE), ALARM, NONE).MCC
    assert tolerance.MCC - unseen == pytest.approx(rule.MARGIN_MANY * farthest)


def test_stops_that_no_copy_showed_widen_the_tolerance_of_a_fit_that_moves():
    base = measured(BASE).scores_by_seed
    stop = Scores(MCC=base.MCC[0] - 0.1, Acc=base.Acc[0] - 0.05, F1=base.F1[0] - 0.05)
    same = [Scores(MCC=base.MCC[k], Acc=base.Acc[k], F1=base.F1[k]) for k in range(SEEDS)]
    stops = [[same[0], stop], *([copy_of_score] for copy_of_score in same[1:])]
    still = limits(rule.tolerance(measured(BASE), ALARM, NONE))
    assert limits(rule.tolerance(measured(BASE, stops=stops), ALARM, NONE)) == still
    other = [[stop], *stops[1:]]
    wide = limits(rule.tolerance(measured(BASE, stops=other), ALARM, NONE))
    assert [w - s for w, s in zip(wide, still, strict=True)] == pytest.approx([0.04, 0.02, 0.02])
    moved = [[1, 0, 0, 0, 0]] * 16
    bare = rule.tolerance(measured(BASE, moved), ALARM, NONE)
    assert rule.tolerance(measured(BASE, moved, stops=stops), ALARM, NONE).MCC > bare.MCC + 0.035


def test_a_seed_whose_ties_break_anew_each_time_gets_a_spread():
    """As many flips at eight times the noise: draws, and t at 48 degrees of freedom."""
    rng = random.Random(3)
    draws = [[rng.randint(4, 12), 0, 0, 0, 0] for _ in range(48)]
    cell = measured(BASE, draws[:16], draws[16:], seed=3)
    tolerance = rule.tolerance(cell, ALARM, NONE)
    unseen = rule.tolerance(measured(BASE), ALARM, NONE).MCC
    base = float(np.mean(cell.scores_by_seed.MCC))
    moves = [float(np.mean(copy.per_seed.MCC)) - base for copy in (*cell.plain, *cell.stressed)]
    spread = float(np.sqrt(np.mean(np.square(moves))))
    assert tolerance.MCC - unseen == pytest.approx(two_sided_quantile(ALARM, 48) * spread)


def test_flips_in_proportion_are_measured_by_their_own_spread():
    """Two flips a plain copy, twenty a stressed one: the plain spread is narrower."""
    rng = random.Random(11)
    plain = [[rng.randint(0, 1) for _ in range(SEEDS)] for _ in range(32)]
    stressed = [[rng.randint(0, 9) for _ in range(SEEDS)] for _ in range(32)]
    cell = measured(BASE, plain, stressed, seed=11)
    tolerance = rule.tolerance(cell, ALARM, NONE)
    unseen = rule.tolerance(measured(BASE), ALARM, NONE).MCC
    base = float(np.mean(cell.scores_by_seed.MCC))
    moves = [float(np.mean(copy.per_seed.MCC)) - base for copy in cell.plain]
    spread = float(np.sqrt(np.mean(np.square(moves))))
    assert tolerance.MCC - unseen == pytest.approx(2**0.5 * two_sided_quantile(ALARM, 32) * spread)
    far = max(abs(float(np.mean(copy.per_seed.MCC)) - base) for copy in cell.stressed)
    assert tolerance.MCC - unseen < rule.MARGIN_MANY * far


def test_a_full_fit_that_always_ends_elsewhere_needs_no_stressed_copies():
    rng = random.Random(5)
    plain = [[rng.randint(3, 9)] * SEEDS for _ in range(16)]
    cell = measured(FULL, plain, [], one_fit=True, seed=5)
    tolerance = rule.tolerance(cell, ALARM, NONE)
    assert tolerance.copies == 16
    assert tolerance.MCC > 0.01
    with pytest.raises(NothingChecked, match="0 stressed copies of the embeddings, expected"):
        rule.tolerance(measured(FULL, None, [], one_fit=True), ALARM, NONE)


def test_too_few_copies_are_no_measurement():
    still = [[0] * SEEDS] * 15
    with pytest.raises(NothingChecked, match="15 plain copies of the embeddings, expected"):
        rule.tolerance(measured(BASE, still), ALARM, NONE)
    with pytest.raises(NothingChecked, match="15 stressed copies of the embeddings, expected"):
        rule.tolerance(measured(BASE, None, still), ALARM, NONE)


def test_false_alarms_of_single_flips():
    """Claim and rerun differ by rare single flips at any rate: 2e-5 a comparison at the very most.

    The bench has the finer figure; this holds the constants together.
    """
    rng = np.random.RandomState(7)
    worst = 0.0
    for rate in (0.003, 0.03, 0.3, 3.0):
        trials = 4000
        stressed = np.abs(
            rng.poisson(rule.STRESS * rate / 2, (trials, rule.MANY_COPIES))
            - rng.poisson(rule.STRESS * rate / 2, (trials, rule.MANY_COPIES))
        ).max(axis=1)
        allowed = np.floor(rule.MARGIN_MANY * stressed + rule.UNSEEN)
        claim = np.abs(rng.poisson(rate, (trials, 500)) - rng.poisson(rate, (trials, 500)))
        worst = max(worst, float((claim > allowed[:, None]).mean()))
    assert worst < 2e-5


def test_the_variance_of_a_claim_lies_between_what_plain_and_stressed_copies_show():
    """Ends anywhere: that of the copies. Flips of random signs: sqrt(2) times as much."""
    plain = [0.01 * (-1) ** k for k in range(16)]
    own, grown = 16 / 15 * 1e-4, 17 / 16
    assert rule.claim_variance(plain, plain) == pytest.approx(own * grown)
    stressed = [shift * math.sqrt(8) for shift in plain]
    assert rule.claim_variance(plain, stressed) == pytest.approx(math.sqrt(2) * own * grown)
    assert rule.claim_variance(plain, [8 * shift for shift in plain]) == pytest.approx(
        max(2, math.sqrt(2) * 8) * own * grown
    )
    assert rule.claim_variance(plain, []) == pytest.approx(math.sqrt(2) * own * grown)
    assert rule.claim_variance([0.0] * 16, stressed) == pytest.approx(math.sqrt(2) * own * grown)
    assert rule.claim_variance([0.3 + shift for shift in plain], plain) == pytest.approx(
        own * grown
    )
    assert rule.claim_variance([0.0] * 16, [0.0] * 16) == 0.0

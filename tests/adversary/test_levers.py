"""The forger's one search: it is exact, and what is measured of moved sequences stays bounded."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.sampling.design import miss_probability
from reference_harness import mini
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.formats.rescored import Decisions
from tests.adversary import levers
from tests.adversary.cheats import MovedTraining, minhash
from tests.adversary.forger import CAP, TASKS, UNDETECTED
from tests.adversary.levers import (
    BOUNDED,
    Mover,
    Option,
    best_division,
    few_shot_of,
    hit_probabilities,
    moved_bounds,
    moved_options,
    passes,
    undetected_each,
)
from tests.adversary.measure import Case, decisions_of, few_shot_indices

CASES = [
    Case(mini.generate(task), None)
    for task in mini.TASKS
    if task.id in {"mini_promoter", "mini_tf", "mini_splice"}
]
WEAK, STRONG = 0.1, 0.7
"""Shares of the way that sequences are moved."""
REGIME = "10shot"


def decided(extractor: object) -> list[Decisions]:
    """Return the decisions of an extractor on each task."""
    return [decisions_of(extractor, case, "a test", 10) for case in CASES]


@functools.cache
def honest() -> list[Decisions]:
    return decided(KmerExtractor())


@functools.cache
def mover(share: float) -> Mover:
    """Return an extractor that moves the sequences of few-shot probes, by a key that variants
    keep."""
    tasks = [case.data for case in CASES]
    return Mover("moved", honest(), decided(MovedTraining(tasks, minhash, few_shot_indices, share)))


def options(capped: st.SearchStrategy[float]) -> st.SearchStrategy[list[Option]]:
    return st.lists(
        st.builds(Option, st.floats(0, CAP), st.floats(0, 1), st.just("a size"), capped), max_size=4
    )


@given(st.lists(options(st.just(0.0)), max_size=2), options(st.floats(0, 1)))
def test_no_division_raises_more_than_the_best(kinds, last):
    best = best_division([*kinds, last])
    assert best.missed >= UNDETECTED
    assert best.raised <= CAP + 1e-12
    for chosen in itertools.product(*([Option(0.0, 1.0, ""), *kind] for kind in (*kinds, last))):
        raised = functools.reduce(lambda total, option: option.beside(total), chosen, 0.0)
        missed = float(np.prod([option.missed for option in chosen]))
        assert raised <= best.raised + 1e-12 or missed < UNDETECTED + 1e-12


@pytest.mark.parametrize("drawn", [5, 13, 100])
def test_moved_tasks_are_drawn_like_forged_ones(drawn):
    for count in (0, 1, 20, 100):
        probabilities = hit_probabilities(count, drawn)
        assert probabilities.sum() == pytest.approx(1)
        assert probabilities[0] == pytest.approx(float(miss_probability(TASKS, count, drawn)))
    # Whoever is found by the first moved task that is drawn has the risk of who forges records.
    found_at_once = [1.0, *[0.0] * drawn]
    for option in moved_options("of a test", CAP, found_at_once):
        count = round(option.raised * TASKS / CAP)
        assert option.missed == pytest.approx(float(miss_probability(TASKS, count, drawn)))


def test_one_of_several_draws_misses_with_five_percent():
    for draws in (1, 2, 16):
        assert 1 - (1 - undetected_each(draws)) ** draws == pytest.approx(UNDETECTED)


@pytest.mark.nightly  # a simulation; in the gate: the bound that such a mover does not pass
def test_sequences_moved_a_little_gain_and_are_missed_where_strong_moves_are_found(monkeypatch):
    """The gain of five published fits above others has noise, below which nobody is found."""
    assert passes(honest())
    weak, strong = mover(WEAK), mover(STRONG)
    assert 0.02 < weak.gain(REGIME) <= CAP
    assert not passes(strong.moved)
    assert weak.missed(5, 1, 5, 12) > strong.missed(5, 5, 5, 12) + 0.5
    monkeypatch.setattr(levers, "TRIALS", 20)
    rates = strong.rates(2, 2)
    assert len(rates) == 3
    assert rates[0] == 1 > rates[-1]


def test_what_a_task_without_variants_shows_is_not_counted():
    seen = levers.seen(honest()[0], is_varied=False)
    assert seen.training is None
    kinds = {gain.other_fits for gain in few_shot_of([seen, seen])}
    assert kinds == {"others", "test sequences"}


@pytest.mark.parametrize(
    ("drawn", "missed"), [(25, 8), pytest.param(100, 0, marks=pytest.mark.nightly)]
)
def test_no_mover_gains_more_than_the_bound(drawn, missed, monkeypatch):
    """With an audit that misses him as often as the bound is computed for."""
    monkeypatch.setattr(levers, "AUDITS", 10)
    monkeypatch.setattr(levers, "TRIALS", 10)
    monkeypatch.setattr(levers, "BOUNDED", BOUNDED[missed : missed + 2])
    (bound,) = moved_bounds(honest(), drawn, REGIME)
    assert bound.raised < CAP, "it says more than the largest raise of a task does"
    rates = mover(WEAK).rates(drawn, drawn)
    gained = best_division(
        [moved_options("moved", mover(WEAK).gain(REGIME), rates)], BOUNDED[missed]
    )
    assert 0 < gained.raised <= bound.raised

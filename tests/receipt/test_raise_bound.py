"""The bound of what altered test embeddings hide, beside forgers who look for more."""

import functools
import math

import numpy as np
import pytest

from geneb_ci.audit.compare.regime_bounds import probe_draws
from geneb_ci.receipt.draw import TaskShare, drawn_embeddings, draws_of_regime
from geneb_ci.receipt.embeddings import MISSED
from geneb_ci.receipt.raise_bound import (
    CellDraw,
    covering_intervals,
    hidden_alterations,
    hits_limit,
    largest_raise,
)
from geneb_ci.statistics.metrics import scores_of_matrix
from tests.adversary.receipt_forger import Forgery, best_forgery, gain_of, hits_of
from tests.receipt.audited import strata_example


def cell(classes: int, seed: int, weight: float = 1.0, draws: tuple[int, int] = (6, 6)) -> CellDraw:
    """Return a probe that is right in more than half of the cases, and draws for it."""
    random = np.random.default_rng(seed)
    matrix = random.integers(0, 20, (classes, classes)) + np.diag(random.integers(30, 90, classes))
    return CellDraw(matrix, np.diag(matrix) + random.integers(0, 5, classes), *draws, weight)


@pytest.mark.parametrize(("hits", "limit"), [(0, 2.9957), (1, 4.7439), (2, 6.2958)])
def test_the_limit_of_hits_is_that_of_a_poisson_variable(hits: int, limit: float) -> None:
    assert hits_limit(hits) == pytest.approx(limit, abs=1e-4)
    fewer = sum(limit**i * math.exp(-limit) / math.factorial(i) for i in range(hits + 1))
    assert fewer == pytest.approx(MISSED, abs=1e-4)


@pytest.mark.parametrize("most", [0, 1, 16, 17, 1000])
def test_intervals_cover_every_number_once(most: int) -> None:
    lower, upper = covering_intervals(most)
    covered = [
        n for low, high in zip(lower, upper, strict=True) for n in range(int(low), int(high) + 1)
    ]
    assert covered == [*range(most + 1)]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_no_alteration_of_a_cell_gains_more_or_is_hit_less(classes: int) -> None:
    """The embeddings that are taken away go to columns at random, or all to one."""
    own, random = cell(classes, classes), np.random.default_rng(0)
    hidden = hidden_alterations(own)
    for part in np.geomspace(0.01, 1, 60):
        altered = [int(random.integers(int(part * right) + 1)) for right in np.diag(own.matrix)]
        forgery = Forgery.of(own, altered, random)
        possible = hidden.mean_raise[hidden.hits <= hits_of(own, forgery) + 1e-9]
        assert gain_of(own, forgery) <= possible.max() + 1e-12


def test_no_forger_beats_the_bound_of_a_regime() -> None:
    """His best raise among those that 5 % of draws miss or more; the bound lies close above it."""
    for number in range(3):
        cells = [cell(2, 10 * number + i, 1 / 8) for i in range(8)]
        best, bound = best_forgery(cells), largest_raise(cells)
        assert best.missed >= MISSED
        assert 0.75 * bound < best.gain <= bound


TASKS, PER_TASK, AUDITS = 6, 20, 100


@pytest.mark.parametrize(
    "altered",
    [11, *(pytest.param(count, marks=pytest.mark.nightly) for count in (4, 7, 20, 40))],
)
def test_five_of_a_hundred_audits_of_a_forgery_state_less_than_its_raise(altered: int) -> None:
    """Simulated draws, as an audit makes them, with so many altered embeddings in each task."""
    share = TaskShare(position=0, test=PER_TASK, training=0, support=0, whole=False)
    tasks = [strata_example(test=300, seed=seed) for seed in range(TASKS)]
    forged = [own.right_rows("full", 0)[:altered] for own in tasks]
    cells = [
        next(
            probe_draws(
                own, "full", draws_of_regime(own, "full", share), own.predicted["full"], 1 / TASKS
            )
        )
        for own in tasks
    ]
    gain = 0.0
    for own, cell, rows in zip(tasks, cells, forged, strict=True):
        of_class = np.bincount(own.labels[rows], minlength=2).tolist()
        gain += gain_of(cell, Forgery.of(cell, of_class, np.random.default_rng(0)))
    bound = functools.cache(functools.partial(largest_raise, cells))
    lower = 0
    for number in range(AUDITS):
        hits = 0
        for own, rows in zip(tasks, forged, strict=True):
            drawn = drawn_embeddings([f"{number:064x}"], own, share).rows["test full"]
            hits += int(np.isin(np.array(drawn) - own.train, rows).sum())
        lower += bound(hits) < gain
    assert lower <= 0.05 * AUDITS


def test_a_cell_that_nothing_was_drawn_from_may_be_raised_as_far_as_it_goes() -> None:
    undrawn = cell(2, 1, 0.5, (0, 0))
    lowest = 0.5 * (scores_of_matrix(undrawn.matrix.tolist()).mcc + 1)
    assert largest_raise([undrawn]) == pytest.approx(lowest, rel=1e-3)
    assert largest_raise([]) == 0.0


def test_more_draws_leave_less_and_a_hit_leaves_more() -> None:
    few, many = ([cell(2, i, 1 / 8, (n, n)) for i in range(8)] for n in (3, 30))
    assert largest_raise(many) < largest_raise(few) < largest_raise(few, 1)

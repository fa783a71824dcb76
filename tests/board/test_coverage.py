"""Statements of 95 % hold on drawn test sets: pairs, who could be best, bounds, intervals."""

import pytest

from benchmarks.simulate_decisions import decision_shares, world_of
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries

SETS, SETS_OF_THE_NIGHT = 60, 300
MEAN_MIN, WORST_MIN = 0.95, 0.92


@pytest.mark.parametrize(
    ("equal", "sets"),
    [
        pytest.param(True, SETS, id="all models equal"),
        pytest.param(True, SETS_OF_THE_NIGHT, id="equal, more sets", marks=pytest.mark.nightly),
        pytest.param(False, SETS_OF_THE_NIGHT, id="public rates", marks=pytest.mark.nightly),
    ],
)
def test_what_is_said_with_95_percent_confidence_holds(equal, sets, record_property):
    """Models that are all equal are the hardest case: every difference is an error."""
    rows = [entry.submission for entry in entries()]
    world = world_of(rows, shipped_benchmark(), is_equal=equal, sizes_max=1000)
    found = decision_shares(world, sets, 20261122)
    record_property("held", str(found))
    for share in (found.pairs, found.best, found.bounds):
        assert share.mean() >= MEAN_MIN
        assert share.min() >= WORST_MIN
    assert found.within.min() >= MEAN_MIN
    assert 0.93 <= found.interval <= 0.97

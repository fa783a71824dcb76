"""The index of scores counts what a comparison cell by cell counts."""

import math
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.metrics import WHOLE_SCORES
from geneb_ci.statistics.neighbours import (
    _NORMAL_TAIL,
    _TAIL,
    NEAR_DISTANCE,
    RELATION_SCALE_MAX,
    RELATION_SCALE_MIN,
    UsualDifference,
    _usual_difference,
    copy_cells_min,
    near_copies,
    resemblances,
)
from geneb_ci.statistics.reference import ScoreTable, median_sorted
from geneb_ci.statistics.view import RowView

CELLS = 12
BENCHMARK = shipped_benchmark()
SCORES = st.sampled_from(
    [0.0, 0.5, 0.5 + NEAR_DISTANCE, 0.5 - NEAR_DISTANCE, 0.4995, 0.501, 1.0, -1.0, math.nan]
)
SCORES |= st.floats(0.498, 0.502)
ROWS = st.lists(SCORES, min_size=CELLS, max_size=CELLS).map(tuple)


def cell_by_cell(view: RowView) -> list[tuple[int, int]]:
    near_counts = [
        (
            -sum(
                abs(x - y) < NEAR_DISTANCE and x not in WHOLE_SCORES
                for x, y in zip(view.row, row, strict=True)
            ),
            n,
        )
        for n, row in view.other_rows
    ]
    return [(number, -near) for near, number in sorted(near_counts)]


@given(ROWS, st.lists(ROWS, max_size=8), st.integers(-1, 7))
def test_counts_are_those_of_every_pair(row, rows, own):
    names = tuple(map(str, range(len(rows))))
    table = ScoreTable(
        names, tuple(rows), {Path(n): i for i, n in enumerate(names)}, (slice(0, CELLS),)
    )
    view = RowView(BENCHMARK, table, row, own if 0 <= own < len(rows) else None)
    assert [
        (resemblance.number, resemblance.near_cells) for resemblance in resemblances(view)
    ] == cell_by_cell(view)
    close = [
        resemblance
        for resemblance in resemblances(view)
        if resemblance.near_cells >= copy_cells_min(resemblance.cells)
    ]
    assert near_copies(view) == close


@given(st.lists(st.floats(-0.02, 0.02), min_size=1, max_size=30).map(sorted))
@example([-1 / 64, -1 / 64, 1 / 64, 1 / 64, 1 / 64])
def test_a_scale_is_the_quantile_of_all_deviations(gaps):
    usual = median_sorted(gaps)
    sizes = sorted(abs(gap - usual) for gap in gaps)
    scale = sizes[int(_TAIL * (len(sizes) - 1))] / _NORMAL_TAIL
    assert _usual_difference(gaps) == (
        UsualDifference(usual, max(RELATION_SCALE_MIN, scale))
        if scale <= RELATION_SCALE_MAX
        else None
    )

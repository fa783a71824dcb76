"""No single row in the folder ends a finding about another row."""

import random
from functools import cache

import pytest

from benchmarks.bench_crowns import detection, public_table, raised_rows
from benchmarks.bench_plausibility import (
    RULES,
    ForgedContext,
    _as_context,
    average_rows,
    raise_cell,
)
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.statistics.reference import ScoreTable, Vector
from geneb_ci.statistics.view import ROWS_ABOVE_LEADER_MAX, RowView, led_categories

MOVED_MAX = 0.4
"""How far one row may move the finding score of another, or its size in deviations."""
HALF = 0.5
"""The finding score of what stays falls by no more than this share: the row that was added counts
in the scale with which a cell is judged."""
TABLE = public_table()
BENCHMARK = shipped_benchmark()
CELLS = len(TABLE.vectors[0])
SOUND = TABLE.models.index("GROVER")


def shifted(row: Vector, by: float) -> Vector:
    return tuple(max(-1.0, min(1.0, x + by)) for x in row)


def forgeries() -> dict[str, Vector]:
    """Return rows that rules of the family speak of, each in place of GROVER."""
    row, draw = TABLE.vectors[SOUND], random.Random(3)
    best = tuple(map(max, zip(*TABLE.vectors, strict=True)))
    leader = tuple(min(1.0, x + 0.01) if draw.random() < 0.9 else y
                   for x, y in zip(best, row, strict=True))  # fmt: skip
    crown = next(
        raised_row for raised_row in raised_rows(TABLE, 6) if raised_row.category == "TF Binding"
    )
    return {
        "leads": leader,
        "linear": tuple(0.95 * x + 0.02 for x in TABLE.vectors[SOUND - 1]),
        "copy": tuple(x + draw.gauss(0, 1e-4) for x in TABLE.vectors[SOUND - 1]),
        "mean": average_rows(TABLE, SOUND - 1, draw),
        "cell": raise_cell(0.5, 0)(TABLE, SOUND, draw),
        "few shots": raise_cell(0.6, 2)(TABLE, SOUND, draw),
        "zero": (0.0, *row[1:]),
        "crown": crown.row,
    }


FORGERIES = forgeries()


def decoys(target: Vector) -> dict[str, Vector]:
    """Return rows that somebody may add to end a finding about `target`."""
    draw = random.Random(11)
    middle = tuple(sorted(column)[len(column) // 2] for column in zip(*TABLE.vectors, strict=True))
    return {
        "ones": (1.0,) * CELLS,
        "zeros": (0.0,) * CELLS,
        "minus ones": (-1.0,) * CELLS,
        "nonsense": tuple(draw.uniform(-1, 1) for _ in range(CELLS)),
        "a little better": shifted(target, 0.002),
        "a little worse": shifted(target, -0.002),
        "a public row": TABLE.vectors[0],
        "the opposite": tuple(
            max(-1.0, min(1.0, 2 * m - x)) for m, x in zip(middle, target, strict=True)
        ),
    }


@cache
def table_with(row: Vector | None) -> ScoreTable:
    """Return the public rows without GROVER, and with another row."""
    remaining = [i for i in range(len(TABLE.models)) if i != SOUND]
    names = [TABLE.models[i] for i in remaining] + ["zz-decoy"] * (row is not None)
    vectors = [TABLE.vectors[i] for i in remaining] + ([row] if row is not None else [])
    return ScoreTable(tuple(names), tuple(vectors), {}, TABLE.regimes)


def findings(row: Vector, decoy: Vector | None) -> dict[tuple[object, ...], float]:
    """Return the finding score of each rule and place."""
    view = RowView(BENCHMARK, table_with(decoy), row, None)
    context = _as_context(ForgedContext(view))
    faults = [fault for rule in RULES for fault in rule.check(context)]
    return {(fault.rule, *fault.path): fault.score for fault in faults}


DECOYS = tuple(decoys(FORGERIES["leads"]))
STRIDE = 8
"""In the gate, forgeries take turns with the decoys; by night each has all."""


@pytest.mark.parametrize(
    ("name", "decoy"),
    [
        pytest.param(name, decoy, marks=() if (row + column) % STRIDE == 0 else pytest.mark.nightly)
        for row, name in enumerate(FORGERIES)
        for column, decoy in enumerate(DECOYS)
    ],
)
def test_one_row_more_ends_no_finding_of_another(name, decoy):
    row = FORGERIES[name]
    before = findings(row, None)
    assert before, "the forgery has to be one that a rule speaks of"
    after = findings(row, decoys(row)[decoy])
    ended = {name: score for name, score in before.items() if name not in after}
    if "near-copy" in {rule for rule, *_ in after}:  # it speaks instead, of the decoy itself
        ended = {name: score for name, score in ended.items() if name[0] != "blended-rows"}
    # What ends was within the bound of its limit: one row more moves each scale a little.
    assert all(score <= 1 + MOVED_MAX for score in ended.values()), ended
    moved = {
        category: before[category] - after[category] for category in before if category in after
    }
    assert all(by <= HALF * before[name] for name, by in moved.items()), (before, after)


@pytest.mark.parametrize("decoy", ["ones", "nonsense", "a little better"])
def test_a_crown_outlives_a_row_above_it(decoy):
    row = FORGERIES["crown"]
    before = led_categories(RowView(BENCHMARK, table_with(None), row, None))
    after = led_categories(RowView(BENCHMARK, table_with(decoys(row)[decoy]), row, None))
    assert ROWS_ABOVE_LEADER_MAX == 1
    assert "TF Binding" in {lead.category for lead in after}
    sizes = {lead.category: lead.size for lead in after}
    assert all(lead.size - sizes.get(lead.category, lead.size) < MOVED_MAX * max(1, abs(lead.size))
               for lead in before)  # fmt: skip


@pytest.mark.nightly
def test_raised_categories_are_flagged_or_drawn():
    """The whole table is made by `make bench-crowns`."""
    results = [
        detection(TABLE, raised_row, raised_row.row_index)
        for raised_row in list(raised_rows(TABLE))[::3]
    ]
    assert len(results) == 26
    assert sum(result.by_any_rule or result.by_draw for result in results) >= 0.9 * len(results)
    assert sum(result.by_crown_rule for result in results) >= 0.7 * len(results)


def test_one_public_row_leads_a_category_like_no_specialist():
    flagged = {
        TABLE.models[i]
        for i, row in enumerate(TABLE.vectors)
        if any(
            led_category.size > 2.7
            for led_category in led_categories(RowView(BENCHMARK, TABLE, row, i))
        )
    }
    assert flagged == {"LucaOne-default-step36M"}

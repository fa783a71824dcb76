"""Cells that are written for many scores at once are those of each score, and texts stay text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from geneb_ci.board.site.cells import FULL_SCALE, html_text, model_cells, score_cell, task_cells
from geneb_ci.board.site.inputs import RankedScore, score_text, writable
from geneb_ci.board.site.render import render_frame
from tests.page.site import public_site

SCORES = st.floats(-1, 1) | st.sampled_from([-0.0, -0.0004, 0.0005, -0.0005, 0.9995, 1 / 16])
ROWS = st.lists(st.tuples(SCORES, SCORES, SCORES), min_size=1, max_size=5)


@given(rows=ROWS, known=st.booleans(), view_address=st.integers(0, 2))
def test_cells_of_many_are_those_of_each(rows, known, view_address):
    columns = tuple(zip(*rows, strict=True))[: 3 if known else 1]
    each = [score_cell(RankedScore(*(row if known else row[:1])), FULL_SCALE) for row in rows]
    missing = score_cell(None)
    order = sorted(range(len(rows)), key=lambda k: rows[k])
    regimes = [columns if k == view_address else None for k in range(3)]
    beside = [each if k == view_address else [missing] * len(rows) for k in range(3)]
    whole = ["".join(cells) for cells in zip(*beside, strict=True)]
    assert task_cells(regimes, order) == [whole[k] for k in order]
    names = [f"m{k}" for k in range(len(rows))]
    assert model_cells([*names, "other"], [(names, columns)]) == [*each, missing]


@given(score=SCORES, low=SCORES, high=SCORES)
def test_a_cell_has_its_numbers_as_they_are_written_elsewhere(score, low, high):
    cell = score_cell(RankedScore(score, low, high))
    interval = f"<small>{score_text(low)} to {score_text(high)}</small>"
    assert cell.partition(">")[2] == f"{score_text(score)}{interval}</td>"


@given(st.text() | st.text("ab &<>\"'\x00\x7f\ud800é"))
def test_a_text_is_escaped_as_templates_escape_it(text):
    assert html_text(text) == str(escape(writable(text)))


def test_a_frame_has_markup_in_its_slots_in_order():
    site = public_site()
    cells = [f"<td>{task}</td>" for task in site.benchmark.task_ids]
    made = render_frame("tasks.html", "../", site, [cells[k] for k in site.page_task_indices])
    for task in site.benchmark.tasks:
        assert f'tasks/{task.id}.html">{task.label}</a></th><td>{task.id}</td></tr>' in made
    with pytest.raises(ValueError, match="zip"):
        render_frame("tasks.html", "../", site, cells[1:])

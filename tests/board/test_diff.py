"""Laws of comparing two boards, on boards of made-up scores."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.board.decisions import ScoreColumn, critical_value
from geneb_ci.board.diff import BoardDiff, BoardSide, board_diff, macro_scores_of

NAMES = tuple("abcdefgh")
NOISE = 0.05
scores = st.integers(-10, 10).map(lambda tenth: tenth / 10)
boards = st.dictionaries(st.sampled_from(NAMES), scores, min_size=1)


def side(macro: dict[str, float], half: float = NOISE, disp: str = "x") -> BoardSide:
    """Return a board of one regime and one task, on which every score is as sure as any other."""
    rows: list[dict[str, Any]] = [
        {
            "model": name,
            "disp": disp,
            "params": 1,
            "official": False,
            "zero_shot": True,
            "submitted": "self-reported",
            "macro_MCC": macro[name],
            "task_MCC": {"t": macro[name]},
        }
        for name in sorted(macro)
    ]
    board = {"data": {"full": rows}}
    error = half / critical_value(10)
    values = np.array([macro[name] for name in sorted(macro)])
    column = ScoreColumn(values, np.full(len(values), error * error), np.full(len(values), np.inf))
    return BoardSide(board, board, {"full": column})


def differ(before: dict[str, float], after: dict[str, float], half: float = NOISE) -> BoardDiff:
    return board_diff(side(before, half), side(after, half))


@given(boards)
def test_a_board_does_not_differ_from_itself(board):
    differences = differ(board, board)
    assert differences.is_empty
    assert differences.moves == ()
    assert differences.pushed == {"full": 0}


@given(boards, boards)
def test_rows_are_added_removed_changed_or_the_same(before, after):
    differences = differ(before, after)
    assert {row.model for row in differences.added} == after.keys() - before.keys()
    assert {row.model for row in differences.removed} == before.keys() - after.keys()
    both = before.keys() & after.keys()
    assert {row.model for row in differences.changed} == {m for m in both if before[m] != after[m]}


def passes(diff: BoardDiff) -> set[tuple[str, str]]:
    return {(move.model, other) for move in diff.moves for other in move.passed}


def order(board: dict[str, float], model: str, other: str) -> int:
    return (board[model] > board[other]) - (board[model] < board[other])


@given(boards, boards)
def test_there_and_back(before, after):
    there, back = differ(before, after), differ(after, before)
    assert [row.model for row in there.added] == [row.model for row in back.removed]
    assert [row.model for row in there.changed] == [row.model for row in back.changed]
    assert passes(there) == {(other, model) for model, other in passes(back)}


@given(boards, boards)
def test_who_passes_is_passed_and_stood_lower(before, after):
    differences = differ(before, after)
    both = before.keys() & after.keys()
    assert passes(differences) == {
        (model, other)
        for model in both
        for other in both
        if order(before, model, other) < order(after, model, other)
    }
    assert passes(differences) == {
        (o, move.model) for move in differences.moves for o in move.passed_by
    }


@given(boards, boards)
def test_a_rank_differs_by_a_move_or_by_rows_that_came_or_went(before, after):
    differences = differ(before, after)
    if before.keys() == after.keys():
        assert differences.pushed == {"full": 0}
    moved = {move.model for move in differences.moves}
    old, new = (
        macro_scores_of(side(b).categories["data"], side(b).columns)["full"]
        for b in (before, after)
    )
    elsewhere = {m for m in before.keys() & after.keys() if old.rank(m) != new.rank(m)}
    assert len(elsewhere - moved) == differences.pushed["full"]


def test_a_move_inside_noise_and_one_beyond():
    before = {"a": 0.5, "b": 0.4, "c": 0.1}
    near = differ(before, {"a": 0.5, "b": 0.52, "c": 0.1})
    assert [(m.model, m.passed, m.passed_by, m.inside_noise) for m in near.moves] == [
        ("a", (), ("b",), True),
        ("b", ("a",), (), True),
    ]
    far = differ(before, {"a": 0.5, "b": 0.4, "c": 0.6})
    assert [
        (m.model, m.passed, m.before.rank, m.after.rank, m.inside_noise) for m in far.moves
    ] == [
        ("a", (), 1, 2, False),
        ("b", (), 2, 3, False),
        ("c", ("a", "b"), 3, 1, False),
    ]


def test_noise_of_a_difference_is_that_of_both_scores():
    """0.05 on either side of each of two: apart beyond 0.0707."""
    for score, apart in ((0.57, False), (0.572, True)):
        differences = differ({"a": 0.5, "b": 0.4}, {"a": 0.5, "b": score})
        assert {move.inside_noise for move in differences.moves} == {not apart}


def test_a_row_that_came_stands_between_the_ranks_that_noise_allows():
    after = {"a": 0.9, "b": 0.5, "c": 0.52, "d": 0.48, "e": 0.1}
    row = differ({k: v for k, v in after.items() if k != "b"}, after).added[0]
    (rank_change,) = row.places
    assert (rank_change.rank, rank_change.rows, rank_change.rank_low, rank_change.rank_high) == (
        3,
        5,
        2,
        4,
    )


def test_equal_scores_share_the_better_rank():
    board = side({"a": 0.5, "b": 0.5, "c": 0.4}, half=0)
    regime = macro_scores_of(board.categories["data"], board.columns)["full"]
    assert [regime.rank(name) for name in "abc"] == [1, 1, 3]


def test_what_the_board_says_beside_the_scores():
    difference = board_diff(side({"a": 0.5}), side({"a": 0.5}, disp="y"))
    assert [(row.model, row.facts, row.shifts) for row in difference.changed] == [
        ("a", (("disp", "x", "y"),), ())
    ]


def test_a_changed_score_is_inside_noise_by_its_change():
    for score, is_inside in ((0.5001, True), (0.9, False)):
        (row,) = board_diff(side({"a": 0.5, "b": 0.4}), side({"a": score, "b": 0.4})).changed
        (shift,) = row.shifts
        assert (shift.scores, shift.inside_noise) == (1, is_inside)


def test_a_regime_that_a_row_lost_or_gained():
    full = side({"a": 0.5, "b": 0.4})
    assert full.columns is not None
    rows, column = full.categories["data"]["full"], full.columns["full"]
    before, after = (
        BoardSide(board, board, {"full": column, "1shot": few})
        for board, few in (
            ({"data": {"full": rows, "1shot": []}}, ScoreColumn(*np.zeros((3, 0)))),
            ({"data": {"full": rows, "1shot": rows}}, column),
        )
    )
    (a, b) = board_diff(before, after).changed
    assert (a.model, b.model) == ("a", "b")
    (shift,) = b.shifts
    assert (shift.regime, shift.before, shift.scores, shift.inside_noise) == (
        "1shot",
        None,
        1,
        False,
    )
    assert shift.after is not None
    assert shift.after.rank == 2

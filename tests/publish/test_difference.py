"""Rows of two boards held against each other, whatever lies on the Space."""

import json
import sys
from typing import Any

import pytest

from geneb_ci.board.diff import ChangedFact
from geneb_ci.publish.difference import (
    ChangeSign,
    PublishedMove,
    PublishedPlace,
    RowChange,
    row_changes,
)


def board(**models: Any) -> bytes:
    """Write a leaderboard.json of one regime: model to score, or to fields of its row."""
    rows = [
        {"model": name, "submitted": "self-reported"}
        | (value if isinstance(value, dict) else {"macro_MCC": value})
        for name, value in models.items()
    ]
    return json.dumps({"data": {"full": rows}}).encode()


SELF = "self-reported"


def test_what_is_added_changed_and_removed():
    old = board(gone=0.9, moved=0.5, same=0.4)
    new = board(came=0.7, moved=0.6, same=0.4)
    assert row_changes(old, new) == [
        RowChange(
            ChangeSign.ADDED,
            "came",
            (ChangedFact("submitted", None, SELF),),
            (PublishedMove("full", None, PublishedPlace(0.7, 1)),),
        ),
        RowChange(
            ChangeSign.REMOVED,
            "gone",
            (ChangedFact("submitted", SELF, None),),
            (PublishedMove("full", PublishedPlace(0.9, 1), None),),
        ),
        RowChange(
            ChangeSign.CHANGED,
            "moved",
            (),
            (PublishedMove("full", PublishedPlace(0.5, 2), PublishedPlace(0.6, 2)),),
        ),
    ]


def test_a_row_whose_level_alone_changes_has_no_move():
    old, new = board(a=0.5), board(a={"macro_MCC": 0.5, "submitted": "verified"})
    assert row_changes(old, new) == [
        RowChange(ChangeSign.CHANGED, "a", (ChangedFact("submitted", SELF, "verified"),), ())
    ]


def test_another_score_than_the_one_that_ranks_is_a_move_on_the_spot():
    old = board(a={"macro_MCC": 0.5, "micro_F1": 0.1})
    new = board(a={"macro_MCC": 0.5, "micro_F1": 0.2})
    assert row_changes(old, new) == [
        RowChange(
            ChangeSign.CHANGED,
            "a",
            (),
            (PublishedMove("full", PublishedPlace(0.5, 1), PublishedPlace(0.5, 1)),),
        )
    ]


def test_ties_share_a_rank():
    (change, *_) = row_changes(board(b=0.5, c=0.5, d=0.4), board(a=0.5, b=0.5, c=0.5, d=0.4))
    assert change.moves == (PublishedMove("full", None, PublishedPlace(0.5, 1)),)


FOREIGN = [
    *(b"", b"null", b"[]", b'{"data": []}', b'{"data": {"full": [1]}}', b'{"data": {"full": 1}}'),
    *(b'{"data": {"full": [{"disp": "no model"}]}}', b"\xff", b"[" * 100_000),
]


@pytest.mark.parametrize("raw", FOREIGN, ids=lambda raw: repr(raw[:20]))
def test_what_is_no_board_counts_as_empty(raw):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)  # as a library does: what nests must be refused before that
    try:
        assert [change.sign for change in row_changes(raw, board(a=0.5))] == [ChangeSign.ADDED]
    finally:
        sys.setrecursionlimit(before)


def test_a_score_that_is_no_number_ranks_last():
    raw = board(a="high", b=float("nan"))
    (first, _) = row_changes(raw, board(b=0.5))
    assert first.moves == (PublishedMove("full", PublishedPlace(-float("inf"), 1), None),)

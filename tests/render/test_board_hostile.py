"""What `diff` and `replay` print, when every text was chosen by an attacker."""

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.board.board import RejectedSubmission
from geneb_ci.board.diff import (
    BoardDiff,
    ChangedFact,
    ChangedRow,
    OneSidedRow,
    RankMove,
    RegimePlace,
)
from geneb_ci.publish.comparison import BoardComparison, Replay, RuleEffect
from geneb_ci.render import comparison
from tests.render.hostile import texts

PLACE = RegimePlace("full", 0.5, 2, 41, 1, 3)
COMMANDS = re.compile(
    r"^\s*::|##\[|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", re.MULTILINE
)


@st.composite
def comparisons(draw):
    first, other, text = draw(texts), draw(texts), draw(texts)
    diff = BoardDiff(
        added=(OneSidedRow(first, (PLACE,)),),
        removed=(OneSidedRow(other, (PLACE,)),),
        changed=(ChangedRow(first, (ChangedFact("disp", text, other),), ()),),
        moves=(RankMove(text, PLACE, PLACE, (first, other, text), (), inside_noise=True),),
        pushed={"full": 3},
    )
    return BoardComparison(
        text, "0" * 40, diff, (RejectedSubmission(first, 1),), (RejectedSubmission(other, 0),)
    )


@st.composite
def replays(draw):
    effects = tuple(RuleEffect(draw(texts), draw(texts), 2, draw(texts)) for _ in range(3))
    return Replay(draw(texts), "0" * 40, 41, effects[:1], effects[1:2], effects[2:])


WRITTEN: list[tuple[Any, Any]] = [
    *((comparisons(), writer) for writer in comparison.COMPARISON_WRITERS.values()),
    *((replays(), writer) for writer in comparison.REPLAY_WRITERS.values()),
]


@pytest.mark.parametrize(
    ("values", "writer"), WRITTEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_no_line_is_a_command_and_no_character_is_unseen(values, writer):
    @given(values)
    def holds(value):
        output = writer(value)
        assert COMMANDS.search(output) is None
        assert output.endswith("\n")

    holds()


@given(comparisons())
def test_markdown_neither_pings_nor_links_nor_embeds(value):
    output = comparison.comparison_markdown(value)
    assert (
        re.search(r"[@#]\w|<[A-Za-z!/?]|\]\(|!\[|://|\bwww\.", output.replace("### ", "")) is None
    )


@given(replays())
def test_markdown_of_a_replay_neither_pings_nor_links_nor_embeds(value):
    output = comparison.replay_markdown(value)
    assert (
        re.search(r"[@#]\w|<[A-Za-z!/?]|\]\(|!\[|://|\bwww\.", output.replace("### ", "")) is None
    )


@given(comparisons())
def test_a_table_keeps_its_columns(value):
    """A bar in a name would move the cells behind it."""
    lines = comparison.comparison_markdown(value).split("\n")
    for head, ruler in itertools.pairwise(lines):
        if not ruler.startswith("| --- "):
            continue
        for row in lines[lines.index(ruler) + 1 :]:
            if not row.startswith("| "):
                break
            assert row.count("|") == head.count("|")


@given(comparisons(), replays())
def test_json_reads_back(board_row, other):
    assert json.loads(comparison.comparison_json(board_row))["pushed"] == {"full": 3}
    assert json.loads(comparison.replay_json(other))["rows"] == 41

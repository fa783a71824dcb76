"""What a row is held against: ranks as the board has them, levels of bytes that were audited."""

import hashlib

import pytest

from geneb_ci.board.decisions import better
from geneb_ci.board.uncertainty import intervals
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.verdict.decide import BaseBranch, standings
from tests.audit.recorded import MODEL, outcome_of, plan_for, put, repository, submission_bytes
from tests.board.board import entry
from tests.paths import ROOT, SUBMISSIONS

ROWS = ("space", "deepgene", "splicebert-1024nt")


@pytest.fixture
def board(tmp_path) -> BaseBranch:
    """The public benchmark with three rows."""
    for name in ROWS:
        (tmp_path / f"{name}.json").write_bytes((SUBMISSIONS / f"{name}.json").read_bytes())
    return BaseBranch(
        Layout(LayoutKind.GENEB_CI, ROOT, submissions=tmp_path, policy=ROOT / "leaderboard/policy")
    )


def test_ranks_are_those_of_the_board(board):
    own = board.rows[0]
    decided = board.decided(own)
    entries = [entry(row, TrustLevel.OFFICIAL) for row in board.rows]
    found = intervals(entries, board.benchmark)
    for regime, known in found.regimes.items():
        stood, told = known.macro[own.model_id], decided(regime)
        assert (told.rank_low, told.rank_high) == (stood["rank_low"], stood["rank_high"])
        above = better(known.board.scores["macro"], known.board.critical)
        place = known.board.models.index(own.model_id)
        assert (told.better_than, told.worse_than) == (above[place].sum(), above[:, place].sum())
        could = [models[own.model_id]["could_be_best"] for models in known.categories.values()]
        assert (told.best_in, told.categories) == (sum(could), 13)
    told = standings(own, board.rows, board.benchmark, decided)
    assert [one.decided for one in told] == [decided(r) for r in board.benchmark.regimes]


def test_nothing_is_decided_without_sizes_of_tasks(tmp_path):
    base = BaseBranch(find_layout(repository(tmp_path)))
    assert base.decided(base.rows[0]) is None


def test_bytes_that_were_disputed_still_are(tmp_path):
    raw = submission_bytes()
    root = repository(tmp_path)
    put(root, outcome_of(plan_for(raw), raw, shift=0.05))
    base = BaseBranch(find_layout(root))
    (own,) = base.rows
    assert own.model_id == MODEL
    assert base.level(own, hashlib.sha256(raw).hexdigest()) is TrustLevel.DISPUTED
    assert base.level(own, "0" * 64) is TrustLevel.SELF_REPORTED

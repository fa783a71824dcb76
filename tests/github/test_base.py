"""What a row is held against: ties as the board has them, levels of bytes that were audited."""

import hashlib

import pytest

from geneb_ci.board.uncertainty import differ_significantly, intervals
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.standing import BaseBranch, standings
from geneb_ci.github.verdict import TIES_MAX
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


def test_ties_are_those_of_the_intervals(board):
    own = board.rows[0]
    ties = board.ties(own)
    entries = [entry(row, TrustLevel.OFFICIAL) for row in board.rows]
    found = intervals(entries, board.benchmark, regimes=["full", "1shot"])
    for regime in ("full", "1shot"):
        estimates = found.estimates[regime]["macro"]
        assert ties(regime, own.model_id) == sorted(
            name
            for name, one in estimates.items()
            if name != own.model_id
            and not differ_significantly(estimates[own.model_id], one, len(ROWS))
        )
    told = standings(own, board.rows, board.benchmark, ties)
    tied = [ties(r, own.model_id) for r in board.benchmark.regimes]
    assert [(one.ties, one.tied_with) for one in told] == [(len(t), t[:TIES_MAX]) for t in tied]


def test_no_ties_without_sizes_of_tasks(tmp_path):
    base = BaseBranch(find_layout(repository(tmp_path)))
    assert base.ties(base.rows[0]) is None


def test_bytes_that_were_disputed_still_are(tmp_path):
    raw = submission_bytes()
    root = repository(tmp_path)
    put(root, outcome_of(plan_for(raw), raw, shift=0.05))
    base = BaseBranch(find_layout(root))
    (own,) = base.rows
    assert own.model_id == MODEL
    assert base.level(own, hashlib.sha256(raw).hexdigest()) is TrustLevel.DISPUTED
    assert base.level(own, "0" * 64) is TrustLevel.SELF_REPORTED

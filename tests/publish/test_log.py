"""The log of audits is published with the board, and a board never takes an entry of it back."""

import shutil

import pytest

from geneb_ci.publish.faults import NotFastForward
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.push import PublishIntent, push
from tests.audit.log_place import ORIGIN, VKEY, begun, extend, kept, signed
from tests.audit.recorded import (
    FIRST,
    commitment,
    entry,
    outcome_of,
    plan_for,
    put,
    submission_bytes,
)
from tests.publish.clone import Folder
from tests.publish.conftest import made

CHECKPOINT = "audits/log/checkpoint"


def publish(space, clone) -> None:
    push(space, PublishIntent(made(clone), GitRepository(clone.root)))


@pytest.fixture
def logged(clone):
    """A repository whose log has one entry."""
    keys = {"keys": [entry()], "log": {"origin": ORIGIN, "keys": [VKEY]}}
    clone.write("leaderboard/policy/keys.json", keys)
    signed(clone.root, commitment(submission_bytes()))
    extend(clone.root, FIRST)
    clone.commit("A commitment")
    return clone


def test_checkpoint_and_tiles_are_published(space, repo, logged):
    publish(space, logged)
    here = logged.root / "leaderboard/audits/log"
    for path in ("checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"):
        assert repo.head.tree[f"audits/log/{path}"] == (here / path).read_bytes()


def test_a_log_that_lost_an_entry_is_not_published(space, repo, logged):
    publish(space, logged)
    before = repo.head.oid
    shutil.rmtree(logged.root / "leaderboard/audits")
    logged.commit("Forget")
    with pytest.raises(NotFastForward, match="would not follow the published one: it is missing"):
        publish(space, logged)
    signed(logged.root, commitment(submission_bytes(" another")))
    extend(logged.root, FIRST)
    logged.commit("Another history")
    with pytest.raises(NotFastForward, match="its first 1 entries are not those of the earlier"):
        publish(space, logged)
    assert repo.head.oid == before


def test_a_log_that_grew_is_published(space, repo, logged):
    publish(space, logged)
    signed(logged.root, commitment(submission_bytes(" another")))
    extend(logged.root, FIRST + 1)
    logged.commit("Another commitment")
    publish(space, logged)
    assert repo.head.tree[CHECKPOINT].splitlines()[1] == b"2"


def test_a_row_gets_its_level_when_its_record_is_an_entry(tmp_path):
    raw = submission_bytes()
    folder = Folder(kept(tmp_path / "audited"))
    folder.commit("Lay the ground")
    plan = begun(folder.root, plan_for(raw))
    put(folder.root, outcome_of(plan, raw))
    folder.commit("Audit it")
    extend(folder.root, FIRST + 1)
    folder.commit("Extend the log")
    events = ledger(GitRepository(folder.root), folder.commits[-1]).events
    assert [(one.kind, one.level, one.why, one.evidence.path[12:]) for one in events] == [
        ("include", "self-reported", "Lay the ground", "model.json"),
        ("audit", "self-reported", "Audit it", events[1].evidence.path[12:]),
        ("relabel", "verified", "Extend the log", "audits/log/checkpoint"),
    ]

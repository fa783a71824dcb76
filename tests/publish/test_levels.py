"""Levels along the history: from real records, by the policy and the keys that stood there then."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from geneb_ci.audit.sampling import beacon
from geneb_ci.cli.main import cli
from geneb_ci.publish.generation import generate
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.ledger import ledger
from tests.audit.place import POLICY
from tests.audit.recorded import (
    MODEL,
    entry,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    withdraw,
)
from tests.publish.clone import SPACE_CARD, Folder
from tests.publish.conftest import made

RAW = submission_bytes()
GOOD = outcome_of(plan_for(RAW), RAW)
BAD = outcome_of(plan_for(RAW), RAW, shift=0.05)
SELF = "self-reported"


@pytest.fixture
def audited(tmp_path) -> Folder:
    """Audited, the policy raised and lowered again, a key lost and restored; a failed audit."""
    folder = Folder(repository(tmp_path / "audited"))
    folder.write("leaderboard/README.md", SPACE_CARD)
    folder.commit("Lay the ground")
    put(folder.root, GOOD)
    folder.commit("Audit it\n\nAudited-by: A. Uditor")
    more = POLICY.replace("drawn = 2", "drawn = 3")
    folder.write("leaderboard/policy/policy.toml", more.encode())
    folder.commit("Ask for more")
    folder.write("leaderboard/policy/policy.toml", POLICY.encode())
    folder.commit("Ask for less")
    folder.write("leaderboard/policy/keys.json", {"keys": []})
    folder.commit("Lose the key")
    folder.write("leaderboard/policy/keys.json", {"keys": [entry()]})
    folder.commit("Find it")
    bad = put(folder.root, BAD)
    folder.commit("Audit it again")
    withdraw(bad)
    folder.commit("Withdraw the second\n\nReason: the wrong weights were fetched")
    return folder


def test_relabels_and_disputes_follow_from_records_policy_and_keys(audited):
    events = ledger(GitRepository(audited.root), audited.commits[-1]).events
    assert {event.model for event in events} == {MODEL}
    answer = [(e.kind, e.former_level, e.level, e.why, e.evidence.path[12:]) for e in events]
    good, bad = (e.evidence.path[12:] for e in events if e.kind == "audit")
    taken = f"{bad.removesuffix('.json')}.withdrawn.json"
    again, reason = "Audit it again", "the wrong weights were fetched"
    policy = "policy/policy.toml"
    assert answer == [
        ("include", None, SELF, "Lay the ground", "model.json"),
        ("audit", SELF, "verified", "Audit it", good),
        ("relabel", SELF, "verified", "Audit it", good),
        ("relabel", "verified", SELF, "Ask for more", policy),
        ("relabel", SELF, "verified", "Ask for less", policy),
        # Without the key the record is broken and no board can be built: the level stays.
        ("audit", "verified", "disputed", again, bad),
        ("dispute", "verified", "disputed", again, bad),
        ("withdrawal", "disputed", "verified", reason, taken),
        ("relabel", "disputed", "verified", reason, taken),
    ]


def test_the_ledger_ends_with_the_level_of_the_board(audited):
    for commit in (*audited.commits[:4], *audited.commits[5:]):
        files = made(audited, commit).files
        (row,) = json.loads(files["leaderboard.json"])["data"]["full"]
        assert json.loads(files["ledger.json"])["events"][-1]["level"] == row["submitted"]


def test_a_signature_of_the_beacon_is_verified_once(audited):
    beacon.verify_round.cache_clear()
    repository = GitRepository(audited.root)
    ledger(repository, audited.commits[-1])
    generate(repository, audited.commits[-1])
    assert beacon.verify_round.cache_info().misses == 1


def test_a_level_and_its_story_are_told_together(audited, monkeypatch):
    monkeypatch.chdir(audited.root)
    output = CliRunner().invoke(cli, ["explain", MODEL], catch_exceptions=False).output
    first, *blocks = output.split("\n\n")
    assert first.splitlines()[0].startswith(f"{MODEL}  audited: audit ")
    # Audits of one day stand in the order of their ids.
    assert sum(line.endswith("sandbox level 2, agrees; counts") for line in first.splitlines()) == 1
    *paragraphs, last = [block.splitlines() for block in blocks]
    assert [paragraph[0].partition("  ")[2] for paragraph in paragraphs] == [
        "added to the board, checked",
        "audit recorded; relabelled, checked -> audited",
        "relabelled, audited -> checked",
        "relabelled, checked -> audited",
        "audit recorded; disputed, was audited",
        "audit withdrawn; relabelled, disputed -> audited",
    ]
    records = sorted((audited.root / "leaderboard/audits").rglob("*.withdrawn.json"))
    (record_path,) = (record.relative_to(audited.root) for record in records)
    assert paragraphs[-1][1:] == [
        "  why: the wrong weights were fetched",
        "  who: M. Aintainer",
        f"  commit: {audited.commits[-1]}",
        f"  evidence: {record_path}",
        f"    sha256 {hashlib.sha256(records[0].read_bytes()).hexdigest()}",
    ]
    assert last == ["`git show COMMIT -- FILE` shows how a commit changed the evidence"]

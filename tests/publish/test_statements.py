"""Signed statements are listed with each board, and no board is published that lacks one."""

import json
import shutil

import pytest

from geneb_ci.audit.record.published import STATEMENTS_PATH, statements_in
from geneb_ci.publish import generation
from geneb_ci.publish import push as pushing
from geneb_ci.publish.faults import NotFastForward, SpaceDiffers
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.push import MainIntent, PublishOutcome, RollbackIntent, push
from geneb_ci.publish.space import Space
from tests.audit.linked_place import audited, committed, name_of
from tests.audit.recorded import (
    commitment,
    entry,
    key,
    repository,
    submission_bytes,
    write_keys,
)
from tests.audit.test_old_log import KEYS, OLD, RECORD
from tests.publish.clone import Folder
from tests.publish.conftest import made
from tests.publish.hub import WRITER

OTHER = key("another")
AUDITS = "leaderboard/audits"


def publish(space: Space, clone: Folder, *, is_new: bool = False) -> PublishOutcome:
    intent = MainIntent(made(clone), GitRepository(clone.root))
    return push(space, intent, is_new=is_new).outcome


@pytest.fixture
def signed(clone, space):
    """A published board, after which a commitment was signed and published."""
    clone.write("leaderboard/policy/keys.json", {"keys": [entry(), entry(OTHER, owner="B")]})
    clone.commit("Trust two keys")
    publish(space, clone)
    path = committed(clone.root, commitment(submission_bytes()))
    clone.commit("A commitment")
    publish(space, clone)
    return clone, path


def test_each_board_has_the_list_and_its_message_names_it(repo, signed):
    clone, path = signed
    raw = repo.head.tree[STATEMENTS_PATH]
    assert list(statements_in(raw)) == [name_of(path)]
    assert json.loads(raw)["heads"] == json.loads(raw)["statements"]
    assert (clone.root / AUDITS / name_of(path)).is_file()
    assert [line for line in repo.head.message.splitlines() if line.startswith("Statements: ")]


def test_a_board_that_lost_a_statement_is_not_published(space, repo, signed, monkeypatch):
    clone, path = signed
    before = repo.head.oid
    path.unlink()
    clone.commit("Forget")
    with pytest.raises(NotFastForward, match=f"lacks: {name_of(path)} was deleted"):
        publish(space, clone)
    committed(clone.root, commitment(submission_bytes(" another")))
    clone.commit("Another history")
    with pytest.raises(NotFastForward, match=f"lacks: {name_of(path)} was deleted"):
        publish(space, clone)
    assert repo.head.oid == before
    monkeypatch.setattr(pushing, "require_all_statements", lambda *_, **__: None)
    assert publish(space, clone) == "published"


def test_a_statement_that_another_key_signed_again_is_not_published(space, signed):
    clone, path = signed
    path.unlink()
    again = committed(clone.root, commitment(submission_bytes()), OTHER)
    assert again == path
    clone.commit("Sign it again")
    with pytest.raises(NotFastForward, match=f"lacks: {name_of(path)} was changed"):
        publish(space, clone)


def test_a_space_that_was_taken_back_hides_nothing(space, repo, signed, monkeypatch):
    """Whoever may write to the Space puts the first board back, and main forgets as well."""
    clone, path = signed
    (first,) = [
        commit
        for commit in repo.commits
        if "manifest.json" in commit.tree and STATEMENTS_PATH not in commit.tree
    ]
    repo.add(dict(first.tree), "Statements: none")
    path.unlink()
    clone.commit("Forget")
    with pytest.raises(NotFastForward, match=f"lacks: {name_of(path)} was deleted"):
        publish(space, clone)
    monkeypatch.setattr(pushing, "published_statements", lambda _: {})
    assert publish(space, clone) == "published"


def test_a_space_without_any_board_is_refused_where_something_was_signed(hub, signed):
    clone, path = signed
    hub.create("spaces/geneb/other")
    other = Space("geneb/other", token=WRITER, endpoint=hub.endpoint, timeout_s=5)
    with pytest.raises(NotFastForward, match="this is not the Space of the board") as caught:
        publish(other, clone)
    assert "--new-space" in caught.value.fix
    assert publish(other, clone, is_new=True) == "published"
    path.unlink()
    clone.commit("Forget")
    with pytest.raises(NotFastForward, match="was deleted"):
        publish(other, clone, is_new=True)


def test_a_board_with_more_statements_is_published_and_may_be_rolled_back(space, repo, signed):
    clone, path = signed
    before = made(clone)
    further = committed(clone.root, commitment(submission_bytes(" another"), model_id="another"))
    clone.commit("Another commitment")
    assert publish(space, clone) == "published"
    assert list(statements_in(repo.head.tree[STATEMENTS_PATH])) == sorted(
        [name_of(path), name_of(further)]
    )
    assert list(json.loads(repo.head.tree[STATEMENTS_PATH])["heads"]) == [name_of(further)]
    repository_ = GitRepository(clone.root)
    covers = made(clone).manifest.source_commit
    assert push(space, RollbackIntent(before, covers, repository_)).outcome == "published"
    assert list(statements_in(repo.head.tree[STATEMENTS_PATH])) == [name_of(path)]
    further.unlink()
    clone.commit("Forget what was rolled back")
    with pytest.raises(NotFastForward, match=f"lacks: {name_of(further)} was deleted"):
        publish(space, clone)


def test_a_revocation_that_was_published_is_not_taken_back(space, signed):
    clone, _ = signed
    revoked = entry(OTHER, owner="B", revoked_at="2024-01-01T00:00:00Z")
    write_keys(clone.root, [entry(), revoked])
    clone.commit("Revoke a key")
    publish(space, clone)
    write_keys(clone.root, [entry(), entry(OTHER, owner="B")])
    clone.commit("Trust it again")
    with pytest.raises(NotFastForward, match=f"lacks: keys.json/{entry(OTHER)['keyid']} was"):
        publish(space, clone)


def test_a_list_that_cannot_be_read_stops_the_next_board(space, repo, signed):
    clone, _ = signed
    repo.add({**repo.head.tree, STATEMENTS_PATH: b"{}"}, "by hand")
    clone.write("leaderboard/README.md", b"---\ntitle: New card\nsdk: static\n---\n")
    clone.commit("A new card")
    with pytest.raises(SpaceDiffers, match="cannot be read: schema_version"):
        publish(space, clone)


def old_board(clone) -> None:
    """Add an old log to a repository."""
    keys = KEYS | {"keys": [*KEYS["keys"], entry(OTHER, owner="B")]}
    clone.write("leaderboard/policy/keys.json", keys)
    shutil.copytree(OLD / "audits", clone.root / AUDITS)


def test_an_old_log_is_published_as_it_was(space, repo, clone):
    old_board(clone)
    clone.commit("A board with a log")
    publish(space, clone, is_new=True)
    for name in ("checkpoint", "tile/entries/000.p/6"):
        raw = (OLD / "audits/log" / name).read_bytes()
        assert repo.head.tree[f"audits/log/{name}"] == raw
    assert "log/checkpoint" in statements_in(repo.head.tree[STATEMENTS_PATH])


def test_an_old_log_that_was_cut_does_not_follow_a_board_without_a_list(space, clone, monkeypatch):
    old_board(clone)
    clone.commit("A board with a log that an earlier version publishes")
    with monkeypatch.context() as patch:
        patch.setattr(generation, "statements_file", lambda _: {})  # as an earlier version
        publish(space, clone)
    shutil.rmtree(clone.root / AUDITS)
    clone.commit("Forget")
    with pytest.raises(
        NotFastForward, match="the published one: the checkpoint of the log is missing"
    ):
        publish(space, clone)


def test_a_row_gets_its_level_when_its_record_is_in_an_old_log(tmp_path):
    folder = Folder(repository(tmp_path / "audited"))
    folder.write("leaderboard/policy/keys.json", KEYS)
    folder.commit("Lay the ground")
    shutil.copytree(OLD / "audits", folder.root / AUDITS, ignore=shutil.ignore_patterns("log"))
    shutil.rmtree(folder.root / AUDITS / "another")
    folder.commit("Audit it")
    shutil.copytree(OLD / "audits", folder.root / AUDITS, dirs_exist_ok=True)
    folder.commit("Extend the log")
    events = ledger(GitRepository(folder.root), folder.commits[-1]).events
    assert [(event.kind, event.level, event.why, event.evidence.path[12:]) for event in events] == [
        ("include", "self-reported", "Lay the ground", "model.json"),
        ("audit", "self-reported", "Audit it", f"audits/{RECORD}"),
        ("relabel", "verified", "Extend the log", "audits/log/checkpoint"),
    ]


def test_a_row_gets_its_level_with_its_record_whatever_else_was_signed(tmp_path):
    folder = Folder(repository(tmp_path / "audited"))
    folder.commit("Lay the ground")
    weights = commitment(submission_bytes()).weights.model_dump()
    weights["files"] = {"model.safetensors": "e" * 64}
    other = commitment(submission_bytes(" b"), model_id="b", weights=weights)
    committed(folder.root, other)
    folder.commit("A commitment to another method")
    record = audited(folder.root, submission_bytes())
    folder.commit("Audit it")
    events = ledger(GitRepository(folder.root), folder.commits[-1]).events
    assert [(event.kind, event.level, event.why) for event in events] == [
        ("include", "self-reported", "Lay the ground"),
        ("audit", "verified", "Audit it"),
        ("relabel", "verified", "Audit it"),
    ]
    assert events[1].evidence.path == f"{AUDITS}/{name_of(record)}"

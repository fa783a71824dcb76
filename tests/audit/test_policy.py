"""The policy of audits: the shipped one, a place's own, and what is none."""

import json

import pytest

from geneb_ci.audit.sampling.design import (
    AuditPolicy,
    audit_policy,
    load_policy,
    parse_policy,
    require_drawable,
)
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import load_benchmark
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.errors import BadConfiguration
from tests.audit.examples import COMMITTED_AT, ROUND, ROUNDS
from tests.audit.place import POLICY, repository
from tests.definitions import definition, tasks
from tests.git import git
from tests.paths import ROOT


def test_the_shipped_policy():
    assert audit_policy(Layout(LayoutKind.ALONE, ROOT)).model_dump() == {
        "drawn": 13,
        "stratified": False,
        "regimes": ["full", "10shot", "1shot"],
        "minimum_drawn": 13,
        "minimum_rows": 1500,
        "minimum_level": 2,
        "scorer": True,
        "aborts": 3,
        "receipt_days": 30,
        "fallback_keys": [],
        "spent_keys": [],
    }


def test_a_place_has_its_own(tmp_path):
    layout = Layout(LayoutKind.GENEB_CI, tmp_path, policy=tmp_path)
    assert audit_policy(layout) == audit_policy(Layout(LayoutKind.ALONE, ROOT)), (
        "none yet: the shipped one"
    )
    (tmp_path / "policy.toml").write_text(POLICY)
    assert audit_policy(layout).drawn == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("drawn = 2", "", "[audit] drawn: Field required"),
        ("drawn = 2", "drawn = 0", "[audit] drawn: Input should be greater than or equal to 1"),
        ("drawn = 2", 'drawn = "2"', "[audit] drawn: Input should be a valid integer"),
        ("drawn = 2", "drawn = true", "[audit] drawn: Input should be a valid integer"),
        ("drawn = 2", "drawn = 2\nk = 3", "[audit] k: Extra inputs are not permitted"),
        ("stratified = false", "stratified = 0", "[audit] stratified: Input should be a valid"),
        ('"1shot"', '"full"', "lists a regime twice"),
        ('["full", "10shot", "1shot"]', "[]", "[audit] regimes: List should have at least 1"),
        ("minimum_drawn = 2", "minimum_drawn = 3", "no audit could verify a row"),
        ("minimum_level = 2", "minimum_level = 0", "[audit] minimum_level: Input should be 1, 2"),
        ("minimum_level = 2", "minimum_level = 5", "[audit] minimum_level: Input should be 1, 2"),
        ("stratified", 'fallback_keys = ["x"]\nstratified', "[audit] fallback_keys/0: String"),
        ("[audit]", "[audits]", "[audit] cannot be read: 'audit'"),
        ("[audit]", "[audit", "[audit] cannot be read: "),
        ("[audit]", "audit = 3\n[x]", "[audit] the table: Input should be"),
    ],
)
def test_nonsense_is_refused(tmp_path, old, new, message):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace(old, new, 1))
    with pytest.raises(BadConfiguration) as caught:
        load_policy(path)
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{path}: ")


CHANGES = {
    "too many tasks": (
        ("drawn = 2\n", "drawn = 4\n"),
        "drawn = 4 is more than the 3 tasks of GENEB-small",
        "write drawn = 3 or less, and minimum_drawn no larger",
    ),
    "an unknown regime": (
        ('"1shot"', '"5shot"'),
        "regimes names 5shot, and GENEB-small has full, 10shot, 1shot",
        "name regimes of the benchmark",
    ),
}
READERS = (
    ("trust",),
    ("build", "--no-diagnostics", "--output", "out"),
    ("check", "--base", "HEAD"),
    ("audit", "commit", "submissions/model.json"),
    ("audit", "plan", "c.json", "--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
)


@pytest.mark.parametrize("name", CHANGES)
def test_each_reader_refuses_a_policy_that_the_benchmark_cannot_meet(
    tmp_path, monkeypatch, capsys, name
):
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = json.dumps({"round": ROUND, "signature": ROUNDS[ROUND]})
    (tmp_path / "round.json").write_text(text)
    assert main(["audit", "commit", "submissions/model.json", "--output", "c.json"]) == 0
    (old, new), message, fix = CHANGES[name]
    policy = tmp_path / "leaderboard/policy/policy.toml"
    policy.write_text(POLICY.replace(old, new, 1))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "A board")
    for reader in READERS:
        find_layout.cache_clear()
        capsys.readouterr()
        code, err = main(list(reader)), " ".join(capsys.readouterr().err.split())
        assert (reader, code) == (reader, 1), err
        assert message in err
        assert f"fix: {fix}" in err


def test_a_stratified_sample_has_to_have_room_for_each_larger_category(tmp_path):
    own = tmp_path / "own.json"
    own.write_text(json.dumps(definition(tasks=tasks(10))))
    policy = parse_policy(
        POLICY.replace("drawn = 2", "drawn = 1").replace("false", "true").encode(), "p"
    )
    with pytest.raises(BadConfiguration) as caught:
        require_drawable(policy, load_benchmark(own), "p")
    assert caught.value.message == (
        "p: [audit] drawn = 1 is too few: stratified draws one of each of the 2 larger categories "
        "of GENEB-small"
    )


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match="is UTF-16 or UTF-32 text"):
        load_policy(path)


def test_every_setting_is_in_the_shipped_file():
    text = (ROOT / "leaderboard/policy/policy.toml").read_text(encoding="utf-8")
    for name in AuditPolicy.model_fields:
        assert f"{name} = " in text

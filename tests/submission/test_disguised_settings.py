"""Settings, policy, the registry and files of audits are named for what they are instead."""

import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from tests.paths import ROOT
from tests.small import BENCHMARK_FILE, CARD, small

DISGUISES: dict[str, tuple[bytes, str, str]] = {
    "pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1\n",
        "is a Git LFS pointer",
        "git lfs pull",
    ),
    "conflict": (
        b"# geneb-ci\n<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> main\n",
        "has merge conflict markers on lines 2, 4, 6",
        "git add",
    ),
    "UTF-16": ("# geneb-ci\n".encode("utf-16"), "is UTF-16 or UTF-32 text", "save it as UTF-8"),
    "page": (b"<!doctype html><p>geneb-ci", "is an HTML page", "download the file itself"),
    "byte order mark": (b"\xef\xbb\xbf# geneb-ci\n", "is text with a byte order mark", "UTF-8"),
}
CHECK = ("check", "submissions/GROVER.json", "--no-cache")
READERS: dict[str, tuple[str, ...]] = {
    "schemas/benchmark.json": CHECK,
    "pyproject.toml": CHECK,
    "leaderboard/policy/official.json": CHECK,
    "leaderboard/policy/models/GROVER.toml": CHECK,
    "leaderboard/policy/policy.toml": ("label", "--format", "json"),
    "leaderboard/policy/keys.json": ("label", "--format", "json"),
    "baseline.json": (*CHECK, "--baseline", "baseline.json"),
    "queue.toml": ("audit", "queue", "--from", "queue.toml"),
}


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a row, its card, policy and registry."""
    for folder in ("schemas", "submissions/cards"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copytree(ROOT / "leaderboard/policy", tmp_path / "leaderboard/policy")
    (tmp_path / "schemas/benchmark.json").write_bytes(BENCHMARK_FILE.read_bytes())
    (tmp_path / "submissions/GROVER.json").write_text(json.dumps(small("GROVER")))
    (tmp_path / "submissions/cards/GROVER.md").write_text(CARD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("file", READERS)
def test_a_disguised_file_is_named(file, name, board, capsys):
    raw, words, fix = DISGUISES[name]
    (board / file).parent.mkdir(parents=True, exist_ok=True)
    (board / file).write_bytes(raw)
    assert main([*READERS[file]]) in {1, 2, 3}
    streams = capsys.readouterr()
    text = " ".join((streams.out + streams.err).split())
    assert f"{Path(file).name}: " in text
    assert words in text
    assert fix in text


AUDITS = {
    "audit plan": ("a commitment", 3),
    "audit run": ("a plan", 3),
    "audit commit": ("a submission", 3),
    "audit verify": ("an audit record", 11),
}


@pytest.mark.parametrize("name", ["pointer", "conflict", "UTF-16", "page"])
@pytest.mark.parametrize("command", AUDITS)
def test_a_disguised_file_of_an_audit_is_named(command, name, tmp_path, monkeypatch, capsys):
    raw, words, fix = DISGUISES[name]
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_bytes(raw)
    assert main([*command.split(), "x.json"]) == AUDITS[command][1]
    streams = capsys.readouterr()
    text = " ".join((streams.out + streams.err).split())
    assert words in text
    assert fix.casefold() in text.casefold()

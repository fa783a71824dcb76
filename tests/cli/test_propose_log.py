"""The script of the workflow audit-log: what it signs, what it proposes, and when it does nothing.

`make rehearse JOB=audit-log` runs it in its two jobs.
"""

import base64
import json
import lzma

import pytest

from geneb_ci.common.config import find_layout
from tests.audit.examples import ROUNDS
from tests.audit.log_place import kept, key_file, signed
from tests.audit.recorded import FIRST, commitment, submission_bytes
from tests.github.server import REPOSITORY
from tests.github.serving import serving
from tools import propose_log
from tools.rehearse.forge import GitForge, git

TOKEN = "token-of-the-job"  # noqa: S105


@pytest.fixture
def forge(tmp_path, monkeypatch):
    """A checkout whose policy names a log, and the repository that it is of."""
    folder, root = tmp_path / "forge", kept(tmp_path / "root")
    folder.mkdir()
    found = GitForge(folder)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "First")
    git(folder, "clone", "--quiet", "--bare", str(root), str(found.repository))
    found.grants[TOKEN] = frozenset({"contents:read", "contents:write"})
    (root / "round.json").write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}))
    monkeypatch.chdir(root)
    with serving(found):
        variables = {
            "GH_TOKEN": TOKEN,
            "GITHUB_API_URL": found.address,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SHA": found.main,
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GENEB_BEACON_FILE": "round.json",
            "LOG_KEY": key_file(root).read_text(),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield found


def run(monkeypatch, capsys, word: str) -> tuple[int, str, str]:
    find_layout.cache_clear()
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["propose_log.py", word])
    code = propose_log.main()
    out, err = capsys.readouterr()
    return code, out, err


def test_a_longer_log_is_signed_proposed_and_waited_for(forge, tmp_path, monkeypatch, capsys):
    root = tmp_path / "root"
    assert run(monkeypatch, capsys, "sign")[:2] == (0, "files=\n")
    signed(root, commitment(submission_bytes()))
    code, out, err = run(monkeypatch, capsys, "sign")
    assert (code, err) == (0, "1 added, 1 in all\n")
    monkeypatch.setenv("FILES", out.removeprefix("files=").strip())
    for _ in range(2):  # again, where the branch was merged and stayed
        code, out, err = run(monkeypatch, capsys, "propose")
        assert (code, out) == (0, "")
        assert "gh pr create --head audit-log" in err
    listed = git(forge.repository, "diff", "--name-only", "main..audit-log").splitlines()
    assert listed == [
        f"leaderboard/audits/log/{name}"
        for name in ("checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1")
    ]
    # The next run has main's log, which is shorter: it would sign another head of the same size.
    for path in sorted((root / "leaderboard/audits/log").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (root / "leaderboard/audits/log").rmdir()
    code, out, err = run(monkeypatch, capsys, "sign")
    assert (code, out) == (0, "files=\n")
    assert "a longer log waits on the branch audit-log: merge it" in err


def test_what_is_no_file_of_the_log_is_not_proposed(forge, monkeypatch, capsys):
    for path in (".github/workflows/ci.yml", "leaderboard/audits/log/../../policy/keys.json"):
        packed = lzma.compress(json.dumps({path: base64.b64encode(b"x").decode()}).encode())
        monkeypatch.setenv("FILES", base64.b64encode(packed).decode())
        code, _, err = run(monkeypatch, capsys, "propose")
        assert (code, "is no file of the log" in err) == (1, True)
    assert "audit-log" not in git(forge.repository, "branch", "--list")


def test_without_the_secret_or_with_another_key_nothing_is_signed(forge, monkeypatch, capsys):
    assert forge.main
    monkeypatch.setenv("LOG_KEY", "")
    code, out, err = run(monkeypatch, capsys, "sign")
    assert (code, out) == (1, "")
    assert "has no secret GENEB_LOG_KEY" in err
    monkeypatch.setenv("LOG_KEY", "not a key")
    code, out, err = run(monkeypatch, capsys, "sign")
    assert (code, out) == (2, "")
    assert "fix:" in err

"""The script of the workflow audit-open, against a server that answers as GitHub does."""

import http.server
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests import forked
from tests.audit.place import repository
from tests.gate import gated
from tests.loopback import loopback
from tests.paths import ROOT


class _GitHub(http.server.BaseHTTPRequestHandler):
    status = 201
    taken: ClassVar[list[tuple[str, str | None, dict[str, Any]]]]
    standing: ClassVar[list[dict[str, Any]]]

    def do_GET(self) -> None:
        assert self.path == f"/repos/org/board/commits/{'a' * 40}/statuses?per_page=100"
        self.give(200, self.standing)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.taken.append((self.path, self.headers["Authorization"], body))
        if self.status == 201:
            self.standing.insert(0, body | {"created_at": self.time})
        self.give(self.status, {"created_at": self.time})

    @property
    def time(self) -> str:
        """An hour later with each status."""
        return f"2026-11-20T{8 + len(self.taken) - 1:02}:30:00Z"

    def give(self, status: int, value: Any) -> None:
        answer = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def github():
    class Handler(_GitHub):
        taken: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []
        standing: ClassVar[list[dict[str, Any]]] = [
            {"context": "geneb/verdict", "description": "x", "created_at": "2026-11-19T08:30:00Z"}
        ]

    with loopback(Handler) as address:
        yield address, Handler


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what the step before prints, of a real submission."""
    board = tmp_path_factory.mktemp("committed") / "board"
    file = repository(board)
    done = forked.run("geneb_ci", "audit", "commit", f"submissions/{file.name}", cwd=board)
    assert done.returncode == 0, done.stderr
    path = board.parent / "commitment.json"
    path.write_text(done.stdout, encoding="utf-8")
    return path


@pytest.fixture
def commitment(committed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(committed, tmp_path / "commitment.json"))


def run(address: str, path: Path) -> subprocess.CompletedProcess[str]:
    folder = path.parent
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "GITHUB_API_URL": address,
        "GITHUB_REPOSITORY": "org/board",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GH_TOKEN": "secret-token",
    }
    command = [sys.executable, "-P", str(ROOT / "tools/open_audit.py"), str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_digest_is_published_before_a_seed_exists(github, commitment):
    address, handler = github
    done = run(address, commitment)
    written = json.loads(commitment.read_bytes())
    digest = written["sha256"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{digest} 2026-11-20T08:30:00Z\n"
    assert handler.taken == [
        (
            f"/repos/org/board/statuses/{'a' * 40}",
            "Bearer secret-token",
            {"state": "success", "context": "geneb/audit-commit", "description": digest},
        )
    ]
    summary = commitment.with_name("summary.md").read_text(encoding="utf-8")
    assert summary.startswith(f"Commitment `{digest}`, published at `2026-11-20T08:30:00Z`.\n")
    assert json.loads(summary.split("```json\n")[1].split("```")[0]) == written


def test_row_17_to_open_an_audit_twice_moves_no_time(github, commitment):
    """Threat 17: a second run would give another round of the beacon to choose from."""
    address, handler = github
    first, second = run(address, commitment), run(address, commitment)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert second.stdout.endswith(" 2026-11-20T08:30:00Z\n")
    assert len(handler.taken) == 1
    # One that was set by hand later does not count, either.
    handler.standing.insert(0, handler.standing[0] | {"created_at": "2026-11-21T08:30:00Z"})
    assert run(address, commitment).stdout == first.stdout


def test_a_commit_with_more_statuses_than_one_page_opens_nothing(github, commitment):
    address, handler = github
    handler.standing[:] = handler.standing * 100
    done = run(address, commitment)
    assert (done.returncode, done.stdout, handler.taken) == (1, "", [])
    assert "the commit has 100 statuses or more: wait for the next commit" in done.stderr


def test_a_digest_that_is_not_the_commitments_is_not_published(github, commitment):
    address, handler = github
    written = json.loads(commitment.read_bytes())
    written["commitment"]["policy"]["drawn"] = 1
    commitment.write_text(json.dumps(written), encoding="utf-8")
    done = run(address, commitment)
    assert (done.returncode, done.stdout, handler.taken) == (11, "", [])
    assert "the commitment has digest " in done.stderr


@pytest.mark.parametrize("status", gated([403, 422, 502], 403, 502))
def test_a_refusal_is_said_once_and_nothing_is_retried(github, commitment, status):
    address, handler = github
    handler.status = status
    done = run(address, commitment)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the commitment was not published: HTTP Error {status}" in done.stderr
    assert "secret-token" not in done.stderr
    assert len(handler.taken) == 1
    assert not commitment.with_name("summary.md").exists()

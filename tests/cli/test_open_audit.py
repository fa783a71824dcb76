"""The script of the workflow audit-open, against a server that answers as GitHub does."""

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.audit.place import repository
from tests.paths import ROOT


class _GitHub(http.server.BaseHTTPRequestHandler):
    status = 201
    taken: ClassVar[list[tuple[str, str | None, dict[str, Any]]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.taken.append((self.path, self.headers["Authorization"], body))
        answer = json.dumps({"created_at": "2026-11-20T08:30:00Z"}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def github():
    class Handler(_GitHub):
        taken: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server, Handler
        server.shutdown()
        thread.join()


def committed(folder: Path) -> str:
    """Give what the step before prints, of a real submission."""
    file = repository(folder / "board")
    command = [sys.executable, "-m", "geneb_ci", "audit", "commit", f"submissions/{file.name}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder / "board", env=environment, capture_output=True, text=True, check=True
    ).stdout


def run(server: http.server.HTTPServer, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "commitment.json"
    if not path.exists():
        path.write_text(committed(folder), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_REPOSITORY": "org/board",
        "GITHUB_SHA": "a" * 40,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GH_TOKEN": "secret-token",
    }
    command = [sys.executable, "-P", str(ROOT / "tools/open_audit.py"), str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_digest_is_published_before_a_seed_exists(github, tmp_path):
    server, handler = github
    done = run(server, tmp_path)
    written = json.loads((tmp_path / "commitment.json").read_bytes())
    commitment = written["sha256"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{commitment} 2026-11-20T08:30:00Z\n"
    assert handler.taken == [
        (
            f"/repos/org/board/statuses/{'a' * 40}",
            "Bearer secret-token",
            {"state": "success", "context": "geneb/audit-commit", "description": commitment},
        )
    ]
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith(f"Commitment `{commitment}`, published at `2026-11-20T08:30:00Z`.\n")
    assert json.loads(summary.split("```json\n")[1].split("```")[0]) == written


def test_a_digest_that_is_not_the_commitments_is_not_published(github, tmp_path):
    server, handler = github
    written = json.loads(committed(tmp_path))
    written["commitment"]["policy"]["drawn"] = 1
    (tmp_path / "commitment.json").write_text(json.dumps(written), encoding="utf-8")
    done = run(server, tmp_path)
    assert (done.returncode, done.stdout, handler.taken) == (11, "", [])
    assert "its digest is " in done.stderr


@pytest.mark.parametrize("status", [403, 422, 502])
def test_a_refusal_is_said_once_and_nothing_is_retried(github, tmp_path, status):
    server, handler = github
    handler.status = status
    done = run(server, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the commitment was not published: HTTP Error {status}" in done.stderr
    assert "secret-token" not in done.stderr
    assert len(handler.taken) == 1
    assert not (tmp_path / "summary.md").exists()

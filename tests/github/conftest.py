"""A repository of submissions on disk, the same on a loopback GitHub, and the commands between."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from requests import sessions

from geneb_ci.cli.main import main
from geneb_ci.github import errors
from geneb_ci.github.errors import WaitingLimits
from tests.github.history import Files
from tests.github.server import BOT, REPOSITORY, TOKEN, GitHubServer
from tests.github.serving import serving
from tests.small import BENCHMARK_FILE, CARD, small

ADDRESS = f"https://github.com/{REPOSITORY}"
GOLDEN = Path(__file__).with_name("golden")
IMPATIENT = WaitingLimits(
    wait_max=5,
    secondary_wait=0.01,
    retries=2,
    first_backoff=0,
    pause_between_writes=0,
    request_time_max=10,
)
REGULAR = "100644"
ROW = "submissions/model.json"
CARD_PATH = "submissions/cards/model.md"
MODULE = "submissions/extractors/model.py"
PEERS = ("alpha", "beta", "gamma", "delta")


def golden(name: str, text: str, *, update: bool) -> None:
    """Hold a whole output against its golden file, or write that anew."""
    path = GOLDEN / name
    if update:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def encoded(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"


def sound(name: str = "model") -> Files:
    """Return the three files of a sound submission."""
    return dict(_sound(name))


@cache
def _sound(name: str) -> Files:
    return {
        f"submissions/{name}.json": (REGULAR, encoded(small(name))),
        f"submissions/cards/{name}.md": (REGULAR, CARD.encode()),
        f"submissions/extractors/{name}.py": (REGULAR, f'"""{name}"""\n'.encode()),
    }


def of_module(document: dict[str, Any]) -> dict[str, Any]:
    """Return the run of a document, with the digest of the extractor that is there."""
    digest = hashlib.sha256(sound()[MODULE][1]).hexdigest()
    run = document["run"]
    return {"run": run | {"extractor": run["extractor"] | {"sha256": digest}}}


@pytest.fixture(autouse=True)
def _no_proxy_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes a fifth of each request: the environment is read through for proxies."""
    monkeypatch.setattr(sessions, "get_environ_proxies", lambda *_, **__: {})


@dataclass
class BoardCheckout:
    """The checkout of the base branch, and the server that has it, too."""

    root: Path
    server: GitHubServer
    base: str
    files: Files
    capsys: pytest.CaptureFixture[str]

    def pull(self, changes: Mapping[str, tuple[str, bytes] | None], **options: Any) -> int:
        """Open a pull request that changes these paths; None deletes one."""
        files = dict(self.files)
        for path, entry in changes.items():
            files.pop(path, None)
            if entry is not None:
                files[path] = entry
        return self.server.open_pull(self.server.commit(files, self.base), self.base, **options)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command, and return its exit code and both outputs."""
        self.capsys.readouterr()
        code = main(arguments)
        out, err = self.capsys.readouterr()
        return int(code), out, err

    def verdict(self, number: int) -> dict[str, Any]:
        """Reconcile one pull request, and return its verdict."""
        code, out, err = self.run("reconcile", "--pr", str(number))
        assert code == 0, err
        assert out.count("\n") == 1
        (verdict,) = json.loads(out)["pulls"]
        return dict(verdict)

    def report(self, verdict: str) -> tuple[int, str, str]:
        """Run the job that writes."""
        os.environ["VERDICT"] = verdict
        return self.run("report")

    def both(self, number: int) -> str:
        """Reconcile and report, and return the one comment that there is of ours."""
        code, out, err = self.run("reconcile", "--pr", str(number))
        assert code == 0, err
        code, _, err = self.report(out)
        assert code == 0, err
        return self.comment(number)

    def comment(self, number: int) -> str:
        bodies = [c["body"] for c in self.server.comments[number] if c["user"] == BOT]
        assert len(bodies) == 1
        return str(bodies[0])

    def status(self, number: int) -> tuple[str, str]:
        """Return the state and the description of the verdict on a head."""
        last = self.server.statuses[self.server.pulls[number]["head"]["sha"]][0]
        assert last["context"] == "geneb/verdict"
        return last["state"], last["description"]


def swept(board_checkout: BoardCheckout) -> tuple[int, list[int], str]:
    """Run both jobs; return the exit code of the first, the numbers judged, and its text."""
    code, line, err = board_checkout.run("reconcile")
    board_checkout.report(line)
    return code, [pull["number"] for pull in json.loads(line)["pulls"]], err


@pytest.fixture
def board_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[BoardCheckout]:
    root = tmp_path / "board"
    files: Files = {}
    for peer in PEERS:
        files |= sound(peer)
    files["schemas/benchmark.json"] = (REGULAR, BENCHMARK_FILE.read_bytes())
    files["leaderboard/policy/official.json"] = (REGULAR, b'{"files": {}}\n')
    files[".github/workflows/verdict.yml"] = (REGULAR, b"on: workflow_run\n")
    files["pyproject.toml"] = (REGULAR, b"[project]\nname = 'board'\n")
    for path, (_, raw) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.chdir(root)
    for name in ("GITHUB_OUTPUT", "GITHUB_TOKEN", "VERDICT"):
        monkeypatch.setenv(name, "")  # so that what a test sets is taken back after it
    with serving() as server:
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", server.address)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
        yield BoardCheckout(root, server, server.commit(files), files, capsys)

"""Downloading the pinned dataset, from a Hub of the test's own on this machine."""

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from reference_harness import mini
from reference_harness.data import benchmark, download, hub_client, task_folder
from reference_harness.data.manifest import MANIFEST_NAME, Manifest
from reference_harness.errors import DataError, OptionError
from tests.harness.support import write_remote
from tests.loopback import answering
from tests.publish.hub_repo import git_name

MINI = benchmark.mini()
# The generated dataset has no name a Hub would take.
BENCH = replace(MINI, dataset=replace(MINI.dataset, repo_id="builtin/geneb-mini"))
COMMIT = BENCH.dataset.revision
IDS = ("mini_tf", "mini_splice")


class Hub:
    """Serves one dataset at one commit: the few addresses `snapshot_download` asks for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.fetched: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self._answer(body=False)

            def do_GET(self) -> None:
                self._answer(body=True)

            def _answer(self, *, body: bool) -> None:
                status, headers, content = hub.answer(unquote(urlsplit(self.path).path))
                if body and status == 200 and "ETag" in headers:
                    hub.fetched.append(self.path)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if body:
                    self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        repo = f"datasets/{BENCH.dataset.repo_id}"
        if path.startswith(f"/api/{repo}/revision/"):
            if not path.endswith(COMMIT):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b""
            siblings = [{"rfilename": name} for name in self.files]
            repository_answer = {"id": BENCH.dataset.repo_id, "sha": COMMIT, "siblings": siblings}
            return 200, {"Content-Type": "application/json"}, json.dumps(repository_answer).encode()
        if path.startswith(f"/api/{repo}/tree/"):
            tree = [
                {"type": "file", "path": n, "size": len(c), "oid": git_name(c)}
                for n, c in self.files.items()
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
        name = path.removeprefix(f"/{repo}/resolve/{COMMIT}/")
        if name not in self.files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        content = self.files[name]
        digest = hashlib.sha256(content).hexdigest()
        return 200, {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT}, content


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    path = tmp_path / "there"
    for task_id in IDS:
        write_remote(mini.load(task_id), path)
    files = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*.csv")}
    served = Hub(files | {"README.md": b"not asked for"})
    with answering(served.server):
        yield served


def test_pull_verifies_and_writes_a_manifest(hub: Hub, tmp_path: Path) -> None:
    here = tmp_path / "here"
    made = download.pull(BENCH, here, endpoint=hub.endpoint)
    assert made == Manifest.of_folder(here)
    assert set(made.tasks) == set(IDS)
    assert made.tasks["mini_tf"].sha256 == mini.load("mini_tf").sha256
    assert made.tasks["mini_tf"].test == mini.load("mini_tf").test.class_counts
    assert not (here / "README.md").exists()
    source = task_folder.Folder(here, BENCH)
    assert source.verified
    assert source.load(BENCH.by_id["mini_tf"]).sha256 == mini.load("mini_tf").sha256
    assert download.verify(BENCH, here) == made


def test_pull_again_fetches_nothing(hub: Hub, tmp_path: Path) -> None:
    download.pull(BENCH, tmp_path / "here", endpoint=hub.endpoint)
    before = len(hub.fetched)
    assert before == 2 * len(IDS)
    download.pull(BENCH, tmp_path / "here", endpoint=hub.endpoint)
    assert len(hub.fetched) == before


def test_pull_one_task(hub: Hub, tmp_path: Path) -> None:
    made = download.pull(BENCH, tmp_path / "here", tasks=["mini_tf"], endpoint=hub.endpoint)
    assert set(made.tasks) == {"mini_tf"}


def test_a_changed_file_is_found(hub: Hub, tmp_path: Path) -> None:
    here = tmp_path / "here"
    download.pull(BENCH, here, endpoint=hub.endpoint)
    file = here / "tasks" / "mini_tf" / "train.csv"
    text = file.read_text()
    file.write_text(text.replace("A", "C", 1))
    with pytest.raises(
        DataError, match=r"train\.csv: sha256 [0-9a-f]{64}, expected [0-9a-f]{64} as in manifest"
    ):
        task_folder.Folder(here, BENCH).load(BENCH.by_id["mini_tf"])
    file.write_text(text + "A,0\n")
    with pytest.raises(
        DataError, match=r"train\.csv: \d+ bytes, expected \d+ as in manifest\.json"
    ):
        download.verify(BENCH, here)
    file.unlink()
    (here / "tasks" / "mini_tf" / "test.csv").unlink()
    with pytest.raises(
        DataError, match=r"train\.csv: the file is missing, but manifest\.json lists it"
    ):
        download.verify(BENCH, here)


def test_a_branch_is_no_revision(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="'main': expected the 40 hex digits of a commit"):
        download.pull(BENCH, tmp_path, revision="main")
    with pytest.raises(OptionError, match="no such task"):
        download.pull(BENCH, tmp_path, tasks=["nope"])


def test_an_unknown_commit_is_a_sentence(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="datasets/builtin/geneb-mini at 0000"):
        download.pull(BENCH, tmp_path / "here", revision="0" * 40, endpoint=hub.endpoint)


def test_data_that_are_not_the_benchmarks_leave_no_manifest(hub: Hub, tmp_path: Path) -> None:
    name = "tasks/mini_tf/test.csv"
    hub.files[name] = b"\n".join(hub.files[name].splitlines()[:-1]) + b"\n"
    with pytest.raises(DataError, match="159 test sequences, expected 160 as in the benchmark"):
        download.pull(BENCH, tmp_path / "here", endpoint=hub.endpoint)
    assert not (tmp_path / "here" / MANIFEST_NAME).exists()


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    write_remote(mini.load("mini_tf"), tmp_path)
    (tmp_path / MANIFEST_NAME).write_text("{")
    with pytest.raises(DataError, match=r"manifest\.json: not a manifest"):
        task_folder.Folder(tmp_path, BENCH)
    (tmp_path / MANIFEST_NAME).unlink()
    with pytest.raises(DataError, match="has no manifest"):
        download.verify(BENCH, tmp_path)


def test_a_refused_connection_is_no_failure_of_this_machine() -> None:
    reason = hub_client.failure_reason(ConnectionError("Network error: refused (os error 111)"))
    assert reason.startswith("the Hub's storage gave no usable answer (Network error: refused")
    full = hub_client.failure_reason(OSError("I/O error: x: No space left on device (os error 28)"))
    assert full.startswith("this machine failed, not the Hub: No space left on device; free disk")


def test_a_hub_that_cannot_be_reached_is_named_with_what_to_do():
    """Once, for all tries: the Hub's client logs two lines a try."""
    from huggingface_hub.utils import httpx

    reason = hub_client.failure_reason(httpx.ConnectError("[Errno -2] Name or service not known"))
    assert reason == (
        "the Hub cannot be reached ([Errno -2] Name or service not known); check the network, or "
        "name a Hub that it reaches with --endpoint; then run the command again: complete files "
        "are not downloaded again"
    )
    lines = [
        "'[Errno -2] Name or service not known' thrown while requesting GET https://hub/api",
        "Retrying in 1s [Retry 1/5].",
        "HTTP Error 503 thrown while requesting GET https://hub/api",
        "Error closing client: none",
    ]
    records = [logging.LogRecord("hub", 30, "", 0, line, (), None) for line in lines]
    once = hub_client._OneLineFilter()
    assert [record.getMessage() for record in records if once.filter(record)] == [
        "the Hub does not answer; trying again, for half a minute",
        "Error closing client: none",
    ]

"""`geneb-ci receipt push` and `pull`, to the Hub of the tests and from a plain server."""

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from geneb_ci.common import connection
from geneb_ci.common.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.receipt.embeddings import EmbeddingsRefused
from geneb_ci.receipt.source import hub_folder, mirror_folder, published_folder, receipt_files
from reference_harness.formats.submission import EmbeddingReceipt, ReceiptLocation
from tests import forked
from tests.loopback import loopback
from tests.models.publishers import Shelf
from tests.publish.command import environment, geneb_ci
from tests.publish.conftest import hub
from tests.publish.hub import READER, WRITER, Hub
from tests.receipt.written import UNBOXED, UNSCALED_MIN, Written, changed

__all__ = ["hub"]  # a fixture: pytest finds it by its name here
NAME = "geneb/rows"
RESOURCE = f"datasets/{NAME}"
SIZE, SENT = "206.8 kB", "207.2 kB"
"""Of the embeddings; with the predictions."""


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def served(written: Written) -> Shelf:
    """Return a plain server that has the files in a folder."""
    return Shelf({f"/rows/{name}": raw for name, raw in files_of(written.receipt).items()})


def receipt_of(written: Written) -> EmbeddingReceipt:
    return EmbeddingReceipt.model_validate(written.document["receipt"])


@pytest.mark.parametrize(
    "way",
    [
        pytest.param({}, id="xet"),
        pytest.param({"HF_HUB_DISABLE_XET": "1"}, id="lfs", marks=pytest.mark.nightly),
    ],
)
def test_what_was_pushed_is_pulled_and_verified(
    hub: Hub, of_small: Written, tmp_path: Path, way: dict[str, str]
) -> None:
    written = of_small.copied(tmp_path / "place")
    repo = hub.create(RESOURCE, {"README.md": b"theirs"})
    repo.lfs_over = 20_000

    def run(*words: str, token: str = WRITER) -> tuple[int, str, str]:
        env = environment(hub, tmp_path / "home", HF_TOKEN=token, **way)
        named = written.options[2:] if words[0] != "verify" else written.options
        arguments = ("receipt", words[0], written.file.name, *words[1:], *named)
        done = forked.run("geneb_ci", *arguments, cwd=written.folder, env=env, before=UNBOXED)
        return done.returncode, done.stdout, done.stderr

    push = ("push", "--receipt", "receipt", "--repo", NAME)
    before = written.file.read_text()
    code, output, errors = run(*push)
    assert code == 0, errors
    assert errors == f"5 files of 5, 404 embeddings in all; {SENT} to send: 1 s at 100 Mbit/s\n"
    assert output.splitlines() == [
        f"{RESOURCE}: pushed",
        f"four-mers.json: location written, commit {repo.head.oid}",
        "next: geneb-ci receipt verify four-mers.json",
    ]
    assert repo.head.tree == {"README.md": b"theirs"} | files_of(written.receipt)
    after = written.file.read_text()
    head, tail = before.split('  "location": null,\n')
    assert after == (
        f'{head}  "location": {{\n   "kind": "huggingface-dataset",\n   "address": "{NAME}",\n'
        f'   "revision": "{repo.head.oid}"\n  }},\n{tail}'
    )
    code, output, errors = run(*push)
    assert (code, errors) == (0, "0 files of 5, 404 embeddings in all; 0 bytes to send\n")
    assert output.splitlines() == [
        f"{RESOURCE}: nothing changed",
        f"four-mers.json: location unchanged, commit {repo.head.oid}",
        "next: geneb-ci receipt verify four-mers.json",
    ]
    assert (len(repo.commits), written.file.read_text()) == (2, after)
    code, output, errors = run("pull", "--output", "back", token=READER)
    assert (code, output) == (
        0,
        (
            "back: 4 files, and predictions.bin, each with the sha256 that the receipt states\n"
            "next: geneb-ci receipt verify four-mers.json --cache back\n"
        ),
    ), errors
    assert errors.splitlines()[0] == f"4 files, 404 embeddings; {SIZE} to fetch: 1 s at 100 Mbit/s"
    assert files_of(written.folder / "back") == files_of(written.receipt)
    if not way:
        code, output, errors = run("verify", "--format", "json")
        assert code == 0, output + errors
        assert json.loads(output)["cells"] == {"computed": 12, "equal": 12, "filled": 0}
        assert "to fetch: 1 s at 100 Mbit/s" in errors.splitlines()[0]


def test_a_pull_goes_on_and_takes_nothing_wrong(of_small: Written, tmp_path: Path) -> None:
    shelf = served(of_small)
    right, broken = files_of(of_small.receipt), f"/rows/{UNSCALED_MIN[1]}.f16"
    path = tmp_path / "cache"
    path.mkdir()
    (path / f"{UNSCALED_MIN[0]}.f16").write_bytes(right[f"{UNSCALED_MIN[0]}.f16"])
    (path / f"{UNSCALED_MIN[3]}.f16").write_bytes(b"\0" * len(right[f"{UNSCALED_MIN[3]}.f16"]))
    notices: list[str] = []
    with loopback(shelf.handler()) as server:
        mirror = f"{server}/rows"
        files = receipt_files(receipt_of(of_small), mirror=mirror, cache=path, say=notices.append)
        with files:
            files.file(UNSCALED_MIN[0])
            assert shelf.requests == []  # what is there is not asked for
            shelf.break_after = 30_000
            with pytest.raises(NothingChecked, match=r"cannot be fetched: .* bytes are missing"):
                files.file(UNSCALED_MIN[1])
            assert not (path / f"{UNSCALED_MIN[1]}.f16").exists()
            files.file(UNSCALED_MIN[1])
            assert shelf.requests == [(broken, None), (broken, "bytes=30000-")]
            shelf.files[f"/rows/{UNSCALED_MIN[2]}.f16"] = (
                b"\1" + right[f"{UNSCALED_MIN[2]}.f16"][1:]
            )
            with pytest.raises(
                EmbeddingsRefused, match=r"third\.f16: the file has sha256 "
            ) as other:
                files.file(UNSCALED_MIN[2])
            shelf.files[f"/rows/{UNSCALED_MIN[2]}.f16"] = right[f"{UNSCALED_MIN[2]}.f16"] + b"\0"
            with pytest.raises(EmbeddingsRefused, match="bytes longer than expected") as longer:
                files.file(UNSCALED_MIN[2])
            assert (other.value.step, longer.value.step) == ("files", "files")
            shelf.files[f"/rows/{UNSCALED_MIN[2]}.f16"] = right[f"{UNSCALED_MIN[2]}.f16"]
            for task in UNSCALED_MIN:
                files.file(task)
            predicted = "predictions.bin"
            shelf.files[f"/rows/{predicted}"] = b"\1" + right[predicted][1:]
            with pytest.raises(EmbeddingsRefused, match=r"predictions\.bin: the file has sha256 "):
                files.predictions()
            shelf.files[f"/rows/{predicted}"] = right[predicted]
            assert files.predictions() == path / predicted
            del shelf.files[f"/rows/{predicted}"]
            assert files.predictions() == path / predicted  # what is there is not asked for
    assert files_of(path) == right
    assert [line for line in notices if "fetched again" in line] == [
        next(line for line in notices if line.startswith("fourth.f16 has the sha256 "))
    ]


@pytest.mark.parametrize("way", ["another file", "deaf", "too long"])
def test_a_download_that_cannot_be_continued_begins_again(
    of_small: Written, tmp_path: Path, way: str
) -> None:
    """What is here is of another file, or the server lies about ranges."""
    shelf, name = served(of_small), f"{UNSCALED_MIN[0]}.f16"
    right = files_of(of_small.receipt)[name]
    shelf.deaf = way == "deaf"
    begun = {"another file": b"\1" * 300, "deaf": right[:300], "too long": right + right}[way]
    (tmp_path / f"{name}.part").write_bytes(begun)
    with loopback(shelf.handler()) as server:
        files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
        with files:
            assert files.file(UNSCALED_MIN[0]).read_bytes() == right
    requests = [] if way == "too long" else ["bytes=300-"]
    assert shelf.requests == [(f"/rows/{name}", answer) for answer in [*requests, None]]


def test_a_server_that_trickles_is_left(
    of_small: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any server is slower than the limit here: a real one would take years for a file."""
    monkeypatch.setattr(connection, "PACE_SECONDS", 0)
    monkeypatch.setattr(connection, "BYTES_PER_SECOND_MIN", 10**15)
    with loopback(served(of_small).handler()) as server:
        files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
        with (
            files,
            pytest.raises(NothingChecked, match="server sends fewer than 1,000,000,000,") as slow,
        ):
            files.file(UNSCALED_MIN[0])
    assert slow.value.fix.startswith("run the command again, which continues the download; ")
    assert not (tmp_path / f"{UNSCALED_MIN[0]}.f16").exists()


TRICKLES = {
    "status line": b"HTTP/1.1 200 OK and still more of this line, which does not end",
    "header": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 10,
    "length of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 60,
}


@pytest.mark.parametrize("where", TRICKLES)
def test_a_server_that_trickles_before_the_file_is_left(
    of_small: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Each byte comes in time, and the file never."""

    class Trickle(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            for byte in TRICKLES[where]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    monkeypatch.setattr(connection, "PACE_SECONDS", 0.15)
    with loopback(Trickle) as server:
        files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
        with (
            files,
            pytest.raises(NothingChecked, match="server sends fewer than 1,000 bytes per second"),
        ):
            files.file(UNSCALED_MIN[0])


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "answers that announce another one": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "part of the"),
    "headers": (OK, b"X-A: b\r\n", "more than 100 headers"),
    "status line": (OK.strip(), b"x" * 1000, "more than 65536 bytes"),
    "lines after the last chunk": (CHUNKED + b"0\r\n", b"X-A: b\r\n", "part of the"),
    "words beside a chunk of one byte": (
        CHUNKED, b"1;" + b"x" * 60_000 + b"\r\nz\r\n", "part of the",
    ),
    "file": (OK + b"\r\n", b"x" * 1000, "bytes longer than expected"),
}  # fmt: skip
"""What a server may send without an end: what goes before, what is repeated, the message."""


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_an_end_has_one(of_small: Written, tmp_path: Path, what: str) -> None:
    before, piece, message = ENDLESS[what]

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):  # until the client has had enough
                self.wfile.write(before)
                while True:
                    self.wfile.write(piece * 100)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with loopback(Endless) as server:
        files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
        with files, pytest.raises(GenebError, match=message) as ended:
            files.file(UNSCALED_MIN[0])
    assert "\n" not in ended.value.message
    assert not (tmp_path / f"{UNSCALED_MIN[0]}.f16").exists()


def test_the_file_changed_between_two_ranges(of_small: Written, tmp_path: Path) -> None:
    """The server has another version, by its ETag, when it is asked for the rest."""
    right, requests = files_of(of_small.receipt)[f"{UNSCALED_MIN[0]}.f16"], []
    (tmp_path / f"{UNSCALED_MIN[0]}.f16.part").write_bytes(b"\1" * 300)

    class Changing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.headers.get("Range"))
            start = 300 if requests[-1] else 0
            self.send_response(206 if start else 200)
            self.send_header("ETag", f'"{len(requests)}"')
            self.send_header("Content-Length", str(len(right) - start))
            self.end_headers()
            self.wfile.write(right[start:])

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with loopback(Changing) as server:
        files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
        with files:
            assert files.file(UNSCALED_MIN[0]).read_bytes() == right
    assert requests == ["bytes=300-", None]


def test_two_that_fetch_the_same_file_at_once(of_small: Written, tmp_path: Path) -> None:
    """The second is told so while the first has not ended, and the first is not disturbed."""
    right, name = files_of(of_small.receipt)[f"{UNSCALED_MIN[0]}.f16"], f"{UNSCALED_MIN[0]}.f16"
    half, event = threading.Event(), threading.Event()

    class Halting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(right)))
            self.end_headers()
            self.wfile.write(right[:1000])
            half.set()
            event.wait(60)
            self.wfile.write(right[1000:])

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with loopback(Halting) as server, ThreadPoolExecutor() as pool:

        def fetch() -> bytes:
            files = receipt_files(receipt_of(of_small), mirror=f"{server}/rows", cache=tmp_path)
            with files:
                return files.file(UNSCALED_MIN[0]).read_bytes()

        first = pool.submit(fetch)
        assert half.wait(60)
        with pytest.raises(NothingChecked, match="another process is downloading this file"):
            fetch()
        event.set()
        assert first.result(60) == right
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_is_fetched_to_a_temporary_place_is_one_task(
    of_small: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        loopback(served(of_small).handler()) as server,
        receipt_files(receipt_of(of_small), mirror=f"{server}/rows") as files,
    ):
        for task in UNSCALED_MIN:
            path = files.file(task)
            assert files.file(task) == path
            assert [file.name for file in path.parent.iterdir()] == [f"{task}.f16"]
            files.release(task)
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "a private number": ("url", "https://192.168.0.1/rows", None, "an https address of a public"),
    "this machine": ("url", "http://127.0.0.1:8000/rows", None, "an https address of a public"),
    "localhost": ("url", "https://localhost/rows", None, "an https address of a public server"),
    "a query": ("url", "https://example.org/rows?x=/", None, "without a query"),
    "a branch": ("huggingface-dataset", "a/b", None, "without a commit, so its files can change"),
    "no repository": ("huggingface-dataset", "../a", "0" * 40, "expected OWNER/NAME"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_places_that_a_submission_may_not_name(name: str) -> None:
    kind, address, revision, message = REFUSED[name]
    location = ReceiptLocation.model_validate(
        {"kind": kind, "address": address, "revision": revision}
    )
    with pytest.raises(NothingChecked) as caught:
        published_folder(location)
    assert message in caught.value.message
    assert caught.value.fix


def test_addresses_of_files() -> None:
    receipt_location = ReceiptLocation(
        kind="url", address="https://example.org/rows", revision=None
    )
    assert published_folder(receipt_location).address("a") == "https://example.org/rows/a.f16"
    assert mirror_folder("https://example.org/x/").address("a") == "https://example.org/x/a.f16"
    for origin, revision in (
        (hub_folder("o/n", "1" * 40), "1" * 40),
        (mirror_folder("o/n"), "main"),
        (mirror_folder("o/n@v1"), "v1"),
    ):
        assert origin.address("a").endswith(f"/datasets/o/n/resolve/{revision}/a.f16")
    with pytest.raises(UsageProblem, match="neither an https address nor OWNER/NAME"):
        mirror_folder("ftp://example.org/x")
    with pytest.raises(UsageProblem, match="its location is null"):
        published_folder(None)


def test_push_checks_the_files_first(hub: Hub, of_small: Written, tmp_path: Path) -> None:
    written = of_small.copied(tmp_path / "place")
    repo = hub.create(RESOURCE)
    file = written.receipt / f"{UNSCALED_MIN[2]}.f16"
    file.write_bytes(file.read_bytes()[::-1])
    env = environment(hub, tmp_path / "home", HF_TOKEN=WRITER)
    words = ("receipt", "push", written.file.name, "--receipt", "receipt", *written.options[2:])
    code, _, errors = geneb_ci(*words, "--repo", NAME, cwd=written.folder, env=env)
    assert (code, len(repo.commits)) == (11, 1)
    assert "third.f16 has the sha256 " in errors
    changed(written, lambda document: document["receipt"].update(root="0" * 64))
    code, _, errors = geneb_ci(*words, "--repo", NAME, cwd=written.folder, env=env)
    assert (code, "root of the receipt is 000" in errors) == (3, True)
    code, _, errors = geneb_ci(*words, "--repo", "rows", cwd=written.folder, env=env)
    assert (code, "--repo 'rows' is not OWNER/NAME" in errors) == (2, True)

"""Weights: unpinned, malformed, or running code when they are loaded."""

import hashlib
import json
import struct
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from safetensors.numpy import save

from geneb_ci.audit.commitment import Weights
from geneb_ci.audit.rerun import weights as limits
from geneb_ci.audit.rerun.weights import fetch_weights, verify_weights
from geneb_ci.common.errors import UsageProblem, WeightsRefused
from tests.loopback import loopback

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOUND = save({"a": np.zeros((2, 3), dtype=np.float32)})
CONFIG = json.dumps({"auto_map": {"AutoModel": "modeling_x.Model"}}).encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def committed(files: dict[str, bytes], **changes: Any) -> Weights:
    fields: dict[str, Any] = {"kind": "huggingface", "location": "org/model", "revision": COMMIT}
    return Weights(**{**fields, "files": {n: sha256(c) for n, c in files.items()}, **changes})


def folder_of(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def refused(folder: Path, weights: Weights, level: int = 2) -> str:
    with pytest.raises(WeightsRefused) as caught:
        verify_weights(folder, weights, level)
    return caught.value.message


def test_every_file_of_sound_weights_is_hashed(tmp_path: Path):
    files = {"model.safetensors": SOUND, "config.json": CONFIG, "parts/vocab.txt": b"A\n"}
    folder = folder_of(tmp_path, files)
    digests = verify_weights(folder, committed({"model.safetensors": SOUND}), 1)
    assert digests == {name: sha256(content) for name, content in sorted(files.items())}


def header(entries: dict[str, object], data: bytes) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(start: int, stop: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [(stop - start) // 4], "data_offsets": [start, stop]}


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 100 * 10**9) + b"{}",
        struct.pack("<Q", 2**64 - 1) + b"{}",
        header({"a": tensor(0, 8), "b": tensor(4, 12)}, bytes(12)),
        header({"a": tensor(0, 8), "b": tensor(12, 16)}, bytes(16)),
        header({"a": tensor(0, 800)}, bytes(8)),
        header({"a": tensor(8, 16)}, bytes(16)),
        header({"a": tensor(0, 8)}, bytes(12)),
        b"\x02",
        b"",
    ],
    ids=["100-gb-header", "largest-header", "overlap", "gap", "outside", "late-start",
         "trailing-bytes", "no-header", "empty"],
)  # fmt: skip
def test_a_safetensors_file_that_lies_is_refused(tmp_path: Path, content: bytes):
    folder = folder_of(tmp_path, {"model.safetensors": content})
    message = refused(folder, committed({"model.safetensors": content}))
    assert message.startswith("model.safetensors is not a valid safetensors file: ")


def test_a_pickle_needs_a_sandbox_and_is_not_opened_here(tmp_path: Path):
    content = b"cos\nsystem\n(S'touch /tmp/geneb-ci-was-unpickled'\ntR."
    folder = folder_of(tmp_path, {"pytorch_model.bin": content})
    weights = committed({"pytorch_model.bin": content})
    assert refused(folder, weights, 1) == (
        "pytorch_model.bin may contain a pickle, and loading a pickle runs code: the sandbox has "
        "level 1, expected 2 or above"
    )
    assert verify_weights(folder, weights, 2) == {"pytorch_model.bin": sha256(content)}
    assert not Path("/tmp/geneb-ci-was-unpickled").exists()  # noqa: S108


@pytest.mark.parametrize(
    "config",
    [
        b'{"auto_map": {"AutoModel": "other/repo--modeling_x.Model"}}',
        b'{"auto_map": {"AutoTokenizer": ["a.B", "other/repo--a.B"]}}',
        b'{"text": {"\\u0061uto_map": {"AutoModel": "other/repo\\u002d-a.B"}}}',
    ],
    ids=["model", "tokenizer", "escaped"],
)
def test_code_of_another_repository_is_refused(tmp_path: Path, config: bytes):
    folder = folder_of(tmp_path, {"model.safetensors": SOUND, "config.json": config})
    message = refused(folder, committed({"model.safetensors": SOUND}))
    assert message.startswith('config.json: auto_map names "other/repo--')


def test_weights_other_than_committed_are_refused(tmp_path: Path):
    folder = folder_of(tmp_path, {"model.safetensors": SOUND, "more.safetensors": SOUND})
    first_file = {"model.safetensors": SOUND}
    assert refused(folder, committed(first_file)) == (
        "more.safetensors is a weight file that the commitment does not name"
    )
    (folder / "more.safetensors").unlink()
    changed = committed({"model.safetensors": SOUND + b"x"})
    assert refused(folder, changed) == (
        f"model.safetensors: sha256 {sha256(SOUND)}, expected {sha256(SOUND + b'x')} as in "
        "the commitment"
    )
    assert refused(folder, committed({**first_file, "b.safetensors": SOUND})) == (
        f"b.safetensors: there is no such file, expected sha256 {sha256(SOUND)} as in the "
        "commitment"
    )
    (folder / "link.json").symlink_to("/etc/hostname")
    assert refused(folder, committed(first_file)) == (
        "link.json is a link or a special file, expected a regular file"
    )


def test_a_pointer_of_git_lfs_and_a_link_are_refused_with_what_to_do(tmp_path: Path):
    """A clone has pointers without git-lfs, and the cache of the Hub's client has links."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1\n"
    folder = folder_of(tmp_path / "clone", {"model.safetensors": pointer})
    weights = committed({"model.safetensors": SOUND})
    with pytest.raises(WeightsRefused) as caught:
        verify_weights(folder, weights, 2)
    assert caught.value.message.startswith(
        f"model.safetensors: sha256 {sha256(pointer)}, expected "
    )
    assert caught.value.fix.startswith(
        "it is a Git LFS pointer: get the file itself: `git lfs pull`"
    )
    blob = folder_of(tmp_path / "blobs", {"b": SOUND}) / "b"
    cache = tmp_path / "snapshot"
    cache.mkdir()
    (cache / "model.safetensors").symlink_to(blob)
    with pytest.raises(WeightsRefused) as caught:
        verify_weights(cache, weights, 2)
    assert caught.value.message.startswith("model.safetensors is a link or a special file")
    assert "`cp -rL` copies the files that links point to" in caught.value.fix


def test_no_committed_file_is_no_commitment(tmp_path: Path):
    assert refused(tmp_path, committed({})) == "the commitment names no weight file"
    none = committed({}, kind="none", location="", revision=None)
    assert verify_weights(tmp_path, none, 2) == {}


@pytest.mark.parametrize(
    "config", [b"{", b"[" * 100_000, b"\xff"], ids=["cut", "deep", "not-utf-8"]
)
def test_a_configuration_that_is_no_json_is_refused(tmp_path: Path, config: bytes):
    folder = folder_of(tmp_path, {"model.safetensors": SOUND, "config.json": config})
    message = refused(folder, committed({"model.safetensors": SOUND}))
    assert message.startswith("config.json cannot be read as JSON: ")


@pytest.fixture
def unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a text is parsed."""
    for name in ("json.loads", "pydantic_core.from_json"):
        monkeypatch.setattr(name, lambda _: pytest.fail("a text was parsed"))


LISTS = b"[" + b",".join([b"[]"] * 340_000) + b"]"
"""A megabyte that takes fifty times as much in memory."""
LARGE = b'{"model": {"vocab": {%s}}}' % b",".join(b'"%d": %d' % (n, n) for n in range(100_000))
"""A vocabulary, larger than a configuration."""


@pytest.mark.usefixtures("unparsed")
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (LISTS, "extra.json cannot be read as JSON: it may have more than 200,000 values"),
        (
            LARGE + b'"auto_map"',
            "may name code by auto_map; such a file may have at most 1,048,576",
        ),
        (
            LARGE + b'"\\u0061uto_map"',
            "may name code by auto_map; such a file may have at most",
        ),
    ],
    ids=["lists", "code", "escaped"],
)
def test_a_file_that_would_exhaust_the_auditor_is_refused_unparsed(
    tmp_path: Path, raw: bytes, message: str
):
    folder = folder_of(tmp_path, {"model.safetensors": SOUND, "extra.json": raw})
    assert message in refused(folder, committed({"model.safetensors": SOUND}))


@pytest.mark.usefixtures("unparsed")
def test_a_vocabulary_is_hashed_and_not_parsed(tmp_path: Path):
    files = {"model.safetensors": SOUND, "tokenizer.json": LARGE}
    folder = folder_of(tmp_path, files)
    digests = verify_weights(folder, committed({"model.safetensors": SOUND}), 1)
    assert digests["tokenizer.json"] == sha256(LARGE)


def test_no_model_has_so_many_or_so_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = folder_of(tmp_path, {"model.safetensors": SOUND})
    weights = committed({"model.safetensors": SOUND})
    for name, size in (("a.json", (1 << 26) + 1), ("b.txt", (1 << 28) + 1)):
        with (folder / name).open("wb") as stream:
            stream.truncate(size)  # a hole, which takes no disk
        assert f"{size:,} bytes" in refused(folder, weights)
        (folder / name).unlink()
    monkeypatch.setattr(limits, "FILES_MAX", 10)
    monkeypatch.setattr(limits, "LISTED_FILES_MAX", 100)
    for number in range(10):
        (folder / f"{number}.json").touch()
    assert refused(folder, weights) == "the weights have 11 files or more, expected at most 10"
    for number in range(90):
        (folder / f"folder-{number}").mkdir()
    assert refused(folder, weights) == "the weights have 101 files or more, expected at most 100"


Tree = dict[str, int]
"""Files that the Hub lists beside those that it has: name to bytes."""


@pytest.fixture
def more() -> Tree:
    """Return the table of such files, empty at first."""
    return {}


@pytest.fixture
def hub(more: Tree) -> Iterator[str]:
    """Serve one repository at one commit: the few addresses that a download of it asks for."""
    files = {"model.safetensors": SOUND, "config.json": CONFIG, "extra.bin": b"x"}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            status, headers, content = 404, {"X-Error-Code": "RevisionNotFound"}, b""
            if path == f"/api/models/org/model/revision/{COMMIT}":
                siblings = [{"rfilename": name} for name in files]
                repository_answer = {"id": "org/model", "sha": COMMIT, "siblings": siblings}
                status, headers, content = 200, {}, json.dumps(repository_answer).encode()
            elif path.startswith(f"/api/models/org/model/tree/{COMMIT}"):
                tree = [
                    {"type": "file", "path": n, "size": len(c), "oid": "0" * 40}
                    for n, c in files.items()
                ] + [
                    {"type": "file", "path": name, "size": size, "oid": "0" * 40}
                    for name, size in more.items()
                ]
                status, headers, content = 200, {}, json.dumps(tree).encode()
            elif path.startswith(f"/org/model/resolve/{COMMIT}/"):
                content = files[path.rpartition("/")[2]]
                status, headers = 200, {"ETag": f'"{sha256(content)}"', "X-Repo-Commit": COMMIT}
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    with loopback(Handler) as address:
        yield address


def test_the_committed_revision_is_fetched_and_no_more(hub: str, tmp_path: Path):
    weights = committed({"model.safetensors": SOUND})
    weights_folder = fetch_weights(weights, tmp_path / "weights", endpoint=hub)
    assert sorted(verify_weights(weights_folder, weights, 1)) == [
        "config.json",
        "model.safetensors",
    ]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({"a.json": 1 << 27}, "a.json has 134,217,728 bytes, expected at most 67,108,864"),
        ({f"{n}.txt": 1 << 22 for n in range(100)}, "does not name have 419,430,"),
        ({f"{n}.txt": 1 for n in range(1_000)}, "the weights have 1,002 files or more"),
        ({f"{n}.png": 1 for n in range(10_000)}, "the weights have 10,001 files or more"),
        ({"model.safetensors": 1 << 39}, "model.safetensors has 549,755,813,888 bytes"),
    ],
)
def test_nothing_is_fetched_of_a_repository_that_would_fill_the_disk(
    hub: str, more: Tree, tmp_path: Path, listed: Tree, message: str
):
    more |= listed
    with pytest.raises(WeightsRefused) as caught:
        fetch_weights(committed({"model.safetensors": SOUND}), tmp_path / "weights", endpoint=hub)
    assert message in caught.value.message
    assert not (tmp_path / "weights").exists()


def test_a_commit_that_is_gone_is_refused(hub: str, tmp_path: Path):
    weights = committed({"model.safetensors": SOUND}, revision="f" * 40)
    with pytest.raises(WeightsRefused, match="cannot be fetched"):
        fetch_weights(weights, tmp_path, endpoint=hub)


def test_a_gated_repository_is_named_with_the_way_by_hand(tmp_path: Path):
    class Gated(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("X-Error-Code", "GatedRepo")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

    weights = committed({"model.safetensors": SOUND})
    with loopback(Gated) as address, pytest.raises(WeightsRefused) as caught:
        fetch_weights(weights, tmp_path, endpoint=address)
    assert (
        caught.value.message == f"org/model at {COMMIT} cannot be fetched: the repository is gated"
    )
    assert caught.value.fix == (
        "accept the terms of org/model on the Hub; or fetch the files by hand and name their "
        "folder: --weights DIR; digests are compared"
    )


def test_a_revision_that_can_move_is_refused(tmp_path: Path):
    moving = committed({"model.safetensors": SOUND}).model_copy(update={"revision": "main"})
    with pytest.raises(WeightsRefused) as caught:
        fetch_weights(moving, tmp_path)
    assert caught.value.message == (
        "revision 'main' of org/model is not a commit, so its files can change"
    )
    with pytest.raises(UsageProblem):
        fetch_weights(committed({}, kind="local", revision=None), tmp_path)

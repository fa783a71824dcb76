"""`make lock`: what it takes no notice of, what it refuses, and what it keeps."""

import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from packaging import tags
from packaging.utils import parse_wheel_filename
from urllib3.util import Retry
from uv import find_uv_bin

from tests.loopback import loopback
from tools import lock
from tools.locks import index
from tools.locks.entries import HEADER, LockError, published_by, read_lock, without_hashes
from tools.locks.faults import hash_faults, is_later, target_faults
from tools.locks.index import File, IndexUnreachableError, releases
from tools.locks.targets import INTEL_MACS, LINUX, Target, best_wheel, entries_for

WHEEL = "mdurl-0.1.2-py3-none-any.whl"


@pytest.fixture
def local(tmp_path):
    """Lay a folder with a wheel of a published release, with another content."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        head = "Metadata-Version: 2.1\nName: mdurl\nVersion: 0.1.2\n"
        wheel.writestr("mdurl-0.1.2.dist-info/METADATA", head)
        wheel.writestr("mdurl-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("mdurl-0.1.2.dist-info/RECORD", "")
    pages = tmp_path / "index/mdurl"
    pages.mkdir(parents=True)
    digest = sha256((folder / WHEEL).read_bytes()).hexdigest()
    page = f'<a href="{(folder / WHEEL).as_uri()}#sha256={digest}">{WHEEL}</a>'
    (pages / "index.html").write_text(f"<!DOCTYPE html><html><body>{page}</body></html>", "utf-8")
    settings = tmp_path / "config/uv"
    settings.mkdir(parents=True)
    (settings / "uv.toml").write_text(f'[pip]\nfind-links = ["{folder}"]\n', encoding="utf-8")
    return digest


WAYS: dict[str, Callable[[Path], dict[str, str]]] = {
    "a folder in the environment": lambda at: {"UV_FIND_LINKS": str(at / "wheels")},
    "an index in the environment": lambda at: {"UV_EXTRA_INDEX_URL": (at / "index").as_uri()},
    "a folder in the user's settings": lambda at: {"XDG_CONFIG_HOME": str(at / "config")},
    "a lock that was there": lambda _: {},
}


@pytest.mark.parametrize("way", WAYS)
def test_local_files_make_no_lock(way, local, tmp_path, monkeypatch):
    """A bare resolver locks the one local file, in each of these ways; ours never does."""
    for name, value in WAYS[way](tmp_path).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "project.in").write_text("mdurl==0.1.2\n", encoding="utf-8")
    poisoned = f"mdurl==0.1.2 \\\n    --hash=sha256:{local}\n"
    bare, ours = tmp_path / "bare.txt", tmp_path / "ours.txt"
    if way == "a lock that was there":
        bare.write_text(poisoned, encoding="utf-8")
        ours.write_text(without_hashes(poisoned), encoding="utf-8")
    try:
        published = releases([("mdurl", "0.1.2")])
    except IndexUnreachableError as error:
        skip_without_index(error)
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--no-header", "--generate-hashes"]
    command += ["project.in", "--no-annotate", "--output-file", "bare.txt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert [entry.hashes for entry in read_lock(bare.read_text(encoding="utf-8"))] == [{local}]

    lock.resolve(ours, project=tmp_path / "project.in")
    (entry,) = read_lock(ours.read_text(encoding="utf-8"))
    assert entry.hashes == {file.sha256 for file in published["mdurl", "0.1.2"]}
    assert len(entry.hashes) == 2


def skip_without_index(error: Exception) -> None:
    if os.environ.get("CI"):
        pytest.fail(str(error), pytrace=False)
    pytest.skip(str(error))


def test_no_setting_of_an_installer_is_passed_on(monkeypatch):
    for name in [n for n in os.environ if n.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    for name in index.BUNDLES:
        monkeypatch.delenv(name, raising=False)
    before = lock.environment()
    monkeypatch.setenv("UV_INDEX", "https://mirror.invalid")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.invalid")
    monkeypatch.setenv("PIP_FIND_LINKS", "wheels")
    assert lock.environment() == before
    monkeypatch.setenv("PIP_CERT", "authority.pem")
    assert lock.environment() == {**before, "SSL_CERT_FILE": "authority.pem"}


CLICK = "click==8.5.1 \\\n    --hash=sha256:{}\n"
A, B = "a" * 64, "b" * 64
PURE = frozenset({tags.Tag("py3", "none", "any")})
FILES = [
    File("click-8.5.1-py3-none-any.whl", A, "8.5.1", PURE),
    File("click-8.5.1.tar.gz", B, "8.5.1"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in for the resolver, which gives one hash, and the index, which has two files."""
    place = tmp_path / "requirements"
    place.mkdir()
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    monkeypatch.setattr(lock, "FOLDER", place)
    monkeypatch.setattr(lock, "releases", lambda pins: dict.fromkeys(pins, FILES))
    monkeypatch.setattr("sys.argv", ["lock"])
    return place


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(lock, "resolve", lambda output, *_, **__: output.write_text(text, "utf-8"))


def test_a_lock_without_a_published_hash_is_not_written(folder, monkeypatch, capsys):
    (folder / "check.txt").write_text("as it was", encoding="utf-8")
    give(monkeypatch, CLICK.format(A))
    assert lock.main() == 1
    faults = [
        f"requirements/{name}.txt: click 8.5.1 lacks the hash of click-8.5.1.tar.gz, sha256:{B}:"
        " run `make lock`"
        for name in ("action", "check", "dev", "docs")
    ]
    assert capsys.readouterr() == ("", "\n".join([*faults, "no lock was written", ""]))
    assert [path.name for path in folder.iterdir()] == ["check.txt"]
    assert (folder / "check.txt").read_text(encoding="utf-8") == "as it was"


def test_locks_are_written_once_and_then_left(folder, monkeypatch, capsys):
    give(monkeypatch, CLICK.format(f"{A} \\\n    --hash=sha256:{B}"))
    assert lock.main() == 0
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(written) == ["action.txt", "check.txt", "dev.txt", "docs.txt"]
    assert lock.main() == 0
    names = [f"requirements/{name}.txt" for name in ("action", "check", "dev", "docs")]
    first, second = ([f"{n}: {what}" for n in names] for what in ("1 releases", "unchanged"))
    assert capsys.readouterr() == ("\n".join([*first, *second, ""]), "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == written


@pytest.mark.usefixtures("folder")
def test_a_release_that_is_gone_from_the_index_is_named(monkeypatch, capsys):
    monkeypatch.setattr(lock, "releases", lambda pins: {pin: [] for pin in pins})
    give(monkeypatch, CLICK.format(A))
    assert lock.main() == 1
    assert capsys.readouterr().err.splitlines()[0] == (
        "requirements/action.txt: click 8.5.1 is not on the package index: take another version,"
        " with `make lock UPGRADE=1`"
    )


def test_only_wheels_will_do_for_hosted_jobs():
    entries = read_lock(CLICK.format(B))
    sdist = {("click", "8.5.1"): FILES[1:]}
    where = "for Python 3.11 on Linux with glibc 2.28 x86_64"
    advice = f"{where}: pin a version that has, or drop the dependency"
    assert target_faults("requirements/dev.txt", entries, sdist, LINUX[:1]) == []
    assert target_faults("requirements/check.txt", entries, sdist, LINUX[:1]) == [
        f"requirements/check.txt: click 8.5.1 has no wheel {advice}"
    ]
    unfit = {("click", "8.5.1"): [File("c.tar.gz", B, "8.5.1", requires_python=">=3.12")]}
    assert target_faults("requirements/dev.txt", entries, unfit, LINUX[:1]) == [
        f"requirements/dev.txt: click 8.5.1 has no file {advice}"
    ]


def test_a_file_uploaded_after_the_lock_was_made_is_not_missed():
    late = File("click-8.5.1-cp314-x.whl", "c" * 64, "8.5.1", uploaded="2026-02-01T00:00:00.5Z")
    assert is_later(late, "2026-01-31T23:59:59Z")
    assert not is_later(late, "2026-02-01T00:00:00Z")
    entries = read_lock(CLICK.format(f"{A} --hash=sha256:{B}"))
    published = {("click", "8.5.1"): [*FILES, late]}
    assert hash_faults("dev.txt", entries, published, "2026-01-01T00:00:00Z") == []
    assert len(hash_faults("dev.txt", entries, published, "2026-03-01T00:00:00Z")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "click>=8\n",
        "click==8.*\n",
        "click\n",
        "<<<<<<< ours\n",
        "--index-url x\n",
        "click==8 --hash=md5:0\n",
        f"click==8 --hash=sha256:{A[:-1]}\n",
        "click @ file:///click.whl\n",
    ],
)
def test_a_line_that_is_no_pinned_release_is_refused(text):
    with pytest.raises(LockError, match=r"^expected .* found: "):
        read_lock(text)


def test_what_is_read_of_a_lock():
    text = f"{HEADER}2026-01-01T00:00:00Z\n" + CLICK.format(A).replace(
        " \\", " ; sys_platform == 'darwin' \\", 1
    )
    (entry,) = read_lock(text)
    assert (entry.name, entry.version, entry.hashes) == ("click", "8.5.1", frozenset({A}))
    assert entries_for(LINUX[0], [entry]) == []
    assert entries_for(INTEL_MACS[0], [entry]) == [entry]
    assert published_by(text) == "2026-01-01T00:00:00Z"
    assert "--hash" not in without_hashes(text)
    assert read_lock(without_hashes(text))[0].version == "8.5.1"
    with pytest.raises(LockError, match=re.escape(HEADER)):
        published_by(CLICK)


def test_a_targets_tags_are_those_that_pip_computes_there():
    """This machine's are known from `packaging`, which pip carries a copy of."""
    libc, version = platform.libc_ver()
    if libc != "glibc":
        pytest.skip("computed on Linux with glibc alone")
    major, minor = map(int, version.split(".")[:2])
    here = Target(sys.version_info[:2], "linux", platform.machine(), (major, minor))
    assert list(here.tags()) == list(tags.sys_tags())


def wheel(name: str) -> File:
    _, version, build, found = parse_wheel_filename(name)
    return File(name, A, str(version), found, build)


@pytest.mark.parametrize(
    ("glibc", "names", "best"),
    [
        ((2, 28), ("a-1-py3-none-any.whl", "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"), 1),
        ((2, 28), ("a-1-py3-none-any.whl", "a-1-cp311-cp311-manylinux_2_34_x86_64.whl"), 0),
        ((2, 39), ("a-1-cp39-abi3-manylinux_2_28_x86_64.whl",
                   "a-1-cp39-abi3-manylinux_2_34_x86_64.whl"), 1),
        ((2, 28), ("a-1-cp311-abi3-manylinux2014_x86_64.whl",
                   "a-1-cp311-cp311-manylinux1_x86_64.whl"), 1),
        ((2, 28), ("a-1-1-py3-none-any.whl", "a-1-2-py3-none-any.whl", "a-1-py3-none-any.whl"), 1),
        ((2, 28), ("a-1-cp312-abi3-manylinux2014_x86_64.whl",
                   "a-1-cp311-cp311-musllinux_1_2_x86_64.whl",
                   "a-1-cp311-cp311-manylinux2014_aarch64.whl",
                   "a-1-cp311-cp311-win_amd64.whl"), None),
    ],
)  # fmt: skip
def test_the_wheel_that_pip_picks(glibc, names, best):
    target = Target((3, 11), "linux", "x86_64", glibc)
    found = best_wheel(target, [wheel(name) for name in names])
    assert (found and found.name) == (None if best is None else names[best])


def serve(*answers: tuple[int, object]) -> AbstractContextManager[str]:
    """Answer each request in turn with a status and a body, the last one for ever."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    return loopback(Handler)


LISTED = {
    "files": [
        {"filename": "click-8.5.1-py3-none-any.whl", "hashes": {"sha256": A}},
        {"filename": "click-8.5.1.tar.gz", "hashes": {"sha256": B}, "yanked": "a reason"},
        {"filename": "click-8.5.1.win32.exe", "hashes": {"sha256": B}},
        {"filename": "click-8.5.tar.gz", "hashes": {"sha256": B}},
    ]
}


def test_files_of_a_release_are_listed_after_a_refusal():
    with serve((503, {}), (200, LISTED)) as address:
        found = releases([("click", "8.5.1"), ("click", "9")], address)
    assert found == {
        ("click", "9"): [],
        ("click", "8.5.1"): [FILES[0], File("click-8.5.1.tar.gz", B, "8.5.1", yanked=True)],
    }


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, {}), (403, {}), (200, b"<html>"), (200, {}), (200, []), (200, {"files": [{}]})],
)
def test_an_index_without_lists_is_no_empty_index(status, body, monkeypatch):
    monkeypatch.setattr(index, "RETRIES", Retry(total=1, status_forcelist=[503]))
    with serve((status, body)) as address, pytest.raises(IndexUnreachableError) as error:
        releases([("click", "8.5.1")], address)
    assert str(error.value).startswith(
        "the package index gave no list of click's files, try again later: "
    )


def test_an_unknown_project_has_no_files():
    with serve((404, {})) as address:
        assert releases([("click", "8.5.1")], address) == {("click", "8.5.1"): []}


def test_an_index_that_is_not_there(monkeypatch):
    monkeypatch.setattr(index, "RETRIES", Retry(total=0))
    with serve((200, {})) as address:
        pass
    with pytest.raises(IndexUnreachableError):
        releases([("click", "8.5.1")], address)

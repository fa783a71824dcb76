"""What this machine refuses: full disks, folders that cannot be written, no room for more files."""

import errno
import os
import resource
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from geneb_ci.common.errors import machine_fault
from tests.paths import ROOT, SUBMISSIONS
from tests.publish.clone import Clone
from tests.publish.command import environment
from tests.publish.conftest import NAME, RESOURCE
from tests.publish.hub import WRITER, Hub
from tests.publish.storage_client import QUICK

SPACE = "free disk space, or write to another disk; TMPDIR sets the folder of temporary files"
SIZES = "raise the file size limit (ulimit -f), or write to another disk"
LIMIT = 100  # bytes of a file: less than any that is written


def small_files() -> None:
    """Let this process and its children write but small files: a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def run(
    *words: str,
    cwd: Path,
    limited: bool = False,
    out: str | None = None,
    env: dict[str, str] | None = None,
    **more: str,
):
    """Run a command, whose output goes to a file if named; return its code, output and errors.

    One that may write but small files compiles no module: Python would leave the beginning of one.
    """
    if limited:
        more["PYTHONDONTWRITEBYTECODE"] = "1"
    with Path(out or os.devnull).open("w") as pull_request:
        done = subprocess.run(
            [sys.executable, "-m", "geneb_ci", *words],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | (env or {}) | more,
            stdout=pull_request if out else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            preexec_fn=small_files if limited else None,
        )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Make a board whose rows no test alters."""
    return Clone(tmp_path_factory.mktemp("clone") / "clone")


@pytest.fixture
def row(tmp_path: Path) -> Path:
    source = SUBMISSIONS / "splicebert-1024nt.json"
    return Path(shutil.copy(source, tmp_path / source.name))


@pytest.mark.parametrize(
    "words", [("rules",), ("--help",), ("check", "{row}"), ("check", "{row}", "--format", "json")]
)
def test_output_to_a_full_disk_is_a_sentence(tmp_path, row, words):
    words = [word.format(row=row) for word in words]
    code, _, errors = run(*words, cwd=tmp_path, out="/dev/full")
    assert (code, errors) == (1, f"geneb-ci: No space left on device\n  fix: {SPACE}\n")


@pytest.mark.nightly  # in the gate, output to a full disk
def test_a_report_and_a_board_on_a_full_disk(tmp_path, row, clone):
    code, _, errors = run(
        "check", str(row), "--format", "json", "--output", "x.json", cwd=tmp_path, limited=True
    )
    assert (code, errors) == (
        1,
        f"geneb-ci: x.json: cannot be written: File too large\n  fix: {SIZES}\n",
    )
    board = tmp_path / "board"
    code, _, errors = run("build", "--output", str(board), cwd=clone.root, limited=True)
    assert (code, errors.partition("geneb-ci: ")[2]) == (
        1,
        f"{board}: cannot be written: File too large\n  fix: {SIZES}\n",
    )
    assert list(board.iterdir()) == [], "nothing is written by halves"


@pytest.mark.parametrize(
    ("member_path", "reason"),
    [
        ("/proc/no/such", "No such file or directory"),
        ("/dev/null", "File exists"),
        ("/dev/null/x", "Not a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_folder_that_cannot_be_written(clone, member_path, reason, monkeypatch, capsys):
    monkeypatch.chdir(clone.root)
    code = main(["build", "--output", member_path])
    assert (code, capsys.readouterr().err.partition("geneb-ci: ")[2]) == (
        2,
        f"{member_path}: cannot be written: {reason}\n  fix: name a folder that you may write to\n",
    )


def test_no_place_for_temporary_files(tmp_path, clone):
    out = str(tmp_path / "o")
    code, _, errors = run("build", "--at", "HEAD", "--output", out, cwd=clone.root, limited=True)
    assert code == 1
    assert "File too large\n  fix: " in errors
    assert "fault is its own" not in errors


@pytest.mark.nightly  # in the gate, the faults of the Hub's storage
def test_a_folder_that_the_hubs_client_cannot_use_is_named(tmp_path, clone):
    """The client of the Hub's storage, which is not Python, says so in words of its own."""
    hub = Hub()
    repo = hub.create(RESOURCE, {".gitattributes": b"*.js filter=lfs -text\n"})
    home = tmp_path / "home"
    home.mkdir()
    (home / "xet").write_bytes(b"a file, where the client wants a folder")
    env = environment(hub, home, HF_TOKEN=WRITER, **QUICK)
    code, output, errors = run("publish", "--space", NAME, cwd=clone.root, env=env)
    hub.close()
    assert code == 1
    assert "geneb-ci: spaces/geneb/board: this machine failed, not the Hub: " in errors
    assert f"the Hub's client uses the folder {home}/xet\n  fix: " in errors
    assert WRITER not in output + errors
    assert len(repo.commits) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "/x: No space left on device"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded"),
        (OSError(errno.EROFS, "Read-only file system", b"/x"), "/x: Read-only file system"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "x: Permission denied"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
            "the connection failed: Connection refused",
        ),
        (TimeoutError("timed out"), "the connection failed: timed out"),
        (
            ssl.SSLCertVerificationError(1, "certificate verify failed"),
            "the secure connection failed: certificate verify failed",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
            "No usable temporary directory found in ['/tmp']",
        ),
    ],
)
def test_errors_of_the_operating_system_are_not_ours(error, message):
    fault = machine_fault(error)
    assert fault is not None
    assert (fault.message, fault.exit_code, bool(fault.fix)) == (message, 1, True)


def test_a_file_of_ours_that_is_missing_is_a_fault_of_ours():
    assert machine_fault(FileNotFoundError(errno.ENOENT, "No such file", "schemas/x")) is None

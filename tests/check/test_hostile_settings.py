"""Settings, and files that they name, may be anything: it ends at once, and says file and key."""

import contextlib
import io
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from geneb_ci.cli.main import main
from tests import forked
from tests.check.test_layouts import repository
from tests.gate import gated

TABLE = "[tool.geneb-ci]\n"
CPU_SECONDS = 2  # what each may take, on a machine however busy; none takes a quarter of it
HANG = 60  # what it takes to say that one waits for ever


def text(content: str) -> Callable[[Path], None]:
    return raw(content.encode())


def raw(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)

    return make


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def bind(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


SETTINGS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": bind,
    "a folder": Path.mkdir,
    "an endless device": link("/dev/zero"),
    "an empty device": link("/dev/null"),
    "a dangling link": link("nowhere"),
    "a loop": link("pyproject.toml"),
    "too large": text(TABLE + "# x\n" * 100_000),
    "deep lists": text(f"{TABLE}x = {'[' * 40_000}"),
    "deep tables": text(f"{TABLE}x = {'{a=' * 20_000}"),
    "a dotted key": text(f"{TABLE}{'a.' * 40_000}b = 1"),
    "a quoted dotted key": text(TABLE + '"\\"".' * 15_000 + "b = 1"),
    "a deep header": text(f"{TABLE}[{'a.' * 40_000}b]"),
    "a long number": text(f"{TABLE}x = {'9' * 90_000}"),
    "a long hexadecimal number": text(f"{TABLE}x = 0x{'f' * 90_000}"),
    "other bytes": raw(TABLE.encode() + b"x = '\xff'\n"),
    "a byte order mark": raw(b"\xef\xbb\xbf" + TABLE.encode()),
    "not TOML": text(f"{TABLE}x = = ="),
    "tool is no table": text('tool = "geneb-ci"\n'),
    "a list of tables": text("[[tool.geneb-ci]]\n"),
    "an unknown key": text(f'{TABLE}ignored = ["card"]\n'),
    "a place that is a number": text(f"{TABLE}benchmark = 1\n"),
    "a NUL in a path": text(f'{TABLE}benchmark = "a\\u0000b"\n'),
    "a name that hides": text(f'{TABLE}"\\u001b[2J::error::x" = 1\n'),
}

NAMED: dict[str, str | Callable[[Path], None]] = {
    "/dev/zero": "/dev/zero",
    "/dev/stdin": "/dev/stdin",
    "a pipe": os.mkfifo,
    "a socket": bind,
    "a file": text("[" * 50_000),
    "other bytes": raw(b"\xff\xfe{}"),
    "a dangling link": link("nowhere"),
    "a loop": link("named"),
    "too large": text(" " * 3_000_000),
    "huge numbers": text('{"files": {"x": ' + "9" * 10_000 + "}}"),
    "too long a name": "x" * 5_000,
    "a file below a file": "pyproject.toml/x",
}


class TooLongError(BaseException):
    """The command computes or waits for longer than it may; the product catches no such thing."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TooLongError where the block computes for longer than allowed, or waits for ever."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TooLongError

    limits = (
        (signal.SIGPROF, signal.ITIMER_PROF, CPU_SECONDS),
        (signal.SIGALRM, signal.ITIMER_REAL, HANG),
    )
    handlers = [signal.signal(number, end) for number, _, _ in limits]
    try:
        for _, timer, seconds in limits:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (number, timer, _), handler in zip(limits, handlers, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def checked(root: Path, *options: str, apart: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command; in a process `apart` where it would fill the memory without an end."""
    if apart:
        return forked.run(
            "geneb_ci", "check", *options, cwd=root, timeout=HANG, cpu_seconds=CPU_SECONDS
        )
    out, err = io.StringIO(), io.StringIO()
    streams = (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err))
    with contextlib.chdir(root), limited(), streams[0], streams[1]:
        code = main(["check", *options])
    return subprocess.CompletedProcess(options, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_are_none(tmp_path, name):
    root = repository(tmp_path)
    SETTINGS[name](root / "pyproject.toml")
    done = checked(root, apart=name == "an endless device")
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first.startswith(f"geneb-ci: {root}/pyproject.toml: ")
    assert "geneb-ci]" in first or "tool" in first
    assert second.startswith("  fix: ")
    assert len(first) < 1_000
    assert "\x1b" not in first


@pytest.mark.parametrize(
    "key", gated(["benchmark", "policy", "submissions", "cards", "audits"], "benchmark", "audits")
)
@pytest.mark.parametrize("name", NAMED)
def test_what_a_setting_names(tmp_path, name, key):
    root = repository(tmp_path)
    made = NAMED[name]
    if callable(made):
        made(root / "named")
    value = "named" if callable(made) else made
    (root / "pyproject.toml").write_text(f'{TABLE}{key} = "{value}"\n', encoding="utf-8")
    done = checked(root, apart=name == "/dev/zero")
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert f"(set by [tool.geneb-ci] {key} in {root}/pyproject.toml)" in first
    assert second.startswith("  fix: ")


@pytest.mark.parametrize("file", ["official.json", "models/model.toml"])
@pytest.mark.parametrize("name", [name for name in NAMED if callable(NAMED[name])])
def test_a_policy_file_that_is_none(tmp_path, name, file):
    root = repository(tmp_path)
    folder = root / "leaderboard/policy"
    folder.mkdir(parents=True)
    (folder / "official.json").write_text('{"files": {}}', encoding="utf-8")
    (folder / "models").mkdir()
    (folder / "models/model.toml").write_text('schema_version = "1.0"', encoding="utf-8")
    (folder / file).unlink()
    NAMED[name](folder / file)  # type: ignore[operator]  # only those that are made are asked for
    done = checked(root)
    first, _ = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first.startswith(f"geneb-ci: {folder / file}: ")


def test_isolated_uses_no_settings(tmp_path):
    root = repository(tmp_path, 'ignore = ["no-run-details"]')
    assert "no-run-details" not in checked(root).stdout
    (root / "pyproject.toml").unlink()
    os.mkfifo(root / "pyproject.toml")
    done = checked(root, "--isolated")
    assert (done.returncode, "no-run-details" in done.stdout) == (0, True)


def test_settings_of_another_place_count_alone(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "tree").mkdir()
    base = repository(tmp_path / "base", 'ignore = ["no-run-details"]')
    tree = repository(tmp_path / "tree", 'ignore = ["nothing-known"]')
    (tree / "schemas/benchmark.json").unlink()
    for path in (base, base / "pyproject.toml"):
        done = checked(tree, "--config-from", str(path))
        assert (done.returncode, "no-run-details" in done.stdout) == (0, False), done.stderr
        assert "\n1 submission, " in done.stdout


@pytest.mark.parametrize(
    "setting_path", ["nowhere", "nowhere/pyproject.toml", "submissions/model.json"]
)
def test_settings_of_no_place(tmp_path, setting_path):
    root = repository(tmp_path)
    done = checked(root, "--config-from", setting_path)
    message = f"geneb-ci: --config-from {setting_path}: there is no such folder or pyproject.toml"
    fix = "  fix: pass the folder of a trusted checkout or its pyproject.toml: --config-from PATH"
    assert (done.returncode, done.stderr) == (2, f"{message}\n{fix}\n")


def test_the_two_ways_exclude_each_other(tmp_path):
    done = checked(repository(tmp_path), "--isolated", "--config-from", ".")
    assert done.returncode == 2

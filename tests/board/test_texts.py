"""Large files of a board: whole or not at all, by as many processes, left where nothing changes."""

import functools
import os
import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.board.texts import Texts
from geneb_ci.common.errors import MachineFault, UsageProblem
from geneb_ci.common.files import write_files

NAME = "board.json"


def text(words: list[str]) -> list[bytes]:
    """Return the chunks of a text."""
    return [b"[", *(f'"{word}",'.encode() for word in words), b"]"]


def texts_of(words: list[str]) -> Texts:
    return Texts({NAME: functools.partial(text, words)})


def states(folder: Path) -> list[tuple[str, int, int]]:
    paths = sorted(folder.iterdir())
    return [(path.name, path.stat().st_ino, path.stat().st_mtime_ns) for path in paths]


@pytest.mark.parametrize("harm", ["cut", "longer", "changed", "a link", "private"])
def test_a_text_is_whole_whatever_lay_there(tmp_path, harm):
    out, path = tmp_path / "out", tmp_path / "out" / NAME
    write_files(out, texts_of(["a", "b"]).sources, 1)
    content = path.read_bytes()
    if harm == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif harm == "private":
        path.chmod(0o600)
    else:
        path.write_bytes(
            {"cut": content[:-1], "longer": content + b"#", "changed": b"#" + content[1:]}[harm]
        )
    write_files(out, texts_of(["a", "b"]).sources, 1)
    status = path.lstat()
    assert (stat.S_ISREG(status.st_mode), stat.S_IMODE(status.st_mode)) == (True, 0o644)
    assert path.read_bytes() == content
    assert [path.name for path in out.iterdir()] == [NAME]


def test_everybody_may_read_what_is_written(tmp_path):
    former = os.umask(0o077)
    try:
        write_files(tmp_path / "out", texts_of(["a"]).sources, 1)
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "out" / NAME).stat().st_mode) == 0o644


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_with_the_same_bytes_is_left(tmp_path, jobs):
    texts = texts_of(["a", "b"]).with_files({"plain.js": b"plain"})
    write_files(tmp_path / "out", texts.sources, 1)
    before = states(tmp_path / "out")
    write_files(tmp_path / "out", texts.sources, jobs)
    assert states(tmp_path / "out") == before


def test_processes_write_what_one_writes(tmp_path):
    names = [f"{number}.js" for number in range(5)]
    texts = Texts({name: functools.partial(text, [name] * 3) for name in names}).with_files(
        {"e": b""}
    )
    own = os.getpid()

    def killed() -> Iterator[bytes]:
        """Yield the text in the process of the test; end any other after its first byte."""
        yield b"["
        if os.getpid() != own:
            os._exit(1)
        yield b"]"

    write_files(tmp_path / "out", texts.sources, jobs=2)
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert written == dict(texts)
    write_files(tmp_path / "out", {**texts.sources, "killed.js": killed}, jobs=2)
    assert (tmp_path / "out/killed.js").read_bytes() == b"[]"
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_are_written_or_none(tmp_path, jobs):
    write_files(tmp_path / "out", texts_of(["a"]).sources, 1)
    before = states(tmp_path / "out")

    def broken() -> list[bytes]:
        raise ZeroDivisionError

    texts = Texts({**texts_of(["b"]).sources, "other.js": broken})
    with pytest.raises(ZeroDivisionError):
        write_files(tmp_path / "out", texts.sources, jobs)
    assert states(tmp_path / "out") == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_is_said_and_changes_nothing(tmp_path, jobs):
    write_files(tmp_path / "out", texts_of(["a"]).sources, 1)
    before = states(tmp_path / "out")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            write_files(tmp_path / "out", texts_of(["b" * 100]).sources, jobs)
        except (MachineFault, UsageProblem):
            os._exit(0)
        except BaseException:  # noqa: BLE001 (a child must not go on)
            os._exit(2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert states(tmp_path / "out") == before


def test_what_cannot_be_a_folder_is_said(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file/inner", tmp_path / ("n" * 300)):
        with pytest.raises(UsageProblem, match="cannot be written"):
            write_files(folder, texts_of(["a"]).sources, 1)


def test_names_of_files_make_none_of_them():
    def broken() -> list[bytes]:
        raise ZeroDivisionError

    texts = Texts({NAME: broken})
    assert NAME in texts
    assert "other" not in texts
    assert list(texts) == [NAME]

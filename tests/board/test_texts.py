"""Files written from pieces: whatever lay there before, the bytes are those of the whole text."""

import functools
import os
import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geneb_ci.board.parts import Parts
from geneb_ci.board.texts import Chunk, Texts, joined, piece, write_texts
from geneb_ci.check.reuse import Store
from geneb_ci.common.errors import MachineFault, UsageProblem

NAME = "board.json"
MADE: list[str] = []


def made(word: str) -> bytes:
    """Return what a piece holds, and note that it was made."""
    MADE.append(word)
    return f'"{word}"'.encode() * (1 + len(word))


def text(words: list[str]) -> list[Chunk]:
    """Return a list of words in pieces, between brackets that are none."""
    listed = [
        piece(word.encode(), functools.partial(made, word), b"," if number else b"")
        for number, word in enumerate(words)
    ]
    return [b"[", *listed, b"]"]


def written(root: Path, words: list[str], jobs: int = 1) -> bytes:
    """Write a text where an earlier one may lie, and return what lies there then."""
    parts = Parts(Store(root / "cache"))
    write_texts(root / "out", Texts({NAME: functools.partial(text, words)}), parts, jobs)
    parts.save()
    assert [path.name for path in (root / "out").iterdir()] == [NAME]
    status = (root / "out" / NAME).lstat()
    assert (stat.S_ISREG(status.st_mode), stat.S_IMODE(status.st_mode)) == (True, 0o644)
    return (root / "out" / NAME).read_bytes()


WORDS = st.lists(st.sampled_from(["", "a", "b", "cc", "ddd", "e" * 40]), max_size=6)


@pytest.mark.parametrize("harm", range(7))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(WORDS, min_size=2, max_size=4), at=st.data())
def test_a_text_is_whole_whatever_lay_there(tmp_path_factory, texts, harm, at):
    root = tmp_path_factory.mktemp("texts")
    for words in [*texts, texts[-1]]:
        path = root / "out" / NAME
        if path.exists():
            content = path.read_bytes()
            place = at.draw(st.integers(0, len(content) - 1))
            match harm:
                case 1:
                    path.write_bytes(content[:place])
                case 2:
                    path.write_bytes(content[:place] + b"#" + content[place + 1 :])
                case 3:
                    path.write_bytes(content + b"#")
                case 4:
                    path.rename(root / "elsewhere")
                    path.symlink_to(root / "elsewhere")
                case 5:
                    path.chmod(0o600)
                case 6:
                    for one in (root / "cache").iterdir():
                        one.write_bytes(one.read_bytes()[:-1])
        assert written(root, words) == joined(text(words))


def test_everybody_may_read_what_is_written(tmp_path):
    former = os.umask(0o077)
    try:
        written(tmp_path, ["a"])
    finally:
        os.umask(former)


def test_only_new_pieces_are_made(tmp_path):
    words = ["a", "b", "cc", "ddd"]
    written(tmp_path, words)
    before = (tmp_path / "out" / NAME).stat()
    MADE.clear()
    written(tmp_path, words)
    after = (tmp_path / "out" / NAME).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert MADE == []
    for others, new in [
        (["a", "b", "new", "ddd"], ["new"]),
        (["ddd", "b", "a"], ["ddd", "a"]),  # what is first has no comma
        (["ddd", "b", "b", "a", "more"], ["more"]),
        ([], []),
    ]:
        MADE.clear()
        written(tmp_path, others)
        assert new == MADE
    assert written(tmp_path, words) == joined(text(words))


def test_processes_write_what_one_writes(tmp_path):
    names = [f"{number}.js" for number in range(5)]
    texts = Texts({name: functools.partial(text, [name] * 3) for name in names}).also({"e": b""})
    own = os.getpid()

    def killed() -> Iterator[Chunk]:
        """Yield the text in the process of the test; end any other after its first byte."""
        yield b"["
        if os.getpid() != own:
            os._exit(1)
        yield b"]"

    for _ in range(2):
        parts = Parts(Store(tmp_path / "cache"))
        write_texts(tmp_path / "out", texts.also({"z": b"made before"}), parts, jobs=2)
        parts.save()
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
            **texts,
            "z": b"made before",
        }
    more = Texts({**texts.makers, "killed.js": killed})
    write_texts(tmp_path / "out", more, Parts(Store(None)), jobs=2)
    assert (tmp_path / "out/killed.js").read_bytes() == b"[]"
    assert not list((tmp_path / "out").glob(".*"))


def test_all_are_written_or_none(tmp_path):
    written(tmp_path, ["a"])

    def broken() -> list[Chunk]:
        raise ZeroDivisionError

    texts = Texts({NAME: functools.partial(text, ["b"]), "other.js": broken})
    for jobs in (1, 2):
        with pytest.raises(ZeroDivisionError):
            write_texts(tmp_path / "out", texts, Parts(Store(None)), jobs)
        assert [path.name for path in (tmp_path / "out").iterdir()] == [NAME]
        assert (tmp_path / "out" / NAME).read_bytes() == joined(text(["a"]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_is_said_and_changes_nothing(tmp_path, jobs):
    written(tmp_path, ["a"])
    texts = Texts({NAME: functools.partial(text, ["b" * 100]), "other.js": list})
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            write_texts(tmp_path / "out", texts, Parts(Store(None)), jobs)
        except (MachineFault, UsageProblem):
            os._exit(0)
        except BaseException:  # noqa: BLE001 (a child must not go on)
            os._exit(2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [NAME]
    assert (tmp_path / "out" / NAME).read_bytes() == joined(text(["a"]))


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_file_with_the_same_bytes_is_left_whatever_is_known_of_it(tmp_path, is_kept):
    """Also one without pieces, and one that no build is known to have written."""
    texts = Texts({NAME: functools.partial(text, ["a", "b"])}).also({"plain.js": b"plain"})
    store = Store(tmp_path / "cache" if is_kept else None)
    write_texts(tmp_path / "out", texts, Parts(Store(None)), 1)

    def states() -> list[tuple[str, int, int]]:
        found = sorted((tmp_path / "out").iterdir())
        return [(one.name, one.stat().st_ino, one.stat().st_mtime_ns) for one in found]

    before = states()
    for jobs in (1, 2, 1):
        parts = Parts(store)
        write_texts(tmp_path / "out", texts, parts, jobs)
        assert states() == before
        parts.save()
    MADE.clear()
    write_texts(tmp_path / "out", texts, Parts(store), 1)
    assert ([] if is_kept else ["a", "b"]) == MADE


def test_an_unchanged_build_by_processes_writes_no_parts(tmp_path):
    texts = Texts({f"{number}.js": functools.partial(text, ["a"]) for number in range(3)})
    for expected in (True, False):
        parts = Parts(Store(tmp_path / "cache"))
        write_texts(tmp_path / "out", texts, parts, jobs=2)
        assert bool(parts._changed) == expected
        parts.save()


def test_what_cannot_be_a_folder_is_said(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    texts = Texts({NAME: functools.partial(text, ["a"])})
    for folder in (tmp_path / "file", tmp_path / "file/inner", tmp_path / ("n" * 300)):
        with pytest.raises(UsageProblem, match="cannot be written"):
            write_texts(folder, texts, Parts(Store(None)), 1)


def test_names_of_files_make_none_of_them():
    def broken() -> list[Chunk]:
        raise ZeroDivisionError

    texts = Texts({NAME: broken})
    assert NAME in texts
    assert "other" not in texts
    assert list(texts) == [NAME]

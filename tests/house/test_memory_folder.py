"""Where tests write temporary files: in memory where that works, else where they always were."""

import os
import tempfile
from types import SimpleNamespace

import pytest

from tests import memory_folder

BLOCK = 4096
pytestmark = pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="a system without /dev/shm")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return what the system says of a folder in memory that suits."""
    state = SimpleNamespace(f_flag=0, f_frsize=BLOCK, f_bavail=memory_folder.ROOM // BLOCK)
    monkeypatch.setattr(os, "statvfs", lambda _: state)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(tempfile, "tempdir", "unchanged")
    monkeypatch.delenv("TMPDIR", raising=False)
    return state


def chosen() -> tuple[str | None, str | None]:
    memory_folder.use()
    return os.environ.get("TMPDIR"), tempfile.tempdir


@pytest.mark.usefixtures("disk")
def test_memory_is_used_where_it_has_room():
    assert chosen() == (memory_folder.FOLDER, None)


@pytest.mark.usefixtures("disk")
def test_a_folder_that_somebody_named_stays(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/named")
    assert chosen() == ("/named", "unchanged")


@pytest.mark.parametrize(
    ("name", "value"),
    [("f_flag", getattr(os, "ST_NOEXEC", 0)), ("f_bavail", memory_folder.ROOM // BLOCK - 1)],
)
def test_memory_without_programs_or_room_is_not_used(disk, name, value):
    setattr(disk, name, value)
    assert chosen() == (None, "unchanged")


def test_a_system_without_such_a_folder_goes_on_as_before():
    assert not memory_folder.has_room("/of/no/system")

"""Files are read whole, whatever size the system tells, and never further than the limit."""

import os
from pathlib import Path

import pytest

from reference_harness.formats import files
from reference_harness.formats.files import TooLarge, read_regular


@pytest.mark.parametrize("size", [0, 1, 9, 10, 100_000])
@pytest.mark.parametrize("answer", [0, 1, 10, 1_000_000])
def test_a_file_is_read_whole_whatever_size_is_told(monkeypatch, tmp_path, size, answer):
    path = tmp_path / "file"
    path.write_bytes(raw := os.urandom(size))
    content = files._descriptor_content
    monkeypatch.setattr(
        files, "_descriptor_content", lambda handle, _, limit: content(handle, answer, limit)
    )
    assert read_regular(path, max(size, 10)) == raw
    if size:
        with pytest.raises(TooLarge) as caught:
            read_regular(path, size - 1)
        assert caught.value.size == size


def test_a_file_that_the_system_calls_empty_is_read():
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux has files of size 0 with a content")
    assert Path("/proc/self/status").stat().st_size == 0
    assert b"Pid:" in read_regular(Path("/proc/self/status"), 100_000)


def test_no_more_than_the_limit_is_read(monkeypatch, tmp_path):
    """A file that grows while it is read, or lies about its size, takes no more memory."""
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    taken: list[int] = []
    read = os.read

    def counted(handle: int, want: int) -> bytes:
        taken.append(want)
        return read(handle, want)

    monkeypatch.setattr(os, "read", counted)
    with pytest.raises(TooLarge):
        read_regular(path, 1000)
    assert sum(taken) == 1001

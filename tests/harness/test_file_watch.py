"""A block that records its files leaves no record of the process behind."""

import sys

from reference_harness.loading import file_watch
from reference_harness.loading.file_watch import WATCH


def test_a_block_records_what_is_read_in_it_and_nothing_after_it(tmp_path):
    first, second = tmp_path / "first.bin", tmp_path / "second.bin"
    for path in (first, second):
        path.write_bytes(b"x")
    with WATCH.recording() as read:
        first.read_bytes()
    second.read_bytes()
    assert list(read) == [str(first.resolve())]
    assert not {str(first.resolve()), str(second.resolve())} & set(WATCH.opened)


def test_an_event_after_the_interpreter_cleared_the_module_is_ignored(monkeypatch):
    with WATCH.recording():
        pass
    monkeypatch.setattr(file_watch, "OPEN_EVENTS", None)
    sys.audit("an.event")  # raises what a hook raises

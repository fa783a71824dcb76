"""Processes that compute for a check, and names of scores that a contributor wrote to mislead."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from geneb_ci.submission.peers import SharedNames, read_row


def test_a_key_with_the_separator_takes_no_names_from_other_rows(tmp_path):
    """Names of scores joined by NUL were one text for these files: the second lost a score."""
    hostile, honest = tmp_path / "a.json", tmp_path / "b.json"
    hostile.write_text(json.dumps({"results": {"full": {"a\0Acc\0full\0a": {"MCC": 0.5}}}}))
    honest.write_text(json.dumps({"results": {"full": {"a": {"Acc": 0.75, "MCC": 0.5}}}}))
    shapes: SharedNames = {}
    rows = [read_row(path, shapes, keep_scores=True).row for path in (hostile, honest)]
    assert [row and len(row.score_names) for row in rows] == [1, 2]


END_SECONDS = 60
TWO_THAT_SLEEP = """
import os, signal, time
from geneb_ci.common.parallel import in_processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

def work(item):
    os.write(1, b"%d\\n" % item)
    time.sleep(600)

list(in_processes(work, range(2), 2, 1))
"""


@pytest.fixture
def parent():
    """A process in a session of its own, whose two worker processes sleep."""
    with subprocess.Popen(
        [sys.executable, "-c", TWO_THAT_SLEEP],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert {process.stdout.readline() for _ in range(2)} == {"0\n", "1\n"}
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):  # as it should be: none is left
                os.killpg(process.pid, signal.SIGKILL)


def test_processes_end_with_the_one_that_started_them(parent):
    """Who reads what a killed command prints sees the end: no process of it holds the pipe open."""
    parent.kill()
    assert parent.communicate(timeout=END_SECONDS)[0] == ""


def test_ctrl_c_ends_all_processes_and_one_tells_of_it(parent):
    """A terminal sends Ctrl-C to every process; each printed a traceback of its own."""
    os.killpg(parent.pid, signal.SIGINT)
    stdout, stderr = parent.communicate(timeout=END_SECONDS)
    assert stdout == ""
    assert stderr.count("Traceback") == 1
    assert stderr.endswith("KeyboardInterrupt\n")


A_DEAF_ONE = """
import os, signal, time
from geneb_ci.common.parallel import in_processes

ready, deaf = os.pipe()

def work(item):
    if item == 0:
        os.read(ready, 1)
        raise ZeroDivisionError
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(deaf, b"1")
    time.sleep(600)

list(in_processes(work, range(2), 2, 1))
"""


def test_an_error_ends_also_the_process_that_lost_a_signal():
    """One that has just begun drops SIGTERM: the command waited for it without an end."""
    words = [sys.executable, "-c", A_DEAF_ONE]
    done = subprocess.run(words, capture_output=True, text=True, timeout=END_SECONDS, check=False)
    assert done.stderr.endswith("ZeroDivisionError\n")

"""Processes that compute for a check, and names of scores that a contributor wrote to mislead."""

import contextlib
import json
import os
import signal
import subprocess
import sys

from geneb_ci.submission.peers import NameTuples, read_row


def test_a_key_with_the_separator_takes_no_names_from_other_rows(tmp_path):
    """Names of scores joined by NUL were one text for these files: the second lost a score."""
    hostile, honest = tmp_path / "a.json", tmp_path / "b.json"
    hostile.write_text(json.dumps({"results": {"full": {"a\0Acc\0full\0a": {"MCC": 0.5}}}}))
    honest.write_text(json.dumps({"results": {"full": {"a": {"Acc": 0.75, "MCC": 0.5}}}}))
    shapes: NameTuples = {}
    rows = [read_row(path, shapes, keep=True).row for path in (hostile, honest)]
    assert [row and len(row.names) for row in rows] == [1, 2]


END_SECONDS = 15.0  # a busy machine takes a few


def test_processes_end_with_the_one_that_started_them():
    """Who reads what a killed command prints sees the end: no process of it holds the pipe open."""
    script = (
        "import os, time; from geneb_ci.common.parallel import in_processes\n"
        "def work(item):\n"
        "    os.write(1, b'%d\\n' % item); time.sleep(600)\n"
        "list(in_processes(work, range(2), 2, 1))"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            assert {parent.stdout.readline() for _ in range(2)} == {"0\n", "1\n"}
            parent.kill()
            assert parent.communicate(timeout=END_SECONDS)[0] == ""
        finally:
            with contextlib.suppress(ProcessLookupError):  # as it should be: none is left
                os.killpg(parent.pid, signal.SIGKILL)

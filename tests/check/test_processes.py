"""Processes that compute for a check, and names of scores that a contributor wrote to mislead."""

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from geneb_ci.check.kept import TracedAnswers
from geneb_ci.submission.peers import Peers, Shapes, peers_of, read_row


def test_a_key_with_the_separator_takes_no_names_from_other_rows(tmp_path):
    """Names of scores joined by NUL were one text for these files: the second lost a score."""
    hostile, honest = tmp_path / "a.json", tmp_path / "b.json"
    hostile.write_text(json.dumps({"results": {"full": {"a\0Acc\0full\0a": {"MCC": 0.5}}}}))
    honest.write_text(json.dumps({"results": {"full": {"a": {"Acc": 0.75, "MCC": 0.5}}}}))
    shapes: Shapes = {}
    rows = [read_row(path, shapes, keep=True).row for path in (hostile, honest)]
    assert [row and len(row.names) for row in rows] == [1, 2]


def test_rows_whose_joined_names_are_equal_are_other_rows(tmp_path):
    found = []
    cells = ({"b": 0.5, "c\0full\0a\0d": 0.5}, {"b\0full\0a\0c": 0.5, "d": 0.5})
    for number, cell in enumerate(cells):
        path = tmp_path / str(number) / "a.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"results": {"full": {"a": cell}}}))
        found.append(peers_of([path]))
    joined = {"\0".join(peers.rows[0].names) for peers in found}
    assert len(joined) == 1
    moved = [row._replace(path=Path("a.json")) for peers in found for row in peers.rows]
    digests = {TracedAnswers(cast("Peers", SimpleNamespace(rows=(row,)))).rows for row in moved}
    assert len(digests) == 2


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_end_with_the_one_that_started_them(tmp_path):
    script = (
        "import os, sys, time; from geneb_ci.common import files; from pathlib import Path\n"
        "def work(n):\n"
        "    Path(sys.argv[1], str(os.getpid())).touch(); time.sleep(60)\n"
        "list(files.in_processes(work, range(4), 2, 1))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert len(workers) == 2
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))

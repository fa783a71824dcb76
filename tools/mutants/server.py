"""A process that has imported all that is heavy, and forks for each run of pytest.

It reads one JSON object a line, `{"files", "tests", "marks", "cpu", "wall", "result"}`, and answers
each with a line `{"end": "exit" | "time"}`. Of the files, only the tests named run, in that order;
no name stands for all. What became of them is in the file `result`.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tools.mutants import hits

HEAVY = (
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "hypothesis", "huggingface_hub"),
    *("jsonschema", "numpy", "pydantic", "requests", "rich.console"),
    *("scipy.stats", "scipy.optimize", "sklearn.linear_model", "sklearn.metrics", "torch"),
)
"""What most test files import and no test looks for in `sys.modules` of its own process."""


IMPORTED = ""
"""Stands for a test file as a whole: marks passed while it is imported."""
EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""A plugin that was imported early has no rewritten assertions, and needs none."""


class Recorder:
    """Runs the tests that are wanted, in order, and notes how long each took and which failed."""

    def __init__(self, wanted: list[str], marks: bool) -> None:
        self.wanted = {name: place for place, name in enumerate(wanted)}
        self.marks = marks
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.hits: dict[str, list[tuple[str, int]]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are wanted."""
        if self.wanted:
            items[:] = [item for item in items if item.nodeid in self.wanted]
            items.sort(key=lambda item: self.wanted[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell marks of the import, or of fixtures, from those of the test."""
        if self.marks:
            self.take(IMPORTED)
            hits.begin(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Keep the marks of the test."""
        if self.marks:
            self.take(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how long it took, and whether it failed."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that cannot be imported."""
        if report.failed:
            self.failed.append(report.nodeid)

    def take(self, nodeid: str) -> None:
        """Take the marks passed since the last call for those of a test."""
        self.hits[nodeid] = [*self.hits.get(nodeid, ()), *hits.taken()]


def run(job: dict[str, Any]) -> None:
    """Run one job in this process, which then ends."""
    os.setsid()
    log = os.open(job["log"] or os.devnull, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (0, 1, 2):
        os.dup2(log, stream)
    resource.setrlimit(resource.RLIMIT_CPU, (job["cpu"], job["cpu"] + 5))
    recorder = Recorder(job["tests"], job["marks"])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line", *EARLY]
    stop = [] if job["marks"] else ["-x"]
    status = int(pytest.main([*options, *stop, *job["files"]], plugins=[recorder]))
    result = {
        "status": status,
        "failed": recorder.failed,
        "seconds": recorder.seconds,
        "hits": recorder.hits,
    }
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


def serve(heavy: Iterable[str]) -> None:
    """Fork for each job until the input ends."""
    for name in heavy:
        importlib.import_module(name)
    print(json.dumps({"end": "ready"}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        Path(job["result"]).unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            try:
                run(job)
            except BaseException:  # noqa: BLE001 (this process must not go on as a server)
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        print(json.dumps({"end": _wait(pid, job["wall"])}), flush=True)


def _wait(pid: int, wall: float) -> str:
    end = time.monotonic() + wall
    ended = False
    while not ended and time.monotonic() < end:
        ended = os.waitpid(pid, os.WNOHANG) != (0, 0)
        if not ended:
            time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        os.waitpid(pid, 0)
    return "exit" if ended else "time"


if __name__ == "__main__":
    serve(sys.argv[1:])

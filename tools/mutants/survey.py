"""Which tests execute which statements: every test file once, on marked sources."""

import json
import queue
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tools.mutants.clone import ROOT, WORK
from tools.mutants.hits import marked
from tools.mutants.targets import FILES
from tools.mutants.worker import Worker

T = TypeVar("T")
SURVEY = WORK / "survey"
LONGEST = 900.0
"""Seconds that a test file may take on an idle machine."""
ELSEWHERE = re.compile(
    r"tests/(page|packaging|house|mutants|bench|audit/sandbox|harness/extractors)/"
)
"""Tests that run no target, run one only inside a sandbox, or look at its text: those of this tool
notice every mutant, which says nothing."""


def test_files() -> list[str]:
    """Return the test files that may execute a target."""
    found = (str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py"))
    return sorted(file for file in found if not ELSEWHERE.match(file))


def survey(workers: Sequence[Worker], say: Callable[[str], None]) -> None:
    """Survey the test files that were not surveyed since they last changed."""
    todo = [file for file in test_files() if not _place(file).is_file()]
    if not todo:
        return
    for worker in workers:
        for file in FILES:
            worker.write(file, marked(file, (ROOT / file).read_bytes()))
    in_parallel(workers, todo, lambda worker, file: _one(worker, file, say))
    for worker in workers:
        for file in FILES:
            worker.write(file, (ROOT / file).read_bytes())


def in_parallel(
    workers: Sequence[Worker], items: Sequence[T], work: Callable[[Worker, T], None]
) -> None:
    """Give each item to the next worker that is free. Raises what the first failing one raised."""
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    failures: list[BaseException] = []

    def serve(worker: Worker) -> None:
        try:
            while not failures:
                work(worker, waiting.get_nowait())
        except queue.Empty:
            pass
        except BaseException as failure:  # noqa: BLE001 (raised again, in the main thread)
            failures.append(failure)

    threads = [threading.Thread(target=serve, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _one(worker: Worker, file: str, say: Callable[[str], None]) -> None:
    found = worker.run([file], marks=True, seconds=LONGEST, log=_place(file).with_suffix(".log"))
    seconds = sum(found.get("seconds", {"": 0.0}).values())
    failed = len(found.get("failed", ()))
    say(f"{file}: {seconds:.0f} s" + (f", {failed} failed" if failed or not found else ""))
    _place(file).write_text(json.dumps(found), encoding="utf-8")


def _place(file: str) -> Path:
    SURVEY.mkdir(parents=True, exist_ok=True)
    return SURVEY / (file.removesuffix(".py").replace("/", ".") + ".json")

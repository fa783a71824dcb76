"""Measure the cost of a command with all its processes, and keep the measurements."""

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from geneb_ci.sandbox import processes
from reference_harness.formats.files import write_whole
from tests.paths import IMPORTABLE

TICK = 0.2
"""Seconds between two measurements of the memory."""


class Measured(NamedTuple):
    """The cost of a command."""

    seconds: float
    processor: float
    """Seconds of the processor, of all its processes."""
    mib: float
    """Most memory of its processes together; pages that several share are counted once."""
    output: str


def proportional(pid: int) -> int:
    """Return the bytes of a process, with its share of shared pages."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except (OSError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def step(folder: Path, name: str, make: Callable[[], Measured], *outputs: str) -> Measured:
    """Return the cost of a step. A finished step is not repeated; an unfinished one starts again.

    `outputs` are files and folders that the step makes in its folder.
    """
    place = folder / f"{name}.measured.json"
    if not place.is_file():
        for output in (folder / one for one in outputs):
            if output.is_dir():
                shutil.rmtree(output)
            else:
                output.unlink(missing_ok=True)
        text = json.dumps(make()._asdict())
        write_whole(place, lambda stream: stream.write(text.encode()))
    return Measured(**json.loads(place.read_text(encoding="utf-8")))


def processor() -> float:
    """Return the processor seconds of the ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command of the product. Raise SystemExit with its output if it fails."""
    own = os.environ | {"PYTHONPATH": IMPORTABLE} if environment is None else environment
    peak, over = 0, threading.Event()
    before = processor()
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**own, "GENEB_HARNESS_CACHE": str(folder / "cache")},
    )  # fmt: skip

    def watch() -> None:
        nonlocal peak
        while not over.wait(TICK):
            pids = [process.pid, *(one.pid for one in processes.descendants(process.pid))]
            peak = max(peak, sum(map(proportional, pids)))

    thread = threading.Thread(target=watch)
    thread.start()
    output, errors = process.communicate()
    seconds = time.perf_counter() - start
    over.set()
    thread.join()
    if process.returncode:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}\n{output}{errors}")
    return Measured(seconds, processor() - before, peak / 2**20, output)

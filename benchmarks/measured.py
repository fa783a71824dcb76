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

MEMORY_INTERVAL_SECONDS = 0.2
"""Seconds between two measurements of the memory."""


class CommandCost(NamedTuple):
    """The cost of a command."""

    seconds: float
    processor: float
    """Seconds of the processor, of all its processes."""
    mib: float
    """Most memory of its processes together; pages that several share are counted once."""
    output: str


def proportional_memory(pid: int) -> int:
    """Return the memory of a process in bytes, shared pages divided by the processes that share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except (OSError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def finished_step(
    folder: Path, name: str, make: Callable[[], CommandCost], *outputs: str
) -> CommandCost:
    """Return the cost of a step. A finished step is not repeated; an unfinished one starts again.

    `outputs` are files and folders that the step makes in its folder.
    """
    cost_file = folder / f"{name}.measured.json"
    if not cost_file.is_file():
        for output in (folder / output_name for output_name in outputs):
            if output.is_dir():
                shutil.rmtree(output)
            else:
                output.unlink(missing_ok=True)
        text = json.dumps(make()._asdict())
        write_whole(cost_file, lambda stream: stream.write(text.encode()))
    return CommandCost(**json.loads(cost_file.read_text(encoding="utf-8")))


def child_processor_seconds() -> float:
    """Return the processor seconds of the ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command_cost(
    *arguments: str, folder: Path, environment: Mapping[str, str] | None = None
) -> CommandCost:
    """Run a command of the product. Raise SystemExit with its output if it fails."""
    command_environment = (
        os.environ | {"PYTHONPATH": IMPORTABLE} if environment is None else environment
    )
    peak, has_ended = 0, threading.Event()
    seconds_before = child_processor_seconds()
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**command_environment, "GENEB_HARNESS_CACHE": str(folder / "cache")},
    )  # fmt: skip

    def watch() -> None:
        nonlocal peak
        while not has_ended.wait(MEMORY_INTERVAL_SECONDS):
            pids = [
                process.pid,
                *(descendant.pid for descendant in processes.descendants(process.pid)),
            ]
            peak = max(peak, sum(map(proportional_memory, pids)))

    thread = threading.Thread(target=watch)
    thread.start()
    output, errors = process.communicate()
    seconds = time.perf_counter() - start
    has_ended.set()
    thread.join()
    if process.returncode:
        sys.exit(f"{' '.join(arguments)}: exit code {process.returncode}\n{output}{errors}")
    return CommandCost(seconds, child_processor_seconds() - seconds_before, peak / 2**20, output)

"""Measure the time to start a sandbox; `--write` puts the table in docs/maintainer/sandbox.md."""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from geneb_ci.sandbox import mounts
from geneb_ci.sandbox.launch import Sandbox, python_of
from geneb_ci.sandbox.levels import open_sandbox
from geneb_ci.sandbox.limits import Limits
from geneb_ci.sandbox.run import ExtractorSpec, run_escape_suite, run_in_sandbox
from geneb_ci.sandbox.supervise import supervise

ROOT = Path(__file__).resolve().parents[1]
RUNS = 21
LIMIT = "0.1 s"
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"
LIMITS = Limits(seconds=60)


class IgnoredOutput:
    """A receiver that ignores the result."""

    def feed(self, piece: bytes) -> None:
        """Ignore some bytes."""


def timed_actions(sandbox: Sandbox) -> dict[str, Callable[[], object]]:
    """Return the timed actions by name."""
    python = python_of(sandbox, mounts.sandbox_view({}, {}))

    def start_command(*command: str) -> Callable[[], object]:
        return lambda: supervise(
            sandbox, mounts.sandbox_view({}, {}), LIMITS, command, IgnoredOutput()
        )

    spec = ExtractorSpec("builtin:kmer")
    return {
        "`/usr/bin/true`: the sandbox alone": start_command("/usr/bin/true"),
        "Python, nothing imported": start_command(python, "-I", "-c", ""),
        "Python and NumPy": start_command(python, "-s", "-P", "-c", "import numpy"),
        "the worker with k-mer, one sequence": lambda: run_in_sandbox(
            ["ACGTACGT"], spec, sandbox, LIMITS
        ),
        "the escape suite": lambda: run_escape_suite(sandbox),
    }


def seconds(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/maintainer/sandbox.md"
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    columns: list[dict[str, float]] = []
    for level in (0, 1, 2):
        with (
            tempfile.TemporaryDirectory() as folder,
            open_sandbox(level, i_wrote_this_code=True, folder=Path(folder) / "scratch") as sandbox,
        ):
            seconds_by_action: dict[str, list[float]] = {
                name: [] for name in timed_actions(sandbox)
            }
            for _ in range(options.runs):
                for name, action in timed_actions(sandbox).items():
                    seconds_by_action[name].append(seconds(action))
            columns.append(
                {
                    name: statistics.median(seconds_of_runs)
                    for name, seconds_of_runs in seconds_by_action.items()
                }
            )
    lines = ["| started | no sandbox | level 1 | level 2 |", "|---|---:|---:|---:|"]
    for name in columns[0]:
        cells = [f"{column[name] * 1000:.0f} ms" for column in columns]
        if name == "the escape suite":
            cells[0] = "-"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    conditions = (
        f"Median of {options.runs} runs, wall clock, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Limit for the first row: {LIMIT}."
    )
    table = "\n".join(lines) + f"\n\n{conditions}\n"
    sys.stdout.write(table)
    if options.write:
        page = ROOT / "docs/maintainer/sandbox.md"
        before, after_begin = page.read_text(encoding="utf-8").split(BEGIN)
        page.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

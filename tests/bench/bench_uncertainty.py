"""Seconds of intervals, diagnostics and advice; `--write` puts the table in docs/uncertainty.md.

python -m tests.bench.bench_uncertainty --write
"""

import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np

from geneb_ci.board.diagnostics.whole import diagnostics
from geneb_ci.board.recommend import recommendations
from geneb_ci.board.uncertainty import intervals
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries
from tests.paths import ROOT

RUNS = 5
PAGE = ROOT / "docs/uncertainty.md"
BEGIN, END = "<!-- speed -->\n", "<!-- /speed -->"
POLICY = ROOT / "leaderboard/policy"


def now() -> tuple[float, float]:
    """Return wall-clock and processor seconds."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    rows, benchmark = entries(), shipped_benchmark()
    steps: dict[str, list[tuple[float, float]]] = {
        "intervals": [],
        "diagnostics": [],
        "recommendations": [],
    }
    for _ in range(options.runs):
        marks = [now()]
        found = intervals(rows, benchmark)
        marks.append(now())
        diagnostics(rows, benchmark, found)
        marks.append(now())
        recommendations(rows, benchmark, found)
        marks.append(now())
        for name, start, end in zip(steps, marks, marks[1:], strict=False):
            steps[name].append((end[0] - start[0], end[1] - start[1]))
    lines = ["| step | wall clock | processor |", "|---|---:|---:|"]
    for name, taken in steps.items():
        wall, cpu = (statistics.median(column) for column in zip(*taken, strict=True))
        lines.append(f"| {name} | {wall:.2f} s | {cpu:.2f} s |")
    table = "\n".join(lines) + (
        f"\n\nMedian of {options.runs} runs, {len(rows)} models, one process, {os.cpu_count()} "
        f"cores at a load average of {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, numpy {np.__version__}.\n"
    )
    print(table)
    if options.write:
        _write(PAGE, table)


def _write(page: Path, table: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

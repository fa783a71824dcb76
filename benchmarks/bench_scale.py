"""Time check, build, advice and lists as whole processes, without a cache and with one.

The only table of their speed: `--write` puts it into docs/developer/scale.md, with the day and the
load.
"""

import argparse
import datetime as dt
import hashlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.many_rows import write_rows
from geneb_ci.check.cached import CACHED_FILES_MIN
from tests.paths import PUBLIC, ROOT, SUBMISSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = (1_000,)
"""Numbers of generated rows. With 10,000 the files take 1.6 GB, and the builds ten minutes."""
CHECK_SECONDS, BUILD_SECONDS = 10.0, 25.0
"""Limits for a thousand rows."""
RUNS = 5
BEGIN, END = "<!-- scale -->\n", "<!-- /scale -->"
PAGE = ROOT / "docs/developer/scale.md"


class Cost(NamedTuple):
    """Wall-clock and processor seconds of a finished process, with those of its children."""

    seconds: float
    cpu: float
    output: bytes
    """Standard output of the process; for `build`, digests of all files instead."""


class MeasuredCommand(NamedTuple):
    """A line of the table."""

    name: str
    cost: Cost
    limit: float | None = None
    """Limit in seconds on two idle processors; None for no limit."""


def run_cost(cache: Path, command: str, *arguments: str, folder: Path = PUBLIC) -> Cost:
    """Run a process of geneb-ci with a cache folder of its own and return what it cost."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("GITHUB_ACTIONS", None)
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "geneb_ci", command, *arguments],
            stdout=output,
            cwd=folder,
            env=environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        output.seek(0)
        if process.returncode not in ({0, 11} if command == "check" else {0}):
            sys.exit(f"bench: geneb-ci {command} {arguments} gave exit code {process.returncode}")
        cpu = usage.ru_utime + usage.ru_stime
        return Cost(seconds, cpu, output.read())


def median(costs: list[Cost]) -> Cost:
    """Return the median of each figure, and the output of the last run."""
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        costs[-1].output,
    )


def build_cost(cache: Path, rows: Path, out: Path, *arguments: str) -> Cost:
    """Build the board of a folder; the output is a digest of each file that was written."""
    cost = run_cost(cache, "build", str(rows), "--output", str(out), *arguments)
    digests = [
        f"{path.relative_to(out)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(out.rglob("*"))
        if path.is_file()
    ]
    return cost._replace(output="\n".join(digests).encode())


def small_measurements(scratch: Path, runs: int) -> list[MeasuredCommand]:
    """Measure commands on public files, one after another in each run: a slow spell hits all."""
    one_file, board, kept_cache = str(SUBMISSIONS / "space.json"), SUBMISSIONS, scratch / "board"
    need_options = ("--category", "Splice Sites")
    rows, out = str(board), scratch / "out"
    some_files = [*map(str, sorted(board.glob("*.json"))[:CACHED_FILES_MIN])]
    run_cost(scratch / "first", "check", one_file)  # writes byte code
    build_cost(kept_cache, board, out)
    run_cost(kept_cache, "check", rows)
    run_cost(kept_cache, "recommend", rows, *need_options)
    fresh_caches = (scratch / f"fresh-{number}" for number in range(10**6))
    measured_commands: dict[str, tuple[Callable[[], Cost], float | None]] = {
        "`check` one file, nothing kept": (
            lambda: run_cost(next(fresh_caches), "check", one_file),
            0.25,
        ),
        "`check` one file among rows that were checked": (
            lambda: run_cost(kept_cache, "check", one_file),
            0.25,
        ),
        f"`check` {CACHED_FILES_MIN} files, nothing kept": (
            lambda: run_cost(next(fresh_caches), "check", *some_files),
            None,
        ),
        f"`check` {CACHED_FILES_MIN} files, unchanged": (
            lambda: run_cost(kept_cache, "check", *some_files),
            None,
        ),
        "`check` 41 files, nothing kept": (
            lambda: run_cost(next(fresh_caches), "check", rows),
            0.7,
        ),
        "`check` 41 files, unchanged": (lambda: run_cost(kept_cache, "check", rows), None),
        "`build` 41 rows, nothing kept": (
            lambda: build_cost(next(fresh_caches), board, scratch / "cold"),
            2.0,
        ),
        "`build` 41 rows, checked before": (lambda: build_cost(kept_cache, board, out), 2.0),
        "`build --no-diagnostics` 41 rows, nothing kept": (
            lambda: build_cost(next(fresh_caches), board, scratch / "plain", "--no-diagnostics"),
            None,
        ),
        "`recommend` from 41 rows, nothing kept": (
            lambda: run_cost(next(fresh_caches), "recommend", rows, *need_options),
            None,
        ),
        "`recommend` from 41 rows, checked before": (
            lambda: run_cost(kept_cache, "recommend", rows, *need_options),
            None,
        ),
        "`recommend` from a built board": (
            lambda: run_cost(kept_cache, "recommend", str(out), *need_options),
            1.0,
        ),
        "`rules`": (lambda: run_cost(kept_cache, "rules"), None),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in measured_commands}
    for _ in range(runs):
        for name, (measure_cost, _limit) in measured_commands.items():
            costs[name].append(measure_cost())
    median_costs = {name: median(repeated_costs) for name, repeated_costs in costs.items()}
    _require_equal(
        median_costs["`build` 41 rows, nothing kept"],
        median_costs["`build` 41 rows, checked before"],
    )
    return [
        MeasuredCommand(name, median_costs[name], limit)
        for name, (_, limit) in measured_commands.items()
    ]


def large_measurements(scratch: Path, count: int) -> list[MeasuredCommand]:
    """Measure checks and builds of generated rows, each command once."""
    folder, kept_cache, out = scratch / "rows", scratch / "kept", scratch / "board"
    write_rows(folder, count)
    rows, public_row = str(folder), str(SUBMISSIONS / "space.json")
    is_thousand = count == ROWS[0]
    check_limit, build_limit = (CHECK_SECONDS, BUILD_SECONDS) if is_thousand else (None, None)
    computed_cost, cached_cost = (run_cost(kept_cache, "check", rows) for _ in range(2))
    _require_equal(computed_cost, cached_cost)
    return [
        MeasuredCommand(f"`check` {count:,} files, nothing kept", computed_cost, check_limit),
        MeasuredCommand(f"`check` {count:,} files, unchanged", cached_cost),
        MeasuredCommand(
            f"`check` one file after {count:,} elsewhere",
            run_cost(kept_cache, "check", public_row),
            0.25,
        ),
        MeasuredCommand(
            f"`build` {count:,} rows, nothing kept",
            build_cost(scratch / "fresh", folder, out),
            build_limit,
        ),
        MeasuredCommand(
            f"`build` {count:,} rows, built before", build_cost(scratch / "fresh", folder, out)
        ),
    ]


def _require_equal(computed: Cost, cached: Cost) -> None:
    if computed.output != cached.output:
        sys.exit("bench: the output from the cache differs from the computed one")


def table_row(measured: MeasuredCommand) -> str:
    """Return a row of the table: wall clock, processor and limit."""
    cost, limit = measured.cost, "" if measured.limit is None else f"{measured.limit:.2g} s"
    cells = [measured.name, f"{cost.seconds:.2f} s", f"{cost.cpu:.2f} s", limit]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/developer/scale.md"
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS, help="numbers of rows")
    options = parser.parse_args()
    load = [os.getloadavg()[1]]
    measurements: list[MeasuredCommand] = []
    with tempfile.TemporaryDirectory() as scratch:
        measurements += small_measurements(Path(scratch), options.runs)
    for count in options.rows:
        with tempfile.TemporaryDirectory() as scratch:
            measurements += large_measurements(Path(scratch), count)
    load.append(os.getloadavg()[1])
    lines = ["| what | wall clock | processor | limit |", "|---|---:|---:|---:|"]
    lines += map(table_row, measurements)
    conditions = (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {load[0]:.1f} before and {load[1]:.1f} after. "
        f"Up to 41 files the median of {options.runs} runs, else one run."
    )
    table = "\n".join(lines) + f"\n\n{conditions}\n"
    print(table)
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

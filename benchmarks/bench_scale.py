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
from geneb_ci.check.cached import FILES_MIN
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
    """One finished process: wall-clock and processor seconds, of its own processes too."""

    seconds: float
    cpu: float
    output: bytes
    """Standard output of the process; for `build`, digests of all files instead."""


class Measured(NamedTuple):
    """A line of the table."""

    what: str
    cost: Cost
    limit: float | None = None
    """Limit in seconds on two idle processors; None for no limit."""


def run(cache: Path, command: str, *arguments: str, folder: Path = PUBLIC) -> Cost:
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


def built(cache: Path, rows: Path, out: Path, *arguments: str) -> Cost:
    """Build the board of a folder; the output is a digest of each file that was written."""
    cost = run(cache, "build", str(rows), "--output", str(out), *arguments)
    digests = [
        f"{path.relative_to(out)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(out.rglob("*"))
        if path.is_file()
    ]
    return cost._replace(output="\n".join(digests).encode())


def small(scratch: Path, runs: int) -> list[Measured]:
    """Measure one public file and all of them; the cases take turns, so all share slow spells."""
    one, board, kept = str(SUBMISSIONS / "space.json"), SUBMISSIONS, scratch / "board"
    need = ("--category", "Splice Sites")
    rows, out = str(board), scratch / "out"
    some = [*map(str, sorted(board.glob("*.json"))[:FILES_MIN])]
    run(scratch / "first", "check", one)  # writes byte code
    built(kept, board, out)
    run(kept, "check", rows)
    run(kept, "recommend", rows, *need)
    fresh = (scratch / f"fresh-{number}" for number in range(10**6))
    cases: dict[str, tuple[Callable[[], Cost], float | None]] = {
        "`check` one file, nothing kept": (lambda: run(next(fresh), "check", one), 0.25),
        "`check` one file among rows that were checked": (lambda: run(kept, "check", one), 0.25),
        f"`check` {FILES_MIN} files, nothing kept": (
            lambda: run(next(fresh), "check", *some),
            None,
        ),
        f"`check` {FILES_MIN} files, unchanged": (lambda: run(kept, "check", *some), None),
        "`check` 41 files, nothing kept": (lambda: run(next(fresh), "check", rows), 0.7),
        "`check` 41 files, unchanged": (lambda: run(kept, "check", rows), None),
        "`build` 41 rows, nothing kept": (
            lambda: built(next(fresh), board, scratch / "cold"),
            2.0,
        ),
        "`build` 41 rows, checked before": (lambda: built(kept, board, out), 2.0),
        "`build --no-diagnostics` 41 rows, nothing kept": (
            lambda: built(next(fresh), board, scratch / "plain", "--no-diagnostics"),
            None,
        ),
        "`recommend` from 41 rows, nothing kept": (
            lambda: run(next(fresh), "recommend", rows, *need),
            None,
        ),
        "`recommend` from 41 rows, checked before": (
            lambda: run(kept, "recommend", rows, *need),
            None,
        ),
        "`recommend` from a built board": (lambda: run(kept, "recommend", str(out), *need), 1.0),
        "`rules`": (lambda: run(kept, "rules"), None),
    }
    costs: dict[str, list[Cost]] = {what: [] for what in cases}
    for _ in range(runs):
        for what, (measure, _limit) in cases.items():
            costs[what].append(measure())
    found = {what: median(each) for what, each in costs.items()}
    _require_equal(found["`build` 41 rows, nothing kept"], found["`build` 41 rows, checked before"])
    return [Measured(what, found[what], limit) for what, (_, limit) in cases.items()]


def large(scratch: Path, count: int) -> list[Measured]:
    """Measure checks and builds of generated rows, each case once."""
    folder, kept, out = scratch / "rows", scratch / "kept", scratch / "board"
    write_rows(folder, count)
    rows, public_row = str(folder), str(SUBMISSIONS / "space.json")
    is_thousand = count == ROWS[0]
    check, build = (CHECK_SECONDS, BUILD_SECONDS) if is_thousand else (None, None)
    computed, kept_again = (run(kept, "check", rows) for _ in range(2))
    _require_equal(computed, kept_again)
    return [
        Measured(f"`check` {count:,} files, nothing kept", computed, check),
        Measured(f"`check` {count:,} files, unchanged", kept_again),
        Measured(
            f"`check` one file after {count:,} elsewhere", run(kept, "check", public_row), 0.25
        ),
        Measured(
            f"`build` {count:,} rows, nothing kept", built(scratch / "fresh", folder, out), build
        ),
        Measured(f"`build` {count:,} rows, built before", built(scratch / "fresh", folder, out)),
    ]


def _require_equal(one: Cost, other: Cost) -> None:
    if one.output != other.output:
        sys.exit("bench: what was read from the cache is not what was computed")


def line(one: Measured) -> str:
    """Return a row of the table: wall clock, processor and limit."""
    cost, limit = one.cost, "" if one.limit is None else f"{one.limit:.2g} s"
    cells = [one.what, f"{cost.seconds:.2f} s", f"{cost.cpu:.2f} s", limit]
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
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as scratch:
        found += small(Path(scratch), options.runs)
    for count in options.rows:
        with tempfile.TemporaryDirectory() as scratch:
            found += large(Path(scratch), count)
    load.append(os.getloadavg()[1])
    lines = ["| what | wall clock | processor | limit |", "|---|---:|---:|---:|"]
    lines += map(line, found)
    where = (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load {load[0]:.1f} before and {load[1]:.1f} after. "
        f"Up to 41 files the median of {options.runs} runs, else one run."
    )
    table = "\n".join(lines) + f"\n\n{where}\n"
    print(table)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

"""What `check` costs for one file, the board and thousands of rows: cold, and after a change.

`--write` puts the table into docs/scale.md.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from geneb_ci.submission.peers import ROWS_MAX, _lot
from tests.bench.many_rows import write_rows
from tests.paths import PUBLIC, ROOT, SUBMISSIONS

ROWS = 10_000
RUNS = 5
BEGIN, END = "<!-- scale -->\n", "<!-- /scale -->"
PAGE = ROOT / "docs/scale.md"


class Cost(NamedTuple):
    """One finished process: wall-clock and processor seconds, of its own processes too."""

    seconds: float
    cpu: float
    output: bytes


def run(cache: Path, *arguments: str, folder: Path = PUBLIC) -> Cost:
    """Run a process of geneb-ci with a cache folder of its own and return what it cost."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("GITHUB_ACTIONS", None)
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "geneb_ci", "check", *arguments],
            stdout=output,
            cwd=folder,
            env=environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        output.seek(0)
        if process.returncode not in {0, 11}:
            sys.exit(f"bench: geneb-ci check {arguments} gave exit code {process.returncode}")
        return Cost(seconds, usage.ru_utime + usage.ru_stime, output.read())


def repeated(count: int, one: Callable[[int], Cost]) -> Cost:
    """Return the median of each figure over several runs."""
    costs = [one(number) for number in range(count)]
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        costs[-1].output,
    )


def changed(path: Path) -> None:
    """Change one score of a row."""
    document = json.loads(path.read_bytes())
    cell = next(iter(document["results"]["full"].values()))
    cell["MCC"] = round(cell["MCC"] - 0.01, 6)
    path.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")


def small(scratch: Path, runs: int) -> list[tuple[str, Cost]]:
    """Measure one public file and all of them."""
    one = str(SUBMISSIONS / "space.json")
    run(scratch / "first", one)  # writes byte code
    board = str(SUBMISSIONS)
    kept = scratch / "board"
    found = [
        ("one file, nothing kept", repeated(runs, lambda n: run(scratch / f"one-{n}", one))),
        ("41 files, nothing kept", repeated(runs, lambda n: run(scratch / f"all-{n}", board))),
    ]
    run(kept, board)
    found += [
        ("one file among rows that were checked", repeated(runs, lambda _: run(kept, one))),
        ("41 files, unchanged", repeated(runs, lambda _: run(kept, board))),
    ]
    return found


def large(scratch: Path, count: int) -> list[tuple[str, Cost]]:
    """Measure generated rows, each case once; the bytes of both ways must be equal."""
    folder, kept = scratch / "rows", scratch / "kept"
    write_rows(folder, count)
    found = [(f"{count:,} files, nothing kept", run(kept, str(folder)))]
    found.append((f"{count:,} files, unchanged", run(kept, str(folder))))
    ranked = sorted(folder.glob("*.json"), key=_lot)
    for what, path in (
        ("one changed", ranked[-1]),
        (f"one changed of the {ROWS_MAX} that others are compared with", ranked[0]),
    ):
        changed(path)
        found.append((f"{count:,} files, {what}", run(kept, str(folder))))
    fresh = run(scratch / "none", str(folder), "--no-cache")
    if found[-1][1].output != fresh.output:
        sys.exit("bench: the output after a change is not that of a run that keeps nothing")
    return found


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = small(Path(scratch), options.runs)
        found += large(Path(scratch), options.rows) if options.rows else []
    lines = ["| `geneb-ci check` of | wall clock | processor |", "|---|---:|---:|"]
    lines += [f"| {what} | {cost.seconds:.2f} s | {cost.cpu:.2f} s |" for what, cost in found]
    where = (
        f"Python {platform.python_version()}, {os.cpu_count()} cores; up to 41 files the median of "
        f"{options.runs} runs, else one run. Output after a change equals that of `--no-cache`."
    )
    table = "\n".join(lines) + f"\n\n{where}\n"
    print(table)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

"""What check, build, advice and the probe cost, side by side: cold, after a change, many rows.

`--write` puts the table into docs/scale.md.
"""

import argparse
import hashlib
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

from benchmarks.many_rows import alike, write_rows
from geneb_ci.submission.peers import ROWS_MAX, lot
from tests.paths import PUBLIC, REAL_TASKS, ROOT, SUBMISSIONS

ROWS = 10_000
BUILD_ROWS = (1_000, 10_000)
"""The files of 10,000 rows take 1.6 GB, their three builds ten minutes."""
RUNS = 5
BEGIN, END = "<!-- scale -->\n", "<!-- /scale -->"
PAGE = ROOT / "docs/scale.md"


class Cost(NamedTuple):
    """One finished process: wall-clock and processor seconds, of its own processes too."""

    seconds: float
    cpu: float
    output: bytes
    """Of `build`, digests of all files instead."""


class Measured(NamedTuple):
    """A line of the table."""

    what: str
    cost: Cost
    limit: float | None = None
    """Seconds on two idle processors."""


LIMITED = 10_000
"""Rows for which there are limits."""


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
    """Change one cell of a row to another sound measurement, from a row of the same public row."""
    document, other = (json.loads(one.read_bytes()) for one in (path, alike(path)))
    cells, others = (one["results"]["full"] for one in (document, other))
    task = next(task for task, cell in cells.items() if cell != others[task])
    cells[task] = others[task]
    path.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")


def built(cache: Path, rows: Path, out: Path, *arguments: str) -> Cost:
    """Build the board of a folder; the output is a digest of each file that was written."""
    cost = run(cache, "build", str(rows), "--out", str(out), *arguments)
    digests = [
        f"{path.relative_to(out)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(out.rglob("*"))
        if path.is_file()
    ]
    return cost._replace(output="\n".join(digests).encode())


def small(scratch: Path, runs: int) -> list[Measured]:
    """Measure one public file and all of them."""
    one, board, kept = str(SUBMISSIONS / "space.json"), SUBMISSIONS, scratch / "board"
    need = ("recommend", str(board), "--category", "Splice Sites")
    run(scratch / "first", "check", one)  # writes byte code
    built(kept, board, scratch / "out")
    run(kept, "check", str(board))
    run(kept, *need)

    def checked(name: str, *paths: str) -> Cost:
        return repeated(runs, lambda n: run(scratch / f"{name}-{n}", "check", *paths))

    cold = repeated(runs, lambda n: built(scratch / f"b-{n}", board, scratch / "cold"))
    warm = repeated(runs, lambda _: built(kept, board, scratch / "out"))
    _require_equal(cold, warm)
    return [
        Measured("`check` one file, nothing kept", checked("one", one), 0.20),
        Measured("`check` 41 files, nothing kept", checked("all", str(board)), 0.6),
        Measured(
            "`check` one file among rows that were checked",
            repeated(runs, lambda _: run(kept, "check", one)),
            0.20,
        ),
        Measured(
            "`check` 41 files, unchanged",
            repeated(runs, lambda _: run(kept, "check", str(board))),
            0.3,
        ),
        Measured("`build` 41 rows, nothing kept", cold, 2.0),
        Measured("`build` 41 rows, checked before", warm, 2.0),
        Measured(
            "`recommend` from 41 rows, checked before",
            repeated(runs, lambda _: run(kept, *need)),
            0.4,
        ),
        Measured(
            "`recommend` from a built board",
            repeated(runs, lambda _: run(kept, need[0], str(scratch / "out"), *need[2:])),
            0.4,
        ),
    ]


def large(scratch: Path, count: int) -> list[Measured]:
    """Measure checks of generated rows, each case once; the bytes of both ways must be equal."""
    folder, kept = scratch / "rows", scratch / "kept"
    write_rows(folder, count)
    rows = str(folder)
    cold, warm = (60.0, 2.0) if count == LIMITED else (None, None)
    found = [Measured(f"`check` {count:,} files, nothing kept", run(kept, "check", rows), cold)]
    found.append(Measured(f"`check` {count:,} files, unchanged", run(kept, "check", rows), warm))
    ranked = sorted(folder.glob("*.json"), key=lot)
    for what, path, limit in (
        ("one changed", ranked[-1], warm),
        (f"one changed of the {ROWS_MAX} that others are compared with", ranked[0], None),
    ):
        changed(path)
        cost = run(kept, "check", rows)
        found.append(Measured(f"`check` {count:,} files, {what}", cost, limit))
    _require_equal(found[-1].cost, run(scratch / "none", "check", rows, "--no-cache"))
    return found


def boards(scratch: Path, count: int) -> list[Measured]:
    """Measure builds of generated rows, each once; the bytes of both ways must be equal."""
    folder, kept, out = scratch / "rows", scratch / "kept", scratch / "board"
    write_rows(folder, count)
    cold, warm = (60.0, 5.0) if count == LIMITED else (None, None)
    first = built(kept, folder, out)
    changed(max(folder.glob("*.json"), key=lot))
    again = built(kept, folder, out)
    _require_equal(again, built(scratch / "none", folder, scratch / "cold"))
    return [
        Measured(f"`build` {count:,} rows, nothing kept", first, cold),
        Measured(f"`build` {count:,} rows, one changed", again, warm),
    ]


def _require_equal(one: Cost, other: Cost) -> None:
    if one.output != other.output:
        sys.exit("bench: the output after a change is not that of a run that keeps nothing")


def probes() -> list[Measured]:
    """Measure the probe of real tasks beside the plain loop, where they are at hand."""
    if not REAL_TASKS.is_dir():
        return []
    done = subprocess.run(
        [sys.executable, "-c", SHARE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    plain, _, both = json.loads(done.stdout.splitlines()[-1])
    return [
        Measured("plain loop, six real tasks, one process", Cost(plain, plain, b"")),
        Measured("harness with canonical scores, the same", Cost(both, both, b""), 0.75 * plain),
    ]


SHARE = (
    "import json; from benchmarks.bench_harness import canonical_share; "
    "print(json.dumps(canonical_share()))"
)


def line(one: Measured) -> str:
    """Return a row of the table: wall clock, processor, and both beside the limit."""
    cells = [one.what, f"{one.cost.seconds:.2f} s", f"{one.cost.cpu:.2f} s"]
    cells += ["", ""] if one.limit is None else [f"{one.limit:.2g} s", _share(one)]
    return f"| {' | '.join(cells)} |"


def _share(one: Measured) -> str:
    return f"{one.cost.seconds / (one.limit or 1):.2f}"


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rows", type=int, default=ROWS, help="of `check`; 0 for none")
    parser.add_argument("--build-rows", type=int, nargs="*", default=BUILD_ROWS, help="of `build`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = small(Path(scratch), options.runs)
        found += probes()
        found += large(Path(scratch), options.rows) if options.rows else []
    for count in options.build_rows:
        with tempfile.TemporaryDirectory() as scratch:
            found += boards(Path(scratch), count)
    lines = ["| what | wall clock | processor | limit | of it |", "|---|---:|---:|---:|---:|"]
    lines += map(line, found)
    where = (
        f"Python {platform.python_version()}, {os.cpu_count()} cores; up to 41 files the median of "
        f"{options.runs} runs, else one run. Every output after a change equals that of a run that "
        "keeps nothing, byte for byte."
    )
    table = "\n".join(lines) + f"\n\n{where}\n"
    print(table)
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

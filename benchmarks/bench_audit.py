"""Measure the steps of an audit; `--write` puts the table in docs/maintainer/audits.md."""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.many_records import RECORDS, many_records
from geneb_ci.audit.sampling.beacon import verify_round
from tests.audit.examples import ROUNDS
from tests.audit.recorded import SECOND
from tests.paths import ROOT
from tools.demo_audit import COMMITTED_AT, HONEST, HONEST_K, MiniRepository

RUNS = 3
PAGE = ROOT / "docs/maintainer/audits.md"
BEGIN, END = "<!-- bench cost -->\n", "<!-- /bench cost -->"


def seconds(action: Callable[[], object], runs: int) -> float:
    """Return the median seconds of some runs of an action."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table(repository: MiniRepository, runs: int) -> list[str]:
    """Return a line with the time of each step of an audit of five tasks with 4-mers."""
    repository.harness(HONEST, HONEST_K)

    def geneb_ci(*arguments: str) -> Callable[[], object]:
        return lambda: repository.run("geneb_ci", *arguments)

    beacon = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
    steps = {
        "`audit commit`": ("audit", "commit", f"submissions/{HONEST}.json", "--output", "c.json"),
        "`audit plan`": ("audit", "plan", "c.json", *beacon, "--output", "p.json"),
        "`audit run`, five tasks": ("audit", "run", "p.json", "--unsigned"),
    }
    lines = ["| step | wall clock | limit |", "|---|---:|---:|"]
    for name, arguments in steps.items():
        limit = "20 s" if "run" in name else ""
        lines.append(f"| {name} | {seconds(geneb_ci(*arguments), runs):.1f} s | {limit} |")
    repository.run("geneb_ci", "audit", "run", "p.json", "--key", "key.pem")
    lines.append(
        f"| `audit verify`, one record | {seconds(geneb_ci('audit', 'verify'), runs):.1f} s | |"
    )
    return [*lines, *verification_lines(runs)]


def verification_lines(runs: int) -> list[str]:
    """Return lines with the time of verifying many records of GENEB, and one beacon value."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
        many_records(Path(folder))
        command = [sys.executable, "-m", "geneb_ci", "audit", "verify"]
        all_seconds = seconds(
            lambda: subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True), runs
        )
    round_seconds = seconds(lambda: verify_round.__wrapped__(SECOND, ROUNDS[SECOND]), 10 * runs)
    return [
        f"| `audit verify`, {RECORDS} records of GENEB | {all_seconds:.1f} s | 5 s |",
        f"| one round of the beacon, which is verified once | {1000 * round_seconds:.1f} ms | |",
    ]


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
        repository = MiniRepository(Path(folder))
        repository.environment |= {"TMPDIR": folder}
        lines = table(repository, options.runs)
    text = "\n".join(lines) + (
        f"\n\nMedian of {options.runs} runs, cold processes, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, 4-mers on GENEB-mini.\n"
    )
    print(text)
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

"""Speed of `check` and `build` as whole cold processes; `--write` keeps it in docs/scale.md."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from geneb_ci.statistics.binary import Classes, scores
from tests.paths import PUBLIC, ROOT, SUBMISSIONS

RUNS = 11
CLASSES = Classes(730, 767)  # of the task whose cell is made up
MANY = (1_000, 10_000)
# Each of these files is a near copy of all others: comparing them takes half a minute a thousand.
ALL_RULES_MAX = 1_000
# What costs next to nothing but its start.
PLAIN = ("--ignore", "arithmetic", "--ignore", "plausibility")
BEGIN, END = "<!-- bench -->\n", "<!-- /bench -->"


class Cost(NamedTuple):
    """One finished process: wall-clock and processor seconds, peak resident memory in MB."""

    seconds: float
    cpu: float
    megabytes: float


# Prints what a command costs once everything it imports is there.
AFTER_IMPORTS = """
import sys, time
import geneb_ci.cli.board, geneb_ci.cli.check, geneb_ci.render.text
from geneb_ci.cli.main import main
start = time.perf_counter()
code = main(sys.argv[1:])
print(time.perf_counter() - start, file=sys.stderr)
sys.exit(code)
"""


def after_imports(*arguments: str) -> float:
    """Run a command in a process that has imported all it needs, and return wall-clock seconds."""
    command = [sys.executable, "-c", AFTER_IMPORTS, *arguments]
    done = subprocess.run(command, cwd=PUBLIC, capture_output=True, text=True, check=True)
    return float(done.stderr)


def run(*arguments: str) -> Cost:
    """Run a cold process of geneb-ci and give what it cost."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "geneb_ci", *arguments], stdout=subprocess.DEVNULL, cwd=PUBLIC
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        sys.exit(f"bench: geneb-ci {' '.join(arguments)} gave exit code {process.returncode}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))


def many_files(folder: Path, count: int) -> None:
    """Write distinct sound submissions: a real one with one cell of made-up predictions."""
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_text(encoding="utf-8"))
    folder.mkdir()
    first = document["results"]["full"]["InstaDeepAI_nucleotide_transformer_downstream_tasks_H3"]
    for index in range(count):
        document["model_id"] = f"model-{index:05d}"
        document["meta"]["display"] = f"Model {index:05d}"
        rho = index % 61 - 30
        right = 1000 + 2 * (index // 61) + rho % 2
        first.update(zip(("MCC", "Acc", "F1"), scores(CLASSES, right, rho), strict=True))
        (folder / f"model-{index:05d}.json").write_text(
            json.dumps(document, separators=(",", ":")), encoding="utf-8"
        )


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    rows: list[tuple[str, Cost, str]] = []
    one = str(SUBMISSIONS / "space.json")
    run("check", one)  # warms the file cache and writes byte code
    with tempfile.TemporaryDirectory() as scratch:
        cases = {
            "`check` one file, structure to cards": (("check", one, *PLAIN), "0.35 s"),
            "`check` one file": (("check", one), "0.35 s and 0.15 s of arithmetic"),
            "`check` the 41, structure to cards": (("check", str(SUBMISSIONS), *PLAIN), "1.0 s"),
            "`check` the 41 files": (("check", str(SUBMISSIONS)), "1.0 s and 1 s of arithmetic"),
            "`check --engine jsonschema` the 41": (
                ("check", "--engine", "jsonschema", str(SUBMISSIONS)),
                "",
            ),
            "`check` in the repository": (("check",), ""),
            "`build`": (("build", "--out", f"{scratch}/board"), "checks are most of it"),
            "`build --no-diagnostics`": (
                ("build", "--no-diagnostics", "--out", f"{scratch}/board"),
                "",
            ),
            '`recommend --category "Splice Sites"`': (
                ("recommend", "--category", "Splice Sites"),
                "checks, then decisions of its own need",
            ),
            "`label`": (("label",), ""),
            "`rules`": (("rules",), ""),
        }
        # In turn, so that a slow spell of the machine falls on all alike.
        costs: dict[str, list[Cost]] = {name: [] for name in cases}
        for _ in range(options.runs):
            for name, (arguments, _limit) in cases.items():
                costs[name].append(run(*arguments))
        rows += [(name, median(costs[name]), limit) for name, (_arguments, limit) in cases.items()]
        plain = ("build", "--no-diagnostics", "--out", f"{scratch}/board")
        board = [after_imports(*plain) for _ in range(options.runs)]
        held = [after_imports("check", str(SUBMISSIONS)) for _ in range(options.runs)]
        total, checks = statistics.median(board), statistics.median(held)
        built = f"{total:.2f} s after imports, checks {checks:.2f} s of it; limit 1 s for the rest"
        rows = [
            (name, cost, built if "no-diagnostics" in name else limit) for name, cost, limit in rows
        ]
        for count in MANY:
            many_files(Path(scratch) / str(count), count)
            for name, rules in (("structure to cards", PLAIN), ("all rules", ())):
                if rules or count <= ALL_RULES_MAX:
                    cost = run("check", f"{scratch}/{count}", *rules)
                    rate = f"{cost.seconds / count * 1000:.1f} ms a file"
                    rows.append((f"`check` {count:,} files, {name}", cost, rate))
    lines = [
        "| what (cold process) | wall clock | processor | peak memory | limit or rate |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {cost.seconds:.2f} s | {cost.cpu:.2f} s | {cost.megabytes:.0f} MB | {note} |"
        for name, cost, note in rows
    ]
    where = (
        f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {options.runs} runs"
    )
    table = "\n".join(lines) + f"\n\n{where}.\n"
    print(table)
    if options.write:
        page = ROOT / "docs/scale.md"
        text = page.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        page.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

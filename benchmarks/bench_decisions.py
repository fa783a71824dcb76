"""How often decisions hold, and what they cost; `--write` puts both into docs/uncertainty.md.

python -m benchmarks.bench_decisions --write
"""

import argparse
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.simulate_decisions import Held, held, world_of
from geneb_ci.board.board import analysed
from geneb_ci.board.columns import Entry
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.submission.models import SubmissionV10
from tests.board.board import entries, entry
from tests.paths import ROOT

SETS = 300
SEED = 20_261_122
MANY = 1000
CASES = (
    ("full, public recalls", False, False),
    ("full, all 41 models equal", True, False),
    ("10shot, public recalls, five fits with r = 0.5", False, True),
    ("10shot, all equal, five fits with r = 0.5", True, True),
)
"""Name, whether all models have one recall, whether scores are means of five fits."""
PAGE = ROOT / "docs/uncertainty.md"


def coverage(sets: int) -> str:
    """Return the table of shares."""
    rows = [one.submission for one in entries()]
    lines = [
        "| truth | no wrong pair | best could be best | loss bound | within margin | interval |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, equal, few in CASES:
        regime, largest = ("10shot", 400) if few else ("full", 1000)
        world = world_of(rows, shipped_benchmark(), regime=regime, equal=equal, sizes_max=largest)
        found: Held = held(world, sets, SEED, few=few)
        shares = [
            f"{100 * part.mean():.1f} / {100 * part.min():.1f}"
            for part in (found.pairs, found.best, found.bounds, found.within)
        ]
        lines.append(f"| {name} | {' | '.join(shares)} | {100 * found.interval:.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + (
        f"\n\nPer cent of {sets} test sets, mean over scores / worst score; sizes at most 1,000 "
        f"(few-shot 400), two classes, seed {SEED}.\n"
    )


def crowd(count: int) -> list[Entry]:
    """Return so many rows: the public ones many times over, under other names."""
    found = []
    own = entries()
    for k in range(count):
        row = own[k % len(own)].submission
        value = row.model_dump(exclude_none=True) | {"model_id": f"{row.model_id}-{k}"}
        found.append(entry(SubmissionV10.model_validate(value)))
    return found


def _resident() -> float:
    """Return the most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed() -> str:
    """Return the table of seconds and memory, from rows to both files of a board."""
    lines = [
        "| models | wall clock | processor | memory beside the rows |",
        "|---:|---:|---:|---:|",
    ]
    for rows in (list(entries()), crowd(MANY)):
        before = _resident()
        wall, cpu = time.perf_counter(), time.process_time()
        analysed(rows, shipped_benchmark())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory = max(_resident(), before) - before
        lines.append(f"| {len(rows):,} | {wall:.1f} s | {cpu:.1f} s | {memory:.0f} MB |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + (
        f"\n\nFrom rows to diagnostics.json and recommendations.json as values, one process, "
        f"{os.cpu_count()} cores at a load average of {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, numpy {np.__version__}.\n"
    )


def main() -> None:
    """Measure, print, and with --write keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="put the tables into the docs")
    parser.add_argument("--sets", type=int, default=SETS)
    options = parser.parse_args()
    tables = {"speed": speed(), "bench": coverage(options.sets)}
    if options.write:
        for name, table in tables.items():
            _write(PAGE, name, table)


def _write(page: Path, name: str, table: str) -> None:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(before + begin + table + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

"""Compare the cost of an audit with that of an earlier commit.

`--write` puts the table in docs/research/receipt-audits.md.

    git worktree add BEFORE 4ac96295
    python -m benchmarks.bench_before BEFORE --write

The earlier commit needs no installation of its own if its packages are those of today. Runs of both
alternate.
"""

import argparse
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench_receipts import GUE, TASKS
from benchmarks.measured import CommandCost, command_cost
from geneb_ci.audit.record.statement import record_files
from tests.paths import REAL_TASKS, ROOT
from tools import demo_audit
from tools.demo_audit import COMMITTED_AT, MiniRepository

PAGE = ROOT / "docs/research/receipt-audits.md"
BEGIN, END = "<!-- bench before -->\n", "<!-- /bench before -->"
RUNS = 3
SAMPLE_OPTIONS = {True: ("--rows", "standard"), False: ("--sample", "embeddings")}
"""Options for an audit by receipt: True for the earlier commit, False for today's."""
PRACTICE_TASKS = 13
"""Tasks of GENEB-mini, all of which the policy draws."""


class AuditCase(NamedTuple):
    """One audit that both commits make."""

    name: str
    k: int
    tasks: Sequence[str]
    """Names of real tasks; empty for GENEB-mini."""
    is_receipt: bool = False


AUDIT_CASES = (
    AuditCase("13 tasks of GENEB-mini, 4-mers", 4, ()),
    AuditCase("2 real tasks, 4-mers", 4, ("mouse_0", "prom_core_tata")),
    AuditCase("1 real task, 6-mers", 6, ("mouse_0",)),
    AuditCase("receipt, 6 real tasks, 4-mers", 4, TASKS, is_receipt=True),
)


class Checkout:
    """A repository in which one of both commits runs and audits the row of a case."""

    def __init__(self, folder: Path, code: Path, case: AuditCase) -> None:
        """Write a repository, install the checkout's code beside it, and run the row."""
        folder.mkdir(parents=True)
        demo_audit.ROOT = code
        self.repository = MiniRepository(folder, len(case.tasks) or PRACTICE_TASKS)
        self.is_before, self.case = code != ROOT, case
        data = self._data() if case.tasks else ()
        receipt = ("--receipt", "receipt") if case.is_receipt else ()
        self.data = data[:2]
        self.run_cost = self._measured(
            *("reference_harness", "run", *data, "--extractor", "kmer", "--option", f"k={case.k}"),
            *("--model-id", "row", "--quiet", "--output", "record.json", *receipt),
            *("--submission", "submissions/row.json", "--submitted-by", "a bench"),
        )

    def _data(self) -> tuple[str, ...]:
        root = self.repository.root
        (root / "data").mkdir()
        for name in self.case.tasks:
            shutil.copyfile(REAL_TASKS / f"{GUE}{name}.csv.gz", root / f"data/{GUE}{name}.csv.gz")
        self._measured("reference_harness", "data", "define", "data")
        shutil.copy(root / "data/benchmark.json", root / "schemas/benchmark.json")
        return "--data", "data", "--benchmark", "data/benchmark.json"

    def _measured(self, *arguments: str) -> CommandCost:
        return command_cost(
            *arguments, folder=self.repository.root, environment=self.repository.environment
        )

    def audit(self) -> CommandCost:
        """Audit the row once more, from its commitment to the record."""
        root = self.repository.root
        for name in ("leaderboard/audits", "work", "cache"):
            shutil.rmtree(root / name, ignore_errors=True)
        sample = (*SAMPLE_OPTIONS[self.is_before], "--receipt", "receipt")
        cost = self._measured(
            *("geneb_ci", "audit", "submissions/row.json", *self.data),
            *(sample if self.case.is_receipt else ()),
            *("--key", "key.pem", "--work", "work", "--level", "2"),
            *("--committed-at", COMMITTED_AT, "--beacon-file", "round.json"),
        )
        assert len([*record_files(root / "leaderboard/audits")]) == 1
        return cost

    def verify(self) -> CommandCost:
        """Verify the record."""
        return self._measured("geneb_ci", "audit", "verify")


def lines_of(case: AuditCase, code: Mapping[str, Path], folder: Path, runs: int) -> list[str]:
    """Return the lines of a case: for the run, the audit and the verification of the record."""
    checkouts = {name: Checkout(folder / name, path, case) for name, path in code.items()}
    costs: dict[str, dict[str, list[CommandCost]]] = {
        "run": {name: [checkout.run_cost] for name, checkout in checkouts.items()},
        "audit": {name: [] for name in checkouts},
        "verify": {name: [] for name in checkouts},
    }
    for _ in range(runs):
        for name, checkout in checkouts.items():
            costs["audit"][name].append(checkout.audit())
            costs["verify"][name].append(checkout.verify())
    return [
        f"| {case.name} | {step} | " + " | ".join(cells(*measurements.values())) + " |"
        for step, measurements in costs.items()
    ]


def cells(before: Sequence[CommandCost], now: Sequence[CommandCost]) -> list[str]:
    """Return medians of both: CPU seconds, their ratio, and peak memory."""
    cpu = [statistics.median(run.processor for run in runs) for runs in (before, now)]
    peak = [statistics.median(run.mib for run in runs) for runs in (before, now)]
    return [
        *(f"{seconds:.1f} s" for seconds in cpu),
        f"{cpu[1] / cpu[0]:.2f}",
        *(f"{mib:.0f} MiB" for mib in peak),
    ]


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path, help="worktree of the earlier commit")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", action="append", help="part of the name of a case; repeatable")
    options = parser.parse_args()
    lines = [
        "| audit | step | CPU before | CPU now | ratio | memory before | memory now |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    print("\n".join(lines), flush=True)
    for case in AUDIT_CASES:
        if options.only and not any(part in case.name for part in options.only):
            continue
        with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
            checkouts = {"before": options.before.resolve(), "now": ROOT}
            case_lines = lines_of(case, checkouts, Path(folder), options.runs)
        lines += case_lines
        print("\n".join(case_lines), flush=True)
    text = "\n".join(lines) + (
        f"\n\nMedians of {options.runs} audits, in turn, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores. Memory: of all processes together.\n"
    )
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

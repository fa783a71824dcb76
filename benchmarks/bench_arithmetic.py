"""Measure the time of the arithmetic rules, in a process with all imports and in a new one.

python -m benchmarks.bench_arithmetic
"""

import subprocess
import sys
import time

from geneb_ci.check.registry import RULES
from geneb_ci.check.rule import Context
from geneb_ci.check.runner import Checker
from geneb_ci.statistics.mean_triples import hull_of
from tests.paths import ROOT, SUBMISSIONS

ROUNDS = 7  # repetitions, of which the fastest counts: other processes only slow the work
FILE_SECONDS_MAX, ALL_SECONDS_MAX = 0.15, 1.0  # seconds
ARITHMETIC_RULES = [rule for rule in RULES if rule.family == "arithmetic"]


def seconds(contexts: list[Context]) -> float:
    """Return the seconds that the rules take for files that were read before, without a cache."""
    hull_of.cache_clear()
    for context in contexts:
        for name in ("claims", "seed_claims"):
            context.__dict__.pop(name, None)
    start = time.perf_counter()
    for context in contexts:
        for rule in ARITHMETIC_RULES:
            assert not list(rule.check(context)), rule.id
    return time.perf_counter() - start


def cold_seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "geneb_ci", *arguments],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def main() -> int:
    """Measure and print; return 1 above the limits."""
    files = sorted(SUBMISSIONS.glob("*.json"))
    checker = Checker(())
    contexts = [checker.context(path) for path in files]
    file_seconds = min(seconds(contexts[:1]) for _ in range(ROUNDS))
    all_seconds = min(seconds(contexts) for _ in range(ROUNDS))
    print(f"arithmetic on 1 file: {file_seconds:.3f} s (at most {FILE_SECONDS_MAX})")
    print(f"arithmetic on {len(files)} files: {all_seconds:.3f} s (at most {ALL_SECONDS_MAX})")
    for name, paths in (("1 file", [str(files[0])]), (f"{len(files)} files", [str(SUBMISSIONS)])):
        with_arithmetic = min(cold_seconds("check", *paths) for _ in range(ROUNDS))
        without = min(
            cold_seconds("check", "--ignore", "arithmetic", *paths) for _ in range(ROUNDS)
        )
        print(
            f"cold `check` of {name}: {with_arithmetic:.3f} s, without arithmetic {without:.3f} s"
        )
    return int(file_seconds > FILE_SECONDS_MAX or all_seconds > ALL_SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main())

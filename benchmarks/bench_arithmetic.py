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

ROUNDS = 7  # the least of them counts: what the work takes when nothing else runs
FILE_MAX, ALL_MAX = 0.15, 1.0  # seconds
FAMILY = [rule for rule in RULES if rule.family == "arithmetic"]


def seconds(contexts: list[Context]) -> float:
    """Return the seconds that the rules take for files that were read before, without a cache."""
    hull_of.cache_clear()
    for context in contexts:
        for name in ("claims", "seed_claims"):
            context.__dict__.pop(name, None)
    start = time.perf_counter()
    for context in contexts:
        for rule in FAMILY:
            assert not list(rule.check(context)), rule.id
    return time.perf_counter() - start


def cold(*arguments: str) -> float:
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
    one = min(seconds(contexts[:1]) for _ in range(ROUNDS))
    everything = min(seconds(contexts) for _ in range(ROUNDS))
    print(f"arithmetic on 1 file: {one:.3f} s (at most {FILE_MAX})")
    print(f"arithmetic on {len(files)} files: {everything:.3f} s (at most {ALL_MAX})")
    for name, paths in (("1 file", [str(files[0])]), (f"{len(files)} files", [str(SUBMISSIONS)])):
        with_it = min(cold("check", *paths) for _ in range(ROUNDS))
        without = min(cold("check", "--ignore", "arithmetic", *paths) for _ in range(ROUNDS))
        print(f"cold `check` of {name}: {with_it:.3f} s, without arithmetic {without:.3f} s")
    return int(one > FILE_MAX or everything > ALL_MAX)


if __name__ == "__main__":
    sys.exit(main())

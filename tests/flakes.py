"""The property tests again and again, each time with another seed: `make flakes SEEDS=50`.

    python -m tests.flakes COUNT [FIRST] [what pytest takes]

A failure is fixed at its cause and its example pinned with `@example`; exits 1 when there is one.
"""

import os
import re
import subprocess
import sys

from tests.house.tracked import python_files
from tests.paths import ROOT

FAILED = re.compile(r"^(?:FAILED|ERROR) (.*)$", re.MULTILINE)
NOTHING_COLLECTED = 5


def property_files() -> list[str]:
    """Return the test files that name hypothesis: collecting all others takes a minute a seed."""
    return [
        path.as_posix()
        for path in python_files("tests")
        if path.name.startswith("test_") and b"hypothesis" in (ROOT / path).read_bytes()
    ]


def failures(seed: int, arguments: list[str]) -> list[str]:
    """Run every property test with a seed; return what failed.

    Raises RuntimeError when pytest could not run them.
    """
    # With CI set, the examples would be the same each time (tests/conftest.py).
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    options = ("-q", "-m", "hypothesis", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(arguments or property_files())],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    matches = FAILED.findall(done.stdout)
    if done.returncode and (not matches or done.returncode == NOTHING_COLLECTED):
        raise RuntimeError(f"seed {seed}: {done.stdout[-4000:]}{done.stderr}")
    return matches


def main(count: int, first: int, arguments: list[str]) -> int:
    """Say what failed with each seed; return the exit code."""
    flaky: dict[str, list[int]] = {}
    for seed in range(first, first + count):
        failure_list = failures(seed, arguments)
        sys.stdout.write(
            "\n  ".join([f"seed {seed}: {len(failure_list)} failed", *failure_list]) + "\n"
        )
        sys.stdout.flush()
        for name in failure_list:
            flaky.setdefault(name, []).append(seed)
    for name, seeds in flaky.items():
        sys.stdout.write(
            f"{name}\n  with --hypothesis-seed={seeds[0]}, and {len(seeds) - 1} more\n"
        )
    sys.stdout.write(f"{count} seeds: {len(flaky)} flaky tests\n")
    return 1 if flaky else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3] if word.isdigit()]
    start = numbers[1] if len(numbers) > 1 else 1
    sys.exit(main(numbers[0], start, sys.argv[1 + len(numbers) :]))

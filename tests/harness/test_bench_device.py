"""The bench of a device: the command runs without a GPU, and what it calls busy."""

import subprocess
import sys

import pytest

from benchmarks.bench_device import MODEL_KINDS, TRIAL_CALLS, covered_length, ways
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("spans", "total"),
    [([], 0), ([(1, 3), (5, 6)], 3), ([(1, 4), (2, 3), (3, 6)], 5), ([(1, 2), (1, 2)], 1)],
)
def test_what_runs_at_the_same_time_is_busy_once(spans, total):
    assert covered_length(spans) == total


@pytest.mark.nightly  # a minute: five kinds of model, each in several ways
def test_the_command_runs_end_to_end_on_a_cpu():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_device", "--device", "cpu", "--rows", "6"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for kind in MODEL_KINDS:
        lines = [line for line in done.stdout.splitlines() if f"| {kind.what}: " in line]
        assert len(lines) == len(ways(kind, TRIAL_CALLS))
        assert all(line.count("|") == 7 for line in lines)
    assert "TF32, " in done.stdout
    assert done.stdout.rstrip().endswith("A trial without a GPU: the figures say nothing.")

"""What happens on real machines, in whole runs: each failure costs its task, not the run."""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from reference_harness import mini
from reference_harness.data.task_data import sequence_digests
from reference_harness.embedding.cache import Cache
from reference_harness.probe import logistic
from reference_harness.run.task_job import ProbeFailure, ProbeTaskJob
from tests.forked import Started
from tests.harness.support import Harness, counts_of_calls

MINE = """
import time
from pathlib import Path
import numpy as np
from .base import BaseEmbeddingExtractor

class Mine(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def count_tokens(self, sequences):
        return [len(s) for s in sequences]

    def extract_embeddings(self, sequences, batch_size=8):
        if self._calls() >= 60:  # those of the first task, whose scores a worker then computes
            time.sleep(float(self._read("slow") or 0))
        if any(s in self._read("bad").split() for s in sequences):
            raise ValueError("a letter without a token")
        if len(sequences) > int(self._read("memory") or 99999) and self._calls() >= 3:
            raise MemoryError("Unable to allocate 9 GiB")
        with Path("asked").open("a") as stream:
            stream.write(" ".join(sequences) + "\\n")
        return np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], "float32")

    def _read(self, name):
        return Path(name).read_text() if Path(name).exists() else ""

    def _calls(self):
        return len(self._read("asked").splitlines())
"""
TASKS = ("mini_splice", "mini_tf", "mini_phage")
RUN = (
    "run", "--extractor", "mine.py:Mine", "--output", "record.json",
    "--regimes", "full,1shot",
)  # fmt: skip
THREE = (*RUN, "--tasks", ",".join(TASKS))
ENDS_SECONDS = 90  # a run that was disturbed ends by then, or hangs


@pytest.fixture
def mine(harness: Harness) -> Harness:
    (harness.folder / "mine.py").write_text(MINE)
    return harness


def record_of(harness: Harness, name: str = "record.json") -> dict[str, Any]:
    record: dict[str, Any] = json.loads((harness.folder / name).read_text())
    return record


def digests(record: dict[str, Any]) -> dict[str, list[str]]:
    return {
        task_id: [regime["predictions_sha256"] for regime in task["regimes"].values()]
        for task_id, task in record["tasks"].items()
    }


def embedded_counts(harness: Harness) -> Counter[str]:
    """Count the sequences that were embedded for a task."""
    return counts_of_calls(harness.folder / "asked", TASKS)


def test_a_task_that_fails_does_not_end_the_others(mine: Harness) -> None:
    data = mini.load("mini_splice")
    bad = data.test.sequences[5]
    (mine.folder / "bad").write_text(bad)
    done = mine(*THREE, "--token-budget", 8192, "--submission", "submission.json")
    lines = done.stderr.splitlines()

    # 1. It is said as it happens, and at the end with what to do.
    assert done.returncode == 11, done.stderr
    assert [line for line in lines if line.startswith("mini_splice: failed: ")] == [lines[0]]
    assert "the extractor Mine failed: ValueError: a letter without a token" in lines[0]
    assert {line.partition(":")[0] for line in lines[1:3]} == {"mini_tf", "mini_phage"}
    assert lines[-3] == "error: 1 of 3 tasks failed:"
    assert lines[-2] == "  " + lines[0].replace(": failed:", ":")
    assert lines[-1] == (
        "no record and no submission is written; 2 finished tasks are kept in "
        "record.json.partial: repeat the command with --resume to run only the failed tasks"
    )
    assert not (mine.folder / "record.json").exists()
    assert not (mine.folder / "submission.json").exists()

    # 2. Resumed under another budget, only the one that failed runs.
    (mine.folder / "bad").unlink()
    before = embedded_counts(mine)
    done = mine(*THREE, "--token-budget", 512, "--resume")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("finished in the stopped run") == 2
    new = embedded_counts(mine) - before
    assert bad in new
    assert set(new) <= {*data.train.sequences, *data.test.sequences}
    assert max(embedded_counts(mine).values()) == 1
    record = record_of(mine)
    assert list(record["tasks"]) == list(TASKS)
    assert record["batching"] == {
        "mode": "budget", "token_budget": 512, "measured": False, "rows": 8
    }  # fmt: skip
    budgets = {task_id: task["token_budgets"] for task_id, task in record["tasks"].items()}
    assert budgets["mini_tf"] == budgets["mini_phage"] == [8192]
    assert budgets["mini_splice"] in ([512], [512, 8192])

    # 3. The cache serves a run of any budget, also of one that would be measured.
    done = mine(*RUN, "--tasks", "mini_tf", "--token-budget", "auto", "--output", "again.json")
    assert done.returncode == 0, done.stderr
    assert "memory allows batches" not in done.stderr
    assert record_of(mine, "again.json")["tasks"]["mini_tf"]["embedded_now"] == 0
    assert record_of(mine, "again.json")["tasks"]["mini_tf"]["token_budgets"] == [8192]


def test_a_measured_budget_is_in_the_record(mine: Harness) -> None:
    """Memory ends above five rows: the run begins with batches of four of the longest."""
    (mine.folder / "memory").write_text("5")
    (mine.folder / "asked").write_text("\n" * 2)
    longest = max(map(len, mini.load("mini_tf").train.sequences))
    measured = 4 * (1 << (longest - 1).bit_length())
    done = mine(*RUN, "--tasks", "mini_tf", "--token-budget", "auto", "--quiet")
    assert done.returncode == 0, done.stderr
    record = record_of(mine)
    assert record["batching"] == {
        "mode": "budget", "token_budget": measured, "measured": True, "rows": 8
    }  # fmt: skip


def test_fail_fast_ends_with_the_first_failure(mine: Harness) -> None:
    (mine.folder / "bad").write_text(mini.load("mini_splice").test.sequences[5])
    done = mine(*THREE, "--fail-fast")
    assert done.returncode == 3
    assert done.stderr.startswith("error: mini_splice: ")
    assert done.stderr.count("\n") == 1
    assert not (mine.folder / "record.json").exists()


UNMEASURED = (
    "import reference_harness.embedding.exact_batches as exact; exact.TRIED_TOKENS_MAX = 0\n"
    "from reference_harness.cli.main import main; main()"
)
"""A run that does not measure how many rows share a batch, which would not run out of memory."""


@pytest.mark.nightly  # in the gate, within a process: test_harness_back_off.py
def test_lack_of_memory_changes_no_prediction_under_exact_batching(
    mine: Harness, tmp_path: Path
) -> None:
    """Memory runs out at the third batch, for every batch of more than five rows from then on."""
    undisturbed = Harness(tmp_path / "other")
    undisturbed.folder.mkdir()
    (undisturbed.folder / "mine.py").write_text(MINE)
    exact = (*RUN, "--tasks", "mini_splice,mini_tf", "--batching", "exact")
    assert undisturbed(*exact).returncode == 0
    (mine.folder / "memory").write_text("5")
    done = mine(*exact, code=UNMEASURED)
    assert done.returncode == 0, done.stderr
    assert "memory ran out; batches have at most " in done.stderr
    assert digests(record_of(mine)) == digests(record_of(undisturbed))
    assert embedded_counts(mine) == embedded_counts(undisturbed)
    assert set(embedded_counts(mine).values()) == {1}
    calls = (mine.folder / "asked").read_text().splitlines()
    assert max(len(call.split()) for call in calls[3:]) <= 5 < len(calls[2].split())
    budgets = record_of(mine)["tasks"]["mini_tf"]["token_budgets"]
    assert len(budgets) == 1
    assert budgets[0] < record_of(mine)["batching"]["token_budget"]


@pytest.mark.parametrize(
    "at",
    [pytest.param(-1, id="matrix"), pytest.param(4, id="header", marks=pytest.mark.nightly)],
)
def test_a_damaged_cache_repairs_itself(mine: Harness, at: int) -> None:
    """The matrix is read by a worker, the header by the run itself."""
    assert mine(*THREE).returncode == 0
    shard = min((mine.folder / "cache").rglob("*.shard"))
    content = shard.read_bytes()
    flipped = bytearray(content)
    flipped[at] ^= 64
    shard.write_bytes(flipped)
    done = mine(*THREE, "--output", "again.json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"renamed to {shard.name}.damaged, and its embeddings are") == 1
    assert digests(record_of(mine, "again.json")) == digests(record_of(mine))
    now = {
        name: task["embedded_now"] for name, task in record_of(mine, "again.json")["tasks"].items()
    }
    assert sorted(now.values())[:2] == [0, 0]
    assert max(now.values()) > 0


def test_a_killed_worker_costs_no_task(mine: Harness) -> None:
    (mine.folder / "slow").write_text("0.05")
    process = mine.start(*THREE, "--jobs", 2)
    worker = first_worker(process)
    os.kill(worker, signal.SIGKILL)
    (mine.folder / "slow").unlink()
    _, message = process.communicate(timeout=ENDS_SECONDS)
    assert process.returncode == 0, message
    assert "a worker process was killed, probably out of memory" in message
    assert "with --jobs 1" in message
    assert sorted(record_of(mine)["tasks"]) == sorted(TASKS)
    assert max(embedded_counts(mine).values()) == 1


def first_worker(process: Started) -> int:
    """Wait for a worker of a run, which is a fork of it, and return its process id.

    It has a thread that watches its parent, and a fork that is about to become git has none.
    """
    own = Path(f"/proc/{process.pid}/cmdline").read_text()
    until = time.monotonic() + ENDS_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_text()
            except OSError:
                continue
            parent, threads = int(fields[1]), int(fields[17])
            if parent == process.pid and command == own and threads > 1:
                return int(folder.name)
        time.sleep(0.01)
    pytest.fail("the run started no worker")


def test_a_worker_says_what_it_could_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sequence_digests(["A", "C", "G", "T"])
    job = ProbeTaskJob(
        task_id="t", cache=tmp_path, key_parts={}, regimes=("full",), seeds=(13,), few_shot_k={},
        train_digests=b"".join(names[:2]), train_labels=np.array([0, 1]),
        test_digests=b"".join(names[2:]), test_labels=np.array([0, 1]),
    )  # fmt: skip
    folder = Cache(tmp_path, {}).folder
    why = f"{folder}: 2 embeddings are missing or damaged: run the command again"
    assert job.execute() == ProbeFailure("t", why, lost_embeddings=True)
    Cache(tmp_path, {}).add(names, np.full((4, 2), 3e4, dtype=np.float32))
    one_class = ProbeTaskJob(**{**vars(job), "train_labels": np.array([1, 1])})
    assert one_class.execute() == ProbeFailure(
        "t", "t: train: every label is 1, expected at least two classes"
    )

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")

    monkeypatch.setattr(logistic, "fit_all", full)
    why = (
        "t: the probe failed: OutOfMemoryError: CUDA out of memory. Tried to allocate 9 GiB; use "
        "fewer --jobs"
    )
    assert job.execute() == ProbeFailure("t", why)

"""A task's embeddings are held once, at a tenth of 100,000 x 4,096 float32; room for a batch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness.embedding.memory import fitting_budget, free_memory_of_groups, memory_of
from tests.harness.support import REPOSITORY

ROWS, DIM = 10_000, 4096
TASK_BYTES = ROWS * DIM * 4
SHARD_BYTES = (1 << 26) // 10
"""As large beside this task as 64 MiB are beside one of 100,000 rows."""
GROWTH_MAX = 1.7
"""Peak over the size of the features: once as they are read, half of it as float16 rows, and a
block on the way. Twice would be 2."""

PROBE = """
import json, sys
from pathlib import Path
from tests.harness.support import peak_rss
from reference_harness.engine import blas
blas.limit_to_scorer()
import numpy as np
from reference_harness.data.task_data import sequence_digests
from reference_harness.run import task_job
rows = int(sys.argv[2])
digests = sequence_digests(f"A{i}" for i in range(rows))
labels = np.arange(rows) % 2
cut = rows - 200
todo = task_job.ProbeTaskJob(
    task_id="t", cache=Path(sys.argv[1]), key_parts={}, regimes=("full", "10shot", "1shot"),
    seeds=(13, 17, 42, 123, 997), few_shot_k={"10shot": 10, "1shot": 1},
    train_digests=b"".join(digests[:cut]), train_labels=labels[:cut],
    test_digests=b"".join(digests[cut:]), test_labels=labels[cut:],
)
tiny = task_job.ProbeTaskJob(**{**vars(todo), "train_digests": b"".join(digests[:400]),
                  "train_labels": labels[:400]})
task_job.scored_task(tiny)
before = peak_rss()
found = task_job.scored_task(todo)
after = peak_rss()
assert found.regimes["full"].scores
print(json.dumps(after - before))
"""

EMBED = """
import json, sys
from pathlib import Path
from tests.harness.support import TaskEmbedder, peak_rss
from types import SimpleNamespace
import numpy as np
from reference_harness.embedding import cache
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.data.task_data import Split, TaskData
cache.SHARD_BYTES = int(sys.argv[3])
rows, dim = int(sys.argv[2]), int(sys.argv[4])

class Wide:
    def extract_embeddings(self, sequences, batch_size):
        return np.random.RandomState(len(sequences[0])).random_sample(
            (len(sequences), dim)).astype(np.float32)

loaded = SimpleNamespace(extractor=Wide(), path="m.py", class_name="Wide", is_unit=False)
made = TaskEmbedder(loaded, Path(sys.argv[1]), Batching("budget", 512))
sequences = [f"A{i}" for i in range(rows)]
split = Split(sequences[:-200], np.arange(rows - 200) % 2)
test = Split(sequences[-200:], np.arange(200) % 2)
before = peak_rss()
made.embed(TaskData("t", split, test))
after = peak_rss()
print(json.dumps(after - before))
"""


def grown(code: str, *words: object) -> int:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout))


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.nightly
def test_a_task_is_held_once(tmp_path: Path) -> None:
    # 1. Embedding keeps no more than some shards, whatever the task's size.
    embedding = grown(EMBED, tmp_path, ROWS, SHARD_BYTES, DIM)
    assert embedding < 8 * SHARD_BYTES, f"{embedding / SHARD_BYTES:.1f} shards"
    assert sum(p.stat().st_size for p in tmp_path.rglob("*.shard")) > TASK_BYTES
    # 2. The probe holds the features once.
    probing = grown(PROBE, tmp_path, ROWS)
    assert probing > 0.9 * TASK_BYTES, "the features were not read"
    assert probing < GROWTH_MAX * TASK_BYTES, f"{probing / TASK_BYTES:.2f} times the features"


@given(st.integers(1, 5000), st.integers(0, 1 << 20), st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_a_budget_keeps_to_the_room(row: int, free: int, each: int) -> None:
    """For any row, free memory and need of a token: at most 80 % of it, unless one row is more."""

    class Space:
        tokens_max = 2048
        now = 0
        begin = staticmethod(lambda: free)

        def used(self) -> int:
            return self.now

    space, tried = Space(), []

    def run(rows: int) -> bool:
        tried.append(rows)
        space.now = rows * row * each
        return space.now <= free

    budget = fitting_budget(space, row, run)
    assert budget is not None
    assert 1 <= budget <= 2048
    assert budget & (budget - 1) == 0
    rows = budget // row
    assert rows <= 1 or row > 1024 or rows * row * each <= 0.8 * free
    assert all(rows_tried == 1 or rows_tried * row * each <= 0.8 * free for rows_tried in tried), (
        "the trials, too"
    )


class Gpu:
    """Memory of a GPU as `torch.cuda` tells it, where none is: 1 GiB, a quarter of it cached."""

    def __init__(self) -> None:
        self.held = self.tokens_max = 128 << 20

    def is_available(self) -> bool:
        return True

    def synchronize(self, device: str) -> None:
        del device

    def reset_peak_memory_stats(self, device: str) -> None:
        del device
        self.tokens_max = self.held

    def memory_allocated(self, device: str) -> int:
        del device
        return self.held

    def memory_reserved(self, device: str) -> int:
        del device
        return 384 << 20

    def max_memory_allocated(self, device: str) -> int:
        del device
        return self.tokens_max

    def mem_get_info(self, device: str) -> tuple[int, int]:
        del device
        return (768 << 20, 2 << 30)

    def empty_cache(self) -> None:
        pass


def test_the_room_of_a_gpu_counts_what_its_allocator_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row has 100 tokens of 64 KiB: 81 rows are half of 1,024 MiB, 163 would be all of it."""
    for name in [name for name in vars(Gpu) if not name.startswith("_")]:
        assert callable(getattr(torch.cuda, name))
    gpu = Gpu()
    monkeypatch.setattr(torch, "cuda", gpu)
    tried = []

    def run(rows: int) -> bool:
        tried.append(rows)
        gpu.tokens_max = max(gpu.tokens_max, gpu.held + (rows * 100 << 16))
        return True

    assert fitting_budget(memory_of("cuda:1"), 100, run) == 8192
    assert tried == [1, 1, 2, 5, 10, 20, 40, 81]
    gpu.is_available = lambda: False  # type: ignore[method-assign]
    assert fitting_budget(memory_of("cuda:1"), 100, run) is None


def test_the_room_of_control_groups(tmp_path: Path) -> None:
    def group(group_path: str, **files: object) -> None:
        (tmp_path / group_path).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (tmp_path / group_path / name.replace("__", ".")).write_text(f"{content}\n")

    group("", memory__current=9)  # the root of version 2 has no limit
    group("a", memory__max=1000, memory__current=300, memory__stat="anon 5\ninactive_file 50")
    group("a/b", memory__max="max", memory__current=200)
    group("memory/c", memory__limit_in_bytes=500, memory__usage_in_bytes=400)
    group("memory/c", memory__stat="inactive_file 1\ntotal_inactive_file 30")
    groups = tmp_path / "groups"
    groups.write_text("3:pids:/c\n2:cpu,memory:/c\n0::/a/b\n")
    assert free_memory_of_groups(groups, tmp_path) == [130, 750]
    assert free_memory_of_groups(tmp_path / "none", tmp_path) == []

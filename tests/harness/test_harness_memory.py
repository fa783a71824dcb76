"""A task's embeddings are held once, at a tenth of 100,000 x 4,096 float32."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.support import REPOSITORY

ROWS, DIM = 10_000, 4096
TASK_BYTES = ROWS * DIM * 4
SHARD_BYTES = (1 << 26) // 10
"""As large beside this task as 64 MiB are beside one of 100,000 rows."""
GROWTH_MAX = 1.35
"""Peak over the size of the features: once, a shard on the way in, what the solver keeps. Twice
would be 2."""

PROBE = """
import json, sys
from pathlib import Path
from tests.harness.support import peak_rss
from reference_harness.engine import threads
threads.pin()
import numpy as np
from reference_harness import job
from reference_harness.tasks import sequence_digests
rows = int(sys.argv[2])
digests = sequence_digests(f"A{i}" for i in range(rows))
labels = np.arange(rows) % 2
cut = rows - 200
todo = job.Job(
    task_id="t", cache=Path(sys.argv[1]), key_parts={}, regimes=("full", "10shot", "1shot"),
    seeds=(13, 17, 42, 123, 997), few_shot_k={"10shot": 10, "1shot": 1}, canonical=False,
    train_digests=b"".join(digests[:cut]), train_labels=labels[:cut],
    test_digests=b"".join(digests[cut:]), test_labels=labels[cut:],
)
tiny = job.Job(**{**vars(todo), "train_digests": b"".join(digests[:400]),
                  "train_labels": labels[:400]})
job.execute(tiny)
before = peak_rss()
found = job.execute(todo)
after = peak_rss()
assert found.regimes["full"].scores
print(json.dumps(after - before))
"""

EMBED = """
import json, sys
from pathlib import Path
from tests.harness.support import peak_rss
from types import SimpleNamespace
import numpy as np
from reference_harness import cache
from reference_harness.embed import Batching, Embedder
from reference_harness.tasks import Split, TaskData
cache.SHARD_BYTES = int(sys.argv[3])
rows, dim = int(sys.argv[2]), int(sys.argv[4])

class Wide:
    def extract_embeddings(self, sequences, batch_size):
        return np.random.RandomState(len(sequences[0])).random_sample(
            (len(sequences), dim)).astype(np.float32)

loaded = SimpleNamespace(extractor=Wide(), path="m.py", class_name="Wide")
made = Embedder(loaded, cache.Cache(Path(sys.argv[1]), {}), Batching("budget", 512))
sequences = [f"A{i}" for i in range(rows)]
split = Split(sequences[:-200], np.arange(rows - 200) % 2)
test = Split(sequences[-200:], np.arange(200) % 2)
before = peak_rss()
made.embed(TaskData("t", split, test), lambda done, letters: None)
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
def test_a_task_is_held_once(tmp_path: Path) -> None:
    # 1. Embedding keeps no more than some shards, whatever the task's size.
    embedding = grown(EMBED, tmp_path, ROWS, SHARD_BYTES, DIM)
    assert embedding < 8 * SHARD_BYTES, f"{embedding / SHARD_BYTES:.1f} shards"
    assert sum(p.stat().st_size for p in tmp_path.rglob("*.shard")) > TASK_BYTES
    # 2. The probe holds the features once.
    probing = grown(PROBE, tmp_path, ROWS)
    assert probing > 0.9 * TASK_BYTES, "the features were not read"
    assert probing < GROWTH_MAX * TASK_BYTES, f"{probing / TASK_BYTES:.2f} times the features"

"""The cache: what was computed is found again, also after a kill, and damage is never a number."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness import cache as store
from reference_harness.cache import Cache, Writer
from reference_harness.errors import StateError
from reference_harness.tasks import sequence_digests
from tests.harness.support import REPOSITORY


def some(count: int, dim: int = 3, start: int = 0) -> tuple[list[bytes], np.ndarray]:
    digests = sequence_digests(f"A{i}" for i in range(start, start + count))
    rows = np.arange(start * dim, (start + count) * dim, dtype=np.float32).reshape(count, dim)
    return digests, rows


@given(st.lists(st.integers(0, 29), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_reads_any_rows_in_any_order(wanted: list[int]) -> None:
    digests, rows = some(30)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder), {"a": 1})
        cache.add(digests[:10], rows[:10])
        cache.add(digests[10:], rows[10:])
        assert (cache.read([digests[i] for i in wanted]) == rows[wanted]).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_keeps_type_and_bits(tmp_path: Path, dtype: str) -> None:
    digests, _ = some(4)
    rows = np.random.RandomState(0).standard_normal((4, 7)).astype(dtype)
    cache = Cache(tmp_path, {})
    cache.add(digests, rows)
    assert cache.read(digests).tobytes() == rows.tobytes()
    assert cache.read(digests).dtype == dtype


def test_another_key_is_another_cache(tmp_path: Path) -> None:
    digests, rows = some(2)
    Cache(tmp_path, {"layer": "last"}).add(digests, rows)
    assert not Cache(tmp_path, {"layer": "4"}).find(digests)
    assert len(Cache(tmp_path, {"layer": "last"}).find(digests)) == 2


def test_finding_reads_no_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests, rows = some(2)
    cache = Cache(tmp_path, {})
    cache.add(digests, rows)
    monkeypatch.setattr(store, "_matrix", None)
    assert set(cache.find(digests)) == set(digests)


def test_reading_opens_the_shards_it_needs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, {})
    for start in range(0, 50, 10):
        cache.add(*some(10, start=start))
    opened = []
    real = store._matrix

    def matrix(shard: Path, shape: store.Shape) -> store.Rows:
        opened.append(shard)
        return real(shard, shape)

    monkeypatch.setattr(store, "_matrix", matrix)
    cache.read([*some(3, start=10)[0], *some(3, start=30)[0]])
    assert len(opened) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_shard_never_becomes_a_number(tmp_path: Path, damage: str) -> None:
    digests, rows = some(5)
    cache = Cache(tmp_path, {})
    cache.add(digests, rows)
    (shard,) = cache.folder.glob("*.shard")
    content = shard.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    shard.write_bytes({"cut": content[:-8], "flipped": flipped, "emptied": b""}[damage])
    with pytest.raises(StateError, match=r"damaged|missing"):
        cache.read(digests)


def test_missing_rows_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="2 embeddings are missing"):
        Cache(tmp_path, {}).read(some(2)[0])
    with pytest.raises(StateError, match="no sequence"):
        Cache(tmp_path, {}).read([])


def test_rows_and_digests_must_match(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 embeddings for 2 sequences"):
        Cache(tmp_path, {}).add(some(2)[0], some(1)[1])


def test_writer_flushes_by_size_by_time_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, {})

    def shards() -> int:
        return len(list(cache.folder.glob("*.shard")))

    with Writer(cache) as writer:
        writer.add(*some(2))
        assert shards() == 0
        monkeypatch.setattr(store, "SHARD_BYTES", 10)
        writer.add(*some(2, start=2))
        assert shards() == 1
        monkeypatch.setattr(store, "SHARD_BYTES", 1 << 20)
        monkeypatch.setattr(store, "FLUSH_SECONDS", 0.0)
        writer.add(*some(2, start=4))
        assert shards() == 2
        monkeypatch.setattr(store, "FLUSH_SECONDS", 99.0)
        writer.add(*some(2, start=6))
    assert shards() == 3
    assert (cache.read(some(8)[0]) == some(8)[1]).all()


def test_ctrl_c_keeps_what_is_in_memory(tmp_path: Path) -> None:
    cache = Cache(tmp_path, {})

    def interrupted() -> None:
        with Writer(cache) as writer:
            writer.add(*some(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(cache.find(some(3)[0])) == 3


WRITES_FOR_EVER = """
import sys
from pathlib import Path
import numpy as np
from reference_harness.cache import Cache
from reference_harness.tasks import sequence_digests
cache = Cache(Path(sys.argv[1]), {})
for i in range(10**9):
    digests = sequence_digests(f"A{j}" for j in range(100 * i, 100 * i + 100))
    cache.add(digests, np.full((100, 4096), i, dtype=np.float32))
    print(i, flush=True)
"""


def test_kill_nine_loses_no_shard_and_leaves_no_half(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path)],
        cwd=REPOSITORY, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    for _ in range(5):
        writer.stdout.readline()
    time.sleep(0.003 * (os.getpid() % 7))  # at another moment each time
    writer.send_signal(signal.SIGKILL)
    finished = 4 + len(writer.stdout.read().splitlines())
    writer.stdout.close()
    writer.wait()
    cache = Cache(tmp_path, {})
    assert json.loads((cache.folder / "key.json").read_text()) == {}
    for shard in range(finished + 1):
        names = sequence_digests(f"A{j}" for j in range(100 * shard, 100 * shard + 100))
        assert (cache.read(names) == shard).all()
    for path in cache.folder.glob("*.shard"):
        store._shape(path)

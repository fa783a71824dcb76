"""The cache: what was computed is found again, also after a kill, and damage is never a number."""

import errno
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_harness.data.task_data import sequence_digests
from reference_harness.embedding import cache as store
from reference_harness.embedding import shard as shard_file
from reference_harness.embedding.cache import Cache, ShardWriter, default_cache
from reference_harness.errors import LostEmbeddingsError, OptionError, StateError
from tests.harness.support import REPOSITORY


def some(count: int, dim: int = 3, start: int = 0) -> tuple[list[bytes], np.ndarray]:
    digests = sequence_digests(f"A{i}" for i in range(start, start + count))
    rows = np.arange(start * dim, (start + count) * dim, dtype=np.float32).reshape(count, dim)
    return digests, rows


@given(st.lists(st.integers(0, 29), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_reads_any_rows_in_any_order(expected: list[int]) -> None:
    digests, rows = some(30)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder), {"a": 1})
        cache.add(digests[:10], rows[:10])
        cache.add(digests[10:], rows[10:])
        assert (cache.read([digests[i] for i in expected]) == rows[expected]).all()


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
    monkeypatch.setattr(store, "blocks_in", None)
    assert set(cache.find(digests)) == set(digests)


def test_reading_opens_the_shards_it_needs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, {})
    for start in range(0, 50, 10):
        cache.add(*some(10, start=start))
    opened = []
    real = shard_file.blocks_in

    def blocks(
        shard: Path, shape: shard_file.ShardHeader
    ) -> Iterator[tuple[int, shard_file.Embeddings]]:
        opened.append(shard)
        return real(shard, shape)

    monkeypatch.setattr(store, "blocks_in", blocks)
    cache.read([*some(3, start=10)[0], *some(3, start=30)[0]])
    assert len(opened) == 2


def damaged(content: bytes, damage: str) -> bytes:
    """Return a shard's bytes with one kind of damage."""
    start = content.index(b"\n") + 1
    places = {
        "checksum": 3,
        "header": content.index(b'"dtype"') + 10,
        "end of header": start - 1,
        "digests": start + 20,
        "matrix": len(content) - 5,
    }
    if damage == "members":
        header = content[9 : start - 1].replace(b"names_crc", b"other_crc")
        return shard_file.checksum(header) + b" " + header + content[start - 1 :]
    if damage in places:
        at = places[damage]
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    return {"cut": content[:-8], "cut in the header": content[:40], "emptied": b""}[damage]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("checksum", "the header is damaged"),
        ("header", "the header is damaged"),
        ("end of header", "the header is damaged"),
        ("cut in the header", "the header is damaged"),
        ("emptied", "the header is damaged"),
        ("members", "the header has other members than its format"),
        ("cut", "bytes, expected"),
        ("digests", "the digests are damaged"),
        ("matrix", "the embeddings are damaged"),
    ],
)
def test_a_damaged_shard_is_set_aside_and_its_rows_count_as_missing(
    tmp_path: Path, damage: str, says: str
) -> None:
    digests, rows = some(5)
    cache, other_run = Cache(tmp_path, {}), Cache(tmp_path, {})
    cache.add(*some(3, start=5))
    cache.add(digests, rows)
    shard = max(cache.folder.glob("*.shard"))
    content = damaged(shard.read_bytes(), damage)
    shard.write_bytes(content)
    with pytest.raises(LostEmbeddingsError, match="5 embeddings are missing or damaged"):
        cache.read(digests)

    # 1. It is kept under another name, which is said once, whatever other run meets it.
    aside = shard.with_name(shard.name + ".damaged")
    assert aside.read_bytes() == content
    assert len(cache.damage_notes) == 1
    assert says in cache.damage_notes[0]
    assert cache.damage_notes[0].endswith(
        f": the file was renamed to {aside.name}, and its embeddings are computed again"
    )
    assert other_run.find(digests) == set()
    assert other_run.damage_notes == []

    # 2. Its rows are missing, those of other shards are not; computed again, they are there.
    assert cache.find([*digests, *some(3, start=5)[0]]) == set(some(3, start=5)[0])
    other_run.add(digests, rows)
    assert (cache.read(digests) == rows).all()


def test_no_flipped_byte_becomes_a_number(tmp_path: Path) -> None:
    """Whatever byte of a shard is flipped: the rows are those written, or none."""
    digests, rows = some(2, dim=2)
    Cache(tmp_path, {}).add(digests, rows)
    (shard,) = tmp_path.rglob("*.shard")
    content = shard.read_bytes()
    for at in range(len(content)):
        for bit in (1, 32, 128):
            flipped = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
            shard.write_bytes(flipped)
            with pytest.raises(LostEmbeddingsError):
                Cache(tmp_path, {}).read(digests)
            assert not shard.exists()


def test_two_runs_that_share_a_cache_survive_each_others_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run sets a shard aside between the search and the read."""
    digests, rows = some(4)
    mine, theirs = Cache(tmp_path, {}), Cache(tmp_path, {})
    mine.add(digests, rows)
    (shard,) = mine.folder.glob("*.shard")
    real = shard_file.blocks_in

    def blocks(
        path: Path, shape: shard_file.ShardHeader
    ) -> Iterator[tuple[int, shard_file.Embeddings]]:
        shard.write_bytes(b"")
        assert theirs.find(digests) == set()
        return real(path, shape)

    monkeypatch.setattr(store, "blocks_in", blocks)
    with pytest.raises(LostEmbeddingsError):
        mine.read(digests)
    assert (len(mine.damage_notes), len(theirs.damage_notes)) == (0, 1)


def test_a_shard_of_another_format_is_left_alone(tmp_path: Path) -> None:
    digests, rows = some(2)
    cache = Cache(tmp_path, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "SHARD_FORMAT", shard_file.SHARD_FORMAT + 1)
        cache.add(digests, rows)
    assert cache.find(digests) == set()
    assert cache.damage_notes == []
    assert len(list(cache.folder.glob("*.shard"))) == 1


def test_a_damaged_shard_that_cannot_be_renamed_is_named(tmp_path: Path) -> None:
    cache = Cache(tmp_path, {})
    cache.add(*some(2))
    (shard,) = cache.folder.glob("*.shard")
    shard.write_bytes(b"")
    shard.with_name(shard.name + ".damaged").mkdir()
    says = (
        r"shard: the header is damaged, and renaming the file failed \(Is a directory\): "
        r"delete the file"
    )
    with pytest.raises(StateError, match=says):
        cache.find(some(2)[0])


def test_a_shard_says_under_which_budget_it_was_computed(tmp_path: Path) -> None:
    cache = Cache(tmp_path, {})
    with ShardWriter(cache) as writer:
        writer.add(*some(2), 2048)
        writer.add(*some(2, start=2), 2048)
        writer.add(*some(2, start=4), 512)
    assert len(list(cache.folder.glob("*.shard"))) == 2
    cache.read(some(6)[0])
    assert cache.token_budgets == {512, 2048}


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

    with ShardWriter(cache) as writer:
        writer.add(*some(2))
        assert shards() == 0
        monkeypatch.setattr(store, "SHARD_BYTES", 10)
        writer.add(*some(2, start=2))
        writer._wait()
        assert shards() == 1
        monkeypatch.setattr(store, "SHARD_BYTES", 1 << 20)
        monkeypatch.setattr(store, "FLUSH_SECONDS", 0.0)
        writer.add(*some(2, start=4))
        writer._wait()
        assert shards() == 2
        monkeypatch.setattr(store, "FLUSH_SECONDS", 99.0)
        writer.add(*some(2, start=6))
    assert shards() == 3
    assert (cache.read(some(8)[0]) == some(8)[1]).all()


def test_embedding_goes_on_while_a_shard_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, go_on = Cache(tmp_path, {}), threading.Event()
    add = cache.add
    monkeypatch.setattr(store, "SHARD_BYTES", 10)
    monkeypatch.setattr(cache, "add", lambda *arguments: go_on.wait(60) and add(*arguments))
    with ShardWriter(cache) as writer:
        writer.add(*some(2))  # returns, though nothing is written yet
        assert not list(cache.folder.glob("*.shard"))
        go_on.set()
    assert len(cache.find(some(2)[0])) == 2


def test_a_shard_that_cannot_be_written_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, {})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "add", full)
    with pytest.raises(OSError, match="No space left"), ShardWriter(cache) as writer:
        writer.add(*some(2))


def test_ctrl_c_keeps_what_is_in_memory(tmp_path: Path) -> None:
    cache = Cache(tmp_path, {})

    def interrupted() -> None:
        with ShardWriter(cache) as writer:
            writer.add(*some(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(cache.find(some(3)[0])) == 3


WRITES_FOR_EVER = """
import sys
from pathlib import Path
import numpy as np
from reference_harness.embedding.cache import Cache
from reference_harness.data.task_data import sequence_digests
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
        shard_file.header_of(path)


def test_a_user_without_a_home_is_asked_for_a_folder(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "GENEB_HARNESS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(OptionError, match="no home folder to keep embeddings in"):
        default_cache()

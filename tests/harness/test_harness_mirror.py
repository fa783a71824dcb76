"""A cache that machines share by an object store: each keeps a copy of what it needs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reference_harness.data.task_data import sequence_digests
from reference_harness.embedding.cache import Cache
from reference_harness.errors import LostEmbeddingsError, OptionError, StateError

NAMES = sequence_digests(["A", "C", "G", "T"])
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)
Machine = Callable[[str], Cache]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Cache]:
    """Open the shared cache as a machine of a name does."""

    def opened(name: str) -> Cache:
        monkeypatch.setenv("GENEB_HARNESS_CACHE", str(tmp_path / name))
        return Cache(f"file://{tmp_path / 'store'}", {})

    return opened


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.shard")}


def test_what_one_machine_embeds_another_reads(machine: Machine, tmp_path: Path) -> None:
    first, second = machine("first"), machine("second")
    assert second.find(NAMES) == set()
    first.add(NAMES[:2], ROWS[:2])
    second.add(NAMES[2:], ROWS[2:], token_budget=64)
    assert (first.read(NAMES) == ROWS).all()
    assert (machine("third").read(NAMES) == ROWS).all()
    assert first.token_budgets == {0, 64}
    stored = shards(tmp_path / "store")
    assert len(stored) == 2
    assert shards(tmp_path / "first") == shards(tmp_path / "third") == stored
    assert sorted(p.name for p in (tmp_path / "store").rglob("*") if p.is_file()) == sorted(stored)


def test_a_shard_that_was_damaged_here_is_computed_again(machine: Machine, tmp_path: Path) -> None:
    machine("first").add(NAMES, ROWS)
    second = machine("second")
    second.read(NAMES)
    (shard,) = second.folder.glob("*.shard")
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(LostEmbeddingsError):
        second.read(NAMES)
    assert second.find(NAMES) == set()
    second.add(NAMES, ROWS)
    assert (second.read(NAMES) == ROWS).all()
    assert len(shards(tmp_path / "store")) == 2


def test_a_store_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--cache nowhere://x/[0-9a-f]{64}: Protocol not known"):
        Cache("nowhere://x", {})
    (tmp_path / "file").touch()
    cache = Cache(f"file://{tmp_path}/file", {})
    with pytest.raises(StateError, match="check the address and your permissions there"):
        cache.add(NAMES, ROWS)

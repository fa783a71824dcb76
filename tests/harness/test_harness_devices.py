"""Several embedders on one machine: the record of one, whatever dies on the way."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_harness import mini
from reference_harness.embedding import cache, embedder
from reference_harness.embedding.cache import Cache
from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.engine import ATTEMPTS_MAX, Notice
from reference_harness.engine.devices import VISIBLE_VARIABLE, DeviceEmbedders, devices_of
from reference_harness.errors import EmbeddingError, OptionError, WorkerDiedError
from reference_harness.run.sequence_owners import distinct_sequences
from tests import forked
from tests.harness.support import Harness, timeless


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each task divided among two devices."""
    monkeypatch.setattr(embedder, "PART_SEQUENCES_MIN", 20)


@pytest.fixture(autouse=True)
def restored_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what the extractor changes, where the tests' own process imports it."""
    monkeypatch.setattr(cache, "FLUSH_SECONDS", cache.FLUSH_SECONDS)


@pytest.fixture(autouse=True)
def forked_embedders(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fork the processes of devices by day: a new interpreter loads every library anew."""
    if request.node.get_closest_marker("nightly"):
        yield
        return
    context = multiprocessing.get_context("forkserver")
    with forked.served_processes():
        monkeypatch.setattr(multiprocessing, "get_context", lambda _=None: context)
        yield


MINE = """
import multiprocessing, os, signal, time
from pathlib import Path
import numpy as np
import reference_harness.embedding.cache
from .base import BaseEmbeddingExtractor

reference_harness.embedding.cache.FLUSH_SECONDS = 0
HERE = Path(__file__).parent

class Mine(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}

    def __init__(self, name_model="", device="cpu"):
        self.broken = False
        loaded = len(list(HERE.glob("loaded-*")))
        (HERE / f"loaded-{os.getpid()}").touch()
        if (HERE / f"refuse-{loaded}").exists():
            raise ValueError("out of order")
        if (HERE / f"other-{loaded}").exists():
            self.dtype = "float16"

    def extract_embeddings(self, sequences, batch_size=8):
        with (HERE / f"asked-{os.getpid()}").open("a") as stream:
            stream.writelines(s + "\\n" for s in sequences)
        if len(sequences) > 1:
            if multiprocessing.parent_process():  # one device, to compare with, has no other
                time.sleep(0.02)
            for name in ("kill", "break"):
                try:
                    (HERE / name).rename(HERE / f"{name}-{os.getpid()}")
                except OSError:
                    continue
                if name == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                self.broken = True
        if self.broken or (HERE / "always").exists() and len(sequences) > 1:
            self.broken = True
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], "float32")
"""
TASKS = ("mini_mouse", "mini_tf", "mini_phage", "mini_splice")
RUN = (
    "run", "--extractor", "mine.py:Mine", "--tasks", ",".join(TASKS), "--regimes", "1shot",
    "--limit", 60, "--jobs", 1, "--token-budget", 700,
)  # fmt: skip
STOP_SECONDS = 90


def spec_of(folder: Path) -> EmbedderSpec:
    (folder / "mine.py").write_text(MINE)
    return EmbedderSpec(
        extractor=f"{folder}/mine.py:Mine", name_model="", device="cpu", keywords={},
        batching=Batching(token_budget=700), measures_budget=False,
    )  # fmt: skip


def embedded(folder: Path, count: int = 2) -> Iterator[EmbedResult | Notice]:
    """Embed four tasks on so many devices, and yield what comes; then compare with one device."""
    spec = spec_of(folder)
    tasks = {
        name: list(distinct_sequences(mini.load(name).balanced_subset(30)).items())
        for name in TASKS
    }
    progress: list[int] = []
    devices = DeviceEmbedders(spec, count)
    try:
        for name, named in tasks.items():
            sequences = [sequence for _, sequence in named]
            job = EmbedJob(name, sequences, folder / "many", {})
            devices.embed(job, lambda sequences, _: progress.append(sequences))
        until = time.monotonic() + STOP_SECONDS
        while devices.open_jobs and time.monotonic() < until:
            yield from devices.results()
            time.sleep(0.01)
    except BaseException as error:
        devices.close(error)
        raise
    devices.close(None)
    assert not devices.open_jobs
    load = spec.load()
    for name, named in tasks.items():
        list(load.embed(EmbedJob(name, [sequence for _, sequence in named], folder / "one", {})))
        digests = [digest for digest, _ in named]
        cached_bytes = [
            Cache(folder / name, {}).read(digests).tobytes() for name in ("one", "many")
        ]
        assert cached_bytes[0] == cached_bytes[1]
    assert sum(progress) >= sum(map(len, tasks.values()))


def pids(folder: Path, name: str) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{name}-*")} - {os.getpid()}


@pytest.mark.parametrize("is_measured", [False, True])
def test_the_parts_of_a_task_are_its_calls_or_where_each_device_plans_its_sequences(
    is_measured: bool,
) -> None:
    job = EmbedJob("a", [str(number) for number in range(70)], "cache", {}, ["0"])
    assert job.parts(1, by_calls=True) == [job]
    parts = job.parts(8, by_calls=not is_measured)
    assert len(parts) == 3, "of 20 sequences or more"
    assert not any(part.measured_sequences for part in parts)
    if is_measured:
        assert sorted(s for part in parts for s in part.sequences) == sorted(job.sequences)
        assert {part.share for part in parts} == {(0, 1)}
    else:
        assert all(part.sequences == job.sequences for part in parts)
        assert [part.share for part in parts] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.nightly  # the test below asserts the same where a process is killed
def test_each_task_is_embedded_once_and_has_the_bytes_of_one_device(tmp_path):
    results = list(embedded(tmp_path))
    assert all(isinstance(result, EmbedResult) and not result.failure for result in results)
    assert sorted(
        result.task_id for result in results if isinstance(result, EmbedResult)
    ) == sorted(TASKS)
    assert len(pids(tmp_path, "asked")) == 2
    assert all(result.letters for result in results if isinstance(result, EmbedResult))
    word_counts = [
        len((tmp_path / f"asked-{pid}").read_text().split()) for pid in pids(tmp_path, "asked")
    ]
    assert min(word_counts) > max(word_counts) / 2, "each has about half of every task"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("kill", "its process was killed, probably out of memory"),
        pytest.param(
            "break",
            "the extractor Mine failed: RuntimeError: CUDA error: an illegal memory access",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_a_lost_process_had_goes_on_in_another_and_its_device_is_named(tmp_path, what, why):
    (tmp_path / what).touch()
    results = list(embedded(tmp_path))
    (notice,) = [result.line for result in results if isinstance(result, Notice)]
    assert any(f": embedder {n}: " in notice for n in (1, 2))
    assert why in notice
    assert notice.endswith("; the task continues in another process")
    assert sorted(
        result.task_id for result in results if isinstance(result, EmbedResult)
    ) == sorted(TASKS)
    assert not any(result.failure for result in results if isinstance(result, EmbedResult))
    assert len(pids(tmp_path, "loaded")) == 3


@pytest.mark.nightly  # six processes
def test_devices_that_always_fail_are_left_one_by_one(tmp_path):
    (tmp_path / "always").touch()
    results: list[EmbedResult | Notice] = []
    with pytest.raises(WorkerDiedError, match=r"^embedder [12]: .*: no embedder is left"):
        results.extend(call for call in embedded(tmp_path))
    dead = [pid for pid in pids(tmp_path, "loaded") if Path(f"/proc/{pid}").exists()]
    assert not dead
    assert len(pids(tmp_path, "loaded")) <= 2 * ATTEMPTS_MAX


@pytest.mark.parametrize(
    ("what", "message"),
    [
        pytest.param("refuse-0", "^embedder 1: .*out of order", marks=pytest.mark.nightly),
        ("refuse-1", "^embedder 2: .*out of order"),
        pytest.param(
            "other-1",
            "^embedder 2 differs from embedder 1: in its description, embedding is ",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_device_that_cannot_load_the_model_as_the_first_is_named(tmp_path, what, message):
    (tmp_path / what).touch()
    with pytest.raises(EmbeddingError, match=message):
        DeviceEmbedders(spec_of(tmp_path), 2)
    assert not [pid for pid in pids(tmp_path, "loaded") if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("cpu", None, [("embedder 1", {}), ("embedder 2", {})]),
        ("cuda", None, [("GPU 0", {VISIBLE_VARIABLE: "0"}), ("GPU 1", {VISIBLE_VARIABLE: "1"})]),
        ("cuda", "3,5,6", [("GPU 3", {VISIBLE_VARIABLE: "3"}), ("GPU 5", {VISIBLE_VARIABLE: "5"})]),
        (
            "cuda",
            "4",
            "--embedders 2: CUDA_VISIBLE_DEVICES lists 1 GPU, expected a GPU for each",
        ),
        ("cuda:1", None, "--embedders 2 --device cuda:1: expected --device cpu, or --device cuda"),
    ],
)
def test_each_process_sees_one_gpu(monkeypatch, device, visible, expected):
    monkeypatch.delenv(VISIBLE_VARIABLE, raising=False)
    if visible is not None:
        monkeypatch.setenv(VISIBLE_VARIABLE, visible)
    if isinstance(expected, list):
        assert devices_of(device, 2) == expected
        return
    with pytest.raises(OptionError, match=expected):
        devices_of(device, 2)


def record(folder: Path, name: str) -> Any:
    return timeless(json.loads((folder / name).read_text()))


@pytest.mark.nightly  # four runs of the command
def test_a_run_that_is_killed_goes_on_with_other_embedders_and_has_the_record_of_one(
    harness: Harness,
):
    (harness.folder / "mine.py").write_text(MINE)
    done = harness(*RUN, "--output", "one.json", "--cache", "one")
    assert done.returncode == 0, done.stderr
    several = (*RUN, "--output", "many.json", "--cache", "many")
    started = harness.start(*several, "--embedders", 3)
    until = time.monotonic() + STOP_SECONDS
    while time.monotonic() < until and len(pids(harness.folder, "asked")) < 4:
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate(STOP_SECONDS)
    done = harness(*several, "--embedders", 2, "--resume")
    assert done.returncode == 0, done.stderr
    assert "embedders: embedder 1, embedder 2" in done.stderr
    one_device, many = (record(harness.folder, name) for name in ("one.json", "many.json"))
    for task in (*one_device["tasks"].values(), *many["tasks"].values()):
        task.pop("embedded_now")  # what the killed run had saved
        task.pop("embedded_letters", None)
    assert many.pop("resumed") in (True, False)
    one_device.pop("resumed")
    assert one_device == many

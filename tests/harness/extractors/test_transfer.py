"""Batches under way: order, values and errors are those of one after another."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from reference_harness import mini
from reference_harness.embedding.extractor_calls import Batching, embed_sequences
from reference_harness.extractors.device_transfer import (
    PENDING_MAX,
    EncodedAhead,
    host_arrays,
    on_device,
    to_host,
)
from reference_harness.loading.loader import load
from tests.harness.extractors.models import save


def test_results_come_in_order_each_once_another_one_is_queued():
    begun: list[int] = []

    def made() -> Iterator[tuple[int, torch.Tensor]]:
        for number in range(5):
            begun.append(number)
            yield number, torch.full((2, 3), float(number))

    seen = []
    for number, values in host_arrays(made()):
        assert (values == number).all()
        seen.append((number, len(begun)))
    assert seen == [(n, min(n + 1 + PENDING_MAX, 5)) for n in range(5)]
    assert list(host_arrays(iter(()))) == []


def test_what_was_queued_before_an_error_is_yielded_or_lost_with_it():
    def made() -> Iterator[tuple[int, torch.Tensor]]:
        yield 0, torch.zeros(1)
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        list(host_arrays(made()))


def test_a_tensor_of_the_host_is_handed_on():
    ids = torch.arange(6).reshape(2, 3)
    assert on_device(ids, "cpu").data_ptr() == ids.data_ptr()
    assert np.array_equal(to_host(ids)(), ids.numpy())
    assert on_device(ids, "meta").device.type == "meta"


def test_the_next_call_is_encoded_in_one_other_thread():
    threads = []

    def encode(sequences):
        threads.append(threading.current_thread().name)
        if "bad" in sequences:
            raise ValueError("bad")
        return [sequence.lower() for sequence in sequences]

    encoded = EncodedAhead(encode)
    assert encoded.take(["A"]) == ["a"]
    encoded.begin(["B"])
    encoded.begin(["C"])
    encoded.begin(["D"])  # not before one was taken
    assert (encoded.take(("B",)), encoded.take(["C"]), encoded.take(["D"])) == (["b"], ["c"], ["d"])
    encoded.begin(["bad"])
    with pytest.raises(ValueError, match="bad"):
        encoded.take(["bad"])
    encoded.begin(["bad"])
    assert encoded.take(["other"]) == ["other"]
    main = threading.current_thread().name
    assert [name == main for name in threads] == [1, 0, 0, 1, 0, 0, 1]


def test_without_a_thread_calls_encode_for_themselves(monkeypatch):
    def refused(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    encoded = EncodedAhead(len)
    encoded.begin(["A"])
    assert encoded.take(["A"]) == 1


@pytest.mark.parametrize("mode", ["budget", "exact"])
def test_embeddings_are_those_of_calls_one_after_another(tmp_path, monkeypatch, mode):
    for name in ("CALL_SEQUENCES_MIN", "CALL_SEQUENCES_MAX"):
        monkeypatch.setattr(f"reference_harness.embedding.extractor_calls.{name}", 16)
    save("bert", tmp_path / "model")
    loaded = load("huggingface", str(tmp_path / "model"), "cpu", batching=mode)
    extractor = loaded.extractor
    sequences = list(dict.fromkeys(mini.load("mini_tf").train.sequences))[:60]
    batching = Batching(mode, 256)
    begun: list[int] = []
    ahead = getattr(extractor, "ahead")  # noqa: B009 - the base class does not declare it

    def counted(rows: Sequence[str]) -> None:
        begun.append(len(rows))
        ahead(rows)

    monkeypatch.setattr(extractor, "ahead", counted)
    embeddings = embed_sequences(loaded, batching, sequences)
    assert begun == [16, 16, 16, 12]
    monkeypatch.setattr(type(extractor), "ahead", None)
    monkeypatch.delattr(extractor, "ahead")
    assert np.array_equal(embed_sequences(loaded, batching, sequences), embeddings)


class OnGpu:
    """A tensor on a GPU that records the requests to it, in order."""

    device = torch.device("cuda")
    shape, dtype = (2, 3), torch.float32

    def __init__(self, requests: list[str]) -> None:
        self.requests = requests

    def pin_memory(self) -> "OnGpu":
        self.requests.append("pinned")
        return self

    def to(self, device: str, *, non_blocking: bool) -> "OnGpu":
        self.requests.append(f"sent to {device}, {non_blocking=}")
        return self

    def copy_(self, source: object, *, non_blocking: bool) -> None:
        assert isinstance(source, OnGpu)
        self.requests.append(f"copied, {non_blocking=}")

    def record(self) -> None:
        self.requests.append("event recorded")

    def synchronize(self) -> None:
        self.requests.append("event waited for")

    def numpy(self) -> np.ndarray:
        self.requests.append("read")
        return np.ones(self.shape)


def test_a_gpu_is_not_waited_for_before_its_result_is_asked_for(monkeypatch):
    """Without one: what torch is called with. The copy is read after the event behind it, only."""
    requests: list[str] = []
    tensor: Any = OnGpu(requests)
    made: list[dict[str, object]] = []

    def empty(_shape: object, **more: object) -> OnGpu:
        made.append(more)
        return OnGpu(requests)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.cuda, "Event", lambda: OnGpu(requests))
    on_device(tensor, "cuda:0")
    wait = to_host(tensor)
    assert made == [{"dtype": torch.float32, "pin_memory": True}]
    before = ["pinned", "sent to cuda:0, non_blocking=True", "copied, non_blocking=True"]
    assert requests == [*before, "event recorded"]
    assert wait().shape == (2, 3)
    assert requests[4:] == ["event waited for", "read"]

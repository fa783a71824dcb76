"""Keeps a device busy: batches are sent and results fetched while others are computed.

On a GPU all work is queued: the forward pass of a batch is queued before the result of the one
before it is waited for, and both copies go through pinned memory. On a CPU nothing is queued, and
the same code hands on what was computed. What is computed, and in which batches, is the same.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

AHEAD = 1
"""Results that are not waited for until another batch is queued. More gain nothing: one keeps the
queue of a GPU from running empty."""

Array = npt.NDArray[np.generic]
Batch = TypeVar("Batch")
Encoded = TypeVar("Encoded")


def on_device(tensor: Tensor, device: str) -> Tensor:
    """Return a tensor of the host on the device; a GPU may still be copying it."""
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def host_arrays(
    results: Iterator[tuple[Batch, Tensor]],
) -> Iterator[tuple[Batch, Array]]:
    """Yield results as arrays, in order, each once `AHEAD` more of them are queued."""
    waiting: deque[tuple[Batch, Callable[[], Array]]] = deque()
    for batch, result in results:
        waiting.append((batch, to_host(result)))
        while len(waiting) > AHEAD:
            before, wait = waiting.popleft()
            yield before, wait()
    while waiting:
        before, wait = waiting.popleft()
        yield before, wait()


def to_host(tensor: Tensor) -> Callable[[], Array]:
    """Begin to copy a tensor to the host; return what waits for it and gives the array."""
    if tensor.device.type != "cuda":
        return lambda: tensor.cpu().numpy()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()

    def wait() -> Array:
        event.synchronize()
        array: Array = host.numpy()
        return array

    return wait


CALLS_MAX = 2
"""Calls whose sequences are encoded or being encoded: the one that runs, and the next."""


class EncodedAhead(Generic[Encoded]):
    """Encodes the sequences of the next call in a thread, while those of this one are embedded.

    No two threads encode at once: tokenizers are not made for that.
    """

    def __init__(self, encode: Callable[[Sequence[str]], Encoded]) -> None:
        self._encode = encode
        self._pool: ThreadPoolExecutor | None = None
        self._begun: deque[tuple[list[str], Future[Encoded]]] = deque()

    def begin(self, sequences: Sequence[str]) -> None:
        """Begin to encode the sequences of a later call."""
        if len(self._begun) >= CALLS_MAX:
            return
        listed = list(sequences)
        # A sandbox may allow no more threads: then nothing is begun, and `take` encodes.
        with contextlib.suppress(RuntimeError):
            self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="encode")
            self._begun.append((listed, self._pool.submit(self._encode, listed)))

    def take(self, sequences: Sequence[str]) -> Encoded:
        """Return what `encode` gives, or raise what it does."""
        listed = list(sequences)
        while self._begun:
            begun, future = self._begun.popleft()
            if begun == listed:
                return future.result()
            future.exception()  # waits: the thread must be done before this one encodes
        return self._encode(listed)

"""Keep a device busy: send batches and fetch results while other batches are computed.

On a GPU all work is queued: the forward pass of a batch is queued before the program waits for the
result of the previous batch, and copies to and from the GPU use pinned memory. On a CPU nothing is
queued, and each result is ready at once. Batches and results are the same on both.
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

PENDING_MAX = 1
"""Number of results that may be pending while the next batch is queued: one is enough to keep the
queue of a GPU from running empty."""

Array = npt.NDArray[np.generic]
"""Type of an array of numbers."""
Batch = TypeVar("Batch")
"""Type of what identifies a batch, such as the indices of its sequences."""
Encoded = TypeVar("Encoded")
"""Type of the result of encoding."""


def on_device(tensor: Tensor, device: str) -> Tensor:
    """Return a copy of a host tensor on the device; a GPU may still be copying it."""
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def host_arrays(
    computed: Iterator[tuple[Batch, Tensor]],
) -> Iterator[tuple[Batch, Array]]:
    """Yield (batch, result as array) in order, each after `PENDING_MAX` later ones are queued."""
    waiting: deque[tuple[Batch, Callable[[], Array]]] = deque()
    for batch, tensor in computed:
        waiting.append((batch, to_host(tensor)))
        while len(waiting) > PENDING_MAX:
            earlier_batch, wait = waiting.popleft()
            yield earlier_batch, wait()
    while waiting:
        earlier_batch, wait = waiting.popleft()
        yield earlier_batch, wait()


def to_host(tensor: Tensor) -> Callable[[], Array]:
    """Start to copy a tensor to the host; return a function that waits and returns the array."""
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
"""Maximum number of calls whose sequences are encoded in advance: the running and the next one."""


class EncodedAhead(Generic[Encoded]):
    """Encodes the sequences of the next call in a thread, while the current call embeds others.

    Only one thread encodes at a time, as tokenizers are not thread-safe.
    """

    def __init__(self, encode: Callable[[Sequence[str]], Encoded]) -> None:
        """Prepare a thread that calls `encode`."""
        self._encode = encode
        self._pool: ThreadPoolExecutor | None = None
        self._begun: deque[tuple[list[str], Future[Encoded]]] = deque()

    def begin(self, sequences: Sequence[str]) -> None:
        """Start to encode the sequences that a later call of `take` will get."""
        if len(self._begun) >= CALLS_MAX:
            return
        sequence_list = list(sequences)
        # A sandbox may allow no more threads; then `take` encodes.
        with contextlib.suppress(RuntimeError):
            self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="encode")
            self._begun.append((sequence_list, self._pool.submit(self._encode, sequence_list)))

    def take(self, sequences: Sequence[str]) -> Encoded:
        """Return the encoded sequences: the result of `begin`, or encoded now.

        Raise the same errors as `encode`.
        """
        sequence_list = list(sequences)
        while self._begun:
            begun_sequences, future = self._begun.popleft()
            if begun_sequences == sequence_list:
                return future.result()
            future.exception()  # wait, as the thread must have ended before this one encodes
        return self._encode(sequence_list)

"""Extractors that take more than their share, or do not end."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from .base import BaseEmbeddingExtractor


class ForkBomb(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        while True:
            with contextlib.suppress(OSError):
                os.fork()
            time.sleep(0.02)  # so that most cores are left to whoever watches


class ThreadBomb(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        import threading

        while True:
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


class Terabyte(BaseEmbeddingExtractor):
    """Takes one, piece by piece, and writes to each page."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        held = []
        while True:
            held.append(np.ones(1 << 22, dtype=np.uint8))
            time.sleep(0.001)


class Grows(BaseEmbeddingExtractor):
    """Takes half a mebibyte for each padded letter of a batch, as a large model would."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        letters = max(map(len, sequences)) * len(sequences)
        held = np.ones((letters, 1 << 19), dtype=np.uint8)
        return np.array([[s.count("A") * held[-1, -1]] for s in sequences], dtype=np.float32)


class MemoryFile(BaseEmbeddingExtractor):
    """Keeps memory in files without a name, where no process' resident size shows it."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        while True:
            descriptor = os.memfd_create("hidden")
            os.write(descriptor, b"x" * (1 << 22))
            time.sleep(0.002)


class FillTmp(BaseEmbeddingExtractor):
    """Writes until there is no room, and then says so."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        index = 0
        while True:
            Path(f"/tmp/{index}").write_bytes(b"x" * (1 << 20))
            index += 1


class Endless(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        while True:
            pass


class Deaf(BaseEmbeddingExtractor):
    """Ignores every signal that can be ignored, in a session of its own."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        ignore_signals()
        time.sleep(60)
        raise AssertionError


def ignore_signals() -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)


class StopsPidOne(BaseEmbeddingExtractor):
    """Stops the sandbox's own pid 1, so that nothing inside ends anything."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        stop_pid_one()
        time.sleep(60)
        raise AssertionError


def stop_pid_one() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    attached = libc.ptrace(16, 1, None, None)
    with contextlib.suppress(OSError):
        os.kill(1, signal.SIGSTOP)
    print("attached" if attached == 0 else "refused", flush=True)  # noqa: T201


class Flood(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        for _ in range(50):
            sys.stdout.write("y" * (1 << 20))
        return np.zeros((len(sequences), 2), dtype=np.float32)


class ClosesEverything(BaseEmbeddingExtractor):
    """Lets go of both pipes and stays."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        os.closerange(0, 64)
        time.sleep(60)
        raise AssertionError


class Stays(BaseEmbeddingExtractor):
    """Does all that the last three do."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        stop_pid_one()
        ignore_signals()
        os.closerange(0, 64)
        time.sleep(60)
        raise AssertionError

"""Extractors that give back something else than a matrix, some past the worker to its pipe."""

import os
import pickle
import stat
import struct
from collections.abc import Callable, Iterator

import numpy as np

from .base import BaseEmbeddingExtractor

HEADER = struct.Struct("<8sHHIQQ")


class Opened:
    """Would run a command in whoever unpickles it."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch /tmp/geneb-ci-was-unpickled",)


class Returns(BaseEmbeddingExtractor):
    """Returns, from extract_embeddings, what its subclass makes."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        return self.make(len(sequences))

    def make(self, n: int) -> np.ndarray:
        raise NotImplementedError


class ReturnsObjects(Returns):
    def make(self, n: int) -> np.ndarray:
        return np.array([[Opened()] for _ in range(n)], dtype=object)


class ReturnsNan(Returns):
    def make(self, n: int) -> np.ndarray:
        rows = np.zeros((n, 2), dtype=np.float32)
        rows[-1, 1] = np.nan
        return rows


class ReturnsTooFew(Returns):
    def make(self, n: int) -> np.ndarray:
        return np.zeros((n - 1, 2), dtype=np.float32)


class ReturnsNoWidth(Returns):
    def make(self, n: int) -> np.ndarray:
        return np.zeros((n, 0), dtype=np.float32)


class ReturnsOneDimension(Returns):
    def make(self, n: int) -> np.ndarray:
        return np.zeros(n, dtype=np.float32)


class Writes(BaseEmbeddingExtractor):
    """Finds the pipe of the result, writes what its subclass makes, and leaves with success."""

    def extract_embeddings(self, sequences: list[str], batch_size: int = 1) -> np.ndarray:
        pipe = next(n for n in range(3, 64) if self.is_pipe(n))
        for piece in self.pieces(len(sequences)):
            os.write(pipe, piece)
        os._exit(0)

    @staticmethod
    def is_pipe(number: int) -> bool:
        try:
            return stat.S_ISFIFO(os.fstat(number).st_mode)
        except OSError:
            return False

    def pieces(self, n: int) -> Iterator[bytes]:
        raise NotImplementedError


def header(n: int, d: int, size: int = 4) -> bytes:
    return HEADER.pack(b"GENEBEMB", 1, size, 0, n, d)


class WritesPickle(Writes):
    def pieces(self, n: int) -> Iterator[bytes]:
        yield pickle.dumps(Opened()) + bytes(64)


class WritesNothing(Writes):
    def pieces(self, n: int) -> Iterator[bytes]:
        return iter(())


class WritesTooLittle(Writes):
    def pieces(self, n: int) -> Iterator[bytes]:
        yield header(n, 2) + bytes(8 * n - 1)


class WritesForEver(Writes):
    def pieces(self, n: int) -> Iterator[bytes]:
        yield header(n, 2)
        while True:
            yield bytes(1 << 16)

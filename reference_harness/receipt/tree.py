"""The Merkle trees of a receipt: one over the rows of each task, one over the tasks.

The shape is that of RFC 6962: the left subtree of n leaves has the largest power of two below n; no
leaf is padded or repeated. Node: SHA-256(0x01 || left || right).

    leaf of row i     SHA-256(0x00 || row || i as 8 bytes)
    leaf of a task    SHA-256(0x00 || id in UTF-8 || 0x00 || rows (8) || dim (4) || scale_log2 (4)
                              || root of its rows)

Integers are big-endian, scale_log2 in two's complement. A row is its float16 values, little-endian.
"""

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

LEAF, NODE = b"\x00", b"\x01"


def row_leaf(row: bytes | memoryview, index: int) -> bytes:
    """Return the leaf of a row."""
    found = hashlib.sha256(LEAF)
    found.update(row)
    found.update(struct.pack(">Q", index))
    return found.digest()


def task_leaf(task_id: str, rows: int, dim: int, scale_log2: int, root: bytes) -> bytes:
    """Return the leaf of a task."""
    counts = struct.pack(">QIi", rows, dim, scale_log2)
    return hashlib.sha256(LEAF + task_id.encode() + b"\x00" + counts + root).digest()


class _Subtree(NamedTuple):
    leaves: int
    """A power of two."""
    root: bytes


class Tree:
    """A tree that grows leaf by leaf; it holds one digest for each binary digit of its size."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._whole: list[_Subtree] = []
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        """Append the digest of a leaf."""
        made = _Subtree(1, leaf)
        while self._whole and self._whole[-1].leaves == made.leaves:
            left = self._whole.pop()
            made = _Subtree(left.leaves + made.leaves, _node(left.root, made.root))
        self._whole.append(made)

    def root(self) -> bytes:
        """Return the root. Raises ValueError for a tree without leaves."""
        if not self._whole:
            msg = "a tree without leaves has no root here"
            raise ValueError(msg)
        found = self._whole[-1].root
        for left in reversed(self._whole[:-1]):
            found = _node(left.root, found)
        return found


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(NODE + left + right).digest()

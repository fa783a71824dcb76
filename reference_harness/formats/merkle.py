"""Merkle trees of RFC 6962: of the embeddings and tasks of a receipt, and of a log.

The left subtree of n leaves has the largest power of two below n; no leaf is padded or repeated.
Node: SHA-256(0x01 || left || right), leaf: SHA-256(0x00 || entry).

    entry of embedding i   float16 values, little-endian || i as 8 bytes
    entry of a task        id in UTF-8 || 0x00 || embeddings (8) || dim (4) || scale_log2 (4) ||
                           root of its embeddings

Integers are big-endian, scale_log2 in two's complement.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LEAF, NODE = b"\x00", b"\x01"
"""First byte of what is hashed: no leaf can be taken for a node."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry, 32 bytes."""
    return hashlib.sha256(LEAF + entry).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaf hashes; SHA-256 of nothing where there are none."""
    if not leaves:
        return hashlib.sha256().digest()
    row = list(leaves)
    while len(row) > 1:  # a last node without a sibling goes up as it is
        pairs = zip(row[::2], row[1::2], strict=False)
        odd = row[-1:] if len(row) % 2 else []
        row = [_node(left, right) for left, right in pairs] + odd
    return row[0]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from the leaf at `index` to the root, the sibling first.

    `index` is below the number of leaves.
    """
    if len(leaves) == 1:
        return []
    left, right = _split(leaves)
    if index < len(left):
        return [*inclusion_proof(left, index), root_of(right)]
    return [*inclusion_proof(right, index - len(left)), root_of(left)]


def _split(leaves: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split at the largest power of two below the number of leaves, of which there are several."""
    at = 1 << (len(leaves) - 1).bit_length() - 1
    return leaves[:at], leaves[at:]


def embedding_leaf(row: bytes | memoryview, index: int) -> bytes:
    """Return the leaf of an embedding."""
    digest = hashlib.sha256(LEAF)
    digest.update(row)
    digest.update(struct.pack(">Q", index))
    return digest.digest()


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
        subtree = _Subtree(1, leaf)
        while self._whole and self._whole[-1].leaves == subtree.leaves:
            left = self._whole.pop()
            subtree = _Subtree(left.leaves + subtree.leaves, _node(left.root, subtree.root))
        self._whole.append(subtree)

    def root(self) -> bytes:
        """Return the root. Raises ValueError for a tree without leaves."""
        if not self._whole:
            msg = "a tree without leaves has no root here"
            raise ValueError(msg)
        root = self._whole[-1].root
        for subtree in reversed(self._whole[:-1]):
            root = _node(subtree.root, root)
        return root


class EmbeddingTree:
    """The tree over the embeddings of one task, with all its levels."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._levels = [list(leaves)]
        while len(self._levels[-1]) > 1:
            row = self._levels[-1]
            pairs = zip(row[::2], row[1::2], strict=False)
            odd = row[-1:] if len(row) % 2 else []  # goes up as it is
            self._levels.append([_node(left, right) for left, right in pairs] + odd)

    @property
    def root(self) -> bytes:
        """The root; there is at least one leaf."""
        return self._levels[-1][0]

    def proof(self, index: int) -> list[bytes]:
        """Return the hashes that lead from the leaf at `index` to the root, the sibling first."""
        siblings = []
        for level in self._levels[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                siblings.append(level[sibling])
            index //= 2
        return siblings


def root_by(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof leads to from the leaf at `index` of `size`.

    None where the proof is too short or too long, or there is no such leaf.
    """
    if not 0 <= index < size:
        return None
    hashes, root = list(proof), leaf
    while size > 1:
        sibling = index ^ 1
        if sibling < size:
            if not hashes:
                return None
            sibling_hash = hashes.pop(0)
            root = _node(sibling_hash, root) if index & 1 else _node(root, sibling_hash)
        index, size = index // 2, (size + 1) // 2
    return None if hashes else root


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(NODE + left + right).digest()

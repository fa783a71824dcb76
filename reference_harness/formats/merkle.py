"""Merkle trees of RFC 6962: of the embeddings and tasks of a receipt, and of a log.

The left subtree of n leaves has as many as the largest power of two below n; no leaf is added or
repeated. A node is SHA-256(0x01 || left || right), a leaf is SHA-256(0x00 || entry).

  entry of embedding i   float16 values, little-endian || i as 8 bytes
  entry of a task        id in UTF-8 || 0x00 || embeddings (8) || dim (4) || scale_log2 (4) ||
                         root of its embeddings

Integers are big-endian, scale_log2 in two's complement.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LEAF_PREFIX, NODE_PREFIX = b"\x00", b"\x01"
"""First byte of the hashed data, so that no leaf can be mistaken for a node."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry, 32 bytes."""
    return hashlib.sha256(LEAF_PREFIX + entry).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaf hashes; SHA-256 of b"" if there are none."""
    if not leaves:
        return hashlib.sha256().digest()
    level = list(leaves)
    while len(level) > 1:  # a last node without a sibling is copied to the next level
        pairs = zip(level[::2], level[1::2], strict=False)
        unpaired = level[-1:] if len(level) % 2 else []
        level = [_parent_hash(left, right) for left, right in pairs] + unpaired
    return level[0]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from the leaf at `index` to the root, the sibling first.

    `index` must be below the number of leaves.
    """
    if len(leaves) == 1:
        return []
    left, right = _split(leaves)
    if index < len(left):
        return [*inclusion_proof(left, index), root_of(right)]
    return [*inclusion_proof(right, index - len(left)), root_of(left)]


def _split(leaves: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split two or more leaves at the largest power of two below their number."""
    left_size = 1 << (len(leaves) - 1).bit_length() - 1
    return leaves[:left_size], leaves[left_size:]


def embedding_leaf(values: bytes | memoryview, index: int) -> bytes:
    """Return the leaf hash of the embedding at `index`; `values` are its bytes in float16."""
    digest = hashlib.sha256(LEAF_PREFIX)
    digest.update(values)
    digest.update(struct.pack(">Q", index))
    return digest.digest()


def task_leaf(task_id: str, embeddings: int, dim: int, scale_log2: int, root: bytes) -> bytes:
    """Return the leaf hash of a task with this number of embeddings; `root` is over these."""
    counts = struct.pack(">QIi", embeddings, dim, scale_log2)
    return hashlib.sha256(LEAF_PREFIX + task_id.encode() + b"\x00" + counts + root).digest()


class _Subtree(NamedTuple):
    """A complete subtree, of which only the root is stored."""

    leaves: int
    """Number of leaves, a power of two."""
    root: bytes
    """Hash of the root."""


class Tree:
    """A tree to which leaves are appended; of n leaves, it stores at most log2(n) + 1 digests."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        """Append the hashes of some leaves, none by default."""
        self._subtrees: list[_Subtree] = []
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        """Append the hash of a leaf."""
        subtree = _Subtree(1, leaf)
        while self._subtrees and self._subtrees[-1].leaves == subtree.leaves:
            left = self._subtrees.pop()
            subtree = _Subtree(left.leaves + subtree.leaves, _parent_hash(left.root, subtree.root))
        self._subtrees.append(subtree)

    def root(self) -> bytes:
        """Return the root. Raise ValueError for a tree without leaves."""
        if not self._subtrees:
            msg = "this tree has no leaves, and so no root"
            raise ValueError(msg)
        root = self._subtrees[-1].root
        for subtree in reversed(self._subtrees[:-1]):
            root = _parent_hash(subtree.root, root)
        return root


class EmbeddingTree:
    """The tree over the embeddings of one task, with all its levels."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        """Compute all levels from the hashes of the leaves."""
        self._levels = [list(leaves)]
        while len(self._levels[-1]) > 1:
            level = self._levels[-1]
            pairs = zip(level[::2], level[1::2], strict=False)
            unpaired = level[-1:] if len(level) % 2 else []  # is copied to the next level
            self._levels.append([_parent_hash(left, right) for left, right in pairs] + unpaired)

    @property
    def root(self) -> bytes:
        """The root of the tree, which must have a leaf."""
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


def root_from_proof(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root to which a proof leads from the leaf at `index` of `size`.

    Return None if the proof is too short or too long, or there is no such leaf.
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
            root = (
                _parent_hash(sibling_hash, root) if index & 1 else _parent_hash(root, sibling_hash)
            )
        index, size = index // 2, (size + 1) // 2
    return None if hashes else root


def _parent_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of the node above two nodes."""
    return hashlib.sha256(NODE_PREFIX + left + right).digest()

"""The Merkle tree of RFC 6962: root, inclusion proof and consistency proof, from leaf hashes."""

import hashlib
from collections.abc import Sequence

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
        row = [hashlib.sha256(NODE + one + other).digest() for one, other in pairs] + odd
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


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Return the hashes that show that the tree begins with the tree of its first `old` leaves.

    There are none for a tree without leaves, or for the same tree.
    """
    return [] if old == 0 else _consistency(leaves, old, is_whole=True)


def _consistency(leaves: Sequence[bytes], old: int, *, is_whole: bool) -> list[bytes]:
    if old == len(leaves):
        return [] if is_whole else [root_of(leaves)]
    left, right = _split(leaves)
    if old <= len(left):
        return [*_consistency(left, old, is_whole=is_whole), root_of(right)]
    return [*_consistency(right, old - len(left), is_whole=False), root_of(left)]


def _split(leaves: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split at the largest power of two below the number of leaves, of which there are several."""
    at = 1 << (len(leaves) - 1).bit_length() - 1
    return leaves[:at], leaves[at:]

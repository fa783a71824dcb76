"""The Merkle tree of RFC 6962, its proofs, and its files as c2sp.org/tlog-tiles lays them out.

Every file is a function of the entries. A partial tile has the number of its hashes in its name, so
that a file never changes once a checkpoint that needs it was published.
"""

import hashlib
from collections.abc import Mapping, Sequence

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


WIDTH = 256
"""Hashes of a full tile, entries of a full bundle."""
ENTRY_BYTES_MAX = 2**16 - 1
"""The length of an entry is written in two bytes."""
ENTRIES = "tile/entries"
_LENGTH_BYTES = 2
_GROUP = 1000


class BadBundle(ValueError):  # noqa: N818 (named after what is wrong)
    """A bundle that is missing, cut or too long; the message says which."""


def tile_files(entries: Sequence[bytes]) -> dict[str, bytes]:
    """Return the files of a tree over these entries: path below the log to content."""
    found: dict[str, bytes] = {}
    for start in range(0, len(entries), WIDTH):
        bundle = entries[start : start + WIDTH]
        content = b"".join(len(one).to_bytes(_LENGTH_BYTES, "big") + one for one in bundle)
        found[tile_path(ENTRIES, start // WIDTH, len(bundle))] = content
    hashes, level = [leaf_hash(one) for one in entries], 0
    while hashes:
        tiles = [hashes[start : start + WIDTH] for start in range(0, len(hashes), WIDTH)]
        for number, tile in enumerate(tiles):
            found[tile_path(f"tile/{level}", number, len(tile))] = b"".join(tile)
        # A partial tile has no hash in the level above.
        hashes, level = [root_of(tile) for tile in tiles if len(tile) == WIDTH], level + 1
    return found


def tile_path(folder: str, number: int, width: int) -> str:
    """Return the path of a tile: groups of three digits, all but the last with an `x`."""
    groups = [f"{number % _GROUP:03}"]
    while number := number // _GROUP:
        groups.insert(0, f"x{number % _GROUP:03}")
    return f"{folder}/{'/'.join(groups)}" + (f".p/{width}" if width < WIDTH else "")


def read_entries(files: Mapping[str, bytes], size: int) -> list[bytes]:
    """Return the first `size` entries of a log from its files. Raises BadBundle."""
    found: list[bytes] = []
    while len(found) < size:
        width = min(WIDTH, size - len(found))
        path = tile_path(ENTRIES, len(found) // WIDTH, width)
        if path not in files:
            raise BadBundle(f"{path} is missing")
        bundle = _split_bundle(files[path])
        if bundle is None or len(bundle) != width:
            raise BadBundle(f"{path} is not {width} entries, each after its length")
        found += bundle
    return found


def _split_bundle(raw: bytes) -> list[bytes] | None:
    """Return the entries of a bundle; None where the last one is cut."""
    found, at = [], 0
    while at < len(raw):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(raw[at:start], "big")
        if start > len(raw) or at > len(raw):
            return None
        found.append(raw[start:at])
    return found

"""The files of a Merkle tree as c2sp.org/tlog-tiles lays them out.

Every file is a function of the entries. A partial tile has the number of its hashes in its name, so
that a file never changes once a checkpoint that needs it was published.
"""

from collections.abc import Mapping, Sequence

from reference_harness.formats.merkle import leaf_hash, root_of

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
    files: dict[str, bytes] = {}
    for start in range(0, len(entries), WIDTH):
        bundle = entries[start : start + WIDTH]
        content = b"".join(len(entry).to_bytes(_LENGTH_BYTES, "big") + entry for entry in bundle)
        files[tile_path(ENTRIES, start // WIDTH, len(bundle))] = content
    hashes, level = [leaf_hash(entry) for entry in entries], 0
    while hashes:
        tiles = [hashes[start : start + WIDTH] for start in range(0, len(hashes), WIDTH)]
        for number, tile in enumerate(tiles):
            files[tile_path(f"tile/{level}", number, len(tile))] = b"".join(tile)
        # A partial tile has no hash in the level above.
        hashes, level = [root_of(tile) for tile in tiles if len(tile) == WIDTH], level + 1
    return files


def tile_path(folder: str, number: int, width: int) -> str:
    """Return the path of a tile: groups of three digits, all but the last with an `x`."""
    groups = [f"{number % _GROUP:03}"]
    while number := number // _GROUP:
        groups.insert(0, f"x{number % _GROUP:03}")
    return f"{folder}/{'/'.join(groups)}" + (f".p/{width}" if width < WIDTH else "")


def read_entries(files: Mapping[str, bytes], size: int) -> list[bytes]:
    """Return the first `size` entries of a log from its files. Raises BadBundle."""
    entries: list[bytes] = []
    while len(entries) < size:
        width = min(WIDTH, size - len(entries))
        path = tile_path(ENTRIES, len(entries) // WIDTH, width)
        if path not in files:
            raise BadBundle(f"{path} is missing")
        bundle = _split_bundle(files[path])
        if bundle is None or len(bundle) != width:
            raise BadBundle(f"{path} is not {width} entries, each after its length")
        entries += bundle
    return entries


def _split_bundle(raw: bytes) -> list[bytes] | None:
    """Return the entries of a bundle; None where the last one is cut."""
    entries, at = [], 0
    while at < len(raw):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(raw[at:start], "big")
        if start > len(raw) or at > len(raw):
            return None
        entries.append(raw[start:at])
    return entries

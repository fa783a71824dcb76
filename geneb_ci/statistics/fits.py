"""Fits that were computed before, as doubles: that of the shipped rows, and those a run kept."""

import binascii
import itertools
import json
import math
import struct
from collections.abc import Iterable, Sequence

from geneb_ci.common.files import KeptBytes
from geneb_ci.common.shipped import read_shipped

FIT_FILE = "shipped-fit.json"
FIT_BYTES_MAX = 1_000_000  # 41 rows of 300 cells take 290 kB
_FIT_NOTE = (
    "Fit of the shipped rows: the doubles of unit, inverse, products, leverage, sizes and pooled, "
    "little-endian, in base64. Written by `make generate`; other rows are fitted when needed."
)


def packed(lines: Iterable[Iterable[float]]) -> bytes:
    """Return all numbers of lines as little-endian doubles."""
    numbers = list(itertools.chain.from_iterable(lines))
    return struct.pack(f"<{len(numbers)}d", *numbers)


def fit_text(identity: str, doubles: bytes) -> str:
    """Return the text of `FIT_FILE`."""
    text = binascii.b2a_base64(doubles, newline=False).decode()
    return json.dumps({"note": _FIT_NOTE, "rows": identity, "doubles": text}, indent=1) + "\n"


def known_fit(
    identity: str, shapes: Sequence[tuple[int, int]], kept: KeptBytes | None
) -> list[list[list[float]]] | None:
    """Return the tables of these shapes of a fit that is known; None where it has to be computed.

    `identity` is a digest of all that the fit depends on.
    """
    name, raw = read_shipped(
        FIT_FILE, FIT_BYTES_MAX, lambda it: (it["rows"], binascii.a2b_base64(it["doubles"]))
    )
    doubles = raw if name == identity else kept.kept(identity) if kept is not None else None
    if doubles is None or len(doubles) != 8 * sum(height * width for height, width in shapes):
        return None
    numbers = struct.unpack(f"<{len(doubles) // 8}d", doubles)
    if not all(map(math.isfinite, numbers)):
        return None
    rest = iter(numbers)
    return [
        [list(itertools.islice(rest, width)) for _ in range(height)] for height, width in shapes
    ]

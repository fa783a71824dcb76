"""Files that ship with the package, and results about them that `make generate` precomputed.

The results are stored by digest of a file; a file with another digest is read and checked in full.
"""

import binascii
import functools
import itertools
import json
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from geneb_ci.common.errors import BrokenInstallation
from reference_harness.formats.files import NotReadable, read_json, read_regular

_PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
_FOLDERS_BY_KIND = {
    "schemas": (_PACKAGE_FOLDER / "_shipped" / "schemas", _PACKAGE_FOLDER.parent / "schemas"),
    "page": (_PACKAGE_FOLDER / "_shipped" / "page", _PACKAGE_FOLDER.parent / "leaderboard"),
    "policy": (
        _PACKAGE_FOLDER / "_shipped" / "policy",
        _PACKAGE_FOLDER.parent / "leaderboard" / "policy",
    ),
    "repository": (_PACKAGE_FOLDER / "_shipped" / "repository", _PACKAGE_FOLDER.parent),
}
"""Folders of the shipped files of each kind: in an installed package, and in a clone."""


def shipped(kind: str, name: str) -> Path:
    """Return the path of a shipped file; `kind` is "schemas", "page", "policy" or "repository".

    "repository" has the files of a new repository of a board, by their path in it.

    Raises BrokenInstallation if the file does not exist.
    """
    for parent in _FOLDERS_BY_KIND[kind]:
        if (parent / name).is_file():
            return parent / name
    raise BrokenInstallation(
        f"the shipped file {kind}/{name} is missing",
        "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
    )


def shipped_files(folder: str, kind: str = "repository") -> list[str]:
    """Return the sorted paths of the shipped files below `folder`.

    `kind` is "schemas", "page", "policy" or "repository"; `folder` and the paths are relative to
    the root of that kind. Raises BrokenInstallation if there is no `folder`.
    """
    for parent in _FOLDERS_BY_KIND[kind]:
        if (parent / folder).is_dir():
            return sorted(
                path.relative_to(parent).as_posix()
                for path in (parent / folder).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            )
    raise BrokenInstallation(
        f"the shipped folder {folder} is missing",
        "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
    )


def toolkit_files() -> dict[str, Path]:
    """Return the installed code of the toolkit and the harness, by its path in a repository."""
    return {
        path.relative_to(_PACKAGE_FOLDER.parent).as_posix(): path
        for package in (_PACKAGE_FOLDER, _PACKAGE_FOLDER.parent / "reference_harness")
        for path in sorted(package.rglob("*"))
        if path.is_file() and not {"_shipped", "__pycache__"} & set(path.parts)
    }


KNOWN_FILES_LIST = "known.json"
"""Shipped file that lists known files by digest."""
KNOWN_FILES_BYTES_MAX = 10_000_000
"""Maximum size of that list; an entry of the model registry takes 400 bytes."""


class KnownFiles(NamedTuple):
    """Files that `make generate` found to be valid, so that they need not be checked again."""

    benchmarks: frozenset[str]
    """SHA-256 of each benchmark definition."""
    models: dict[str, dict[str, Any]]
    """Facts of each entry of the model registry (`ModelEntry.attributes`), by its SHA-256."""


@functools.cache
def known_files() -> KnownFiles:
    """Return the files known to be valid. Raises BrokenInstallation if their list is damaged."""
    return read_shipped(
        KNOWN_FILES_LIST,
        KNOWN_FILES_BYTES_MAX,
        lambda value: KnownFiles(frozenset(value["benchmarks"]), value["models"]),
    )


T = TypeVar("T")


def read_shipped(file_name: str, bytes_max: int, parse: Callable[[Any], T]) -> T:
    """Read a shipped JSON file of `schemas`, and return the result of `parse` for its content.

    Raises BrokenInstallation if the file is missing, too large or damaged.
    """
    path = shipped("schemas", file_name)
    try:
        return parse(read_json(read_regular(path, bytes_max), is_own=True))
    except (NotReadable, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenInstallation(
            f"the shipped file {path} cannot be read: {error}",
            "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
        ) from error


FIT_FILE = "shipped-fit.json"
"""Shipped file with the statistical fit of the shipped rows, from which scores are predicted."""
FIT_BYTES_MAX = 1_000_000
"""Maximum size of the fit; 41 rows of 300 cells take 290 kB."""
_FIT_NOTE = (
    "Fit of the shipped rows: the doubles of unit, inverse, products, leverage, sizes and pooled, "
    "little-endian, in base64. Written by `make generate`; other rows are fitted when needed."
)


def doubles_as_bytes(lines: Iterable[Iterable[float]]) -> bytes:
    """Return the numbers of all lines, in order, as little-endian doubles."""
    numbers = list(itertools.chain.from_iterable(lines))
    return struct.pack(f"<{len(numbers)}d", *numbers)


def fit_text(identity: str, doubles: bytes) -> str:
    """Return the text of `FIT_FILE`: the numbers `doubles` of the fit with digest `identity`."""
    text = binascii.b2a_base64(doubles, newline=False).decode()
    return json.dumps({"note": _FIT_NOTE, "rows": identity, "doubles": text}, indent=1) + "\n"


def shipped_fit(identity: str, shapes: Sequence[tuple[int, int]]) -> list[list[list[float]]] | None:
    """Return the matrices of the shipped fit, with these shapes; None if the file has another fit.

    `identity` is a digest of everything that the requested fit depends on.
    """
    shipped_identity, shipped_doubles = read_shipped(
        FIT_FILE, FIT_BYTES_MAX, lambda fit: (fit["rows"], binascii.a2b_base64(fit["doubles"]))
    )
    doubles = shipped_doubles if shipped_identity == identity else b""
    if len(doubles) != 8 * sum(height * width for height, width in shapes):
        return None
    numbers = struct.unpack(f"<{len(doubles) // 8}d", doubles)
    if not all(map(math.isfinite, numbers)):
        return None
    numbers_left = iter(numbers)
    return [
        [list(itertools.islice(numbers_left, width)) for _ in range(height)]
        for height, width in shapes
    ]

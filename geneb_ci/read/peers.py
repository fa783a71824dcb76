"""The other rows of a board, as far as a rule may compare a submission with them."""

import functools
import hashlib
import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic_core

from geneb_ci.errors import NothingChecked
from geneb_ci.read.bytes import read_bytes

_SEPARATORS = re.compile(r"[-_.]+")


def normal_form(model_id: str) -> str:
    """Give the form in which ids must be unique: casefolded, runs of - _ . as one hyphen."""
    return _SEPARATORS.sub("-", model_id.casefold())


def results_digest(results: Any) -> str | None:  # noqa: ANN401 (JSON has no narrower type)
    """Digest the scores of a results table, whatever the order of its keys; None without scores."""
    names: list[str] = []
    values: list[float] = []
    if not isinstance(results, dict):
        return None
    for regime in sorted(results):
        tasks = results[regime] if isinstance(results[regime], dict) else {}
        for task in sorted(tasks):
            scores = tasks[task] if isinstance(tasks[task], dict) else {}
            for metric in sorted(scores):
                if type(scores[metric]) in {int, float}:
                    names.append(f"{regime}\0{task}\0{metric}")
                    values.append(_double(scores[metric]))
    if not values:
        return None
    packed = struct.pack(f"<{len(values)}d", *values)  # in one order of bytes on every machine
    return hashlib.sha256("\0".join(names).encode() + packed).hexdigest()


def _double(number: float) -> float:
    """Give the number as the scanner would; no score is too large for a double, or is -0.0."""
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Peers:
    """Files beside the one under check."""

    paths: tuple[Path, ...] = ()

    @functools.cached_property
    def ids(self) -> dict[str, list[Path]]:
        """Normal form of each file's name to the files that have it."""
        found: dict[str, list[Path]] = {}
        for path in self.paths:
            found.setdefault(normal_form(path.stem), []).append(path)
        return found

    @functools.cached_property
    def by_digest(self) -> dict[str, list[Path]]:
        """Digest of all scores to the files that have them.

        A peer is judged when it is itself under check; here, one that cannot be read has no scores.
        """
        found: dict[str, list[Path]] = {}
        for path in self.paths:
            digest = _digest_of(path)
            if digest:
                found.setdefault(digest, []).append(path)
        return found


def _digest_of(path: Path) -> str | None:
    try:
        raw = read_bytes(path)
        value = pydantic_core.from_json(raw) if isinstance(raw, bytes) else None
    except (NothingChecked, ValueError):
        return None
    return results_digest(value.get("results")) if isinstance(value, dict) else None


def peers_of(paths: Iterable[Path]) -> Peers:
    """Give the peers, each file once, in the order of their names."""
    return Peers(tuple(sorted(set(paths))))

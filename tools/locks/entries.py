"""Reads a lock: pinned releases with the environments they are for and their files' hashes."""

import re
from dataclasses import dataclass

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

HASH = re.compile(r"\s--hash=sha256:([0-9a-f]{64})(?=\s|$)")
HEADER = "# Hashes of every wheel and sdist that each release had by "


class LockError(Exception):
    """The lock is not one that `make lock` writes."""


@dataclass(frozen=True)
class Entry:
    """One pinned release."""

    name: str
    version: str
    marker: Marker | None
    hashes: frozenset[str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def read_lock(text: str) -> list[Entry]:
    """Read every entry; a line that is none is an error, since pip would act on it."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines()]
    return [_entry(line) for line in lines if line and not line.startswith("#")]


def _entry(line: str) -> Entry:
    hashes = HASH.findall(line)
    try:
        requirement = Requirement(HASH.sub("", line))
    except InvalidRequirement as error:
        raise LockError(f"expected NAME==VERSION with sha256 hashes, found: {line}") from error
    pins = list(requirement.specifier)
    if len(pins) != 1 or pins[0].operator != "==" or "*" in pins[0].version or requirement.url:
        raise LockError(f"expected one exact version, NAME==VERSION, found: {requirement}")
    name = canonicalize_name(requirement.name)
    return Entry(name, pins[0].version, requirement.marker, frozenset(hashes))


def published_by(text: str) -> str:
    """Return the time up to which a lock knows of published files, as it says in its header."""
    first = text.partition("\n")[0]
    if not first.startswith(HEADER):
        raise LockError(f'the first line must be "{HEADER}TIME", found: {first}')
    return first.removeprefix(HEADER)


def without_hashes(text: str) -> str:
    """Return the pins alone: a resolver then keeps the versions, and asks for hashes anew."""
    return HASH.sub("", text.replace("\\\n", " "))

"""Which mutants a run tries: a sample without replacement, the same for a seed and a source.

Each mutant has a number that depends on the seed and on what it changes, not on where that stands:
those with the least numbers are drawn. So code that changes elsewhere leaves the sample as it is.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from tools.mutants.clone import ROOT
from tools.mutants.sites import Mutant, mutants


def every(files: Iterable[str]) -> list[Mutant]:
    """Return all mutants of some files, in the order of files and places."""
    return [one for file in files for one in mutants(file, (ROOT / file).read_bytes())]


def drawn(population: Iterable[Mutant], number: int, seed: int) -> list[Mutant]:
    """Return so many of them, in the order in which they were drawn."""
    met: Counter[str] = Counter()
    sources: dict[str, list[bytes]] = {}
    numbered: list[tuple[bytes, Mutant]] = []
    for one in population:
        lines = sources.setdefault(one.file, (ROOT / one.file).read_bytes().splitlines())
        name = PurePosixPath(one.file).name
        text = lines[one.line - 1].strip().decode()
        what = f"{seed}/{name}/{one.scope}/{one.operator}/{text}/{one.new}"
        met[what] += 1
        number_of = hashlib.sha256(f"{what}/{met[what]}".encode()).digest()
        numbered.append((number_of, one))
    numbered.sort(key=lambda pair: pair[0])
    return [one for _, one in numbered[:number]]

"""Which mutants a run tries: a sample without replacement, the same for a seed and a source."""

import random
from collections.abc import Iterable

from tools.mutants.clone import ROOT
from tools.mutants.sites import Mutant, mutants


def every(files: Iterable[str]) -> list[Mutant]:
    """Return all mutants of some files, in the order of files and places."""
    return [one for file in files for one in mutants(file, (ROOT / file).read_bytes())]


def drawn(population: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """Return a sample of them, in the order in which they were drawn."""
    return random.Random(seed).sample(population, min(number, len(population)))  # noqa: S311

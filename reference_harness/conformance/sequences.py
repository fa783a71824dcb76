"""The sequences that the conformance checks embed, the same in every run."""

import random

SEED = 20261120
"""Seed of all random sequences."""
IUPAC = "RYSWKMBDHVN"
"""Ambiguity codes of IUPAC: letters that stand for several nucleotides."""
LENGTHS = (7, 12, 19, 31)
"""Lengths that leave different remainders when cut into k-mers of 3, 4 or 6 letters."""
SEQUENCE_COUNT = 41
"""Number of sequences of a larger batch: above 32, and no multiple of a usual batch size."""


def random_letters(length: int, salt: int = 0) -> str:
    """Return `length` random letters; the same for the same `length` and `salt`."""
    return "".join(random.Random(SEED + salt).choices("ACGT", k=length))  # noqa: S311 - a probe, no secret


def mixed_lengths() -> list[str]:
    """Return nine different sequences of mixed lengths."""
    return [random_letters(n, salt) for salt, n in enumerate((*LENGTHS, 12, 25, 9, 40, 12))]


def many_sequences() -> list[str]:
    """Return `SEQUENCE_COUNT` short sequences of mixed lengths."""
    return [random_letters(LENGTHS[salt % len(LENGTHS)], salt) for salt in range(SEQUENCE_COUNT)]

"""The test sequences: always the same, short ones first."""

import random

SEED = 20261120
IUPAC = "RYSWKMBDHVN"
# Three, seven, ... letters: below, at and above the width of the k-mers tokenizers cut (3, 4, 6).
LENGTHS = (7, 12, 19, 31)
# Embeddings of one larger batch: more than 32, and a multiple of no usual batch size.
SEQUENCES = 41


def random_letters(length: int, salt: int = 0) -> str:
    """Return `length` random letters, other ones for another `salt`."""
    return "".join(random.Random(SEED + salt).choices("ACGT", k=length))  # noqa: S311 - a probe, no secret


def mixed_lengths() -> list[str]:
    """Return nine sequences of mixed lengths, none equal to another."""
    return [random_letters(n, salt) for salt, n in enumerate((*LENGTHS, 12, 25, 9, 40, 12))]


def many_sequences() -> list[str]:
    """Return MANY short sequences of mixed lengths."""
    return [random_letters(LENGTHS[salt % len(LENGTHS)], salt) for salt in range(SEQUENCES)]

"""Properties of the output: one finite row of floating-point numbers per sequence."""

import numpy as np

from .probes import dna, mixed
from .result import BrokenError, difference
from .subject import Subject, call


def loads(subject: Subject) -> str:
    """Check that it is imported, built and embeds one sequence."""
    subject.embed([dna(12)], 1)
    return "It is imported, built and embeds one sequence."


def one_row_a_sequence(subject: Subject) -> str:
    """Check that the result is a numpy array (n, d), d the same for every call."""
    widths = {}
    for sequences in ([dna(12)], [dna(12), dna(12, 1)], mixed()):
        for batch_size in (1, 2, 8):
            widths[subject.embed(sequences, batch_size).shape[1]] = call(sequences, batch_size)
    if len(widths) > 1 or 0 in widths:
        msg = f"the width of a row depends on the call: {sorted(widths)}; give one width above 0"
        raise BrokenError(msg, widths[min(widths)])
    return f"Every call gives one row a sequence, {next(iter(widths))} numbers wide."


def floating_dtype(subject: Subject) -> str:
    """Check that the array holds floating-point numbers."""
    found = subject.embed([dna(12)], 1).dtype
    if not np.issubdtype(found, np.floating):
        msg = f"the array holds {found}, expected float32: convert it before it is returned"
        raise BrokenError(msg, call([dna(12)], 1))
    return f"The array holds {found}."


def finite(subject: Subject) -> str:
    """Check that no row holds NaN or infinity, and that the sequence matters."""
    for sequences in ([dna(12)], mixed()):
        found = subject.embed(sequences)
        bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if len(bad):
            msg = f"row {bad[0]} holds NaN or infinity: look for a mean over no token"
            raise BrokenError(msg, call([sequences[int(bad[0])]], 8))
    found = subject.embed(mixed())
    if difference(found[1:], np.repeat(found[:1], len(found) - 1, axis=0)) == 0.0:
        msg = "nine different sequences give the same row: the sequence is not read"
        raise BrokenError(msg, call(mixed()))
    return "All numbers are finite, and different sequences give different rows."

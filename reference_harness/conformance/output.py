"""Properties of the output: one finite embedding of floating-point numbers per sequence."""

import numpy as np

from reference_harness.embed import to_numpy

from .probes import SEQUENCES, many_sequences, mixed_lengths, random_letters
from .result import BrokenError
from .subject import Subject, call, not_finite, other_type


def loads(subject: Subject) -> str:
    """Check that it is imported, built and embeds one sequence."""
    subject.embed([random_letters(12)], 1)
    return "It is imported, built and embeds one sequence."


def one_row_a_sequence(subject: Subject) -> str:
    """Check that the result is a numpy array (n, d), d the same for every call."""
    widths = {}
    for sequences in (
        [random_letters(12)],
        [random_letters(12), random_letters(12, 1)],
        mixed_lengths(),
    ):
        for batch_size in (1, 2, 8):
            widths[subject.embed(sequences, batch_size).shape[1]] = call(sequences, batch_size)
    if len(widths) > 1 or 0 in widths:
        msg = f"the width of embeddings depends on the call: {sorted(widths)}; give one above 0"
        raise BrokenError(msg, widths[min(widths)])
    return f"Every call gives one embedding a sequence, {next(iter(widths))} numbers wide."


def floating_dtype(subject: Subject) -> str:
    """Check that every call gives an array of one floating type that a run reads."""
    calls_of: dict[str, str] = {}
    for sequences, size in (
        ([random_letters(12)], 1),
        (mixed_lengths(), 2),
        (mixed_lengths(), 8),
        (many_sequences(), SEQUENCES),
    ):
        raw = subject.raw(sequences, size)
        try:
            name = to_numpy(raw).dtype.name
        except TypeError:
            msg = (
                f"the array holds {getattr(raw, 'dtype', type(raw).__name__)}, expected float16, "
                "float32 or float64: convert it before it is returned"
            )
            raise BrokenError(msg, call(sequences, size)) from None
        calls_of[name] = call(sequences, size)
    if len(calls_of) > 1:
        first, second, *_ = calls_of
        raise BrokenError(other_type(second, first), calls_of[second])
    return f"The array holds {next(iter(calls_of))} in every call."


def finite(subject: Subject) -> str:
    """Check that no embedding holds NaN or infinity, and that the sequence matters."""
    for sequences in ([random_letters(12)], mixed_lengths()):
        rows = subject.embed(sequences)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            _say_where(subject, sequences, int(bad[0]), f"{not_finite(rows)}")
    rows = subject.embed(mixed_lengths())
    distinct = len(np.unique(rows, axis=0))
    if distinct == 1:
        msg = "nine different sequences give the same embedding: the sequence is not read"
        raise BrokenError(msg, call(mixed_lengths()))
    return (
        f"All numbers are finite, and {len(rows)} sequences give {distinct} different embeddings."
    )


def _say_where(subject: Subject, sequences: list[str], row: int, sentence: str) -> None:
    """Raise BrokenError: the sequence itself has no finite embedding, or only in a batch."""
    alone = [sequences[row]]
    if len(sequences) > 1 and np.isfinite(subject.embed(alone, 1)).all():
        sentence = (
            f"{sentence}; alone the same sequence is finite, so padding or a neighbour causes it"
        )
        raise BrokenError(sentence, f"{call(sequences)}[{row}] against {call(alone, 1)}[0]")
    raise BrokenError(sentence, call(alone))

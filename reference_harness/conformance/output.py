"""Check the output: one finite embedding of floating-point numbers per sequence.

Each check returns a sentence about what was confirmed, and raises BrokenError otherwise.
"""

import numpy as np

from reference_harness.embedding.extractor_calls import to_numpy

from .result import BrokenError
from .sequences import SEQUENCE_COUNT, many_sequences, mixed_lengths, random_letters
from .subject import Subject, call_code, not_finite_message, other_type_message


def loads(subject: Subject) -> str:
    """Check that the extractor can be imported and built, and embeds one sequence."""
    subject.embed([random_letters(12)], 1)
    return "The extractor is imported, built and embeds one sequence."


def one_row_a_sequence(subject: Subject) -> str:
    """Check that every call returns a numpy array (n, d) with the same d."""
    call_of_width = {}
    for sequences in (
        [random_letters(12)],
        [random_letters(12), random_letters(12, 1)],
        mixed_lengths(),
    ):
        for batch_size in (1, 2, 8):
            call_of_width[subject.embed(sequences, batch_size).shape[1]] = call_code(
                sequences, batch_size
            )
    if len(call_of_width) > 1 or 0 in call_of_width:
        msg = (
            f"the width of embeddings differs between calls: {sorted(call_of_width)}; expected "
            "one width above 0"
        )
        raise BrokenError(msg, call_of_width[min(call_of_width)])
    return (
        f"Every call returns one embedding per sequence, {next(iter(call_of_width))} numbers wide."
    )


def floating_dtype(subject: Subject) -> str:
    """Check that all calls return arrays of one floating-point type that a run can read."""
    call_of_type: dict[str, str] = {}
    for sequences, size in (
        ([random_letters(12)], 1),
        (mixed_lengths(), 2),
        (mixed_lengths(), 8),
        (many_sequences(), SEQUENCE_COUNT),
    ):
        output = subject.output(sequences, size)
        try:
            dtype_name = to_numpy(output).dtype.name
        except TypeError:
            msg = (
                f"the array holds {getattr(output, 'dtype', type(output).__name__)}, expected "
                "float16, float32 or float64: convert it before returning it"
            )
            raise BrokenError(msg, call_code(sequences, size)) from None
        call_of_type[dtype_name] = call_code(sequences, size)
    if len(call_of_type) > 1:
        first_type, other_type_name, *_ = call_of_type
        raise BrokenError(
            other_type_message(other_type_name, first_type), call_of_type[other_type_name]
        )
    return f"The array holds {next(iter(call_of_type))} in every call."


def finite(subject: Subject) -> str:
    """Check that embeddings hold neither NaN nor infinity, and differ between sequences."""
    for sequences in ([random_letters(12)], mixed_lengths()):
        embeddings = subject.embed(sequences)
        not_finite_indices = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
        if len(not_finite_indices):
            _refuse_not_finite(
                subject, sequences, int(not_finite_indices[0]), f"{not_finite_message(embeddings)}"
            )
    embeddings = subject.embed(mixed_lengths())
    distinct_count = len(np.unique(embeddings, axis=0))
    if distinct_count == 1:
        msg = (
            "nine different sequences have the same embedding: the extractor must read the sequence"
        )
        raise BrokenError(msg, call_code(mixed_lengths()))
    return (
        f"All numbers are finite, and {len(embeddings)} sequences have {distinct_count} different "
        "embeddings."
    )


def _refuse_not_finite(subject: Subject, sequences: list[str], row: int, sentence: str) -> None:
    """Raise BrokenError, which also says whether the sequence has a finite embedding alone."""
    alone = [sequences[row]]
    if len(sequences) > 1 and np.isfinite(subject.embed(alone, 1)).all():
        sentence = (
            f"{sentence}; alone, the same sequence has a finite embedding, so padding or a "
            "neighbour is the cause"
        )
        raise BrokenError(
            sentence, f"{call_code(sequences)}[{row}] against {call_code(alone, 1)}[0]"
        )
    raise BrokenError(sentence, call_code(alone))

"""Check how letters are read: case, ambiguity codes, and very short sequences."""

import numpy as np

from .result import BrokenError
from .sequences import IUPAC, random_letters
from .subject import Subject, call_code


def letter_case(subject: Subject) -> tuple[str, float | None]:
    """Check that lower case is read as upper case, unless the extractor is case-sensitive."""
    upper_case = random_letters(24)
    for sequence in (upper_case.lower(), upper_case[:8].lower() + upper_case[8:]):
        embeddings = subject.embed([sequence], 1)
        if not np.isfinite(embeddings).all():
            msg = "a lower-case sequence gives NaN or infinity: call .upper() on each sequence"
            raise BrokenError(msg, call_code([sequence], 1))
    if getattr(subject.extractor, "case", None) == "sensitive":
        return (
            "The extractor declares that case matters, and lower case gives finite embeddings.",
            None,
        )
    expected = subject.embed([upper_case], 1)
    largest_distance = max(
        subject.checked_distance(
            subject.embed([sequence], 1),
            expected,
            "a lower-case sequence has another embedding than the same one in upper case, although "
            "lower case (soft masking) is the same DNA: call .upper() on each sequence, or declare "
            'case = "sensitive"',
            f"{call_code([sequence], 1)} against {call_code([upper_case], 1)}",
        )
        for sequence in (upper_case[:8].lower() + upper_case[8:], upper_case.lower())
    )
    return "Lower case is read as upper case.", largest_distance


def unknown_letters(subject: Subject) -> tuple[str, float]:
    """Check that N and other IUPAC letters give finite embeddings, and change no neighbour's."""
    plain_sequence = random_letters(24)
    unbatched = subject.embed([plain_sequence], 1)[0]
    largest_distance = 0.0
    for ambiguous_sequence in (
        plain_sequence[:12] + "N" + plain_sequence[12:],
        "N" * 24,
        plain_sequence[:8] + IUPAC + plain_sequence[8:],
        plain_sequence.replace("T", "U"),
    ):
        sequences = [ambiguous_sequence, plain_sequence]
        embeddings = subject.embed(sequences, 2)
        if not np.isfinite(embeddings[0]).all():
            msg = (
                "a sequence with N, U or another IUPAC letter gives NaN or infinity, expected "
                "finite numbers: read an unknown letter as a token of its own"
            )
            raise BrokenError(msg, call_code(sequences, 2))
        largest_distance = max(
            largest_distance,
            subject.checked_distance(
                embeddings[1],
                unbatched,
                "a sequence with N, U or another IUPAC letter changes the embedding of its "
                "neighbour, expected the embedding that the neighbour has alone",
                f"{call_code(sequences, 2)}[1] against {call_code([plain_sequence], 1)}[0]",
            ),
        )
    return "N, the other IUPAC letters and U give finite embeddings.", largest_distance


def empty_and_short(subject: Subject) -> str:
    """Check that an empty or one-letter sequence gives a finite embedding or a clear error."""
    plain_sequence = random_letters(24)
    unbatched = subject.embed([plain_sequence], 1)[0]
    outcome_texts = []
    for short_sequence in ("A", ""):
        outcome_kinds = set()
        for sequences, row in (
            ([short_sequence], 0),
            ([plain_sequence, short_sequence, plain_sequence], 1),
        ):
            embeddings = _embedding_or_refusal(subject, sequences)
            outcome_kinds.add("a ValueError" if embeddings is None else "an embedding")
            if embeddings is None:
                continue
            if not np.isfinite(embeddings[row]).all():
                msg = (
                    f"{short_sequence!r} gives NaN or infinity, expected a finite embedding or a "
                    "ValueError"
                )
                raise BrokenError(msg, call_code(sequences, 8))
            for neighbour in (0, 2):
                if len(sequences) > neighbour and neighbour != row:
                    subject.checked_distance(
                        embeddings[neighbour],
                        unbatched,
                        f"{short_sequence!r} in a batch changes the embedding of its neighbour, "
                        "expected the "
                        "embedding that the neighbour has alone",
                        f"{call_code(sequences, 8)}[{neighbour}] against "
                        f"{call_code([plain_sequence], 1)}[0]",
                    )
        outcome_texts.append(f"{short_sequence!r} gives {' or '.join(sorted(outcome_kinds))}")
    return f"{' and '.join(outcome_texts)}."


def _embedding_or_refusal(subject: Subject, sequences: list[str]) -> np.ndarray | None:
    """Return the embeddings, or None if the extractor raises a ValueError with a message.

    Raise BrokenError for any other exception.
    """
    try:
        return subject.embed(sequences)
    except ValueError as error:
        if str(error).strip():
            return None
        raise
    except BrokenError:
        raise
    except Exception as error:
        msg = (
            f"{type(error).__name__} ({error}) for an empty or one-letter sequence, expected a "
            "finite embedding or a ValueError that names the sequence"
        )
        raise BrokenError(msg, call_code(sequences, 8)) from error

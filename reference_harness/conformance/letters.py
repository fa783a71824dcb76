"""Properties of letters: case, ambiguity codes, and very short sequences."""

import numpy as np

from .probes import IUPAC, random_letters
from .result import BrokenError
from .subject import Subject, call


def letter_case(subject: Subject) -> tuple[str, float | None]:
    """Check that lower case is read as upper case, or declared to mean something else."""
    upper = random_letters(24)
    for sequence in (upper.lower(), upper[:8].lower() + upper[8:]):
        rows = subject.embed([sequence], 1)
        if not np.isfinite(rows).all():
            msg = "a lower-case sequence gives NaN or infinity: call .upper() on each sequence"
            raise BrokenError(msg, call([sequence], 1))
    if getattr(subject.extractor, "case", None) == "sensitive":
        return "It declares that case matters, and lower case gives finite embeddings.", None
    expected = subject.embed([upper], 1)
    worst = max(
        subject.same(
            subject.embed([sequence], 1),
            expected,
            "a lower-case sequence has another embedding than the same one in upper case, though "
            "soft-masked repeats are the same DNA: call .upper() on each sequence, or declare "
            'case = "sensitive"',
            f"{call([sequence], 1)} against {call([upper], 1)}",
        )
        for sequence in (upper[:8].lower() + upper[8:], upper.lower())
    )
    return "Lower case is read as upper case.", worst


def unknown_letters(subject: Subject) -> tuple[str, float]:
    """Check that N and other IUPAC letters give finite embeddings and leave neighbours alone."""
    clean = random_letters(24)
    alone = subject.embed([clean], 1)[0]
    worst = 0.0
    for dirty in (
        clean[:12] + "N" + clean[12:],
        "N" * 24,
        clean[:8] + IUPAC + clean[8:],
        clean.replace("T", "U"),
    ):
        sequences = [dirty, clean]
        rows = subject.embed(sequences, 2)
        if not np.isfinite(rows).all():
            msg = "a sequence with N or another IUPAC letter gives NaN or infinity"
            raise BrokenError(msg, call([dirty], 1))
        worst = max(
            worst,
            subject.same(
                rows[1],
                alone,
                "a sequence with N or another IUPAC letter changes the embedding of its neighbour",
                f"{call(sequences, 2)}[1] against {call([clean], 1)}[0]",
            ),
        )
    return "N, the other IUPAC letters and U give finite embeddings.", worst


def empty_and_short(subject: Subject) -> str:
    """Check that an empty or one-letter sequence gives a finite embedding or a clear error."""
    clean = random_letters(24)
    alone = subject.embed([clean], 1)[0]
    outcomes = []
    for short in ("A", ""):
        kinds = set()
        for sequences, row in (([short], 0), ([clean, short, clean], 1)):
            outcome = _embedding_or_refusal(subject, sequences)
            kinds.add("a ValueError" if outcome is None else "an embedding")
            if outcome is None:
                continue
            if not np.isfinite(outcome[row]).all():
                msg = (
                    f"{short!r} gives NaN or infinity, expected a finite embedding or a ValueError"
                )
                raise BrokenError(msg, call(sequences, 8))
            for neighbour in (0, 2):
                if len(sequences) > neighbour and neighbour != row:
                    subject.same(
                        outcome[neighbour],
                        alone,
                        f"{short!r} in a batch changes the embeddings of its neighbours",
                        f"{call(sequences, 8)}[{neighbour}] against {call([clean], 1)}[0]",
                    )
        outcomes.append(f"{short!r} gives {' or '.join(sorted(kinds))}")
    return f"{' and '.join(outcomes)}."


def _embedding_or_refusal(subject: Subject, sequences: list[str]) -> np.ndarray | None:
    """Return embeddings, or None for a ValueError with a message."""
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
        raise BrokenError(msg, call(sequences, 8)) from error

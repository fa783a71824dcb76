"""Checks what of a sequence is read: every letter by itself, and one strand or both."""

import numpy as np

from reference_harness.reach import Mover, difference

from .length import SPECIALS_MAX, counter
from .probes import random_letters
from .result import BrokenError, UnverifiedError, show
from .subject import Subject

LENGTHS = (24, 25, 29)
"""Letters of the sequences: words of 2, 3, 4, 6 or 8 letters fit the first, and leave a remainder
of the others."""
REMAINDER_MAX = 7
"""Letters that words of up to eight may leave over at an end."""
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
_STRANDS = ("strand", "reverse", "complement")


def letters_read(subject: Subject) -> str:
    """Check that a change of any one letter changes the embedding."""
    sequences = [s for s in map(random_letters, LENGTHS) if _is_within(subject, s)]
    if not sequences:
        msg = f"max_length takes no sequence of {LENGTHS[0]} letters, or it is unknown whether."
        raise UnverifiedError(msg)
    remainders = []
    for sequence in sequences:
        unread = Mover(subject.embed, sequence).unread()
        if not unread:
            continue
        if len(unread) == len(sequence):
            msg = "No change of a letter is seen beside others: see finite and batch-neighbours."
            raise UnverifiedError(msg)
        at = f"letters {unread[0] + 1} to {unread[-1] + 1}" if unread[1:] else f"{unread[0] + 1}"
        sentence = f"of {len(sequence)} letters, changing {at} leaves the embedding as it is"
        whole = list(range(unread[0], unread[-1] + 1))
        at_an_end = unread == whole and (unread[0] == 0 or unread[-1] == len(sequence) - 1)
        if at_an_end and len(unread) <= REMAINDER_MAX:
            remainders.append(sentence)
        elif subject.loaded.description["embedding"]["pooling"] == "max":
            msg = f"{_capital(sentence)}, which a maximum over tokens may hide."
            raise UnverifiedError(msg)
        else:
            msg = (
                f"{sentence}, expected another one: give the model every letter, and pool over all"
            )
            raise BrokenError(msg, f"extract_embeddings({show([sequence])}, batch_size=1)")
    if remainders:
        msg = f"{_capital('; '.join(remainders))}: a remainder is dropped."
        raise UnverifiedError(msg)
    return f"Every letter of sequences of {', '.join(str(len(s)) for s in sequences)} is read."


def strands(subject: Subject) -> str:
    """Check that a sequence and its reverse complement differ, or that both are declared."""
    pairs = [(s, s[::-1].translate(_COMPLEMENT)) for s in map(random_letters, LENGTHS)]
    distances = []
    for sequence, complement in pairs:
        forward, backward = subject.embed([sequence, complement], 1)
        distances.append(difference(np.asarray(forward), np.asarray(backward)))
    if max(distances) > subject.tolerance:
        return "A sequence and its reverse complement have different embeddings."
    embedding = subject.loaded.description["embedding"]
    declared = f"{embedding['layer']} {embedding['pooling']}".lower()
    if any(word in declared for word in _STRANDS):
        return "Both strands of a sequence have the same embedding, as it declares."
    msg = (
        "Both strands of a sequence have the same embedding, which nothing declares: if they are "
        'averaged, say so in pooling, such as "mean of both strands".'
    )
    raise UnverifiedError(msg)


def _is_within(subject: Subject, sequence: str) -> bool:
    """Whether the declared maximum takes all of a sequence, as far as that is known."""
    limit = subject.loaded.description["embedding"]["max_length"]
    if not isinstance(limit, int):
        return True
    count = counter(subject)
    tokens = len(sequence) + SPECIALS_MAX if count is None else count(sequence)
    return tokens <= limit


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

"""Check which parts of a sequence are read: every letter, and one strand or both."""

import numpy as np

from reference_harness.embedding.letters_read import LetterChanger, relative_distance

from .length import SPECIAL_TOKENS_MAX, token_counter
from .result import BrokenError, UnverifiedError
from .sequences import random_letters
from .subject import Subject, call_code

LENGTHS = (24, 25, 29)
"""Lengths of the sequences in letters: k-mers of 2, 3, 4, 6 or 8 letters fill the first exactly and
leave a remainder in the others."""
REMAINDER_MAX = 7
"""Maximum number of letters at an end that may be unread, as they fill no k-mer of up to eight."""
_COMPLEMENT = str.maketrans("ACGT", "TGCA")
"""Table that replaces each letter by its complement."""
_STRANDS = ("strand", "reverse", "complement")
"""Words in a declaration of the extractor that mean both strands."""


def letters_read(subject: Subject) -> str:
    """Check that a change of any one letter changes the embedding."""
    sequences = [s for s in map(random_letters, LENGTHS) if _is_within(subject, s)]
    if not sequences:
        msg = f"max_length is, or may be, too short for a sequence of {LENGTHS[0]} letters."
        raise UnverifiedError(msg)
    remainders = []
    for sequence in sequences:
        unread_indices = LetterChanger(subject.embed, sequence).unread_indices()
        if not unread_indices:
            continue
        if len(unread_indices) == len(sequence):
            msg = (
                "No change of a letter changes the embedding: see the properties finite and "
                "batch-neighbours."
            )
            raise UnverifiedError(msg)
        positions = (
            f"letters {unread_indices[0] + 1} to {unread_indices[-1] + 1}"
            if unread_indices[1:]
            else f"letter {unread_indices[0] + 1}"
        )
        sentence = f"of {len(sequence)} letters, changing {positions} does not change the embedding"
        contiguous = list(range(unread_indices[0], unread_indices[-1] + 1))
        is_at_an_end = unread_indices == contiguous and (
            unread_indices[0] == 0 or unread_indices[-1] == len(sequence) - 1
        )
        if is_at_an_end and len(unread_indices) <= REMAINDER_MAX:
            remainders.append(sentence)
        elif subject.loaded.description["embedding"]["pooling"] == "max":
            msg = f"{_capital(sentence)}, which a maximum over tokens may hide."
            raise UnverifiedError(msg)
        else:
            msg = (
                f"{sentence}, expected another embedding: pass the model every letter, and pool "
                "over all tokens"
            )
            raise BrokenError(msg, call_code([sequence], 1))
    if remainders:
        msg = f"{_capital('; '.join(remainders))}: these letters may fill no whole k-mer."
        raise UnverifiedError(msg)
    return f"Every letter of sequences of {', '.join(str(len(s)) for s in sequences)} is read."


def strands(subject: Subject) -> str:
    """Check that both strands have different embeddings, unless equal ones are declared."""
    pairs = [(s, s[::-1].translate(_COMPLEMENT)) for s in map(random_letters, LENGTHS)]
    distances = []
    for sequence, reverse_complement in pairs:
        forward, backward = subject.embed([sequence, reverse_complement], 1)
        distances.append(relative_distance(np.asarray(forward), np.asarray(backward)))
    if max(distances) > subject.tolerance:
        return "A sequence and its reverse complement have different embeddings."
    embedding = subject.loaded.description["embedding"]
    declared_text = f"{embedding['layer']} {embedding['pooling']}".lower()
    if any(word in declared_text for word in _STRANDS):
        return "Both strands of a sequence have the same embedding, as the extractor declares."
    msg = (
        "Both strands of a sequence have the same embedding, which is not declared: if they are "
        'averaged, declare it in pooling, such as "mean of both strands".'
    )
    raise UnverifiedError(msg)


def _is_within(subject: Subject, sequence: str) -> bool:
    """Whether a sequence has at most as many tokens as the extractor declares to read.

    Without a count by the extractor, one token per letter is assumed, and special tokens.
    """
    limit = subject.loaded.description["embedding"]["max_length"]
    if not isinstance(limit, int):
        return True
    count_tokens = token_counter(subject)
    tokens = len(sequence) + SPECIAL_TOKENS_MAX if count_tokens is None else count_tokens(sequence)
    return tokens <= limit


def _capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]

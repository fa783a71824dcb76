"""Checks the declared maximum length, by changing letters and comparing the embeddings.

Letters beyond the limit do not reach the model, so changing all letters from a position on changes
the embedding exactly if the position is within the limit: bisection finds the last letter read.
"""

from collections.abc import Callable, Sequence

from reference_harness.extractors.base import UNDECLARED
from reference_harness.reach import Mover, ReadSpan

from .probes import random_letters
from .result import BrokenError, UnverifiedError, show
from .subject import Subject

# Letters tried if no limit is declared.
UNLIMITED_LETTERS = 2048
# A token that merges letters may end elsewhere in a prefix than in the whole sequence.
MERGE_SLACK = 2
# Without a token counter: special tokens that may be in the limit, and letters a token may hold
# (6-mers hold six, learned vocabularies of DNA five to twelve).
SPECIALS_MAX = 3
TOKEN_LETTERS_MAX = 12


Text = Callable[[int], str]


def maximum_length(subject: Subject) -> str:
    """Check that a change within the declared length, and none beyond, changes the embedding.

    A maximum over tokens hides changes among random letters, so where that is declared and the
    check fails, it is repeated with sequences of one letter, in which every change shows.
    """
    try:
        return _check(subject, random_letters)
    except BrokenError:
        if subject.loaded.description["embedding"]["pooling"] != "max":
            raise
    return _check(subject, lambda letters: "A" * letters)


def _check(subject: Subject, text: Text) -> str:
    declared = subject.loaded.description["embedding"]
    limit, truncation = declared["max_length"], declared["truncation"]
    if not isinstance(limit, int) or truncation == "windows":
        return _reads_all(subject, limit, truncation, text)
    count = counter(subject)
    sequence = _longer_than_limit(subject, limit, count, text)
    if truncation == "none":
        return _refuses(subject, sequence, limit)
    reach = _reach(subject, sequence)
    if reach.side == "none":
        msg = (
            f"it declares max_length {limit}, and reads all {len(sequence)} letters of a longer "
            "sequence: pass max_length with truncation=True to the tokenizer"
        )
        raise BrokenError(msg, _example(sequence, len(sequence) - 1))
    if truncation not in (reach.side, UNDECLARED):
        msg = f"it declares truncation {truncation!r}, and cuts {reach.words}"
        raise BrokenError(msg, _example(sequence, 0 if reach.start else -1))
    return _compare(reach, sequence, limit, count)


def _compare(reach: ReadSpan, sequence: str, limit: int, count: Callable[[str], int] | None) -> str:
    """Compare the letters that are read with the tokens that are declared."""
    letters = reach.letters
    letters_read = sequence[reach.start : reach.stop]
    if count is None:
        measure = f"{letters} letters"
        if limit - SPECIALS_MAX <= letters <= limit * TOKEN_LETTERS_MAX:
            msg = (
                f"It reads {measure} and cuts {reach.words}; whether they are {limit} "
                "tokens, as max_length says, is not known: add a method "
                "count_tokens(sequences) -> list[int]"
            )
            raise UnverifiedError(msg)
        fits = False
    else:
        letterwise = count(sequence) - count(sequence[:-1]) == 1 == count("AC") - count("A")
        fits = abs(count(letters_read) - limit) <= (0 if letterwise else MERGE_SLACK)
        measure = f"{letters} letters, {count(letters_read)} tokens"
    if fits:
        return f"It reads {measure} and cuts {reach.words}, as max_length {limit} says."
    msg = f"it declares max_length {limit}, and reads {measure}: declare the real limit"
    raise BrokenError(msg, _example(sequence, reach.start or reach.stop - 1))


def _reads_all(subject: Subject, limit: object, truncation: str, text: Text) -> str:
    """Check that the last letter of a long sequence is read if no limit is declared."""
    letters = min(UNLIMITED_LETTERS, subject.letters)
    if truncation == "windows" and isinstance(limit, int):
        letters = min(subject.letters, 3 * limit)
    sequence = text(letters)
    reach = _reach(subject, sequence)
    if reach.side == "none":
        sentence = f"all {letters} letters of the longest sequence tried are read"
        if truncation == "windows" and isinstance(limit, int):
            _require_windows(subject, sequence, limit, sentence)
            return f"It declares windows and {sentence}."
        if limit == UNDECLARED:
            msg = f"max_length is undeclared; {sentence}."
            raise UnverifiedError(msg)
        return f"It declares no limit and {sentence}."
    declaration = (
        "leaves max_length undeclared" if limit == UNDECLARED else "declares to read any length"
    )
    msg = (
        f"it {declaration}, and reads only {reach.letters} of {letters} letters, cutting "
        f"{reach.words}: declare max_length in tokens, and truncation"
    )
    raise BrokenError(msg, _example(sequence, 0 if reach.start else reach.letters))


def _require_windows(subject: Subject, sequence: str, limit: int, sentence: str) -> None:
    """Raise UnverifiedError unless a sequence has more tokens than one window takes."""
    count = counter(subject)
    if count is None or count(sequence) <= limit:
        tokens = "an unknown number of" if count is None else f"{count(sequence)}"
        msg = (
            f"It declares windows of {limit} tokens and {sentence}, which are {tokens} tokens: "
            "whether it reads beyond one window is not known; add a method "
            "count_tokens(sequences) -> list[int], or raise --letters"
        )
        raise UnverifiedError(msg)


def _refuses(subject: Subject, sequence: str, limit: int) -> str:
    try:
        subject.embed([sequence], 1)
    except BrokenError:
        raise
    except ValueError:
        return f"It refuses a sequence of more than {limit} tokens, as truncation 'none' says."
    msg = (
        f"it declares max_length {limit} and truncation 'none', and takes a sequence of "
        f"{len(sequence)} letters: raise a ValueError, or declare what is cut"
    )
    raise BrokenError(msg, f"extract_embeddings({show([sequence])}, batch_size=1)")


def _longer_than_limit(
    subject: Subject, limit: int, count: Callable[[str], int] | None, text: Text
) -> str:
    """Return a sequence that has more tokens than the limit, for any tokenizer.

    Raises UnverifiedError where none of the letters to try is long enough.
    """
    letters = limit * TOKEN_LETTERS_MAX + SPECIALS_MAX
    if count is not None:
        letters = limit + SPECIALS_MAX
        while letters < subject.letters and count(text(letters)) <= limit + MERGE_SLACK:
            letters *= 2
    letters = min(letters, subject.letters)
    sequence = text(letters)
    if count is None and letters < limit * TOKEN_LETTERS_MAX:
        msg = (
            f"max_length {limit} cannot be tried within {letters} letters without knowing what a "
            "token holds: add a method count_tokens(sequences) -> list[int], or raise --letters"
        )
        raise UnverifiedError(msg)
    if count is not None and count(sequence) <= limit:
        msg = (
            f"max_length {limit} cannot be tried within {letters} letters, which are "
            f"{count(sequence)} tokens: raise --letters"
        )
        raise UnverifiedError(msg)
    return sequence


def _reach(subject: Subject, sequence: str) -> ReadSpan:
    """Find which letters move the embedding."""
    return Mover(lambda sequences: subject.embed(sequences, 1), sequence).reach()


def counter(subject: Subject) -> Callable[[str], int] | None:
    """Return a counter of uncut tokens: the extractor's own method, or its tokenizer."""
    own_counter: Callable[[Sequence[str]], list[int]] | None
    own_counter = getattr(subject.extractor, "count_tokens", None)
    if callable(own_counter):
        return lambda sequence: int(own_counter([sequence])[0])
    tokenizer = getattr(subject.extractor, "tokenizer", None)
    if callable(tokenizer):
        return lambda sequence: len(tokenizer(sequence)["input_ids"])
    return None


def _example(sequence: str, index: int) -> str:
    index %= len(sequence)
    return f"extract_embeddings({show([sequence])}, batch_size=1), with letter {index} changed"

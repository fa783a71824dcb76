"""Check the declared maximum length by changing letters and comparing the embeddings.

Letters beyond the limit do not reach the model. So changing all letters from a position on changes
the embedding if and only if the position is within the limit, and bisection finds the last letter
that is read.
"""

from collections.abc import Callable, Sequence

from reference_harness.embedding.letters_read import LetterChanger, ReadSpan
from reference_harness.extractors.base import UNDECLARED

from .result import BrokenError, UnverifiedError
from .sequences import random_letters
from .subject import Subject, call_code

UNLIMITED_LETTERS = 2048
"""Number of letters of the sequences that are tried if no limit is declared."""
MERGE_SLACK = 2
"""Tokens of tolerance, as tokens of several letters may be cut differently in a prefix."""
SPECIAL_TOKENS_MAX = 3
"""Assumed maximum number of special tokens, of an extractor that counts no tokens."""
TOKEN_LETTERS_MAX = 12
"""Assumed maximum letters of a token, where none are counted: learned ones have up to twelve."""


SequenceMaker = Callable[[int], str]
"""Function that returns a sequence of a number of letters."""


def maximum_length(subject: Subject) -> str:
    """Check that changes within the declared length change the embedding, and later ones do not.

    A maximum over tokens hides many changes of random letters. So if the declared pooling is "max"
    and the check fails, it is repeated with sequences of one repeated letter.
    """
    try:
        return _check_limit(subject, random_letters)
    except BrokenError:
        if subject.loaded.description["embedding"]["pooling"] != "max":
            raise
    return _check_limit(subject, lambda letters: "A" * letters)


def _check_limit(subject: Subject, make: SequenceMaker) -> str:
    """Compare the declared limit with what is read of the sequences that `make` returns."""
    declared = subject.loaded.description["embedding"]
    limit, truncation = declared["max_length"], declared["truncation"]
    if not isinstance(limit, int) or truncation == "windows":
        return _check_last_letter(subject, limit, truncation, make)
    count_tokens = token_counter(subject)
    sequence = _longer_than_limit(subject, limit, count_tokens, make)
    if truncation == "none":
        return _check_refusal(subject, sequence, limit)
    reach = _letters_with_effect(subject, sequence)
    if reach.unread_side == "none":
        msg = (
            f"the extractor declares max_length {limit}, but reads all {len(sequence)} letters of "
            "a longer sequence: pass max_length with truncation=True to the tokenizer"
        )
        raise BrokenError(msg, _example(sequence, len(sequence) - 1))
    if truncation not in (reach.unread_side, UNDECLARED):
        msg = (
            f"the extractor declares truncation {truncation!r}, but cuts "
            f"{reach.unread_side_text} of a longer sequence: declare what is cut, or cut what is "
            "declared"
        )
        raise BrokenError(msg, _example(sequence, 0 if reach.start else -1))
    return _compare_token_counts(reach, sequence, limit, count_tokens)


def _compare_token_counts(
    reach: ReadSpan, sequence: str, limit: int, count_tokens: Callable[[str], int] | None
) -> str:
    """Return a sentence if as many tokens are read as declared.

    Raise BrokenError if not, and UnverifiedError if tokens cannot be counted.
    """
    letters = reach.letters
    letters_read = sequence[reach.start : reach.stop]
    if count_tokens is None:
        read_length = f"{letters} letters"
        if limit - SPECIAL_TOKENS_MAX <= letters <= limit * TOKEN_LETTERS_MAX:
            msg = (
                f"The extractor reads {read_length} and cuts {reach.unread_side_text}; whether "
                f"these are the {limit} tokens of max_length is not known: add a method "
                "count_tokens(sequences) -> list[int]"
            )
            raise UnverifiedError(msg)
        is_as_declared = False
    else:
        is_token_per_letter = (
            count_tokens(sequence) - count_tokens(sequence[:-1])
            == 1
            == count_tokens("AC") - count_tokens("A")
        )
        is_as_declared = abs(count_tokens(letters_read) - limit) <= (
            0 if is_token_per_letter else MERGE_SLACK
        )
        read_length = f"{letters} letters, {count_tokens(letters_read)} tokens"
    if is_as_declared:
        return (
            f"The extractor reads {read_length} and cuts {reach.unread_side_text}, as "
            f"max_length {limit} says."
        )
    msg = (
        f"the extractor declares max_length {limit}, but reads {read_length}: declare "
        "max_length as the number of tokens that are read"
    )
    raise BrokenError(msg, _example(sequence, reach.start or reach.stop - 1))


def _check_last_letter(
    subject: Subject, limit: object, truncation: str, make: SequenceMaker
) -> str:
    """Check that a long sequence is read to its end, if no limit or windows are declared."""
    letters = min(UNLIMITED_LETTERS, subject.letters)
    if truncation == "windows" and isinstance(limit, int):
        letters = min(subject.letters, 3 * limit)
    sequence = make(letters)
    reach = _letters_with_effect(subject, sequence)
    if reach.unread_side == "none":
        sentence = f"all {letters} letters of the longest sequence tried are read"
        if truncation == "windows" and isinstance(limit, int):
            _require_windows(subject, sequence, limit, sentence)
            return f"The extractor declares windows and {sentence}."
        if limit == UNDECLARED:
            msg = f"max_length is undeclared; {sentence}."
            raise UnverifiedError(msg)
        return f"The extractor declares no limit and {sentence}."
    declaration = (
        "leaves max_length undeclared" if limit == UNDECLARED else "declares to read any length"
    )
    msg = (
        f"the extractor {declaration}, but reads only {reach.letters} of {letters} letters, "
        f"cutting {reach.unread_side_text}: declare max_length in tokens, and truncation"
    )
    raise BrokenError(msg, _example(sequence, 0 if reach.start else reach.letters))


def _require_windows(subject: Subject, sequence: str, limit: int, letters_read_text: str) -> None:
    """Raise UnverifiedError unless a sequence is known to have more tokens than one window."""
    count_tokens = token_counter(subject)
    if count_tokens is None or count_tokens(sequence) <= limit:
        token_count_text = (
            "an unknown number of" if count_tokens is None else f"{count_tokens(sequence)}"
        )
        msg = (
            f"The extractor declares windows of {limit} tokens and {letters_read_text}, which are "
            f"{token_count_text} tokens: whether it reads beyond one window is not known; add a "
            "method count_tokens(sequences) -> list[int], or raise --letters"
        )
        raise UnverifiedError(msg)


def _check_refusal(subject: Subject, sequence: str, limit: int) -> str:
    """Check that the extractor refuses a sequence of more tokens than its limit."""
    try:
        subject.embed([sequence], 1)
    except BrokenError:
        raise
    except ValueError:
        return (
            f"The extractor refuses a sequence of more than {limit} tokens, as truncation 'none' "
            "says."
        )
    msg = (
        f"the extractor declares max_length {limit} and truncation 'none', but embeds a sequence "
        f"of {len(sequence)} letters: raise a ValueError, or declare what is cut"
    )
    raise BrokenError(msg, call_code([sequence], 1))


def _longer_than_limit(
    subject: Subject, limit: int, count_tokens: Callable[[str], int] | None, make: SequenceMaker
) -> str:
    """Return a sequence that has more tokens than the limit, for any tokenizer.

    Raise UnverifiedError if no sequence of `subject.letters` letters is long enough.
    """
    letters = limit * TOKEN_LETTERS_MAX + SPECIAL_TOKENS_MAX
    if count_tokens is not None:
        letters = limit + SPECIAL_TOKENS_MAX
        while letters < subject.letters and count_tokens(make(letters)) <= limit + MERGE_SLACK:
            letters *= 2
    letters = min(letters, subject.letters)
    sequence = make(letters)
    if count_tokens is None and letters < limit * TOKEN_LETTERS_MAX:
        msg = (
            f"a sequence of {letters} letters may be too short to reach max_length {limit}, as the "
            "letters per token are not known: add a method count_tokens(sequences) -> "
            "list[int], or "
            "raise --letters"
        )
        raise UnverifiedError(msg)
    if count_tokens is not None and count_tokens(sequence) <= limit:
        msg = (
            f"a sequence of {letters} letters has {count_tokens(sequence)} tokens, too few to "
            f"exceed max_length {limit}: raise --letters"
        )
        raise UnverifiedError(msg)
    return sequence


def _letters_with_effect(subject: Subject, sequence: str) -> ReadSpan:
    """Return the span of the letters of a sequence that change its embedding."""
    return LetterChanger(lambda sequences: subject.embed(sequences, 1), sequence).read_span()


def token_counter(subject: Subject) -> Callable[[str], int] | None:
    """Return a function that counts the tokens of a sequence without truncation.

    It calls the extractor's `count_tokens`, else its `tokenizer`. Return None if it has neither.
    """
    own_counter: Callable[[Sequence[str]], list[int]] | None
    own_counter = getattr(subject.extractor, "count_tokens", None)
    if callable(own_counter):
        return lambda sequence: int(own_counter([sequence])[0])
    tokenizer = getattr(subject.extractor, "tokenizer", None)
    if callable(tokenizer):
        return lambda sequence: len(tokenizer(sequence)["input_ids"])
    return None


def _example(sequence: str, index: int) -> str:
    """Return the calls of an extractor that show the effect of the letter at `index`."""
    index %= len(sequence)
    return f"{call_code([sequence], 1)}, with letter {index} changed"

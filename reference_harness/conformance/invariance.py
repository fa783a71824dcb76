"""Check that the embedding of a sequence depends on nothing but the sequence."""

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from reference_harness.embedding.letters_read import relative_distance

from .hooks import torch_modules
from .result import BrokenError
from .sequences import SEED, SEQUENCE_COUNT, many_sequences, mixed_lengths, random_letters
from .subject import Subject, call_code

_PADDED_LENGTHS = ((7, 8), (7, 12), (12, 31), (19, 57))
"""Number of letters of a sequence, and of the longer one that it is padded to in a batch."""
_LONGER_PADDED_LENGTHS = ((70, 140), (100, 301), (31, 257))
"""More such pairs, for extractors that read longer sequences."""
SPECIAL_TOKENS = 3
"""Number of special tokens that a tokenizer may add to a sequence."""


def batch_size(subject: Subject) -> tuple[str, float]:
    """Check that the size of the batch does not change an embedding."""
    largest_distance = 0.0
    for sequences, sizes in (
        ([random_letters(12), random_letters(12, 1)], (2, 3, 8)),
        (mixed_lengths(), (2, 3, 8)),
        (many_sequences(), (16, SEQUENCE_COUNT, 64)),
    ):
        unbatched = subject.embed(sequences, 1)
        for size in sizes:
            largest_distance = max(
                largest_distance,
                subject.checked_distance(
                    subject.embed(sequences, size),
                    unbatched,
                    f"embeddings under batch_size={size} differ from those under batch_size=1: "
                    "pool each sequence of a batch under its own mask",
                    f"{call_code(sequences, size)} against batch_size=1",
                ),
            )
    return (
        f"Embeddings are the same under batches of 1, 2, 3, 8, 16, {SEQUENCE_COUNT} and 64.",
        largest_distance,
    )


def batch_neighbours(subject: Subject) -> tuple[str, float]:
    """Check that other sequences of equal length in the batch do not change an embedding."""
    largest_distance = 0.0
    for length in (12, 24):
        x, y, z = (random_letters(length, salt) for salt in range(3))
        unbatched = subject.embed([x], 1)[0]
        for sequences, row in (([x, y], 0), ([y, x], 1), ([y, x, z], 1)):
            largest_distance = max(
                largest_distance,
                _compare_row(subject, sequences, row, unbatched, "next to others of its length"),
            )
    return (
        "A sequence has the same embedding alone and next to others of its length.",
        largest_distance,
    )


def padding(subject: Subject) -> tuple[str, float]:
    """Check that a longer neighbour, which needs padding, does not change an embedding."""
    largest_distance = 0.0
    for short, long in (*_PADDED_LENGTHS, *_longer_length_pairs(subject)):
        x, y = random_letters(short), random_letters(long, 1)
        unbatched = subject.embed([x], 1)[0]
        for sequences, row in (([x, y], 0), ([y, x], 1)):
            largest_distance = max(
                largest_distance,
                _compare_row(subject, sequences, row, unbatched, "next to a longer one"),
            )
    return "A sequence has the same embedding alone and next to a longer one.", largest_distance


def _longer_length_pairs(subject: Subject) -> Iterator[tuple[int, int]]:
    """Yield pairs of longer lengths that the extractor, by its declared limit, does not refuse."""
    declared = subject.loaded.description["embedding"]
    refuses_long_input = declared["truncation"] == "none" and isinstance(
        declared["max_length"], int
    )
    for short, long in _LONGER_PADDED_LENGTHS:
        if long <= subject.letters and not (
            refuses_long_input and long + SPECIAL_TOKENS > declared["max_length"]
        ):
            yield short, long


def order(subject: Subject) -> tuple[str, float]:
    """Check that embedding i belongs to sequence i, in any order of the sequences."""
    sequences = mixed_lengths()
    expected = subject.embed(sequences, 2)
    largest_distance = 0.0
    for name, rows in _orders(len(sequences)):
        actual = subject.embed([sequences[i] for i in rows], 2)
        largest_distance = max(
            largest_distance,
            subject.checked_distance(
                actual,
                expected[rows],
                f"embeddings do not follow their sequences when these are {name}: return "
                "embeddings in the order of the sequences, also after sorting by length",
                f"{call_code(sequences, 2)}, {name}",
            ),
        )
    return "Embeddings follow their sequences in every order tried.", largest_distance


def repeatable_calls(subject: Subject) -> tuple[str, float]:
    """Check that the same call returns the same embeddings three times."""
    expected = subject.embed(mixed_lengths())
    largest_distance = 0.0
    for _ in range(2):
        largest_distance = max(
            largest_distance,
            subject.checked_distance(
                subject.embed(mixed_lengths()),
                expected,
                "the same call returned different embeddings: remove what is random or kept "
                "between calls",
                f"{call_code(mixed_lengths())}, twice",
            ),
        )
    return "The same call returns the same embeddings.", largest_distance


def repeatable_loads(subject: Subject) -> tuple[str, float]:
    """Check that two loads give equal embeddings: no random weight, no effect of earlier calls.

    The first load has embedded many sequences by now, the second none. If their embeddings differ,
    a further call of the second and a third load show which cause is the likely one.
    """
    expected = subject.embed(mixed_lengths())
    example = f"{call_code(mixed_lengths())}, after each of two loads"
    _reseed(SEED)
    second_extractor = subject.load().extractor
    first_embeddings = subject.embed(mixed_lengths(), on=second_extractor)
    try:
        largest_distance = subject.checked_distance(
            first_embeddings, expected, "two loads give different embeddings", example
        )
    except BrokenError as error:
        if error.distance in (None, float("inf")):
            raise
        raise BrokenError(
            _why_loads_differ(subject, second_extractor, first_embeddings, expected),
            example,
            error.distance,
        ) from None
    return "Two loads return equal embeddings.", largest_distance


def _why_loads_differ(
    subject: Subject,
    second_extractor: Any,  # an extractor
    first_embeddings: np.ndarray,
    expected: np.ndarray,
) -> str:
    """Return why two loads give different embeddings, and what to do, as a sentence."""
    if (
        relative_distance(subject.embed(mixed_lengths(), on=second_extractor), expected)
        <= subject.tolerance
    ):
        return (
            "the first call after a load returns other embeddings than the same call later, "
            "expected the same: something is set up during the first call (a warm-up, a lazy "
            "conversion); do it in the constructor"
        )
    _reseed(SEED + 1)
    third_extractor = subject.load().extractor
    if (
        relative_distance(subject.embed(mixed_lengths(), on=third_extractor), first_embeddings)
        <= subject.tolerance
    ):
        return (
            "an extractor that has embedded other sequences returns other embeddings than a new "
            "one, "
            "expected the same: it keeps a state (a running mean, a cache, a counter); remove it"
        )
    return (
        "two loads give different embeddings: some weights are not in the checkpoint and are "
        "initialised at random; check the model class and the report of missing keys"
    )


def evaluation_mode(subject: Subject) -> tuple[str, float]:
    """Check that no dropout is active."""
    sequences = mixed_lengths()
    subject.embed(sequences)
    modules = list(torch_modules(subject.extractor))
    for path, module in modules:
        if module.training:
            msg = (
                f"the module {path} is in training mode, where dropout is active: call .eval() "
                "on it"
            )
            raise BrokenError(msg, call_code(sequences))
    _reseed(1)
    expected = subject.embed(sequences)
    _reseed(2)
    sentence = "Nothing is in training mode" if modules else "No torch module is visible"
    return (
        f"{sentence}, and embeddings do not depend on the seed.",
        subject.checked_distance(
            subject.embed(sequences),
            expected,
            "embeddings depend on the random seed, as with active dropout: "
            "call .eval() on the model",
            f"{call_code(sequences)}, under two random seeds",
        ),
    )


def _compare_row(
    subject: Subject, sequences: list[str], row: int, unbatched: np.ndarray, neighbours_text: str
) -> float:
    """Return the distance between a sequence's embedding in a batch and its embedding alone."""
    return subject.checked_distance(
        subject.embed(sequences, len(sequences))[row],
        unbatched,
        f"a sequence has another embedding {neighbours_text} than alone: pool under the attention "
        "mask, pass the mask to the model, and index tokens from the sequence's own start or end",
        f"{call_code(sequences, len(sequences))}[{row}] against "
        f"{call_code([sequences[row]], 1)}[0]",
    )


def _orders(count: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the name of each order that is tried, and the indices of the sequences in it."""
    rows = list(range(count))
    yield "reversed", rows[::-1]
    random.Random(SEED).shuffle(rows)  # noqa: S311 - a probe, no secret
    yield "shuffled", rows


def _reseed(seed: int) -> None:
    """Set the seeds of Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that extractors use without asking
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)

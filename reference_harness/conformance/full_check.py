"""The full check: the run's own batches, with thousands of sequences of every length.

Some errors occur only in the batches of a run: with padding beyond the lengths of the quick check,
statistics over a call, the second half of a batch of 32 (from its 17th sequence), a last batch that
is smaller than the others, or a state that grows.
"""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from reference_harness.embedding.batching import DEFAULT_TOKEN_BUDGET
from reference_harness.embedding.exact_batches import with_exact_limits
from reference_harness.embedding.extractor_calls import (
    FILE_BATCH_SEQUENCES,
    planned_calls,
    sequence_sizes,
    with_measured_budget,
)
from reference_harness.embedding.letters_read import relative_distance
from reference_harness.embedding.memory import MemoryLimit, memory_of
from reference_harness.formats.text import plural

from .length import SPECIAL_TOKENS_MAX, UNLIMITED_LETTERS, token_counter
from .result import BrokenError
from .sequences import SEED, random_letters
from .subject import Subject, call_code, not_finite_message

SEQUENCE_COUNT = 2111
"""Number of sequences: more than one call of 2,048, and a prime, which no batch size divides."""
LENGTH_MIN = 7
"""Letters of the shortest sequence, at least one token for any tokenizer of k-mers up to 6."""
SEQUENCES_MIN = 24
"""Minimum number of sequences between a length and its double: a batch of more than 17."""
LONGEST_FACTOR = 1.25
"""Ratio of the length of the longest sequence to the declared maximum, if the extractor truncates.
"""
SECOND_HALF_START = 16
"""Index of the 17th sequence, the first in the second half of a batch of 32."""
CLASS_EMBEDDINGS = 3
"""Number of sequences compared per class of position and length."""
COMPARED_MIN = 96
"""Approximate number of sequences compared in all, if there are few classes."""
LETTERS_PER_TOKEN = 6
"""Assumed letters per token if the extractor counts none: those of the longest common k-mers."""
MIXED_CALLS = ((8, 8), (24, 24), (64, 64), (1000, 64))
"""Calls of mixed lengths: the number of sequences and the `batch_size`. The first is upstream's."""
MIXED_LETTERS = 4 * DEFAULT_TOKEN_BUDGET
"""Maximum of padded letters in a mixed batch of more than eight sequences."""


@dataclass
class FullCheck:
    """The sequences of a full check, their batches, and the embeddings computed so far."""

    subject: Subject
    embedded_alone: dict[int, np.ndarray] = field(default_factory=dict)
    """Embedding of a sequence alone, computed before all others, by the index of the sequence."""
    has_run_batches: bool = False
    """Whether every batch of the run has been embedded."""

    @cached_property
    def sequences(self) -> list[str]:
        """`SEQUENCE_COUNT` random sequences in random order, always the same."""
        lengths = lengths_up_to(maximum_letters(self.subject))
        random.Random(SEED).shuffle(lengths)  # noqa: S311 - a probe, no secret
        return [random_letters(length, salt) for salt, length in enumerate(lengths)]

    @cached_property
    def batches(self) -> list[np.ndarray]:
        """The indices of the sequences of each call, planned as in a run."""
        subject = self.subject
        limit = MemoryLimit(memory_of(subject.device) if subject.measures_budget else None)
        sizes = sequence_sizes(subject.loaded, self.sequences)
        batching = with_exact_limits(subject.loaded, subject.batching, subject.device)
        batching = with_measured_budget(subject.loaded, batching, self.sequences, sizes, limit)
        return planned_calls(subject.loaded, batching, self.sequences, sizes)

    @cached_property
    def position_texts(self) -> dict[int, str]:
        """Position in a batch, in words, of each compared sequence, by the sequence's index."""
        rows_by_class: dict[tuple[str, int], list[int]] = {}
        for batch_index, batch in enumerate(self.batches):
            for index, row in enumerate(batch):
                position = _position_in_batch(
                    index, len(batch), is_last_batch=batch_index == len(self.batches) - 1
                )
                batch_class = position, int(math.log2(len(self.sequences[row]) + 1))
                rows_by_class.setdefault(batch_class, []).append(int(row))
        generator = random.Random(SEED)  # noqa: S311 - a probe, no secret
        # A built-in gets all sequences in one call, where few are the first, the last or the 17th.
        count_max = max(CLASS_EMBEDDINGS, COMPARED_MIN // len(rows_by_class))
        return {
            row: position
            for (position, _), rows in sorted(rows_by_class.items())
            for row in generator.sample(rows, min(count_max, len(rows)))
        }

    def cost(self) -> str:
        """Return a sentence about the work of the full check."""
        letters = sum(map(len, self.sequences))
        return (
            f"full check: {plural(len(self.sequences), 'sequence')} of "
            f"{min(map(len, self.sequences))} to {max(map(len, self.sequences)):,} letters "
            f"({letters:,} together) in {plural(len(self.batches), 'call')} of up to "
            f"{plural(max(map(len, self.batches)), 'sequence')}, then "
            f"{plural(len(self.position_texts), 'sequence')} alone, twice, and in mixed batches"
        )

    def embed_alone(self) -> dict[int, np.ndarray]:
        """Return the embedding of each compared sequence alone, by index; each is computed once."""
        for row in self.position_texts:
            if row not in self.embedded_alone:
                self.embedded_alone[row] = self.subject.embed([self.sequences[row]], 1)[0]
                self.subject.listener.step(1, len(self.sequences[row]))
        return self.embedded_alone

    def embed_batches(self) -> Iterator[tuple[np.ndarray, list[str], int, np.ndarray]]:
        """Embed as a run does; yield indices, sequences, `batch_size` and embeddings per call."""
        batching = self.subject.batching
        for rows in self.batches:
            sequences = [self.sequences[row] for row in rows]
            size = batching.rows if batching.mode == "file" else len(sequences)
            yield rows, sequences, size, self.subject.embed(sequences, size)
            self.subject.listener.step(len(rows), sum(map(len, sequences)))
        self.has_run_batches = True


def full_check_of(subject: Subject) -> FullCheck:
    """Return the full check that the full properties of one process share."""
    full_check = subject.shared.setdefault("full check", FullCheck(subject))
    if not isinstance(full_check, FullCheck):
        raise TypeError(full_check)
    return full_check


def run_batches(subject: Subject) -> tuple[str, float]:
    """Check that a sequence has the same embedding in the run's batches as alone."""
    full_check, largest_distance, widths = full_check_of(subject), 0.0, set()
    subject.listener.begin(
        "run-batches", len(full_check.position_texts) + len(full_check.sequences)
    )
    full_check.embed_alone()
    for rows, sequences, size, embedded in full_check.embed_batches():
        if (fault := not_finite_message(embedded)) is not None:
            raise BrokenError(fault, f"a call of {len(rows)} sequences, batch_size={size}")
        widths.add(embedded.shape[1])
        if len(widths) > 1:
            msg = (
                f"the width of embeddings differs between calls: {sorted(widths)}; expected "
                "one width"
            )
            raise BrokenError(msg, f"a call of {len(rows)} sequences, batch_size={size}")
        for index, row in enumerate(rows):
            if int(row) in full_check.position_texts:
                largest_distance = max(
                    largest_distance,
                    _compare(full_check, int(row), embedded, index, size, sequences),
                )
    compared_text = (
        f"{len(full_check.position_texts)} of {plural(len(full_check.sequences), 'sequence')}"
    )
    calls = plural(len(full_check.batches), "call")
    return (
        f"{compared_text} have the same embedding alone and in the {calls} of a run.",
        largest_distance,
    )


def mixed_batches(subject: Subject) -> tuple[str, float]:
    """Check that no order of lengths and no incomplete batch changes an embedding."""
    full_check, largest_distance, calls = full_check_of(subject), 0.0, 0
    mixed_calls = list(_mixed_calls(full_check))
    row_count = sum(len(call_rows) for call_rows, _ in mixed_calls)
    subject.listener.begin(
        "mixed-batches", len(full_check.position_texts) - len(full_check.embedded_alone) + row_count
    )
    full_check.embed_alone()
    for call_rows, size in mixed_calls:
        sequences = [full_check.sequences[row] for row in call_rows]
        embedded = subject.embed(sequences, size)
        subject.listener.step(len(call_rows), sum(map(len, sequences)))
        calls += 1
        for index, row in enumerate(call_rows):
            largest_distance = max(
                largest_distance, _compare(full_check, row, embedded, index, size, sequences)
            )
    sentence = f"{row_count} sequences have the same embedding alone and in {plural(calls, 'call')}"
    return f"{sentence} of mixed lengths.", largest_distance


def no_drift(subject: Subject) -> tuple[str, float]:
    """Check that an embedding alone is the same before and after all other sequences."""
    full_check, largest_distance = full_check_of(subject), 0.0
    sequence_count = 0 if full_check.has_run_batches else len(full_check.sequences)
    subject.listener.begin(
        "no-drift",
        2 * len(full_check.position_texts) - len(full_check.embedded_alone) + sequence_count,
    )
    expected_by_row = dict(full_check.embed_alone())
    if not full_check.has_run_batches:
        for _ in full_check.embed_batches():
            pass
    for row, expected in expected_by_row.items():
        sequence = full_check.sequences[row]
        later_embedding = subject.embed([sequence], 1)[0]
        subject.listener.step(1, len(sequence))
        sentence = (
            f"the same sequence alone has another embedding after {len(full_check.sequences):,} "
            "others, expected the same: the extractor keeps a state that grows (a counter, a "
            "running mean, a cache); remove it"
        )
        largest_distance = max(
            largest_distance,
            subject.checked_distance(later_embedding, expected, sentence, call_code([sequence], 1)),
        )
    return (
        f"{len(expected_by_row)} sequences have the same embedding before and after all others.",
        largest_distance,
    )


def lengths_up_to(maximum: int) -> list[int]:
    """Return `SEQUENCE_COUNT` lengths from `LENGTH_MIN` to `maximum`, fewer of the longer ones.

    The range is divided where the length doubles. Each part has 1 / sqrt(2) times as many sequences
    as the part before, at least `SEQUENCES_MIN`, so that its cost is higher, but less than double.
    """
    edges = [LENGTH_MIN]
    while edges[-1] < maximum:
        edges.append(min(maximum, 2 * edges[-1]))
    buckets = list(itertools.pairwise(edges)) or [(LENGTH_MIN, LENGTH_MIN)]
    weights = [2 ** (-i / 2) for i in range(len(buckets))]
    generator = random.Random(SEED)  # noqa: S311 - a probe, no secret
    lengths = [LENGTH_MIN, max(LENGTH_MIN, maximum)]
    for (low, high), weight in list(zip(buckets, weights, strict=True))[1:]:
        count = max(SEQUENCES_MIN, int(SEQUENCE_COUNT * weight / sum(weights)))
        lengths += [generator.randint(low, high) for _ in range(count)]
    low, high = buckets[0]
    return [*lengths, *(generator.randint(low, high) for _ in range(SEQUENCE_COUNT - len(lengths)))]


def maximum_letters(subject: Subject) -> int:
    """Return the length of the longest sequence to embed, in letters.

    It exceeds a declared maximum at which the extractor truncates.
    """
    declared = subject.loaded.description["embedding"]
    limit = declared["max_length"]
    if not isinstance(limit, int):
        return min(UNLIMITED_LETTERS, subject.letters)
    count_tokens = token_counter(subject)
    if declared["truncation"] == "none":
        return max(LENGTH_MIN, min(subject.letters, limit - SPECIAL_TOKENS_MAX))
    letters = limit * LETTERS_PER_TOKEN
    if count_tokens is not None:
        letters = limit
        while letters < subject.letters and count_tokens(random_letters(letters)) < limit:
            letters = math.ceil(letters * LONGEST_FACTOR)
    return max(LENGTH_MIN, min(subject.letters, math.ceil(letters * LONGEST_FACTOR)))


def _position_in_batch(index: int, size: int, *, is_last_batch: bool) -> str:
    """Return a phrase for a sequence's position in its batch, such as "the first sequence"."""
    if is_last_batch:
        return "a sequence of the last batch"
    if index == 0:
        return "the first sequence"
    if index == size - 1:
        return "the last sequence"
    if index == SECOND_HALF_START:
        return "the 17th sequence"
    return (
        "a sequence behind the 17th" if index > SECOND_HALF_START else "a sequence before the 17th"
    )


def _mixed_calls(full_check: FullCheck) -> Iterator[tuple[list[int], int]]:
    """Yield the indices of the sequences of each call, and its `batch_size`.

    Large batches contain only short sequences.
    """
    longest_length = max(len(full_check.sequences[row]) for row in full_check.position_texts)
    for step, (rows, size) in enumerate(MIXED_CALLS):
        fitting = [
            row
            for row in full_check.position_texts
            if len(full_check.sequences[row]) * size
            <= max(FILE_BATCH_SEQUENCES * longest_length, MIXED_LETTERS)
        ]
        random.Random(SEED + step).shuffle(fitting)  # noqa: S311 - a probe, no secret
        for start in range(0, len(fitting), rows):
            yield fitting[start : start + rows], size


def _compare(
    full_check: FullCheck,
    row: int,
    embedded: np.ndarray,
    index: int,
    size: int,
    sequences: list[str],
) -> float:
    """Return the distance between a sequence's embedding in a call and its embedding alone.

    Raise BrokenError if it is above the tolerance.
    """
    sentence = (
        f"sequence {index} of a call of {plural(len(sequences), 'sequence')} "
        f"({full_check.position_texts[row]} in a run) does not have the embedding that it "
        "has alone, expected the same: pool each sequence under its own mask, compute no statistic "
        "over the call, and return every embedding, also of the last, incomplete batch"
    )
    example = (
        f"a call of {len(sequences)} sequences of {min(map(len, sequences))} to "
        f"{max(map(len, sequences))} letters, batch_size={size}, sequence {index} of "
        f"{len(sequences[index])} letters, against {call_code([sequences[index]], 1)}[0]"
    )
    alone_embedding = full_check.embedded_alone[row]
    try:
        return full_check.subject.checked_distance(
            embedded[index], alone_embedding, sentence, example
        )
    except BrokenError as error:
        later_embedding = full_check.subject.embed([sequences[index]], 1)[0]
        if (
            error.distance is None
            or relative_distance(later_embedding, alone_embedding) <= full_check.subject.tolerance
        ):
            raise
        sentence = (
            "the same sequence alone has another embedding than before this call, expected the "
            "same: the extractor keeps a state; remove it"
        )
        raise BrokenError(
            sentence, example, relative_distance(later_embedding, alone_embedding)
        ) from None

"""Measure how many sequences of equal length a batch may have without changing any embedding.

The shape of a batch determines the kernel, differently on every device. So the limit is measured on
the run's device, with the run's model, in a few seconds. It changes the speed of a run, and no bit
of its embeddings: up to the limit, a sequence in a batch has the same bits as alone.
"""

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_harness.loading.loader import LoadedExtractor

from .batching import EXACT_ROWS_MAX, EXACT_TOKENS_MIN, RowLimit
from .extractor_calls import Batching, to_numpy
from .memory import DEVICE_TOKENS_MAX, HOST_TOKENS_MAX, release_memory, try_to_compute

EmbeddingMatrix = npt.NDArray[np.generic]
"""(n, d) embeddings in the type of the extractor."""
EmbedEqualLengths = Callable[[int, Sequence[int]], EmbeddingMatrix]
"""Function that embeds sequences of one length as one batch; its arguments are the number of tokens
of each, and the indices of the sequences."""

DEVICE_ROWS_MAX = 4 * EXACT_ROWS_MAX
"""Sequences of the largest batch tried on an accelerator; on a CPU, these are `EXACT_ROWS_MAX`. The
number was not measured on a GPU."""
TRIED_TOKENS_MAX = 1024
"""Longest sequence tried, in tokens: longer ones get the limit of this length."""
COMPARED_ROWS = 8
"""Number of sequences of a batch, evenly spaced, that are embedded alone for comparison."""
MEASURING_SECONDS = 3.0
"""Time after which no longer sequences are tried: they get the limit of the longest that were."""


def with_exact_limits(loaded: LoadedExtractor, batching: Batching, device: str) -> Batching:
    """Return the batching; in mode "exact", with its limits measured with this extractor.

    They are the largest batches, by length of sequence, in which no bit of an embedding changes.

    The limits are also set on a built-in that makes its own batches. Return `batching` unchanged if
    nothing can be measured.
    """
    if batching.mode != "exact":
        return batching
    limits = exact_limits(loaded.extractor, device, is_builtin=loaded.path.startswith("builtin:"))
    if not limits:
        return batching
    if hasattr(loaded.extractor, "exact_limits"):
        loaded.extractor.exact_limits = limits
    return replace(batching, exact_limits=limits)


def exact_limits(extractor: Any, device: str, *, is_builtin: bool) -> tuple[RowLimit, ...]:
    """Return the limits of an extractor on its device, by ascending length; () if none apply.

    A built-in is measured with generated tokens, any other that counts its tokens with sequences of
    equal letters and tokens. Errors of the extractor are ignored here: they occur again in the run,
    whose messages name task and sequence.
    """
    rows_max, tokens_max = EXACT_ROWS_MAX, HOST_TOKENS_MAX
    if device != "cpu":
        rows_max, tokens_max = DEVICE_ROWS_MAX, DEVICE_TOKENS_MAX
    if is_builtin and hasattr(extractor, "equal_batch"):
        tokens = tried_lengths(extractor.equal_length_max)
        return measured_limits(extractor.equal_batch, tokens, rows_max, tokens_max)
    if is_builtin or getattr(extractor, "count_tokens", None) is None:
        return ()
    return _limits_of_sequences(extractor, rows_max, tokens_max)


def tried_lengths(tokens_max: int | None) -> list[int]:
    """Return the numbers of tokens to try: powers of two up to `tokens_max`, and `tokens_max`."""
    longest = min(tokens_max or TRIED_TOKENS_MAX, TRIED_TOKENS_MAX)
    doubled = [EXACT_TOKENS_MIN << n for n in range(16) if EXACT_TOKENS_MIN << n < longest]
    return [*doubled, longest] if longest >= EXACT_TOKENS_MIN else []


def measured_limits(
    embed: EmbedEqualLengths, tokens: Sequence[int], rows_max: int, tokens_max: int
) -> tuple[RowLimit, ...]:
    """Return the limit at each length: at most `rows_max` rows and `tokens_max` tokens.

    The number of rows is halved while an embedding differs from that of the sequence alone. Stop
    before a length at which `embed` raises an error other than lack of memory.
    """
    limits: list[RowLimit] = []
    end_time = time.monotonic() + MEASURING_SECONDS
    with contextlib.suppress(Exception):
        for length in tokens:
            rows = min(rows_max, max(1, tokens_max // length))
            while rows > 1 and not _is_exact(embed, length, rows):
                rows = rows // 2 if time.monotonic() < end_time else 1
            limits.append(RowLimit(length, rows))
            if time.monotonic() >= end_time:
                break
    return tuple(limits)


def _is_exact(embed: EmbedEqualLengths, tokens: int, rows: int) -> bool:
    """Whether embeddings have the same bits alone and in batches of `rows`, `rows` - 1 and 2."""
    for size in sorted({2, max(2, rows - 1), rows}):
        together, _ = try_to_compute(lambda count: embed(tokens, range(count)), size)
        if not together:
            release_memory()
            return False
        for row in np.unique(np.linspace(0, size - 1, COMPARED_ROWS, dtype=np.int64)).tolist():
            if embed(tokens, [row])[0].tobytes() != together[0][row].tobytes():
                return False
    return True


def _limits_of_sequences(extractor: Any, rows_max: int, tokens_max: int) -> tuple[RowLimit, ...]:
    """Return the limits of an extractor, measured with random sequences of equally many tokens."""
    random_letters = random.Random(0).choices("ACGT", k=TRIED_TOKENS_MAX + rows_max)  # noqa: S311 - no secret

    def sequences(letters: int, rows: Sequence[int]) -> list[str]:
        return ["".join(random_letters[row : row + letters]) for row in rows]

    def embed(letters: int, rows: Sequence[int]) -> EmbeddingMatrix:
        batch = sequences(letters, rows)
        return to_numpy(extractor.extract_embeddings(batch, batch_size=len(batch)))

    tokens_by_letters: dict[int, int] = {}
    with contextlib.suppress(Exception):
        for letters in tried_lengths(TRIED_TOKENS_MAX):
            counts = set(map(int, extractor.count_tokens(sequences(letters, range(rows_max)))))
            if len(counts) == 1:
                tokens_by_letters[letters] = counts.pop()
    limits = measured_limits(embed, list(tokens_by_letters), rows_max, tokens_max)
    return tuple(RowLimit(tokens_by_letters[letters], rows) for letters, rows in limits)

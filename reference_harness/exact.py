"""Measures how many rows of equal length may share a batch and keep the bits of batches of one.

Kernels are chosen by the shape of a batch, on every device in its own way, so the limit is measured
on the device of the run, for the model of the run, in a few seconds. It changes how fast a run is
and no bit of its embeddings: what shares a batch up to the limit is equal to what is alone.
"""

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .batching import EXACT_ALONE, EXACT_ROWS, RowLimit
from .embed import Batching, to_numpy
from .loading import LoadedExtractor
from .memory import DEVICE_TOKENS, HOST_TOKENS, attempt, release_memory

Embedded = npt.NDArray[np.generic]
EmbedEqual = Callable[[int, Sequence[int]], Embedded]
"""Returns the embeddings of numbered rows of so many tokens, as one batch."""

DEVICE_ROWS = 4 * EXACT_ROWS
"""Most rows that are tried on an accelerator; on a CPU `EXACT_ROWS`. Not measured on a GPU."""
LONGEST = 1024
"""Most tokens of a row that are tried: longer ones have the limit of this length."""
COMPARED = 8
"""Rows of a batch that are compared with the row alone, spread over it evenly."""
SECONDS = 3.0
"""Time after which no further length is begun: longer ones then have the limit of the last."""


def with_limits(loaded: LoadedExtractor, batching: Batching, device: str) -> Batching:
    """Return how batches are made, under "exact" with the limits of this extractor on its device.

    A built-in that makes batches itself is told, too. Unchanged where nothing can be measured.
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
    """Return the limits of an extractor on its device, ascending; none where it makes no batches.

    A built-in is measured on made-up tokens, any other that counts its tokens on sequences of equal
    letters that have equal tokens. What an extractor raises is left to the run, whose messages name
    task and sequence.
    """
    most, tokens_max = EXACT_ROWS, HOST_TOKENS
    if device != "cpu":
        most, tokens_max = DEVICE_ROWS, DEVICE_TOKENS
    if is_builtin and hasattr(extractor, "equal_batch"):
        tokens = lengths(extractor.equal_length_max)
        return measured_limits(extractor.equal_batch, tokens, most, tokens_max)
    if is_builtin or getattr(extractor, "count_tokens", None) is None:
        return ()
    return _of_letters(extractor, most, tokens_max)


def lengths(most: int | None) -> list[int]:
    """Return the tokens of rows that are tried: powers of two and `most`, where it is shorter."""
    longest = min(most or LONGEST, LONGEST)
    doubled = [EXACT_ALONE << n for n in range(16) if EXACT_ALONE << n < longest]
    return [*doubled, longest] if longest >= EXACT_ALONE else []


def measured_limits(
    embed: EmbedEqual, tokens: Sequence[int], most: int, tokens_max: int
) -> tuple[RowLimit, ...]:
    """Return the limit at each length, ascending: at most `most` rows and `tokens_max` tokens.

    Where a row differs from the row alone, half as many are tried. It ends before a length at which
    `embed` raises anything but lack of memory.
    """
    limits: list[RowLimit] = []
    until = time.monotonic() + SECONDS
    with contextlib.suppress(Exception):
        for length in tokens:
            rows = min(most, max(1, tokens_max // length))
            while rows > 1 and not _is_exact(embed, length, rows):
                rows = rows // 2 if time.monotonic() < until else 1
            limits.append(RowLimit(length, rows))
            if time.monotonic() >= until:
                break
    return tuple(limits)


def _is_exact(embed: EmbedEqual, tokens: int, rows: int) -> bool:
    """Whether rows have the bits of the row alone in a batch of `rows`, of one less, and of two."""
    for size in sorted({2, max(2, rows - 1), rows}):
        together, _ = attempt(lambda count: embed(tokens, range(count)), size)
        if not together:
            release_memory()
            return False
        for row in np.unique(np.linspace(0, size - 1, COMPARED, dtype=np.int64)).tolist():
            if embed(tokens, [row])[0].tobytes() != together[0][row].tobytes():
                return False
    return True


def _of_letters(extractor: Any, most: int, tokens_max: int) -> tuple[RowLimit, ...]:
    """Return the limits of an extractor that is called with sequences, at the tokens of these."""
    texts = random.Random(0).choices("ACGT", k=LONGEST + most)  # noqa: S311 - no secret

    def sequences(letters: int, rows: Sequence[int]) -> list[str]:
        return ["".join(texts[row : row + letters]) for row in rows]

    def embed(letters: int, rows: Sequence[int]) -> Embedded:
        texts_of_rows = sequences(letters, rows)
        return to_numpy(extractor.extract_embeddings(texts_of_rows, batch_size=len(texts_of_rows)))

    tokens_of: dict[int, int] = {}
    with contextlib.suppress(Exception):
        for letters in lengths(LONGEST):
            counts = set(map(int, extractor.count_tokens(sequences(letters, range(most)))))
            if len(counts) == 1:
                tokens_of[letters] = counts.pop()
    limits = measured_limits(embed, list(tokens_of), most, tokens_max)
    return tuple(RowLimit(tokens_of[letters], rows) for letters, rows in limits)

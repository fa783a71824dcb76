"""Calls an extractor on sequences, in batches of similar length."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import batching as batches
from .errors import EmbeddingError
from .loading import LoadedExtractor
from .memory import DoesNotFitError, MemoryLimit, attempt, is_out_of_memory, release_memory
from .shard import Embeddings

Mode = Literal["budget", "exact", "file"]

FILE_BATCH = 8
"""Sequences of a batch in file order: upstream's loop."""
CALL_SEQUENCES = 2048
"""Sequences handed at once to an extractor that plans its own batches, or more where its batches
are large. Not timed: what shares a batch moves the last digits, so it may not depend on how fast a
machine is."""
BATCHES_PER_CALL = 8
"""Batches that a call has at least, where they are large: a device waits at the end of each call,
as nothing of the next one is queued before. Not measured on a GPU."""
CALL_SEQUENCES_MAX = 1 << 15
"""Largest call: 512 MiB of embeddings with 4,096 columns."""
TOKENS_MEASURED = 64
"""Sequences whose tokens say how many a letter gives."""
LETTERS_SHOWN = 60  # letters of a sequence shown in an error

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Batching:
    """How sequences share batches.

    "budget": sorted by length, up to `token_budget` padded tokens; "exact": equal lengths only, so
    that nothing is padded and an embedding has the same bits whatever its batch; "file": batches
    of `rows` in file order, as upstream does.

    Which sequences share a batch moves the last digits of an embedding under "budget" and "file",
    as padding and the shape of a matrix select other kernels and orders of summation: about 1e-7
    of a value in float32, more in half precision, which now and then moves one prediction. The
    mode is part of what embeddings are cached under and of a run's identity; the token budget is
    not, so that a run that ran out of memory resumes under a smaller one. A record names every
    budget that its embeddings were computed under. Two runs whose budgets differ are bitwise
    comparable under "exact" alone.
    """

    mode: Mode = "budget"
    token_budget: int = batches.TOKEN_BUDGET
    """Padded tokens of a batch, unless `MemoryLimit.room` says where to measure them."""
    rows: int = FILE_BATCH
    exact_limits: tuple[batches.RowLimit, ...] = batches.EXACT_LIMITS
    """Rows of a batch of equal lengths; measured ones (`exact.py`) change no bit."""


BATCHING = Batching()


def budget_now(extractor: LoadedExtractor, batching: Batching, limit: MemoryLimit) -> int:
    """Return the padded tokens that memory and settings allow a batch; 0 where nothing does."""
    planned = 0 if batching.mode == "file" else limit.budget or batching.token_budget
    measured_budget = cut_to(extractor, limit)
    return min(measured_budget or planned, planned or measured_budget)


def cut_to(extractor: LoadedExtractor, limit: MemoryLimit) -> int:
    """Return the padded tokens to which batches were cut when memory ran out; 0 until it did."""
    limits = (limit, getattr(extractor.extractor, "memory", None))
    cuts = [each.tokens for each in limits if isinstance(each, MemoryLimit) and each.tokens]
    return min(cuts, default=0)


def plan(
    extractor: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    sizes: Sequence[int] | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Return the sequences of each call of the extractor: every sequence once.

    A built-in plans batches by tokens within a call, which has room for several. For any other
    the call is the batch; `sizes` are what its `count_tokens` says, else letters. "exact" without
    `count_tokens` is one sequence a call: equal letters need not be equal tokens, and then
    padding would be back.
    """
    count = len(sequences)
    mode, is_builtin = batching.mode, extractor.path.startswith("builtin:")
    if mode == "file":
        return batches.file_order(count, CALL_SEQUENCES if is_builtin else batching.rows)
    lengths = sizes_of(extractor, sequences) if sizes is None else sizes
    if is_builtin:
        order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
        size = _call_size(extractor, batching, sequences)
        return [order[i : i + size] for i in range(0, count, size)]
    if mode == "exact":
        if getattr(extractor.extractor, "count_tokens", None) is None:
            return batches.file_order(count, 1)
        return batches.exact_length(lengths, batching.token_budget, batching.exact_limits)
    return batches.token_budget(lengths, batching.token_budget)


def _call_size(extractor: LoadedExtractor, batching: Batching, sequences: Sequence[str]) -> int:
    """Return the sequences of a call of a built-in that plans batches by tokens.

    They are as many as fill `BATCHES_PER_CALL` batches, by the tokens of a sample of sequences.
    """
    counter = getattr(extractor.extractor, "count_tokens", None)
    if batching.mode != "budget" or counter is None or len(sequences) <= CALL_SEQUENCES:
        return CALL_SEQUENCES
    picked = sequences[:: -(-len(sequences) // TOKENS_MEASURED)]
    most = None if _is_whole(extractor) else extractor.extractor.max_length
    tokens = [min(count, most or count) for count in counter(picked)]
    filling = BATCHES_PER_CALL * batching.token_budget * len(tokens) // max(1, sum(tokens))
    return max(CALL_SEQUENCES, min(CALL_SEQUENCES_MAX, int(filling)))


def _is_whole(extractor: LoadedExtractor) -> bool:
    """Whether every token of a sequence is read, in windows where it is too long."""
    return extractor.extractor.truncation in ("none", "windows")


def sizes_of(extractor: LoadedExtractor, sequences: Sequence[str]) -> list[int]:
    """Return the tokens of each sequence, or its letters where the extractor counts none.

    Letters for a built-in, too, which counts tokens itself. Raises EmbeddingError where
    `count_tokens` fails.
    """
    counter = getattr(extractor.extractor, "count_tokens", None)
    if extractor.path.startswith("builtin:") or counter is None:
        return [len(s) for s in sequences]
    try:
        sizes = [int(count) for count in counter(sequences)]
    except Exception as error:
        msg = f"{extractor.class_name}.count_tokens failed: {type(error).__name__}: {error}"
        raise EmbeddingError(msg) from error
    if len(sizes) != len(sequences):
        msg = f"{extractor.class_name}.count_tokens gave {len(sizes)} numbers for {len(sequences)}"
        msg += " sequences, expected one for each"
        raise EmbeddingError(msg)
    return sizes


def calls(
    extractor: LoadedExtractor,
    batching: Batching,
    label: str,
    sequences: Sequence[str],
    limit: MemoryLimit | None = None,
    lacking: npt.NDArray[np.bool_] | None = None,
) -> Iterator[tuple[npt.NDArray[np.int64], Embeddings]]:
    """Call the extractor batch by batch: yields sequence numbers, and their (m, d) embeddings.

    Only sequences that `lacking` marks, (n,), are computed, in the calls that all sequences are
    planned in.

    A batch that does not fit into memory is halved, and `limit` remembers what fits. Where it has
    a `room`, the token budget is measured there first. Raises EmbeddingError, which begins with
    `label` and shows the sequence.
    """
    limit = limit or MemoryLimit()
    ahead: Callable[[list[str]], None] | None = getattr(extractor.extractor, "ahead", None)
    following: dict[int, npt.NDArray[np.int64]] = {}

    def call(rows: npt.NDArray[np.int64]) -> Embeddings:
        after = following.pop(int(rows[0]), None)
        if ahead is not None and after is not None:
            ahead([sequences[i] for i in after])
        return _call(extractor, batching, label, [sequences[i] for i in rows])

    dim = None
    sizes = sizes_of(extractor, sequences)
    batching = measured(extractor, batching, sequences, sizes, limit)
    planned = plan(extractor, batching, sequences, sizes)
    if lacking is not None:
        planned = [lacking_rows for rows in planned if len(lacking_rows := rows[lacking[rows]])]
    following |= {int(rows[0]): after for rows, after in itertools.pairwise(planned)}
    if ahead is not None and planned:
        ahead([sequences[i] for i in planned[0]])
    results = limit.fitting(planned, sizes, call)
    for rows, values in _with_sequence_in_errors(results, label, sequences):
        batch = [sequences[i] for i in rows]
        first = _batch_label(label, batch)
        if values.ndim != 2 or len(values) != len(batch) or not values.shape[1]:  # noqa: PLR2004
            msg = f"{first}: an array of shape {values.shape}, expected ({len(batch)}, d)"
            raise EmbeddingError(msg)
        if dim not in (None, values.shape[1]):
            msg = f"{first}: sequences of width {values.shape[1]}, earlier ones had {dim}"
            raise EmbeddingError(msg)
        dim = values.shape[1]
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            msg = f"{label}: the embedding of {batch[row][:LETTERS_SHOWN]!r} is not finite"
            raise EmbeddingError(msg)
        yield rows, unit_embeddings(values) if extractor.is_unit else values


def unit_embeddings(values: Embeddings) -> Embeddings:
    """Return (n, d) embeddings, each divided by the root mean square of its values."""
    wide = values.astype(np.float64)
    size = np.sqrt(np.square(wide).mean(axis=1, keepdims=True))
    size[size == 0] = 1
    unit: Embeddings = (wide / size).astype(values.dtype)
    return unit


def measured(
    loaded: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    sizes: Sequence[int],
    limit: MemoryLimit,
) -> Batching:
    """Return how sequences share batches, with the token budget that `limit.room` has space for.

    It is measured with copies of the longest sequence, which needs the most memory a token. What
    an extractor raises then is left to the run, whose messages name task and sequence.
    """
    extractor: Any = loaded.extractor
    is_builtin = loaded.path.startswith("builtin:")
    plans = is_builtin and hasattr(extractor, "trial")
    if limit.room is None or batching.mode == "file" or not sequences or is_builtin > plans:
        return batching
    longest = int(np.argmax(sizes))

    def call(rows: int) -> object:
        return extractor.extract_embeddings([sequences[longest]] * rows, batch_size=rows)

    def fits(rows: int) -> bool:
        _, message = attempt(batch, rows)
        if message is not None:
            release_memory()
        return message is None

    most = None
    with contextlib.suppress(Exception):
        trial = extractor.trial(sequences[longest]) if plans else (int(sizes[longest]), call)
        row, batch = trial
        most = limit.measure(max(1, row), fits)
    budget = most or batching.token_budget
    if plans:
        extractor.token_budget = budget
    return replace(batching, token_budget=budget)


def _call(
    extractor: LoadedExtractor, batching: Batching, label: str, batch: list[str]
) -> Embeddings:
    """Return what the extractor gives for one batch. Raises EmbeddingError, or lack of memory."""
    size = batching.rows if batching.mode == "file" else len(batch)
    try:
        return to_numpy(extractor.extractor.extract_embeddings(batch, batch_size=size))
    except DoesNotFitError as error:
        raise _too_large(label, batch[error.row], error) from error
    except Exception as error:
        if is_out_of_memory(error):
            raise
        cause = f"{type(error).__name__}: {error}"
        msg = f"{_batch_label(label, batch)}: the extractor {extractor.class_name} failed: {cause}"
        raise EmbeddingError(msg) from error


def _with_sequence_in_errors(
    results: Iterator[tuple[npt.NDArray[np.int64], Embeddings]],
    label: str,
    sequences: Sequence[str],
) -> Iterator[tuple[npt.NDArray[np.int64], Embeddings]]:
    """Yield what is made; a sequence that does not fit is an EmbeddingError with its name."""
    try:
        yield from results
    except DoesNotFitError as error:
        raise _too_large(label, sequences[error.row], error) from error


def _too_large(label: str, sequence: str, error: DoesNotFitError) -> EmbeddingError:
    return EmbeddingError(
        f"{label}: the sequence {sequence[:LETTERS_SHOWN]!r} of {len(sequence):,} letters: "
        f"{error}: use a smaller max_length or dtype, or a device with more memory"
    )


def _batch_label(label: str, batch: Sequence[str]) -> str:
    return f"{label}: {len(batch)} sequences from {batch[0][:LETTERS_SHOWN]!r}"


def embed_sequences(
    extractor: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    limit: MemoryLimit | None = None,
) -> Embeddings:
    """Return the (n, d) embeddings of n sequences, computing each: no cache, no repetition spared.

    Raises EmbeddingError, also when there is nothing to embed.
    """
    out: Embeddings | None = None
    for rows, values in calls(extractor, batching, "sandbox", sequences, limit):
        if out is None:
            out = np.empty((len(sequences), values.shape[1]), dtype=values.dtype)
        if values.dtype != out.dtype:
            msg = f"sandbox: sequences of {values.dtype}, earlier ones were {out.dtype}"
            raise EmbeddingError(msg)
        out[rows] = values
    if out is None:
        msg = "sandbox: no sequence to embed"
        raise EmbeddingError(msg)
    return out


def to_numpy(output: Any) -> Embeddings:  # NumPy or torch, as upstream allows
    """Return an extractor's output as a NumPy array of the same floating type.

    bfloat16, which NumPy lacks, becomes float32, which holds each of its values exactly. Raises
    TypeError for anything that is not an array of floating numbers.
    """
    if hasattr(output, "detach"):
        output = output.detach().cpu()
        if str(output.dtype) == "torch.bfloat16":
            output = output.float()
        output = output.numpy()
    if not isinstance(output, np.ndarray) or output.dtype.name not in _FLOATS:
        kind = getattr(output, "dtype", type(output).__name__)
        msg = f"gave {kind}, expected a NumPy or torch array of {', '.join(_FLOATS)}"
        raise TypeError(msg)
    return output

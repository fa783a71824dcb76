"""Call an extractor on sequences, in batches of similar length."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from reference_harness.errors import EmbeddingError
from reference_harness.formats.text import plural
from reference_harness.loading.loader import LoadedExtractor

from . import batching as batches
from .memory import DoesNotFitError, MemoryLimit, is_out_of_memory, release_memory, try_to_compute
from .shard import Embeddings

BatchingMode = Literal["budget", "exact", "file"]
"""How sequences are grouped into batches; see `Batching`."""

FILE_BATCH_SEQUENCES = 8
"""Sequences per batch in file order, as in upstream's loop."""
CALL_SEQUENCES_MIN = 2048
"""Minimum number of sequences per call of an extractor that plans its own batches. The number is
constant, since sequences that share a batch change the last digits of an embedding, and these must
not depend on the speed of a machine."""
BATCHES_PER_CALL_MIN = 8
"""Minimum number of batches per call of an extractor that plans its own batches, as the device is
idle between calls. Not measured on a GPU."""
CALL_SEQUENCES_MAX = 1 << 15
"""Maximum number of sequences per call: 512 MiB of embeddings with 4,096 columns."""
TOKEN_SAMPLE_SEQUENCES = 64
"""Number of sampled sequences whose tokens are counted, to estimate the tokens per sequence."""
LETTERS_SHOWN = 60  # letters of a sequence shown in an error

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Batching:
    """The grouping of sequences into batches.

    "budget": sorted by length, up to `token_budget` padded tokens; "exact": equal lengths only, so
    that nothing is padded and an embedding has the same bits in any batch; "file": batches of
    `rows` sequences in file order, as upstream does.

    Under "budget" and "file", the other sequences of a batch change the last digits of an
    embedding, as padding and the shape of a matrix select other kernels and orders of summation:
    about 1e-7 of a value in float32, more in half precision, which may change a prediction. So the
    mode is part of the key of cached embeddings and of a run's identity. The token budget is not,
    so that a run that ran out of memory can be resumed with a smaller one; a record names every
    budget that was used. Two runs with different budgets have the same bits only under "exact".
    """

    mode: BatchingMode = "budget"
    token_budget: int = batches.DEFAULT_TOKEN_BUDGET
    """Maximum of padded tokens in a batch, unless it is measured (`MemoryLimit.measure`)."""
    rows: int = FILE_BATCH_SEQUENCES
    """Sequences per batch in mode "file"."""
    exact_limits: tuple[batches.RowLimit, ...] = batches.DEFAULT_EXACT_LIMITS
    """Maximum of rows in a batch of equal lengths, by length; measured in `exact_batches.py`."""


DEFAULT_BATCHING = Batching()


def current_budget(extractor: LoadedExtractor, batching: Batching, limit: MemoryLimit) -> int:
    """Return the maximum of padded tokens per batch by memory and settings; 0 if unlimited."""
    planned_budget = 0 if batching.mode == "file" else limit.budget or batching.token_budget
    reduced = reduced_budget(extractor, limit)
    return min(reduced or planned_budget, planned_budget or reduced)


def reduced_budget(extractor: LoadedExtractor, limit: MemoryLimit) -> int:
    """Return the token budget to which a lack of memory reduced batches; 0 if none was reduced."""
    limits = (limit, getattr(extractor.extractor, "memory", None))
    reduced_budgets = [
        memory_limit.tokens
        for memory_limit in limits
        if isinstance(memory_limit, MemoryLimit) and memory_limit.tokens
    ]
    return min(reduced_budgets, default=0)


def planned_calls(
    extractor: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    sizes: Sequence[int] | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Return the calls of the extractor, each as indices of sequences; every sequence occurs once.

    A built-in gets several batches per call and plans them by its tokens. For any other extractor a
    call is one batch. `sizes` are the results of `sequence_sizes`. In mode "exact",
    an extractor without `count_tokens` gets one sequence per call, as equal letters need not be
    equal tokens.
    """
    count = len(sequences)
    mode, is_builtin = batching.mode, extractor.path.startswith("builtin:")
    if mode == "file":
        return batches.batches_in_file_order(
            count, CALL_SEQUENCES_MIN if is_builtin else batching.rows
        )
    lengths = sequence_sizes(extractor, sequences) if sizes is None else sizes
    if is_builtin:
        order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
        size = _call_size(extractor, batching, sequences)
        return [order[i : i + size] for i in range(0, count, size)]
    if mode == "exact":
        if getattr(extractor.extractor, "count_tokens", None) is None:
            return batches.batches_in_file_order(count, 1)
        return batches.batches_of_equal_length(
            lengths, batching.token_budget, batching.exact_limits
        )
    return batches.batches_within_budget(lengths, batching.token_budget)


def _call_size(extractor: LoadedExtractor, batching: Batching, sequences: Sequence[str]) -> int:
    """Return the number of sequences per call of a built-in that plans batches by tokens.

    The number is estimated from the tokens of a sample of sequences, so that a call has
    `BATCHES_PER_CALL_MIN` batches.
    """
    count_tokens = getattr(extractor.extractor, "count_tokens", None)
    if batching.mode != "budget" or count_tokens is None or len(sequences) <= CALL_SEQUENCES_MIN:
        return CALL_SEQUENCES_MIN
    sample = sequences[:: -(-len(sequences) // TOKEN_SAMPLE_SEQUENCES)]
    reads_all = extractor.extractor.truncation in ("none", "windows")
    tokens_max = None if reads_all else extractor.extractor.max_length
    tokens = [min(count, tokens_max or count) for count in count_tokens(sample)]
    estimated_count = (
        BATCHES_PER_CALL_MIN * batching.token_budget * len(tokens) // max(1, sum(tokens))
    )
    return max(CALL_SEQUENCES_MIN, min(CALL_SEQUENCES_MAX, int(estimated_count)))


def sequence_sizes(extractor: LoadedExtractor, sequences: Sequence[str]) -> list[int]:
    """Return the number of tokens of each sequence, or of letters if tokens are not counted.

    Return letters for a built-in too, which counts its tokens later. Raise EmbeddingError if
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
        msg = (
            f"{extractor.class_name}.count_tokens returned {len(sizes)} numbers for "
            f"{len(sequences)}"
        )
        msg += " sequences, expected one for each"
        raise EmbeddingError(msg)
    return sizes


def embeddings_by_call(
    extractor: LoadedExtractor,
    batching: Batching,
    label: str,
    sequences: Sequence[str],
    limit: MemoryLimit | None = None,
    lacking: npt.NDArray[np.bool_] | None = None,
    share: tuple[int, int] = (0, 1),
) -> Iterator[tuple[npt.NDArray[np.int64], Embeddings]]:
    """Call the extractor batch by batch; yield indices of sequences and their (m, d) embeddings.

    Only the sequences that `lacking`, (n,), marks are embedded, in the calls planned for all
    sequences. If `share` is (i, n), only every n-th of these calls is made, beginning with call i.

    A batch that does not fit into memory is halved, and `limit` keeps the size that fits. If
    `limit` has a `memory`, the token budget is measured first. Raise EmbeddingError, which begins
    with `label` and quotes the sequence.
    """
    limit = limit or MemoryLimit()
    announce: Callable[[list[str]], None] | None = getattr(extractor.extractor, "ahead", None)
    next_rows_by_first: dict[int, npt.NDArray[np.int64]] = {}

    def call(rows: npt.NDArray[np.int64]) -> Embeddings:
        next_rows = next_rows_by_first.pop(int(rows[0]), None)
        if announce is not None and next_rows is not None:
            announce([sequences[i] for i in next_rows])
        return _call_extractor(extractor, batching, label, [sequences[i] for i in rows])

    width = None
    sizes = sequence_sizes(extractor, sequences)
    batching = with_measured_budget(extractor, batching, sequences, sizes, limit)
    first_call, call_step = share
    planned = planned_calls(extractor, batching, sequences, sizes)[first_call::call_step]
    if lacking is not None:
        planned = [lacking_rows for rows in planned if len(lacking_rows := rows[lacking[rows]])]
    next_rows_by_first |= {
        int(rows[0]): next_rows for rows, next_rows in itertools.pairwise(planned)
    }
    if announce is not None and planned:
        announce([sequences[i] for i in planned[0]])
    computed = limit.fitting(planned, sizes, call)
    for rows, embeddings in _with_sequence_in_errors(computed, label, sequences):
        batch = [sequences[i] for i in rows]
        batch_label = _batch_label(label, batch)
        if embeddings.ndim != 2 or len(embeddings) != len(batch) or not embeddings.shape[1]:  # noqa: PLR2004
            msg = (
                f"{batch_label}: got an array of shape {embeddings.shape}, expected "
                f"({len(batch)}, d)"
            )
            raise EmbeddingError(msg)
        if width not in (None, embeddings.shape[1]):
            msg = (
                f"{batch_label}: embeddings have width {embeddings.shape[1]}, expected {width} "
                "as in earlier batches"
            )
            raise EmbeddingError(msg)
        width = embeddings.shape[1]
        if not np.isfinite(embeddings).all():
            row = int(np.flatnonzero(~np.isfinite(embeddings).all(axis=1))[0])
            msg = (
                f"{label}: the embedding of {batch[row][:LETTERS_SHOWN]!r} has NaN or infinity, "
                "expected finite numbers"
            )
            raise EmbeddingError(msg)
        yield rows, unit_embeddings(embeddings) if extractor.is_unit else embeddings


def unit_embeddings(embeddings: Embeddings) -> Embeddings:
    """Return (n, d) embeddings, each divided by the root mean square of its values."""
    precise = embeddings.astype(np.float64)
    root_mean_square = np.sqrt(np.square(precise).mean(axis=1, keepdims=True))
    root_mean_square[root_mean_square == 0] = 1
    unit: Embeddings = (precise / root_mean_square).astype(embeddings.dtype)
    return unit


def with_measured_budget(
    loaded: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    sizes: Sequence[int],
    limit: MemoryLimit,
) -> Batching:
    """Return the batching with the token budget for which `limit.memory` has enough memory.

    It is measured with copies of the longest sequence, which needs the most memory per token.
    Errors of the extractor are ignored here: they occur again in the run, whose messages name the
    sequence.
    """
    extractor: Any = loaded.extractor
    is_builtin = loaded.path.startswith("builtin:")
    plans_batches = is_builtin and hasattr(extractor, "trial")
    if (
        limit.memory is None
        or batching.mode == "file"
        or not sequences
        or (is_builtin and not plans_batches)
    ):
        return batching
    longest = int(np.argmax(sizes))

    def call(rows: int) -> object:
        return extractor.extract_embeddings([sequences[longest]] * rows, batch_size=rows)

    def fits(rows: int) -> bool:
        _, message = try_to_compute(embed_copies, rows)
        if message is not None:
            release_memory()
        return message is None

    measured_budget = None
    with contextlib.suppress(Exception):
        trial = (
            extractor.trial(sequences[longest]) if plans_batches else (int(sizes[longest]), call)
        )
        tokens, embed_copies = trial
        measured_budget = limit.measure(max(1, tokens), fits)
    budget = measured_budget or batching.token_budget
    if plans_batches:
        extractor.token_budget = budget
    return replace(batching, token_budget=budget)


def _call_extractor(
    extractor: LoadedExtractor, batching: Batching, label: str, batch: list[str]
) -> Embeddings:
    """Return the embeddings of one batch.

    Raise EmbeddingError, but for a lack of memory the error of the library.
    """
    size = batching.rows if batching.mode == "file" else len(batch)
    try:
        return to_numpy(extractor.extractor.extract_embeddings(batch, batch_size=size))
    except DoesNotFitError as error:
        raise _too_large_error(label, batch[error.row], error) from error
    except OutputTypeError as error:
        msg = f"{_batch_label(label, batch)}: the extractor {extractor.class_name} returned {error}"
        raise EmbeddingError(msg) from error
    except Exception as error:
        if is_out_of_memory(error):
            raise
        cause = f"{type(error).__name__}: {error}"
        msg = f"{_batch_label(label, batch)}: the extractor {extractor.class_name} failed: {cause}"
        raise EmbeddingError(msg) from error


def _with_sequence_in_errors(
    computed: Iterator[tuple[npt.NDArray[np.int64], Embeddings]],
    label: str,
    sequences: Sequence[str],
) -> Iterator[tuple[npt.NDArray[np.int64], Embeddings]]:
    """Yield all results. Raise EmbeddingError for a sequence too large for memory, and quote it."""
    try:
        yield from computed
    except DoesNotFitError as error:
        raise _too_large_error(label, sequences[error.row], error) from error


def _too_large_error(label: str, sequence: str, error: DoesNotFitError) -> EmbeddingError:
    """Return the error for a sequence that does not fit into memory."""
    return EmbeddingError(
        f"{label}: the sequence {sequence[:LETTERS_SHOWN]!r} of {len(sequence):,} letters: "
        f"{error}: use a smaller max_length or dtype, or a device with more memory"
    )


def _batch_label(label: str, batch: Sequence[str]) -> str:
    """Return the beginning of a message about a batch."""
    return f"{label}: {plural(len(batch), 'sequence')}, the first {batch[0][:LETTERS_SHOWN]!r}"


def embed_sequences(
    extractor: LoadedExtractor,
    batching: Batching,
    sequences: Sequence[str],
    limit: MemoryLimit | None = None,
    progress: Callable[[int], object] = lambda _letters: None,
) -> Embeddings:
    """Return the (n, d) embeddings of n sequences, which may repeat, without a cache.

    `progress` is called with the number of letters of each call. Raise EmbeddingError, also if n is
    0.
    """
    embeddings: Embeddings | None = None
    for rows, embedded in embeddings_by_call(extractor, batching, "sandbox", sequences, limit):
        if embeddings is None:
            embeddings = np.empty((len(sequences), embedded.shape[1]), dtype=embedded.dtype)
        if embedded.dtype != embeddings.dtype:
            msg = f"sandbox: embeddings are {embedded.dtype}, expected {embeddings.dtype} as in "
            msg += "earlier calls"
            raise EmbeddingError(msg)
        embeddings[rows] = embedded
        progress(sum(len(sequences[row]) for row in rows))
    if embeddings is None:
        msg = "sandbox: no sequence to embed, expected at least one"
        raise EmbeddingError(msg)
    return embeddings


class OutputTypeError(TypeError):
    """The output of an extractor is not an array of floating-point numbers; says what it is."""


def to_numpy(output: Any) -> Embeddings:  # NumPy or torch, as upstream allows
    """Return an extractor's output as a NumPy array of the same floating-point type.

    bfloat16, which NumPy lacks, is converted to float32 without loss. Raise OutputTypeError for
    anything but an array of floating-point numbers.
    """
    if hasattr(output, "detach"):
        output = output.detach().cpu()
        if str(output.dtype) == "torch.bfloat16":
            output = output.float()
        output = output.numpy()
    if not isinstance(output, np.ndarray) or output.dtype.name not in _FLOATS:
        kind = getattr(output, "dtype", type(output).__name__)
        msg = (
            f"{kind}, expected a NumPy or torch array of {', '.join(_FLOATS)}: convert the array "
            "before returning it"
        )
        raise OutputTypeError(msg)
    return output

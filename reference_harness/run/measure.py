"""Measure what a run records about each task besides its scores: letters read, and embeddings."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import DIGEST_BYTES
from reference_harness.embedding.extractor_calls import Batching, embeddings_by_call
from reference_harness.embedding.letters_read import (
    LetterChanger,
    relative_distance,
    sampled_sequences,
)
from reference_harness.errors import HarnessError
from reference_harness.extractors.base import LetterCounts
from reference_harness.formats.measurements import REASON_MAX, Drift, EmbeddingFacts, LettersRead
from reference_harness.loading.loader import LoadedExtractor

SEQUENCES_AT_ONCE = 2048
"""Number of sequences whose tokens are counted, and in memory, at once."""
DIFFERENCE_MAX = 1e6
"""Written instead of a larger or infinite difference, which JSON cannot represent."""
DRIFT_DECIMALS = 2
"""Decimals of a drift (change of repeated embeddings): smaller ones are rounding noise."""
MEASURED_VALUES = 1 << 15
"""Number of values measured at once, at least one embedding: 256 KiB in float64 fit into a
cache."""
SIGNIFICANT_DIGITS = 6
"""Significant digits of measurements of embeddings: sums may differ in later digits."""

EmbeddingMatrix = npt.NDArray[np.float32]


class Letters(NamedTuple):
    """The letters that a model reads, or the reason why they are unknown."""

    read: LettersRead | None
    reason: str = ""


NOT_MEASURED = Letters(None, "its embedding failed")
"""The letters of a task whose sequences could not all be embedded."""


def letters_of(extractor: LoadedExtractor, sequences: Sequence[str]) -> Letters:
    """Return how many letters of distinct sequences the model reads, or why that is unknown.

    A built-in extractor counts them by its tokens. The counts of any other cannot be trusted, so a
    few sequences are embedded with changed letters.
    """
    if not sequences:
        return Letters(None, "the task has no sequence")
    reader: Callable[[Sequence[str]], LetterCounts] | None
    reader = getattr(extractor.extractor, "read_letters", None)
    try:
        if extractor.path.startswith("builtin:") and reader is not None:
            return Letters(_letters_by_tokens(reader, sequences))
        return Letters(_letters_by_changes(extractor, sequences))
    except HarnessError as error:
        return Letters(None, f"not measured: {error}"[:REASON_MAX])


def _letters_by_tokens(
    reader: Callable[[Sequence[str]], LetterCounts], sequences: Sequence[str]
) -> LettersRead:
    """Return how many letters are read, by the extractor's own count of tokens."""
    starts = range(0, len(sequences), SEQUENCES_AT_ONCE)
    readings = [reader(sequences[start : start + SEQUENCES_AT_ONCE]) for start in starts]
    sums = LetterCounts(*map(sum, zip(*readings, strict=True)))
    return LettersRead(method="tokens", sequences=len(sequences), **sums._asdict())


def _letters_by_changes(extractor: LoadedExtractor, sequences: Sequence[str]) -> LettersRead:
    """Return how many letters are read, by changing letters of a few sequences."""

    def embed(changed: list[str]) -> npt.NDArray[Any]:
        one_call = Batching("file", rows=len(changed))
        return np.concatenate(
            [rows for _, rows in embeddings_by_call(extractor, one_call, "letters", changed)]
        )

    spans = [
        LetterChanger(embed, sequence).read_span() for sequence in sampled_sequences(sequences)
    ]
    return LettersRead(
        method="changed letters",
        sequences=len(spans),
        given=sum(span.letters_given for span in spans),
        read=sum(span.letters for span in spans),
        cut=sum(span.unread_side != "none" for span in spans),
    )


def embedded_alone(extractor: LoadedExtractor, sequences: Sequence[str]) -> npt.NDArray[Any] | None:
    """Return the (n, d) embeddings of sequences in batches of one.

    Return None if there is no sequence, or if one cannot be embedded.
    """
    if not sequences:
        return None
    try:
        embeddings = [
            rows
            for _, rows in embeddings_by_call(
                extractor, Batching("file", rows=1), "drift", sequences
            )
        ]
    except HarnessError:
        return None
    return np.concatenate(embeddings)


def drift_of(alone: npt.NDArray[Any], earlier_embeddings: npt.NDArray[Any]) -> Drift:
    """Return how far (n, d) embeddings computed alone are from the earlier ones."""
    largest = relative_distance(alone.astype(np.float64), earlier_embeddings.astype(np.float64))
    return Drift(
        sequences=len(alone), difference=round(min(largest, DIFFERENCE_MAX), DRIFT_DECIMALS)
    )


def embedding_facts(
    matrices: Sequence[EmbeddingMatrix], digests: Sequence[bytes]
) -> EmbeddingFacts:
    """Return measurements of the embeddings in (n_i, d) matrices, counting each sequence once.

    `digests` are those of the sequences of all matrices, in order.
    """
    is_counted = np.zeros(len(digests), dtype=np.bool_)
    is_counted[list({digest: row for row, digest in enumerate(digests)}.values())] = True
    count, columns = int(is_counted.sum()), matrices[0].shape[1]
    column_sums, norms, hashes = (
        np.zeros(columns),
        np.empty(count),
        np.empty(count, dtype=np.uint64),
    )
    hash_factors = np.random.default_rng(columns).integers(
        1 << 63, size=(columns,), dtype=np.uint64
    )
    hash_factors |= np.uint64(1)
    for positions, block in _blocks(matrices, is_counted):
        precise_block = block.astype(np.float64)
        column_sums += precise_block.sum(axis=0)
        norms[positions] = np.sqrt(np.vecdot(precise_block, precise_block))
        bits: npt.NDArray[Any] = block.view(np.uint32 if columns % 2 else np.uint64)
        hashes[positions] = (bits * hash_factors[: bits.shape[1]]).sum(axis=1, dtype=np.uint64)
    mean, distances = column_sums / count, np.empty(count)
    for positions, block in _blocks(matrices, is_counted):
        precise_block = block.astype(np.float64)
        precise_block -= mean
        distances[positions] = np.sqrt(np.vecdot(precise_block, precise_block))
    distinct, most_repeated = _repetitions(matrices, is_counted, hashes)
    norm = float(np.median(norms))
    scale = norm or 1.0
    return EmbeddingFacts(
        count=count,
        distinct=distinct,
        most_repeated=most_repeated,
        norm=_rounded(norm),
        spread=_rounded(float(np.median(distances)) / scale),
        norm_spread=_rounded(float(norms.std()) / scale),
    )


def _repetitions(
    matrices: Sequence[EmbeddingMatrix],
    is_counted: npt.NDArray[np.bool_],
    hashes: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """Return the number of different embeddings, and the count of the most frequent one.

    Equal embeddings have equal hashes; if several have the same hash, their bytes are compared.
    """
    _, inverse, hash_counts = np.unique(hashes, return_inverse=True, return_counts=True)
    is_shared = hash_counts[inverse] > 1
    count_by_digest: Counter[bytes] = Counter()
    for positions, block in _blocks(matrices, is_counted):
        for row in np.flatnonzero(is_shared[positions]):
            digest = hashlib.blake2b(block[row].data, digest_size=DIGEST_BYTES).digest()
            count_by_digest[digest] += 1
    unique_hash_count = len(hashes) - int(is_shared.sum())
    return unique_hash_count + len(count_by_digest), max(count_by_digest.values(), default=1)


def _blocks(
    matrices: Sequence[EmbeddingMatrix], is_counted: npt.NDArray[np.bool_]
) -> Iterator[tuple[slice, EmbeddingMatrix]]:
    """Yield blocks of the counted embeddings, each with its positions among these."""
    size = max(1, MEASURED_VALUES // matrices[0].shape[1])
    row = position = 0
    for matrix in matrices:
        for start in range(0, len(matrix), size):
            block = matrix[start : start + size]
            is_chosen = is_counted[row : row + len(block)]
            row += len(block)
            if not is_chosen.all():
                block = block[is_chosen]
            yield slice(position, position + len(block)), block
            position += len(block)


def _rounded(value: float) -> float:
    """Return a measurement with `SIGNIFICANT_DIGITS` digits."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")

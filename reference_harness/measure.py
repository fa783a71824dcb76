"""Measures what a run says of each task beside its scores: the letters read, and the embeddings."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .embed import Batching, calls
from .errors import HarnessError
from .extractors.base import Reading
from .formats.measured import REASON_MAX, Drift, EmbeddingFacts, LettersRead
from .loading import LoadedExtractor
from .reach import Mover, difference, sampled
from .tasks import DIGEST_BYTES

CHUNK = 2048
"""Sequences whose tokens are in memory at once."""
DIFFERENCE_MAX = 1e6
"""Written in the place of a larger or infinite one, which JSON does not have."""
DRIFT_DECIMALS = 2
"""Of a drift: less is the rounding of float32 and float16 in other batches, which differ by run."""
MEASURED_VALUES = 1 << 15
"""Values measured at once, or an embedding: 256 KiB in float64, which a processor's cache holds."""
DIGITS = 6
"""Significant digits of what is measured of embeddings: beyond, processors may differ in sums."""

Rows = npt.NDArray[np.float32]


class Letters(NamedTuple):
    """The letters read, or why they are unknown."""

    read: LettersRead | None
    unknown: str = ""


NOT_MEASURED = Letters(None, "its embedding failed")


def letters_of(extractor: LoadedExtractor, sequences: Sequence[str]) -> Letters:
    """Return the letters of distinct sequences that the model reads.

    A built-in extractor counts them by its tokens. Of any other, which may say what it likes of
    itself, a few sequences are embedded with letters changed.
    """
    if not sequences:
        return Letters(None, "the task has no sequence")
    reader: Callable[[Sequence[str]], Reading] | None
    reader = getattr(extractor.extractor, "read_letters", None)
    try:
        if extractor.path.startswith("builtin:") and reader is not None:
            return Letters(_counted(reader, sequences))
        return Letters(_read_by_changes(extractor, sequences))
    except HarnessError as error:
        return Letters(None, f"not measured: {error}"[:REASON_MAX])


def _counted(reader: Callable[[Sequence[str]], Reading], sequences: Sequence[str]) -> LettersRead:
    starts = range(0, len(sequences), CHUNK)
    parts = [reader(sequences[start : start + CHUNK]) for start in starts]
    sums = Reading(*map(sum, zip(*parts, strict=True)))
    return LettersRead(method="tokens", sequences=len(sequences), **sums._asdict())


def _read_by_changes(extractor: LoadedExtractor, sequences: Sequence[str]) -> LettersRead:
    def embed(changed: list[str]) -> npt.NDArray[Any]:
        one_call = Batching("file", rows=len(changed))
        return np.concatenate([rows for _, rows in calls(extractor, one_call, "letters", changed)])

    reached = [Mover(embed, sequence).reach() for sequence in sampled(sequences)]
    return LettersRead(
        method="changed letters",
        sequences=len(reached),
        given=sum(reach.given for reach in reached),
        read=sum(reach.letters for reach in reached),
        cut=sum(reach.side != "none" for reach in reached),
    )


def embedded_alone(extractor: LoadedExtractor, sequences: Sequence[str]) -> npt.NDArray[Any] | None:
    """Return the (n, d) embeddings of sequences in batches of one.

    None for no sequence, or where one cannot be embedded now.
    """
    if not sequences:
        return None
    try:
        parts = [rows for _, rows in calls(extractor, Batching("file", rows=1), "drift", sequences)]
    except HarnessError:
        return None
    return np.concatenate(parts)


def drift_of(alone: npt.NDArray[Any], first: npt.NDArray[Any]) -> Drift:
    """Return how far (n, d) embeddings computed alone are from `first`, those of before."""
    worst = difference(alone.astype(np.float64), first.astype(np.float64))
    return Drift(sequences=len(alone), difference=round(min(worst, DIFFERENCE_MAX), DRIFT_DECIMALS))


def embedding_facts(parts: Sequence[Rows], digests: Sequence[bytes]) -> EmbeddingFacts:
    """Return the measurements of embeddings as scored, (n_i, d) each; each sequence counts once.

    `digests` are those of the sequences of all parts, one after the other.
    """
    counted = np.zeros(len(digests), dtype=np.bool_)
    counted[list({digest: row for row, digest in enumerate(digests)}.values())] = True
    count, columns = int(counted.sum()), parts[0].shape[1]
    total, norms, keys = np.zeros(columns), np.empty(count), np.empty(count, dtype=np.uint64)
    factors = np.random.default_rng(columns).integers(1 << 63, size=(columns,), dtype=np.uint64)
    factors |= np.uint64(1)
    for where, block in _blocks(parts, counted):
        wide = block.astype(np.float64)
        total += wide.sum(axis=0)
        norms[where] = np.sqrt(np.vecdot(wide, wide))
        bits: npt.NDArray[Any] = block.view(np.uint32 if columns % 2 else np.uint64)
        keys[where] = (bits * factors[: bits.shape[1]]).sum(axis=1, dtype=np.uint64)
    mean, distances = total / count, np.empty(count)
    for where, block in _blocks(parts, counted):
        wide = block.astype(np.float64)
        wide -= mean
        distances[where] = np.sqrt(np.vecdot(wide, wide))
    distinct, most_repeated = _repetitions(parts, counted, keys)
    norm = float(np.median(norms))
    scale = norm or 1.0
    return EmbeddingFacts(
        count=count,
        distinct=distinct,
        most_repeated=most_repeated,
        norm=_short(norm),
        spread=_short(float(np.median(distances)) / scale),
        norm_spread=_short(float(norms.std()) / scale),
    )


def _repetitions(
    parts: Sequence[Rows], counted: npt.NDArray[np.bool_], keys: npt.NDArray[np.uint64]
) -> tuple[int, int]:
    """Return how many of the embeddings differ, and how many the most frequent one has.

    Equal embeddings have equal keys; the bytes of those that share one are compared.
    """
    _, inverse, times = np.unique(keys, return_inverse=True, return_counts=True)
    is_shared = times[inverse] > 1
    names: Counter[bytes] = Counter()
    for where, block in _blocks(parts, counted):
        for row in np.flatnonzero(is_shared[where]):
            name = hashlib.blake2b(block[row].data, digest_size=DIGEST_BYTES).digest()
            names[name] += 1
    alone = len(keys) - int(is_shared.sum())
    return alone + len(names), max(names.values(), default=1)


def _blocks(parts: Sequence[Rows], counted: npt.NDArray[np.bool_]) -> Iterator[tuple[slice, Rows]]:
    """Yield the embeddings that are counted, and their numbers among these, block by block."""
    size = max(1, MEASURED_VALUES // parts[0].shape[1])
    row = at = 0
    for part in parts:
        for start in range(0, len(part), size):
            block = part[start : start + size]
            chosen = counted[row : row + len(block)]
            row += len(block)
            if not chosen.all():
                block = block[chosen]
            yield slice(at, at + len(block)), block
            at += len(block)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")

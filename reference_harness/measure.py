"""Measures what a run says of each task beside its scores: the letters read, and the embeddings."""

import hashlib
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
from .receipt.rounding import BLOCK_VALUES, WidenedEmbeddings
from .tasks import DIGEST_BYTES

CHUNK = 2048
"""Sequences whose tokens are in memory at once."""
DIFFERENCE_MAX = 1e6
"""Written in the place of a larger or infinite one, which JSON does not have."""
DRIFT_DECIMALS = 2
"""Of a drift: less is the rounding of float32 and float16 in other batches, which differ by run."""
DIGITS = 6
"""Significant digits of what is measured of embeddings: beyond, processors may differ in sums."""


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
        return Letters(_seen(extractor, sequences))
    except HarnessError as error:
        return Letters(None, f"not measured: {error}"[:REASON_MAX])


def _counted(reader: Callable[[Sequence[str]], Reading], sequences: Sequence[str]) -> LettersRead:
    starts = range(0, len(sequences), CHUNK)
    parts = [reader(sequences[start : start + CHUNK]) for start in starts]
    sums = Reading(*map(sum, zip(*parts, strict=True)))
    return LettersRead(method="tokens", sequences=len(sequences), **sums._asdict())


def _seen(extractor: LoadedExtractor, sequences: Sequence[str]) -> LettersRead:
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


def embedding_facts(rows: WidenedEmbeddings, digests: Sequence[bytes]) -> EmbeddingFacts:
    """Return the measurements of (n, d) embeddings as scored; each sequence counts once."""
    own = np.array(sorted({digest: row for row, digest in enumerate(digests)}.values()))
    total = np.zeros(rows.shape[1])
    for block in _blocks(rows, own):
        total += block.sum(axis=0)
    mean = total / len(own)
    norms, distances = np.empty(len(own)), np.empty(len(own))
    counts: dict[bytes, int] = {}
    at = 0
    for block in _blocks(rows, own):
        norms[at : at + len(block)] = np.sqrt(np.square(block).sum(axis=1))
        distances[at : at + len(block)] = np.sqrt(np.square(block - mean).sum(axis=1))
        at += len(block)
    for row in own:
        key = hashlib.blake2b(rows.values[row].tobytes(), digest_size=DIGEST_BYTES).digest()
        counts[key] = counts.get(key, 0) + 1
    norm = float(np.median(norms))
    scale = norm or 1.0
    return EmbeddingFacts(
        count=len(own),
        distinct=len(counts),
        most_repeated=max(counts.values()),
        norm=_short(norm),
        spread=_short(float(np.median(distances)) / scale),
        norm_spread=_short(float(norms.std()) / scale),
    )


def _blocks(
    rows: WidenedEmbeddings, chosen: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.float64]]:
    size = max(1, BLOCK_VALUES // rows.shape[1])
    for start in range(0, len(chosen), size):
        yield rows[chosen[start : start + size]].astype(np.float64)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")

"""Embeds each distinct sequence once, in batches of similar length, into the cache."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import batching as batches
from .cache import Cache, Rows, Writer
from .errors import EmbeddingError
from .loading import LoadedExtractor
from .tasks import TaskData, sequence_digests

Mode = Literal["budget", "exact", "file"]

FILE_ROWS = 8
"""Rows of a batch in file order: upstream's loop."""
CALL_ROWS = 2048
"""Rows handed at once to an extractor that plans its own batches. Fixed, not timed: what shares a
batch moves the last digits, so it may not depend on how fast a machine is."""
SHOWN = 60  # letters of a sequence shown in an error

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Batching:
    """How sequences share batches.

    "budget": sorted by length, up to `token_budget` padded tokens; "exact": equal lengths only, so
    that nothing is padded and an embedding has the same bits whatever its batch; "file": batches
    of `rows` in file order, as upstream does.
    """

    mode: Mode = "budget"
    token_budget: int = batches.TOKEN_BUDGET
    rows: int = FILE_ROWS


BATCHING = Batching()


@dataclass(frozen=True)
class Embedded:
    """What embedding a task took."""

    distinct: int
    """Sequences left when identical ones count once."""
    computed: int
    """Those that were not in the cache."""


@dataclass(frozen=True)
class Embedder:
    """An extractor, its cache, and how batches are made."""

    loaded: LoadedExtractor
    cache: Cache
    batching: Batching = BATCHING

    def plan(self, sequences: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Return the rows of each call of the extractor, as `plan` does."""
        return plan(self.loaded, self.batching, sequences)

    def embed(self, data: TaskData, progress: Callable[[int, int], None]) -> Embedded:
        """Embed what the cache lacks of both splits of a task.

        `progress(done, letters)` is called after each call with the sequences and letters it took.
        Rows already computed are saved when an error or Ctrl-C ends this. Raises EmbeddingError,
        which names the task and the sequence.
        """
        todo = self.missing(data)
        digests = list(todo)
        sequences = list(todo.values())
        distinct = len(set(sequence_digests([*data.train.sequences, *data.test.sequences])))
        with Writer(self.cache) as writer:
            for rows, values in calls(self.loaded, self.batching, data.id, sequences):
                writer.add([digests[i] for i in rows], values)
                progress(len(rows), sum(len(sequences[i]) for i in rows))
        return Embedded(distinct, len(sequences))

    def missing(self, data: TaskData) -> dict[bytes, str]:
        """Return digest to sequence of each distinct sequence that the cache lacks."""
        both = [*data.train.sequences, *data.test.sequences]
        named = dict(zip(sequence_digests(both), both, strict=True))
        here = self.cache.find(named)
        return {digest: s for digest, s in named.items() if digest not in here}


def plan(
    loaded: LoadedExtractor, batching: Batching, sequences: Sequence[str]
) -> list[npt.NDArray[np.int64]]:
    """Return the rows of each call of the extractor: every row once.

    A built-in plans batches by tokens within a call. For any other the call is the batch;
    lengths are what its `count_tokens` says, else letters. "exact" without `count_tokens` is
    one row a call: equal letters need not be equal tokens, and then padding would be back.
    """
    count = len(sequences)
    mode, own = batching.mode, loaded.path.startswith("builtin:")
    if mode == "file":
        return batches.file_order(count, CALL_ROWS if own else batching.rows)
    if own:
        letters = np.array([len(s) for s in sequences], dtype=np.int64)
        order = np.argsort(-letters, kind="stable")
        return [order[i : i + CALL_ROWS] for i in range(0, count, CALL_ROWS)]
    counter = getattr(loaded.extractor, "count_tokens", None)
    if mode == "exact":
        if counter is None:
            return batches.file_order(count, 1)
        return batches.exact_length(counter(sequences), batching.token_budget)
    lengths = counter(sequences) if counter else [len(s) for s in sequences]
    return batches.token_budget(lengths, batching.token_budget)


def calls(
    loaded: LoadedExtractor, batching: Batching, label: str, sequences: Sequence[str]
) -> Iterator[tuple[npt.NDArray[np.int64], Rows]]:
    """Call the extractor batch by batch: yields row numbers, and their (m, d) embeddings.

    Raises EmbeddingError, which begins with `label` and shows the sequence.
    """
    dim = None
    for rows in plan(loaded, batching, sequences):
        batch = [sequences[i] for i in rows]
        first = f"{label}: {len(batch)} sequences from {batch[0][:SHOWN]!r}"
        size = batching.rows if batching.mode == "file" else len(batch)
        try:
            found = loaded.extractor.extract_embeddings(batch, batch_size=size)
            values = to_numpy(found)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if "out of memory" in said.lower():
                said += "; lower --token-budget"
            msg = f"{first}: the extractor {loaded.class_name} failed: {said}"
            raise EmbeddingError(msg) from error
        if values.ndim != 2 or len(values) != len(batch) or not values.shape[1]:  # noqa: PLR2004
            msg = f"{first}: an array of shape {values.shape}, expected ({len(batch)}, d)"
            raise EmbeddingError(msg)
        if dim not in (None, values.shape[1]):
            msg = f"{first}: rows of width {values.shape[1]}, earlier ones had {dim}"
            raise EmbeddingError(msg)
        dim = values.shape[1]
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            msg = f"{label}: the embedding of {batch[row][:SHOWN]!r} is not finite"
            raise EmbeddingError(msg)
        yield rows, values


def embed_rows(loaded: LoadedExtractor, batching: Batching, sequences: Sequence[str]) -> Rows:
    """Return the (n, d) embeddings of n sequences, computing each: no cache, no repetition spared.

    Raises EmbeddingError, also when there is nothing to embed.
    """
    out: Rows | None = None
    for rows, values in calls(loaded, batching, "sandbox", sequences):
        if out is None:
            out = np.empty((len(sequences), values.shape[1]), dtype=values.dtype)
        if values.dtype != out.dtype:
            msg = f"sandbox: rows of {values.dtype}, earlier ones were {out.dtype}"
            raise EmbeddingError(msg)
        out[rows] = values
    if out is None:
        msg = "sandbox: no sequence to embed"
        raise EmbeddingError(msg)
    return out


def to_numpy(found: Any) -> Rows:  # noqa: ANN401 - NumPy or torch, as upstream allows
    """Return an extractor's output as a NumPy array of the same floating type.

    bfloat16, which NumPy lacks, becomes float32, which holds each of its values exactly. Raises
    TypeError for anything that is not an array of floating numbers.
    """
    if hasattr(found, "detach"):
        found = found.detach().cpu()
        if str(found.dtype) == "torch.bfloat16":
            found = found.float()
        found = found.numpy()
    if not isinstance(found, np.ndarray) or found.dtype.name not in _FLOATS:
        kind = getattr(found, "dtype", type(found).__name__)
        msg = f"gave {kind}, expected a NumPy or torch array of {', '.join(_FLOATS)}"
        raise TypeError(msg)
    return found

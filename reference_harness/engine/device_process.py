"""The process of one device: it keeps an extractor and embeds task after task.

Nothing here imports NumPy or torch before `begin` has set what they read when they are loaded: the
GPU that the process sees, and its threads.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from reference_harness.embedder import EmbedderSpec, EmbedJob, EmbedResult

    from .remote import RemoteEmbedder, StartedEmbedder


class Embedded(NamedTuple):
    """A task that was embedded, or failed."""

    result: "EmbedResult"
    works: bool
    """Whether the extractor embeds a short sequence since: a GPU may refuse all work after an
    error, and every further task with it."""


class _Process:
    """What this process keeps from one call to the next."""

    embedder: "RemoteEmbedder"
    counts: Any
    """Sequences and letters, shared with the process that reads them."""


def begin(variables: Mapping[str, str], counts: Any) -> None:
    """Set the environment of this process."""
    os.environ.update(variables)
    _Process.counts = counts


def load(spec: "EmbedderSpec", folder: str, threads: int) -> "StartedEmbedder":
    """Load the extractor."""
    from .remote import RemoteEmbedder

    _Process.embedder = RemoteEmbedder(spec, folder, threads)
    return _Process.embedder.load()


def embed(job: "EmbedJob") -> Embedded:
    """Embed a task, counting what is done."""
    from reference_harness.embedder import EmbedResult

    for step in _Process.embedder.embed(job):
        if isinstance(step, EmbedResult):
            return Embedded(step, not step.failure or _Process.embedder.works())
        _Process.counts[0] += step.sequences
        _Process.counts[1] += step.letters
    msg = f"{job.task_id}: an embedder gave no result"
    raise RuntimeError(msg)

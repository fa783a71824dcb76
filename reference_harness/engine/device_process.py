"""The process of one device: it loads an extractor and embeds task after task.

Nothing here imports NumPy or torch before `prepare_process` has set the variables that these read
when they are imported: the visible GPU and the number of threads.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from reference_harness.embedding.embedder import EmbedderSpec, EmbedJob, EmbedResult

    from .remote import RemoteEmbedder, StartedEmbedder


class EmbeddedTask(NamedTuple):
    """The result of embedding a task in the process of a device."""

    result: "EmbedResult"
    works: bool
    """Whether the extractor still embeds a short sequence; after some errors a GPU cannot."""


class _ProcessState:
    """The state of this process between calls."""

    embedder: "RemoteEmbedder"
    counts: Any
    """Numbers of embedded sequences and letters, in memory shared with the parent process."""


def prepare_process(variables: Mapping[str, str], counts: Any) -> None:
    """Set the environment variables of this process, and the counters that `embed_task` adds to."""
    os.environ.update(variables)
    _ProcessState.counts = counts


def load_extractor(spec: "EmbedderSpec", folder: str, threads: int) -> "StartedEmbedder":
    """Load the extractor in this process, and return its facts or why that failed."""
    from .remote import RemoteEmbedder

    _ProcessState.embedder = RemoteEmbedder(spec, folder, threads)
    return _ProcessState.embedder.load()


def embed_task(job: "EmbedJob") -> EmbeddedTask:
    """Embed a task and return the result; progress is added to the shared counters."""
    from reference_harness.embedding.embedder import EmbedResult

    for step in _ProcessState.embedder.embed(job):
        if isinstance(step, EmbedResult):
            return EmbeddedTask(step, not step.failure or _ProcessState.embedder.works())
        _ProcessState.counts[0] += step.sequences
        _ProcessState.counts[1] += step.letters
    msg = f"{job.task_id}: an embedder ended without a result"
    raise RuntimeError(msg)

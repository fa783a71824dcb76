"""Engines, which do the work of a run on this machine or on the machines of a cluster.

A run gives an engine two kinds of jobs, embedding and probing, and takes results in the order in
which they are finished. Only the run decides what to embed, which scores belong together and what
follows from a failure. So a record does not depend on the engine, apart from times and memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:  # a worker of this machine loads no NumPy before its BLAS is held to one thread
    from collections.abc import Callable, Iterator

    from reference_harness.embedding.embedder import EmbedJob, EmbedResult
    from reference_harness.loading.extractor_facts import ExtractorFacts
    from reference_harness.run.task_job import ProbeFailure, ProbeResult, ProbeTaskJob

__all__ = ["ATTEMPTS_MAX", "Engine", "Notice"]

ATTEMPTS_MAX = 3
"""Maximum number of attempts at a task whose embeddings are lost or whose worker is killed: enough
to survive an accident, and to notice a damaged disk or a lack of memory."""


class Notice(NamedTuple):
    """A message to the user about the machines that do the work."""

    line: str


class Engine(Protocol):
    """The interface of an engine; a context manager that ends all its processes."""

    @property
    def facts(self) -> ExtractorFacts:
        """The facts of the extractor that the engine loaded."""

    @property
    def workers(self) -> int:
        """Number of probes that can run at the same time when the run begins."""

    @property
    def longest_first(self) -> bool:
        """Whether the run should pass tasks by decreasing cost, not in the benchmark's order."""

    @property
    def accepts_task(self) -> bool:
        """Whether the run should pass another task to `embed` now."""

    @property
    def open_jobs(self) -> int:
        """Number of jobs whose result has not been returned yet."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, error: object, *_: object) -> None:
        """End every process: at once after an error or Ctrl-C, otherwise after its current work."""

    def embed(self, job: EmbedJob, progress: Callable[[int, int], None]) -> None:
        """Start to embed a task; `progress(sequences, letters)` reports newly embedded ones."""

    def probe(self, job: ProbeTaskJob) -> None:
        """Start to probe a task whose embeddings are all in the cache."""

    def results(
        self, *, block: bool
    ) -> Iterator[EmbedResult | ProbeResult | ProbeFailure | Notice]:
        """Yield the available results; with `block`, wait for the first one.

        A worker that dies is replaced and its task repeated, at most `ATTEMPTS_MAX` times. Raise
        WorkerDiedError if the run is to end at the first failure.
        """

"""Engines: where a run's work is done, on this machine or on the machines of a cluster.

A run gives an engine two kinds of work, embedding and probing, and takes results as they come. Only
the run decides what to embed, which scores belong together and what a failure means. So a record
does not depend on the engine, apart from times and memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:  # a worker of this machine loads no NumPy before its BLAS is held to one thread
    from collections.abc import Callable, Iterator

    from reference_harness.embedder import EmbedJob, EmbedResult
    from reference_harness.facts import ExtractorFacts
    from reference_harness.job import Job, ProbeFailure, ProbeResult

__all__ = ["ATTEMPTS", "Engine", "Notice"]

ATTEMPTS = 3
"""Attempts at a task whose embeddings are lost before they are read, or whose worker is killed:
enough to survive an accident, and to notice a damaged disk or a lack of memory."""


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
        """Whether tasks should come by decreasing cost, instead of in the benchmark's order."""

    @property
    def has_room(self) -> bool:
        """Whether another task should be given to it now."""

    @property
    def open(self) -> int:
        """Number of jobs whose result was not returned yet."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, kind: object, *_: object) -> None:
        """End every process; after an error or Ctrl-C at once, else when its work is done."""

    def embed(self, job: EmbedJob, progress: Callable[[int, int], None]) -> None:
        """Embed a task; `progress` is called with numbers of new sequences and letters."""

    def probe(self, job: Job) -> None:
        """Probe a task whose embeddings are all in the cache."""

    def results(
        self, *, block: bool
    ) -> Iterator[EmbedResult | ProbeResult | ProbeFailure | Notice]:
        """Yield the available results, with `block` at least one.

        A worker that dies is replaced and its task repeated, at most `ATTEMPTS` times. Raise
        WorkerDiedError if the run is to end at the first failure.
        """

"""Where a run's work is done: on this machine, or on the machines of a cluster.

A run gives an engine two kinds of work, embedding and probes, and takes results as they come. What
to embed, which scores belong together and what a failure means is the run's alone, so a record
does not depend on the engine but for its times and memory.
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
"""Attempts at a task whose embeddings are lost before they are read, or whose worker is killed. One
is an accident; a disk that damages all it is given, or a task that memory cannot hold, shows by
then."""


class Notice(NamedTuple):
    """A message to the user about the machines that do the work."""

    line: str


class Engine(Protocol):
    """The interface of an engine; a context that leaves no process behind."""

    @property
    def facts(self) -> ExtractorFacts:
        """The extractor as the engine loaded it."""

    @property
    def workers(self) -> int:
        """Number of probes that may run at the same time, when the run begins."""

    @property
    def longest_first(self) -> bool:
        """Whether tasks come by their cost, else in the benchmark's order."""

    @property
    def has_room(self) -> bool:
        """Whether it takes another task now: it holds enough to stay busy, and not too many."""

    @property
    def open(self) -> int:
        """Number of jobs that it was given and whose result was not returned yet."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, kind: object, *_: object) -> None:
        """End every process; after an error or Ctrl-C without waiting for what runs."""

    def embed(self, job: EmbedJob, progress: Callable[[int, int], None]) -> None:
        """Embed a task; `progress` receives sequences and letters, here, as they come."""

    def probe(self, job: Job) -> None:
        """Probe a task, all of whose embeddings are in the cache."""

    def results(
        self, *, block: bool
    ) -> Iterator[EmbedResult | ProbeResult | ProbeFailure | Notice]:
        """Yield results: those that are there or, with `block`, at least one.

        A worker that dies is replaced and its task repeated, at most `ATTEMPTS` times. Raises
        WorkerDiedError where the run ends with the first failure.
        """

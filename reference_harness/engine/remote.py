"""The parts of an engine that run in other processes, on this machine or on a cluster."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from reference_harness.embedding.embedder import (
    Embedder,
    EmbedderSpec,
    EmbedJob,
    EmbedResult,
    EmbedStep,
)
from reference_harness.environment import SHORT_SEQUENCE
from reference_harness.errors import HarnessError
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.probe.scorer import THREAD_VARIABLES, scoring_environment
from reference_harness.run.task_job import ProbeFailure, ProbeResult, ProbeTaskJob

from . import blas

PROGRESS_SECONDS = 0.5
"""Seconds between two reports of progress, each of which costs the cluster a millisecond."""


class StartedEmbedder(NamedTuple):
    """The result of starting an embedder on a machine."""

    machine: str
    facts: ExtractorFacts | None
    """The extractor's facts; None if it could not be loaded."""
    failure: str = ""
    """Why the extractor could not be loaded; "" if it was."""


class RemoteEmbedder:
    """An extractor in its own process, which embeds job after job."""

    def __init__(self, spec: EmbedderSpec, folder: str, threads: int) -> None:
        self._spec = spec
        self._folder = folder
        self._threads = threads
        self._embedder: Embedder | None = None

    def load(self) -> StartedEmbedder:
        """Load the extractor, in the folder where the run was started; failures are returned."""
        machine = socket.gethostname()
        try:
            os.chdir(self._folder)
        except OSError as error:
            failure = (
                f"{self._folder}: {error.strerror}: start the run in a folder that exists on every"
            )
            return StartedEmbedder(machine, None, f"{failure} machine of the cluster")
        try:
            self._embedder = self._spec.load()
        except HarnessError as error:
            return StartedEmbedder(machine, None, str(error))
        limit_threads(self._threads)
        return StartedEmbedder(machine, self._embedder.facts)

    def embed(self, job: EmbedJob) -> Iterator[EmbedStep | EmbedResult]:
        """Yield the progress about twice a second, and finally the result."""
        if self._embedder is None:
            msg = "embed was called before load"
            raise RuntimeError(msg)
        sequences, letters, last_step_time = 0, 0, time.monotonic()
        for step in self._embedder.embed(job):
            if isinstance(step, EmbedResult):
                yield EmbedStep(sequences, letters)
                yield step
                return
            sequences, letters = sequences + step.sequences, letters + step.letters
            if time.monotonic() - last_step_time >= PROGRESS_SECONDS:
                yield EmbedStep(sequences, letters)
                sequences, letters, last_step_time = 0, 0, time.monotonic()

    def works(self) -> bool:
        """Return whether the extractor can embed a short sequence."""
        if self._embedder is None:
            return False
        try:
            self._embedder.extractor.extractor.extract_embeddings([SHORT_SEQUENCE], batch_size=1)
        except Exception:  # noqa: BLE001 - foreign code raises what it likes
            return False
        return True


def facts_difference(first: ExtractorFacts, other: ExtractorFacts) -> str:
    """Return the first difference between the facts of two devices or machines, as a text.

    The text is "its FACT is X, elsewhere Y", where X is the value of `other` and Y that of `first`.
    """
    pairs = {name: (value, vars(other)[name]) for name, value in vars(first).items()}
    compared_names = {field.name for field in fields(first) if field.compare}
    fact = next(
        n for n, (value, another) in pairs.items() if n in compared_names and value != another
    )
    expected, actual = pairs[fact]
    if isinstance(expected, dict):
        key = next(key for key in {**expected, **actual} if expected.get(key) != actual.get(key))
        return f"in its {fact}, {key} is {actual.get(key)!r}, elsewhere {expected.get(key)!r}"
    return f"its {fact} is {actual!r}, elsewhere {expected!r}"


def limit_threads(count: int) -> None:
    """Limit every numerical library of this process, and torch, to `count` threads."""
    from threadpoolctl import threadpool_limits  # once all of them are loaded

    threadpool_limits(limits=count)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


def thread_variables(count: int) -> dict[str, str]:
    """Return the environment variables that limit a new process to `count` threads."""
    return dict.fromkeys((*THREAD_VARIABLES, "RAYON_NUM_THREADS"), str(count))


def probe_variables(*, array_api: bool) -> dict[str, str]:
    """Return the environment variables of a new process that fits and scores probes."""
    return (
        thread_variables(1)
        | scoring_environment()
        | ({"SCIPY_ARRAY_API": "1"} if array_api else {})
    )


def probe_task(job: ProbeTaskJob) -> ProbeResult | ProbeFailure:
    """Probe a task with one BLAS thread, like a worker of one machine."""
    blas.limit_to_scorer(array_api=job.device.torch)
    import sklearn.linear_model  # noqa: F401 - before the first task's seconds count

    return job.execute()

"""The parts in other processes, here or on a cluster: an embedder and a probe."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from reference_harness.embedder import Embedder, EmbedderSpec, EmbedJob, EmbedResult, Step
from reference_harness.environment import SHORT
from reference_harness.errors import HarnessError
from reference_harness.facts import ExtractorFacts
from reference_harness.job import Job, ProbeFailure, ProbeResult
from reference_harness.scorer import THREAD_VARIABLES, environment

from . import threads

STEP_SECONDS = 0.5
"""Time between two reports of progress: each costs the cluster a millisecond."""


class StartedEmbedder(NamedTuple):
    """An embedder that was started, on a machine."""

    machine: str
    facts: ExtractorFacts | None
    failure: str = ""
    """Why the extractor could not be loaded there."""


class RemoteEmbedder:
    """One extractor in a process of its own, which embeds job after job."""

    def __init__(self, spec: EmbedderSpec, folder: str, threads_given: int) -> None:
        self._spec = spec
        self._folder = folder
        self._threads = threads_given
        self._embedder: Embedder | None = None

    def load(self) -> StartedEmbedder:
        """Load the extractor, in the folder that the run was started in."""
        machine = socket.gethostname()
        try:
            os.chdir(self._folder)
        except OSError as error:
            why = f"{self._folder}: {error.strerror}: start the run in a folder that every machine"
            return StartedEmbedder(machine, None, f"{why} of the cluster has")
        try:
            self._embedder = self._spec.load()
        except HarnessError as error:
            return StartedEmbedder(machine, None, str(error))
        limit_threads(self._threads)
        return StartedEmbedder(machine, self._embedder.facts)

    def embed(self, job: EmbedJob) -> Iterator[Step | EmbedResult]:
        """Yield the embedded parts now and then, and at the end the outcome."""
        if self._embedder is None:
            msg = "embed was called before load"
            raise RuntimeError(msg)
        sequences, letters, since = 0, 0, time.monotonic()
        for step in self._embedder.embed(job):
            if isinstance(step, EmbedResult):
                yield Step(sequences, letters)
                yield step
                return
            sequences, letters = sequences + step.sequences, letters + step.letters
            if time.monotonic() - since >= STEP_SECONDS:
                yield Step(sequences, letters)
                sequences, letters, since = 0, 0, time.monotonic()

    def works(self) -> bool:
        """Return whether the extractor embeds a short sequence."""
        if self._embedder is None:
            return False
        try:
            self._embedder.extractor.extractor.extract_embeddings([SHORT], batch_size=1)
        except Exception:  # noqa: BLE001 - foreign code raises what it likes
            return False
        return True


def difference(first: ExtractorFacts, other: ExtractorFacts) -> str:
    """Return the differences between two devices or machines, in words."""
    pairs = {name: (value, vars(other)[name]) for name, value in vars(first).items()}
    compared = {each.name for each in fields(first) if each.compare}
    name = next(n for n, (value, another) in pairs.items() if n in compared and value != another)
    expected, actual = pairs[name]
    if isinstance(expected, dict):
        key = next(key for key in {**expected, **actual} if expected.get(key) != actual.get(key))
        return f"in its {name}, {key} is {actual.get(key)!r}, elsewhere {expected.get(key)!r}"
    return f"its {name} is {actual!r}, elsewhere {expected!r}"


def limit_threads(count: int) -> None:
    """Limit every numerical library of this process, and torch, to so many threads."""
    from threadpoolctl import threadpool_limits  # once all of them are loaded

    threadpool_limits(limits=count)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


def thread_variables(count: int) -> dict[str, str]:
    """Return the variables of a process that may take so many threads, read when it starts."""
    return dict.fromkeys((*THREAD_VARIABLES, "RAYON_NUM_THREADS"), str(count))


def probe_variables(*, array_api: bool) -> dict[str, str]:
    """Return the variables of a process that scores, read when it starts."""
    return thread_variables(1) | environment() | ({"SCIPY_ARRAY_API": "1"} if array_api else {})


def probe(job: Job) -> ProbeResult | ProbeFailure:
    """Probe a task with one BLAS thread, as a worker of one machine does."""
    threads.hold_to_scorer(array_api=job.device.torch)
    import sklearn.linear_model  # noqa: F401 - before the first task's seconds count

    return job.execute()

"""Embed the sequences of a task that the cache lacks, in this or an engine's process."""

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reference_harness import environment
from reference_harness.data.task_data import sequence_digests
from reference_harness.errors import EmbeddingError, HarnessError, OptionError
from reference_harness.extractors.base import ExtractorError, UnknownOptionError
from reference_harness.formats.measurements import Drift
from reference_harness.formats.text import plural
from reference_harness.loading.extractor_facts import ExtractorFacts, facts_of
from reference_harness.loading.file_watch import WATCH
from reference_harness.loading.loaded_model import loaded_model, without_unused
from reference_harness.loading.loader import LoadedExtractor, load
from reference_harness.run.measure import (
    NOT_MEASURED,
    Letters,
    drift_of,
    embedded_alone,
    letters_of,
)

from .cache import Cache, ShardWriter
from .exact_batches import with_exact_limits
from .extractor_calls import (
    CALL_SEQUENCES_MIN,
    Batching,
    current_budget,
    embeddings_by_call,
    reduced_budget,
)
from .memory import MemoryLimit, memory_of, peak_memory

DRIFT_SEQUENCES = 4
"""Number of a job's first sequences that are embedded again at its end, to measure the drift."""


PART_SEQUENCES_MIN = 2 * CALL_SEQUENCES_MIN
"""Minimum number of sequences of a part of a job, which is divided among processes: two calls of
an extractor that plans its own batches."""


@dataclass(frozen=True)
class EmbedJob:
    """The sequences of one task that are to be embedded."""

    task_id: str
    sequences: list[str]
    """Distinct sequences in file order."""
    cache: Path | str
    key_parts: Mapping[str, object]
    """Everything that determines an embedding except the sequence: the key of the cache."""
    measured_sequences: list[str] = field(default_factory=list)
    """All distinct sequences of the task; how many of their letters are read is measured."""
    share: tuple[int, int] | None = None
    """Index of this part, and number of parts into which the planned calls are divided; None for
    the whole job. In a part, neither letters nor drift are measured."""

    def parts(self, count: int, *, by_calls: bool) -> "list[EmbedJob]":
        """Return at most `count` parts of the job for different processes, none of them empty.

        With `by_calls`, each part makes some calls of the plan for the whole job, so that every
        embedding has the same bits as without parts, if all processes make the same plan. Otherwise
        each part has some of the sequences, whose batches it plans alone.
        """
        count = max(1, min(count, len(self.sequences) // PART_SEQUENCES_MIN))
        if count == 1:
            return [self]
        part_job = replace(self, measured_sequences=[])
        if by_calls:
            return [replace(part_job, share=(number, count)) for number in range(count)]
        return [
            replace(part_job, sequences=self.sequences[number::count], share=(0, 1))
            for number in range(count)
        ]


class EmbedStep(NamedTuple):
    """Number of sequences and letters embedded since the last step."""

    sequences: int
    letters: int


@dataclass(frozen=True)
class EmbedResult:
    """The outcome of a job; an error is returned as a text, so that other tasks continue."""

    task_id: str
    seconds: float
    letters: int = 0
    """Letters of the embedded sequences."""
    peak_memory: int = 0
    """Maximum number of bytes that the accelerator, or this process, has used; 0 if unknown."""
    budget: int | None = None
    """Measured limit of padded tokens per batch; None if it was not measured."""
    letters_read: Letters = NOT_MEASURED
    """The letters of the task's sequences that the model reads, or why they are unknown."""
    notes: tuple[str, ...] = ()
    """Sentences for the user: damaged shards, and what memory allows."""
    failure: str = ""
    """Why some sequences could not be embedded; "" if all were."""
    drift: Drift | None = None
    """Distance of the first sequences' embeddings, repeated at the end, from the cached ones."""


@dataclass(frozen=True, kw_only=True)
class EmbedderSpec:
    """The settings by which an extractor is loaded, in this process or another."""

    extractor: str
    name_model: str
    device: str
    keywords: Mapping[str, Any]
    """Keyword arguments of the extractor's constructor."""
    batching: Batching
    measures_budget: bool
    """Whether the token budget is measured, instead of taken from `batching`."""
    tf32: bool = True
    """False forbids TF32 on a GPU; True keeps the setting of torch or the extractor."""

    def load(self) -> "Embedder":
        """Load the extractor in this process, which may take minutes.

        Raise EmbeddingError, which names the cause, or OptionError for an option that the extractor
        does not have.
        """
        try:
            with WATCH.recording() as opened:
                loaded = load(self.extractor, self.name_model, self.device, **self.keywords)
                if not self.tf32:
                    environment.set_tf32(allowed=False)
                if self.batching.mode == "exact" and self.device.startswith("cuda"):
                    environment.set_exact()
                memory = memory_of(self.device) if self.measures_budget else None
                facts = facts_of(loaded, self.device)
            encode_in_processes = getattr(loaded.extractor, "encode_in_processes", None)
            if encode_in_processes is not None and self.device != "cpu":
                encode_in_processes()
            batching = with_exact_limits(loaded, self.batching, self.device)
            if batching is not self.batching:
                facts = replace(facts, exact_limits=batching.exact_limits)
            describe_model = without_unused if loaded.path.startswith("builtin:") else loaded_model
            model = describe_model(facts.description["model"], self.name_model, opened.values())
        except UnknownOptionError as error:
            raise OptionError(str(error)) from error
        except ExtractorError as error:
            raise EmbeddingError(str(error)) from error
        return Embedder(
            loaded, facts.with_model(*model), batching, MemoryLimit(memory), self.device
        )


@dataclass(frozen=True)
class Embedder:
    """A loaded extractor with its batching."""

    extractor: LoadedExtractor
    facts: ExtractorFacts
    batching: Batching
    limit: MemoryLimit
    """The limit set by memory, shared by all tasks of the run."""
    device: str = "cpu"

    def embed(self, job: EmbedJob) -> Generator[EmbedStep | EmbedResult]:
        """Embed the sequences of a job that the cache lacks; yield steps, then an EmbedResult.

        Embeddings already computed are saved if an error or Ctrl-C ends this. Calls are planned for
        the whole job, so a job that is resumed yields the same bits.
        """
        started = time.perf_counter()
        budget_before, reduced_before = (
            self.limit.budget,
            reduced_budget(self.extractor, self.limit),
        )
        failure = ""
        letters, notes = 0, list[str]()
        try:
            cache = Cache(job.cache, job.key_parts)
            notes = cache.damage_notes
            for step in self._fill_cache(cache, job):
                letters += step.letters
                yield step
        except HarnessError as error:
            failure = str(error)
        budget = self.limit.budget
        if budget is not None and budget != budget_before:
            notes.append(f"{job.task_id}: memory allows batches of {budget:,} padded tokens")
        if (reduced_now := reduced_budget(self.extractor, self.limit)) != reduced_before:
            notes.append(
                f"{job.task_id}: memory ran out; batches have at most {reduced_now:,} padded "
                "tokens from now on"
            )
        seconds, peak = time.perf_counter() - started, peak_memory(self.device)
        measured_letters, drift = NOT_MEASURED, None
        if not failure and job.share is None:
            drift, drift_notes = self._measured_drift(cache, job)
            notes += drift_notes
            measured_letters = letters_of(self.extractor, job.measured_sequences)
        yield EmbedResult(
            job.task_id,
            seconds,
            letters,
            peak,
            budget,
            measured_letters,
            tuple(notes),
            failure,
            drift,
        )

    def _measured_drift(self, cache: Cache, job: EmbedJob) -> tuple[Drift | None, list[str]]:
        """Embed the first sequences again, one by one; return their drift, and notes.

        The drift is None if it cannot be measured. There is a note if bits changed although
        batching is exact.
        """
        sequences = (job.sequences or job.measured_sequences)[:DRIFT_SEQUENCES]
        try:
            cached = cache.read(sequence_digests(sequences)) if sequences else np.empty((0, 0))
        except HarnessError:  # the probe, which reads all embeddings, reports which are lost
            return None, []
        embedded_again = embedded_alone(self.extractor, sequences)
        if embedded_again is None:
            return None, []
        drift = drift_of(embedded_again, cached)
        changed_count = sum(
            a.tobytes() != b.tobytes() for a, b in zip(embedded_again, cached, strict=True)
        )
        if self.batching.mode != "exact" or not changed_count:
            return drift, []
        note = (
            f"{job.task_id}: embedding {plural(len(sequences), 'sequence')} again alone changed "
            f"bits of {plural(changed_count, 'embedding')}, although batching is exact: on this "
            "device, embeddings "
            "depend on other sequences; compare runs within a tolerance"
        )
        return drift, [note]

    def _fill_cache(self, cache: Cache, job: EmbedJob) -> Iterator[EmbedStep]:
        """Embed and store the sequences of a job that the cache lacks; yield a step per call."""
        digests, sequences = sequence_digests(job.sequences), job.sequences
        cached = cache.find(digests)
        lacking = np.array([digest not in cached for digest in digests], dtype=np.bool_)
        if not lacking.any():
            return
        with ShardWriter(cache) as writer:
            computed = embeddings_by_call(
                self.extractor,
                self.batching,
                job.task_id,
                sequences,
                self.limit,
                lacking,
                job.share or (0, 1),
            )
            for rows, embeddings in computed:
                budget = current_budget(self.extractor, self.batching, self.limit)
                writer.add([digests[i] for i in rows], embeddings, budget)
                yield EmbedStep(len(rows), sum(len(sequences[i]) for i in rows))

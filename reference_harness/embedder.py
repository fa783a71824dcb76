"""Embeds what a task lacks into the cache: in this process, or wherever an engine has one."""

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import environment
from .cache import Cache, ShardWriter
from .embed import Batching, budget_now, calls, cut_to
from .errors import EmbeddingError, HarnessError, OptionError
from .exact import with_limits
from .extractors.base import ExtractorError, UnknownOptionError
from .facts import ExtractorFacts, facts_of
from .file_watch import WATCH
from .formats.measured import Drift
from .formats.text import plural
from .loaded_model import loaded_model, without_unused
from .loading import LoadedExtractor, load
from .measure import NOT_MEASURED, Letters, drift_of, embedded_alone, letters_of
from .memory import MemoryLimit, peak_memory, room_of
from .tasks import sequence_digests

DRIFT_SEQUENCES = 4
"""First sequences that a job embedded, which are embedded again after all others."""


@dataclass(frozen=True)
class EmbedJob:
    """The sequences to be embedded for one task."""

    task_id: str
    sequences: list[str]
    """Distinct, in file order."""
    cache: Path | str
    key_parts: Mapping[str, object]
    measured_sequences: list[str] = field(default_factory=list)
    """Every distinct sequence of the task, whose letters are measured."""


class Step(NamedTuple):
    """The embeddings that were added since the step before."""

    sequences: int
    letters: int


@dataclass(frozen=True)
class EmbedResult:
    """How it went; an error is a value, so that the other tasks go their way."""

    task_id: str
    seconds: float
    letters: int = 0
    """Of the sequences that were embedded."""
    peak_memory: int = 0
    """Most bytes that the accelerator, or this process, has held; 0 where that is unknown."""
    budget: int | None = None
    """Padded tokens a batch may have, where that was measured."""
    letters_read: Letters = NOT_MEASURED
    """The letters of the task's sequences that the model reads."""
    notes: tuple[str, ...] = ()
    """Sentences for the user: damaged shards, and what memory allows."""
    failure: str = ""
    """Why some of it could not be embedded."""
    drift: Drift | None = None
    """How far the first sequences were from their embeddings after all others."""


@dataclass(frozen=True, kw_only=True)
class EmbedderSpec:
    """The settings by which an extractor is loaded, in this process or another."""

    extractor: str
    name_model: str
    device: str
    keywords: Mapping[str, Any]
    """Of the extractor's constructor."""
    batching: Batching
    measured: bool
    """Whether the token budget is what memory has room for, instead of that of `batching`."""
    tf32: bool = True
    """False forbids TF32 on a GPU; True leaves it as torch or the extractor has set it, which torch
    does for convolutions alone."""

    def load(self) -> "Embedder":
        """Load it here, which may take minutes.

        Raises EmbeddingError, which says what failed, and OptionError for an option that the
        extractor has not.
        """
        try:
            with WATCH.recording() as opened:
                loaded = load(self.extractor, self.name_model, self.device, **self.keywords)
                if not self.tf32:
                    environment.set_tf32(allowed=False)
                if self.batching.mode == "exact" and self.device.startswith("cuda"):
                    environment.set_exact()
                room = room_of(self.device) if self.measured else None
                facts = facts_of(loaded, self.device)
            encode_in_processes = getattr(loaded.extractor, "encode_in_processes", None)
            if encode_in_processes is not None and self.device != "cpu":
                encode_in_processes()
            batching = with_limits(loaded, self.batching, self.device)
            if batching is not self.batching:
                facts = replace(facts, exact_limits=batching.exact_limits)
            of = without_unused if loaded.path.startswith("builtin:") else loaded_model
            model = of(facts.description["model"], self.name_model, opened.values())
        except UnknownOptionError as error:
            raise OptionError(str(error)) from error
        except ExtractorError as error:
            raise EmbeddingError(str(error)) from error
        return Embedder(loaded, facts.of_model(*model), batching, MemoryLimit(room), self.device)


@dataclass(frozen=True)
class Embedder:
    """An extractor, and how batches are made."""

    extractor: LoadedExtractor
    facts: ExtractorFacts
    batching: Batching
    limit: MemoryLimit
    """The limit that memory sets, for every task of the run."""
    device: str = "cpu"

    def embed(self, job: EmbedJob) -> Generator[Step | EmbedResult]:
        """Embed what the cache lacks of a job: yields a step after each call, then how it went.

        Embeddings already computed are saved when an error or Ctrl-C ends this. Calls are planned
        over the whole job, so the rest of one that was killed has the bits it would have had.
        """
        started = time.perf_counter()
        measured, cut = self.limit.budget, cut_to(self.extractor, self.limit)
        failed = ""
        letters, notes = 0, list[str]()
        try:
            cache = Cache(job.cache, job.key_parts)
            notes = cache.set_aside
            for step in self._fill(cache, job):
                letters += step.letters
                yield step
        except HarnessError as error:
            failed = str(error)
        budget = self.limit.budget
        if budget is not None and budget != measured:
            notes.append(f"{job.task_id}: memory has room for batches of {budget:,} padded tokens")
        if (now := cut_to(self.extractor, self.limit)) != cut:
            notes.append(
                f"{job.task_id}: memory ran out; batches have at most {now:,} padded tokens from "
                "now on"
            )
        seconds, peak = time.perf_counter() - started, peak_memory(self.device)
        measured_letters, drift = NOT_MEASURED, None
        if not failed:
            drift, note = self._drift(cache, job)
            notes += note
            measured_letters = letters_of(self.extractor, job.measured_sequences)
        yield EmbedResult(
            job.task_id,
            seconds,
            letters,
            peak,
            budget,
            measured_letters,
            tuple(notes),
            failed,
            drift,
        )

    def _drift(self, cache: Cache, job: EmbedJob) -> tuple[Drift | None, list[str]]:
        """Return how far the first sequences are from what the cache has of them, embedded alone.

        Under exact batching they have the same bits, or there is a note for the user.
        """
        sequences = (job.sequences or job.measured_sequences)[:DRIFT_SEQUENCES]
        try:
            first = cache.read(sequence_digests(sequences)) if sequences else np.empty((0, 0))
        except HarnessError:  # the probe, which needs all of them, says what is lost
            return None, []
        alone = embedded_alone(self.extractor, sequences)
        if alone is None:
            return None, []
        drift = drift_of(alone, first)
        moved = sum(a.tobytes() != b.tobytes() for a, b in zip(alone, first, strict=True))
        if self.batching.mode != "exact" or not moved:
            return drift, []
        note = (
            f"{job.task_id}: of {plural(len(sequences), 'sequence')} embedded alone, {moved} gave "
            "other bits than before, where --batching exact expects the same: on this device its "
            "rows depend on what shares a batch or came before; compare runs within a tolerance"
        )
        return drift, [note]

    def _fill(self, cache: Cache, job: EmbedJob) -> Iterator[Step]:
        digests, sequences = sequence_digests(job.sequences), job.sequences
        cached = cache.find(digests)
        lacking = np.array([digest not in cached for digest in digests], dtype=np.bool_)
        if not lacking.any():
            return
        with ShardWriter(cache) as writer:
            results = calls(
                self.extractor, self.batching, job.task_id, sequences, self.limit, lacking
            )
            for rows, values in results:
                budget = budget_now(self.extractor, self.batching, self.limit)
                writer.add([digests[i] for i in rows], values, budget)
                yield Step(len(rows), sum(len(sequences[i]) for i in rows))

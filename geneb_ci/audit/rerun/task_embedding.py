"""Embeds the tasks of a rerun in the sandbox, one after another, and scores them outside of it."""

import dataclasses
import functools
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import ValidationError

from geneb_ci.audit.rerun.decoys import (
    TaskEmbeddings,
    embed_among_decoys,
    with_decoys,
)
from geneb_ci.audit.rerun.honesty import Repeatability, precision_of, varied_sequence_count
from geneb_ci.audit.rerun.prepare import PreparedRerun
from geneb_ci.audit.rerun.scoring import (
    RESCORED_FILE,
    merged_rescorings,
    read_rescored,
    write_sequences,
    write_variants,
)
from geneb_ci.audit.rerun.workspace import (
    EMBEDDED,
    EMBEDDINGS,
    FURTHER_EMBEDDINGS,
    FURTHER_FILE,
    SEQUENCES,
    EmbeddedTask,
    WorkFolder,
)
from geneb_ci.audit.sampling.plan import TaskPlan
from geneb_ci.common.errors import LimitExceeded, NothingChecked, ResultRefused
from geneb_ci.receipt.cells import RemainingTime
from geneb_ci.sandbox.limits import Limits, limit_fix
from geneb_ci.sandbox.run import Batching, ExtractorSpec
from reference_harness.formats.base import first_error
from reference_harness.formats.files import file_sha256
from reference_harness.formats.further_sequences import FurtherSequence, FurtherSequences
from reference_harness.formats.rescored import Rescored
from reference_harness.formats.text import Say, plural, silent

if TYPE_CHECKING:
    import numpy as np


PROGRESS_SECONDS = 60.0
"""Seconds between two lines of progress."""


def variant_seed(plan_seed: str, nonce: str) -> str:
    """Return the seed of the variants, which is unknown before an audit and public afterwards."""
    return hashlib.sha256(bytes.fromhex(plan_seed) + bytes.fromhex(nonce)).hexdigest()


def read_further_sequences(path: Path) -> FurtherSequences:
    """Return variants and fresh sequences from a file of a work folder. Raises NothingChecked."""
    try:
        return FurtherSequences.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = first_error(error) if isinstance(error, ValidationError) else error.strerror
        raise NothingChecked(
            f"{path}: {fault}", f"remove {path.parent}, and run the command again"
        ) from error


class EmbeddingLocation(NamedTuple):
    """The place of an embedding among the saved embeddings of an earlier task of the audit."""

    task: str
    row: int
    """Row in the saved matrix of the task."""


def task_matrix(
    task: str,
    sequences: Sequence[str],
    computed: "np.ndarray | None",
    embedding_locations: Mapping[str, EmbeddingLocation],
    work: WorkFolder,
) -> "np.ndarray":
    """Return the (n, d) embeddings of a task, some of them from earlier tasks in the work folder.

    `computed` has the embeddings of the sequences that are not in `embedding_locations`, in their
    order; None if all are. Raises ResultRefused when the tasks have embeddings of different width
    or dtype.
    """
    import numpy as np  # slow to import, and only needed here

    if computed is not None and len(computed) == len(sequences):
        return computed
    # In the order in which the tasks ran, so that an error names the same task each time.
    tasks = dict.fromkeys(
        embedding_locations[sequence].task
        for sequence in sequences
        if sequence in embedding_locations
    )
    stored_matrices = {
        name: np.load(work.task_folder(name) / EMBEDDINGS, mmap_mode="r") for name in tasks
    }
    matrices = stored_matrices if computed is None else stored_matrices | {task: computed}
    first_task, first = next(iter(matrices.items()))
    for task_id, embeddings in matrices.items():
        if (embeddings.shape[1], embeddings.dtype) != (first.shape[1], first.dtype):
            raise ResultRefused(
                f"task {task_id} has embeddings of {embeddings.shape[1]} numbers of "
                f"{embeddings.dtype}; expected {first.shape[1]} of {first.dtype}, as task "
                f"{first_task} has, with which it shares sequences",
                "ask for an extractor that returns embeddings of one width and one dtype for every "
                "task",
            )
    matrix = np.empty((len(sequences), first.shape[1]), dtype=first.dtype)
    if computed is not None:
        matrix[
            [row for row, sequence in enumerate(sequences) if sequence not in embedding_locations]
        ] = computed
    for row, sequence in enumerate(sequences):
        if sequence in embedding_locations:
            matrix[row] = stored_matrices[embedding_locations[sequence].task][
                embedding_locations[sequence].row
            ]
    return matrix


class TaskRuns:
    """Embeds and scores the tasks of a plan, except for what the work folder already contains."""

    def __init__(self, plan: TaskPlan, prepared: PreparedRerun, say: Say) -> None:
        self.plan = plan
        self.task_ids = [choice.task for choice in plan.chosen]
        self.prepared = prepared
        self.say = say
        self.embedded: dict[str, EmbeddedTask] = {}
        self.embedding_locations: dict[str, EmbeddingLocation] = {}
        self.current_stage: tuple[Literal["embedding", "scoring"], str] = ("embedding", "")
        """Stage and name of the running task."""

    def results(self) -> tuple[Rescored, dict[str, EmbeddedTask]]:
        """Return the scores of all tasks, and the facts about each embedded task.

        All tasks are embedded before the first is scored, since the noise of the scores depends on
        how reproducible the embeddings of all tasks are.
        """
        labels = {
            task: f"task {number} of {len(self.task_ids)}, {task}"
            for number, task in enumerate(self.task_ids, 1)
        }
        for task, label in labels.items():
            self.current_stage = ("embedding", task)
            embedded = self.prepared.work.embedded_task(task)
            self.embedded[task] = embedded or self._embed(task, label)
            for row, sequence in enumerate(self._sequences(task)):
                self.embedding_locations.setdefault(sequence, EmbeddingLocation(task, row))
        scores = []
        for task, label in labels.items():
            self.current_stage = ("scoring", task)
            scores.append(self._score(task, label))
        return merged_rescorings(scores), self.embedded

    @property
    def repeatabilities(self) -> list[Repeatability]:
        """The difference between repeated embeddings of a sequence, for each task with decoys."""
        return [task.repeated for task in self.embedded.values() if task.repeated is not None]

    @property
    def noise(self) -> str:
        """The dtype whose noise the jittered copies have."""
        declared_dtype = self.prepared.settings.noise
        precision = precision_of(declared_dtype, self.repeatabilities)
        return declared_dtype if precision is None else precision.noise

    def _sequences(self, task: str) -> list[str]:
        """Return the sequences of a task that the harness wrote to the work folder."""
        file = self.prepared.work.task_folder(task) / SEQUENCES
        return file.read_text(encoding="ascii").splitlines()

    def _embed(self, task: str, label: str) -> EmbeddedTask:
        """Embed the new sequences of a task, and save the embeddings of all its sequences."""
        import numpy as np  # slow to import, and only needed here

        work, folder = self.prepared.work, self.prepared.work.task_folder(task)
        file = write_sequences([task], self.prepared.source, folder, self.prepared.runner.harness)
        sequences = self._sequences(task)
        new_rows = [
            row
            for row, sequence in enumerate(sequences)
            if sequence not in self.embedding_locations
        ]
        unpublished_sequences = self._unpublished_sequences(task)
        runs = SandboxRuns(
            self.prepared,
            sum(task_facts.seconds for task_facts in self.embedded.values()),
            self.say,
            label,
        )
        embeddings, new_embeddings = None, None
        if new_rows or unpublished_sequences:
            new_sequences = [*(sequences[row] for row in new_rows), *unpublished_sequences]
            embeddings = runs.embed(new_sequences, len(new_rows))
            new_embeddings = embeddings.values[: len(new_rows)] if new_rows else None
        matrix = task_matrix(task, sequences, new_embeddings, self.embedding_locations, work)
        # Written before its entry: a matrix without an entry is computed again.
        work.write_matrix(folder / EMBEDDINGS, matrix)
        if embeddings is not None and unpublished_sequences:
            further_embeddings = np.ascontiguousarray(embeddings.values[len(new_rows) :])
            work.write_matrix(folder / FURTHER_EMBEDDINGS, further_embeddings)
        facts = EmbeddedTask(
            sequences_sha256=file_sha256(file),
            embeddings_sha256=file_sha256(folder / EMBEDDINGS),
            computed=len(new_rows),
            decoys=None if embeddings is None else embeddings.decoys,
            attempts=runs.attempts,
            seconds=runs.seconds,
            peak=runs.peak_bytes,
            token_budget=runs.token_budget,
            further=len(unpublished_sequences),
            further_sha256=file_sha256(folder / FURTHER_EMBEDDINGS)
            if unpublished_sequences
            else None,
            repeated=None if embeddings is None else embeddings.repeatability,
        )
        work.write_result(folder / EMBEDDED, facts.model_dump_json(indent=1) + "\n")
        return facts

    def _unpublished_sequences(self, task: str) -> list[str]:
        """Write the variants and fresh sequences of a task to `FURTHER_FILE`, and return them.

        Raises NothingChecked, with the message of the harness, when it fails.
        """
        prepared, path = self.prepared, self.prepared.work.task_folder(task) / FURTHER_FILE
        write_variants(
            task,
            prepared.source,
            prepared.runner.harness,
            variant_seed(self.plan.seed, prepared.settings.nonce),
            varied_sequence_count(len(self.task_ids)),
            path,
            reverse=prepared.subject.reverse_complement,
            with_support=True,
        )
        sequences = read_further_sequences(path)
        if prepared.fresh is not None:
            fresh_of_task = [fresh for fresh in prepared.fresh.sequences if fresh.task == task]
            sequences.rows.extend(
                FurtherSequence(
                    split="fresh",
                    row=number,
                    kind="fresh",
                    sequence=fresh.sequence,
                    label=fresh.label,
                )
                for number, fresh in enumerate(fresh_of_task)
            )
            path.write_text(json.dumps(sequences.model_dump()) + "\n", encoding="ascii")
        return [sequence.sequence for sequence in sequences.rows]

    def _score(self, task: str, label: str) -> Rescored:
        """Return the scores of a task, saved in the work folder or else computed."""
        folder, settings = self.prepared.work.task_folder(task), self.prepared.settings
        facts = self.embedded[task]
        work = self.prepared.work
        if work.has_result(folder / RESCORED_FILE):
            scores = read_rescored(folder / RESCORED_FILE)
            is_same = scores.embeddings_sha256 == facts.embeddings_sha256
            if is_same and scores.noise.dtype == self.noise:
                return scores
        self.say(f"{label}: scoring the embeddings and {settings.copies} jittered copies")
        further_files = (
            (folder / FURTHER_FILE, folder / FURTHER_EMBEDDINGS) if facts.further else None
        )
        new_scores = self.prepared.rescore_task(
            task, folder / SEQUENCES, folder / EMBEDDINGS, self.noise, further_files, self.plan.seed
        )
        work.record_digest(folder / RESCORED_FILE)
        return new_scores


class SandboxRuns:
    """Runs the extractor for one task in the sandbox, within the limits of a run and an audit."""

    def __init__(
        self, prepared: PreparedRerun, seconds_used: float, say: Say = silent, label: str = ""
    ) -> None:
        """Limit the runs of an audit whose other tasks used `seconds_used` seconds.

        While sequences are embedded, `say` gets one line a minute that begins with `label`.
        """
        self._prepared = prepared
        self._say = say
        self._label = label
        self._seconds_used = seconds_used
        self.seconds = 0.0
        self.peak_bytes = 0
        self.attempts: list[str] = []
        self.token_budget = 0
        """Smallest token budget of any of these runs; 0 if unknown."""

    def embed_alone(self, sequences: Sequence[str], spec: ExtractorSpec) -> "np.ndarray":
        """Return the (n, d) embeddings of n sequences, each embedded in a batch of its own."""
        return self._run(sequences, "file", dataclasses.replace(spec, rows=1))

    def embed(self, sequences: Sequence[str], published_count: int) -> TaskEmbeddings:
        """Return the embeddings of sequences, and the result of the decoys put among them.

        The first `published_count` sequences may be known to the extractor, as in `with_decoys`.
        """
        sequences_with_decoys = with_decoys(sequences, secrets.token_bytes(32), published_count)
        self._say(
            f"{self._label}: embedding {plural(published_count, 'sequence')}, "
            f"{len(sequences) - published_count} variants and fresh ones, and "
            f"{len(sequences_with_decoys.sequences) - len(sequences)} decoys"
        )
        return embed_among_decoys(
            sequences_with_decoys,
            functools.partial(
                self._run,
                batching="budget",
                progress=self._progress(sequences_with_decoys.sequences),
            ),
            functools.partial(self._run, batching="file"),
            self._prepared.settings.noise,
        )

    def _progress(self, sequences: Sequence[str]) -> Callable[[int], None]:
        """Return the function that reports progress, given the number of embedded letters."""
        total_letters = sum(map(len, sequences))
        remaining = RemainingTime(total_letters, PROGRESS_SECONDS)

        def report(letters: int) -> None:
            if letters <= total_letters and remaining.is_due():
                progress_text = f"{letters:,} of {total_letters:,} letters embedded"
                self._say(f"{self._label}: {progress_text}{remaining.text(letters)}")

        return report

    def _run(
        self,
        sequences: Sequence[str],
        batching: Batching,
        spec: ExtractorSpec | None = None,
        progress: Callable[[int], object] = lambda _letters: None,
    ) -> "np.ndarray":
        """Return the (n, d) embeddings of n sequences, and add up what the run used."""
        limits = self._prepared.machine.limits
        seconds_left = int(limits.total_seconds - self._seconds_used - self.seconds)
        if seconds_left < 1:
            raise _total_time_error(limits)
        started = time.monotonic()
        try:
            seconds = min(seconds_left, limits.seconds)
            run = self._prepared.runner.embed(
                sequences,
                dataclasses.replace(spec or self._prepared.spec, batching=batching),
                dataclasses.replace(limits, seconds=seconds),
                progress,
            )
        except LimitExceeded as error:
            if error.limit == "seconds" and seconds_left < limits.seconds:
                raise _total_time_error(limits) from error
            raise
        self.seconds += time.monotonic() - started
        self.peak_bytes = max(self.peak_bytes, run.peak)
        budgets = [budget for budget in (self.token_budget, run.token_budget) if budget]
        self.token_budget = min(budgets, default=0)
        self.attempts += [attempt for attempt in run.attempts if attempt not in self.attempts]
        return run.values


def _total_time_error(limits: Limits) -> LimitExceeded:
    """Return the error of an audit whose runs together exceed the time limit of an audit."""
    return LimitExceeded(
        "total_seconds",
        f"the extractor ran longer than {limits.total_seconds} s in the whole audit",
        limit_fix("total_seconds"),
    )

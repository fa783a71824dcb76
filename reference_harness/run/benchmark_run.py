"""One run: check the data, let an engine embed and probe each task, and return the record."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from reference_harness import environment
from reference_harness.data.task_data import TaskData
from reference_harness.embedding.cache import Cache
from reference_harness.embedding.embedder import EmbedJob, EmbedResult
from reference_harness.engine import ATTEMPTS_MAX, Engine, Notice
from reference_harness.errors import (
    DataError,
    EmbeddingError,
    FailedTasksError,
    HarnessError,
    ProbeError,
)
from reference_harness.formats.benchmark import Task
from reference_harness.formats.measurements import Drift, LettersRead, TaskMeasured, share_read
from reference_harness.formats.run_record import LibraryRef, RunRecord, TaskRecord
from reference_harness.formats.submission import PredictionsFile
from reference_harness.formats.text import plural
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.probe.scorer import SCORER
from reference_harness.receipt.predictions import write_predictions
from reference_harness.receipt.task_file import is_written

from .measure import NOT_MEASURED, Letters
from .progress import Listener, SilentListener
from .sequence_owners import (
    Digests,
    OwnedSequences,
    distinct_sequences,
    owned_sequences,
    packed_digests,
)
from .settings import Settings, key_parts, record_of, tasks_to_run
from .stopped_run import FinishedTask, StoppedRun
from .task_job import ProbeFailure, ProbeResult, ProbeTaskJob

KEPT_LETTERS_MAX = 1 << 25
"""Most letters of tasks that stay in memory from their check to their embedding: 100 MB including
digests, for sequences of 70 letters. Other tasks are read again."""


class _CheckedTask(NamedTuple):
    """Digests and sizes of a task's data, which are kept for the whole run."""

    sha256: str
    digests: Digests
    """Digests of the distinct sequences of both splits."""
    letters: int
    """Letters of the distinct sequences, to which the cost of embedding is proportional."""
    rows: int
    """Number of sequences of both splits."""


@dataclass
class _OpenTask:
    """A task whose embedding has begun, and which has no scores yet."""

    data_facts: dict[str, Any]
    """Digest of the task's data, and class counts of both splits."""
    job: ProbeTaskJob
    embedded_now: int
    seconds: float = 0.0
    """Time of embedding, in seconds."""
    letters: int = 0
    """Number of embedded letters."""
    peak_memory: int = 0
    letters_read: Letters = NOT_MEASURED
    drift: Drift | None = None


def run(settings: Settings, engine: Engine, listener: Listener | None = None) -> RunRecord:
    """Return the record of a run; the cache, the resumable state and the receipt are written.

    A task that fails does not end the others, unless `settings.fail_fast`. Raise FailedTasksError
    at the end if one failed, and a HarnessError for other errors that a user can cause. Every
    finished task and embedding is kept, also after KeyboardInterrupt.
    """
    return _Run(settings, engine, listener or SilentListener()).record()


class _Run:
    """One run: the tasks that wait, are embedded, are probed and are finished."""

    def __init__(self, settings: Settings, engine: Engine, listener: Listener) -> None:
        self.settings = settings
        self.engine = engine
        self.listener = listener
        self.started_at = environment.now()
        self.harness = environment.harness()
        self.state = StoppedRun(settings.output)
        self.finished: dict[str, TaskRecord] = {}
        self.predictions: dict[str, bytes] = {}
        self.scorer = SCORER.ref
        """The scorer of record, or that of the first task whose scores are not of record."""
        self.libraries: dict[tuple[str, str, str, int], LibraryRef] = {}
        self.checked_tasks: dict[str, _CheckedTask] = {}
        self.kept_data: dict[str, TaskData] = {}
        """Checked tasks that have not begun, as far as `KEPT_LETTERS_MAX` allows."""
        self.owned_sequences: dict[str, OwnedSequences] = {}
        """The sequences that each task is to embed; a task is removed when it begins."""
        self.source_tasks: dict[str, frozenset[str]] = {}
        """Ids of the other tasks that embed some sequences of a task, by the task's id."""
        self.embedding_ids: set[str] = set()
        self.embedded_ids: set[str] = set()
        """Ids of the tasks that have embedded their own sequences, and whose probe has not
        begun."""
        self.open_tasks: dict[str, _OpenTask] = {}
        self.failures: dict[str, str] = {}
        self.attempt_counts: Counter[str] = Counter()
        self.waiting_tasks: deque[Task] = deque()
        self.measured_budgets: set[int] = set()
        self.key_parts = key_parts(settings)
        self.cache = Cache(settings.cache, self.key_parts)

    def record(self) -> RunRecord:
        """Execute the run, and return its record."""
        tasks = tasks_to_run(self.settings)
        refusal = "" if self.harness.commit else environment.git_refusal()
        if refusal:
            self.listener.say(
                f"the record contains no commit of the harness, as git failed: {refusal}"
            )
        self._check(tasks)
        resumed = self.state.begin(self._identity(), resume=self.settings.resume)
        self.waiting_tasks.extend(
            task for task in tasks if not self._restore(task, resumed=resumed)
        )
        self.owned_sequences = owned_sequences(
            {task.id: self.checked_tasks[task.id].digests for task in self.waiting_tasks},
            self.cache,
        )
        self._print_receipt_size()
        if self.engine.longest_first:
            self.waiting_tasks = deque(
                sorted(self.waiting_tasks, key=lambda task: -self.checked_tasks[task.id].letters)
            )
        while self.waiting_tasks or self.embedded_ids or self.engine.open_jobs:
            while self.waiting_tasks and self.engine.accepts_task:
                self._begin(self.waiting_tasks.popleft())
            for result in self.engine.results(block=True):
                self._handle_result(result)
            self._probe()
        if self.failures:
            failures = {
                task.id: self.failures[task.id] for task in tasks if task.id in self.failures
            }
            raise FailedTasksError(failures, len(self.finished), str(self.state.folder))
        return record_of(
            self.settings,
            tasks={task.id: self.finished[task.id] for task in tasks},
            libraries=[self.libraries[key] for key in sorted(self.libraries)],
            harness=self.harness,
            started_at=self.started_at,
            resumed=resumed,
            scorer=self.scorer,
            predictions=self._predictions(),
            token_budget=min(self.measured_budgets, default=None),
        )

    def _predictions(self) -> PredictionsFile | None:
        """Write predictions.bin into the receipt; return its entry, or None without a receipt."""
        settings = self.settings
        if settings.receipt is None:
            return None
        return write_predictions(
            settings.receipt, settings.benchmark, settings.regimes_to_run, self.predictions
        )

    def _print_receipt_size(self) -> None:
        """Print how many embeddings of how many tasks the receipt has.

        After the first finished task, also print their dimension, their megabytes and the remaining
        minutes.
        """
        if self.settings.receipt is None or not (self.waiting_tasks or self.open_tasks):
            return
        row_count = sum(task.rows for task in self.checked_tasks.values())
        task_count = plural(len(self.checked_tasks), "task")
        rows_text = f"receipt: {plural(row_count, 'embedding')} of {task_count}"
        if not self.finished:
            self._print([f"{rows_text}, 2 bytes per number"])
            return
        name, first_record = next(iter(self.finished.items()))
        size = 2 * first_record.dim * row_count / 1e6
        letters_done = sum(self.checked_tasks[task_id].letters for task_id in self.finished)
        letters_left = sum(task.letters for task in self.checked_tasks.values()) - letters_done
        seconds = (first_record.embed_seconds + first_record.probe_seconds) / max(
            1, self.checked_tasks[name].letters
        )
        pace = f"about {max(1, round(seconds * letters_left / 60))} min left at the speed of {name}"
        self._print(
            [f"{rows_text}, {plural(first_record.dim, 'number')} each: {size:,.1f} MB; {pace}"]
        )

    def _begin(self, task: Task) -> None:
        """Pass a task to the engine, which embeds it; record invalid data as a failure."""
        try:
            job = self._prepare(task)
        except HarnessError as error:
            self._fail(task.id, error)
            return
        finally:
            self._print(self.cache.damage_notes)
            self.cache.damage_notes.clear()
        self.embedding_ids.add(task.id)
        self.engine.embed(job, self.listener.step)

    def _handle_result(self, result: EmbedResult | ProbeResult | ProbeFailure | Notice) -> None:
        """Store, repeat or fail the task to which a result of the engine belongs."""
        if isinstance(result, Notice):
            self.listener.say(result.line)
            return
        self._print(result.notes)
        if isinstance(result, EmbedResult):
            self._add_embedded(result)
        elif isinstance(result, ProbeResult):
            self._finish(result)
        elif result.lost_embeddings and self._may_try_again(result.task_id):
            self.waiting_tasks.appendleft(self.settings.benchmark.by_id[result.task_id])
        else:
            self._fail(result.task_id, ProbeError(result.reason))

    def _add_embedded(self, result: EmbedResult) -> None:
        """Store what was measured while a task was embedded, and probe complete tasks."""
        self.embedding_ids.discard(result.task_id)
        if result.budget is not None:
            self.measured_budgets.add(result.budget)
        if result.failure:
            self._fail(result.task_id, EmbeddingError(result.failure))
        else:
            open_task = self.open_tasks[result.task_id]
            open_task.seconds += result.seconds
            open_task.letters += result.letters
            open_task.peak_memory = max(open_task.peak_memory, result.peak_memory)
            open_task.letters_read = result.letters_read
            open_task.drift = result.drift
            self._print(cut_letters(result.task_id, result.letters_read.read, self.settings.facts))
            self.embedded_ids.add(result.task_id)
            self._probe()

    def _probe(self) -> None:
        """Probe each task whose embeddings are all in the cache.

        If another task failed to embed sequences that both have, the probe fails, and the task
        begins again.
        """
        unembedded_task_ids = self.embedding_ids | {task.id for task in self.waiting_tasks}
        ready_task_ids = [
            task_id
            for task_id in self.embedded_ids
            if not self.source_tasks.get(task_id, frozenset()) & unembedded_task_ids
        ]
        for task_id in sorted(ready_task_ids):
            self.embedded_ids.discard(task_id)
            self.engine.probe(self.open_tasks[task_id].job)

    def _may_try_again(self, task_id: str) -> bool:
        """Count an attempt at a task; return whether another one is allowed."""
        self.attempt_counts[task_id] += 1
        return self.attempt_counts[task_id] < ATTEMPTS_MAX

    def _fail(self, task_id: str, error: HarnessError) -> None:
        """Record and print that a task failed; raise its error if `fail_fast` is set."""
        if self.settings.fail_fast:
            raise error
        self.open_tasks.pop(task_id, None)
        self.failures[task_id] = str(error).removeprefix(f"{task_id}: ")
        self.listener.finish(task_id, f"failed: {self.failures[task_id]}")

    def _print(self, lines: Iterable[str]) -> None:
        """Print lines to the user."""
        for line in lines:
            self.listener.say(line)

    def _load(self, task: Task) -> TaskData:
        """Return the data of a task, shortened to the limit of the settings."""
        task_data = self.settings.source.load(task)
        return (
            task_data
            if self.settings.limit is None
            else task_data.balanced_subset(self.settings.limit)
        )

    def _check(self, tasks: list[Task]) -> None:
        """Read every task before the first is embedded, so that invalid data are reported early."""
        faults: list[str] = []
        letters_left = KEPT_LETTERS_MAX
        for task in tasks:
            try:
                task_data = self._load(task)
            except DataError as error:
                faults.extend(error.faults)
                continue
            sequence_by_digest = distinct_sequences(task_data)
            letters = sum(map(len, sequence_by_digest.values()))
            rows = len(task_data.train.labels) + len(task_data.test.labels)
            self.checked_tasks[task.id] = _CheckedTask(
                task_data.sha256, packed_digests(sequence_by_digest), letters, rows
            )
            if letters <= letters_left:
                self.kept_data[task.id] = task_data
                letters_left -= letters
        if faults:
            raise DataError(faults)

    def _identity(self) -> dict[str, Any]:
        """Return everything that must be equal in a resumed run."""
        settings = self.settings
        return {
            "model_id": settings.model_id,
            "benchmark": settings.benchmark.sha256,
            "data": {task_id: checked.sha256 for task_id, checked in self.checked_tasks.items()},
            "regimes": list(self.settings.regimes_to_run),
            "probe_device": str(settings.probe_device),
            "receipt": settings.receipt is not None,
            "scorer": SCORER.digest,
            **self.key_parts,
        }

    def _restore(self, task: Task, *, resumed: bool) -> bool:
        """Restore a task that the stopped run has finished; return False for any other task."""
        finished = self.state.load(task.id) if resumed else None
        if finished is None or not self._has_receipt(task.id, finished):
            return False
        self._keep(task.id, finished)
        self.listener.finish(task.id, "finished in the stopped run")
        return True

    def _has_receipt(self, task_id: str, finished: FinishedTask) -> bool:
        """Return whether the receipt of a finished task exists, or none is requested."""
        folder, expected = self.settings.receipt, finished.task.receipt
        if folder is None:
            return True
        if expected is None or finished.predictions is None:
            return False
        return is_written(folder, task_id, expected)

    def _prepare(self, task: Task) -> EmbedJob:
        """Return the job that embeds a task's sequences, and store what its probe needs."""
        task_data = self.kept_data.pop(task.id, None) or self._load(task)
        sequence_by_digest = distinct_sequences(task_data)
        owned = self.owned_sequences.pop(task.id, None)
        if owned is not None:
            lacking_digests = set(owned.missing.tolist())
            self.source_tasks[task.id] = owned.source_tasks
        else:  # its embeddings were lost
            self.source_tasks.pop(task.id, None)
            lacking_digests = sequence_by_digest.keys() - self.cache.find(sequence_by_digest)
        sequences = [
            sequence for digest, sequence in sequence_by_digest.items() if digest in lacking_digests
        ]
        self.listener.begin(task.id, len(sequences))
        earlier_task = self.open_tasks.get(task.id)
        facts = {
            "data_sha256": task_data.sha256,
            "train": task_data.train.class_counts,
            "test": task_data.test.class_counts,
        }
        self.open_tasks[task.id] = _OpenTask(
            facts,
            self._job(task_data),
            len(sequences) + (earlier_task.embedded_now if earlier_task else 0),
            *(
                (earlier_task.seconds, earlier_task.letters, earlier_task.peak_memory)
                if earlier_task
                else ()
            ),
        )
        return EmbedJob(
            task.id,
            sequences,
            self.settings.cache,
            self.key_parts,
            list(sequence_by_digest.values()),
        )

    def _job(self, task_data: TaskData) -> ProbeTaskJob:
        """Return the input of the worker that probes a task."""
        protocol = self.settings.benchmark.protocol
        return ProbeTaskJob(
            task_id=task_data.id,
            cache=self.settings.cache,
            key_parts=self.key_parts,
            train_digests=b"".join(task_data.digests["train"]),
            train_labels=task_data.train.labels,
            test_digests=b"".join(task_data.digests["test"]),
            test_labels=task_data.test.labels,
            regimes=self.settings.regimes_to_run,
            seeds=tuple(protocol.seeds),
            few_shot_k=protocol.few_shot_k,
            device=self.settings.probe_device,
            receipt=self.settings.receipt,
            unit_regime=self._unit_scale_regime(task_data.id),
        )

    def _unit_scale_regime(self, task_id: str) -> str | None:
        """Return the regime in which a task is also scored at unit scale; None for none.

        It is one of full data, for the smallest task of each category: all tasks would double the
        time of fits. It is None for a built-in extractor, and for embeddings declared at unit
        scale.
        """
        settings = self.settings
        embedding = settings.facts.description["embedding"]
        if settings.facts.path.startswith("builtin:") or embedding.get("scale") == "unit":
            return None
        benchmark = settings.benchmark
        full_regimes = [
            r for r in settings.regimes_to_run if r not in benchmark.protocol.few_shot_k
        ]
        category = benchmark.by_id[task_id].category
        peers = [t for t in self.checked_tasks if benchmark.by_id[t].category == category]
        smallest = min(peers, key=lambda name: self.checked_tasks[name].rows)
        return full_regimes[0] if full_regimes and smallest == task_id else None

    def _finish(self, probed: ProbeResult) -> None:
        """Add a scored task to the record, and save it for --resume."""
        record = self._task_record(probed)
        libraries = [LibraryRef(**library) for library in probed.libraries]
        finished = FinishedTask(record, libraries, probed.scorer, probed.predictions)
        self.state.save(probed.task_id, finished)
        is_first = not self.finished
        self._keep(probed.task_id, finished)
        self.listener.finish(probed.task_id, summary(record))
        if is_first:
            self._print_receipt_size()

    def _keep(self, task_id: str, finished: FinishedTask) -> None:
        """Add a finished task to the record."""
        self.finished[task_id] = finished.task
        if finished.scorer.reason and not self.scorer.reason:
            self.scorer = finished.scorer
            self._print([f"scores are not of record: {finished.scorer.reason}"])
        if finished.predictions is not None:
            self.predictions[task_id] = finished.predictions
        self._add_libraries(finished.libraries)

    def _task_record(self, probed: ProbeResult) -> TaskRecord:
        """Return the entry of a task in the record."""
        open_task = self.open_tasks.pop(probed.task_id)
        return TaskRecord(
            **open_task.data_facts,
            distinct_sequences=len(self.checked_tasks[probed.task_id].digests),
            embedded_now=open_task.embedded_now,
            embedded_letters=open_task.letters,
            peak_memory=open_task.peak_memory,
            token_budgets=list(probed.token_budgets),
            dim=probed.dim,
            feature_dtype=probed.dtype,
            embed_seconds=round(open_task.seconds, 6),
            probe_seconds=round(probed.seconds, 6),
            regimes=probed.regimes,
            receipt=probed.receipt,
            measured=TaskMeasured(
                letters=open_task.letters_read.read,
                not_measured=open_task.letters_read.reason,
                embeddings=probed.embeddings,
                drift=open_task.drift,
                unit_scale=probed.unit_scale,
            ),
        )

    def _add_libraries(self, libraries: list[LibraryRef]) -> None:
        """Add numerical libraries to those that the record lists."""
        for library in libraries:
            self.libraries[(library.library, library.version, library.kernel, library.threads)] = (
                library
            )


def cut_letters(task_id: str, letters: LettersRead | None, facts: ExtractorFacts) -> Iterator[str]:
    """Yield a sentence for the user if an end of some sequences is not read."""
    if letters is None or not letters.cut:
        return
    limit = facts.description["embedding"]["max_length"]
    examined = "" if letters.method == "tokens" else " examined"
    yield (
        f"{task_id}: {100 * share_read(letters):.0f} % of letters are read, and {letters.cut:,} of "
        f"{plural(letters.sequences, 'sequence')}{examined} are cut at max_length={limit}: raise "
        "max_length, or declare the truncation"
    )


def summary(record: TaskRecord) -> str:
    """Return a task's scores and warnings in one line."""
    score_texts = [f"{name} MCC {regime.scores.MCC:.3f}" for name, regime in record.regimes.items()]
    warning_kinds = sorted({w.kind for regime in record.regimes.values() for w in regime.warnings})
    return ", ".join(score_texts) + (f" ({', '.join(warning_kinds)})" if warning_kinds else "")

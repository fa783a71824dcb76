"""Reruns a plan: embeddings come from a sandbox, scores are computed outside, claims compared.

Into the sandbox go the sequences of one task after another, in random order with decoys among them,
the extractor and its weights. Labels, claims, task names, the seed of the draw and that of the
decoys stay outside. What is finished of a task is kept in the folder of the audit.
"""

import contextlib
import dataclasses
import functools
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from geneb_ci.audit import compare
from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commit import AuditSubject, subject_of
from geneb_ci.audit.decoys import SequencesWithDecoys, embed_among_decoys, with_decoys
from geneb_ci.audit.draw import recompute
from geneb_ci.audit.events import RunFacts
from geneb_ci.audit.fetching import Installed
from geneb_ci.audit.outcome import AuditedTask, AuditOutcome, Decoys, HarnessFacts, overall_verdict
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.ready import Machine, Ready, Say, ready
from geneb_ci.audit.rescored import Rescored
from geneb_ci.audit.scoring import (
    RESCORED,
    Scoring,
    merged,
    read_rescored,
    rescored,
    sequences_of,
)
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.weights import file_sha256
from geneb_ci.audit.work import (
    EMBEDDED,
    EMBEDDINGS,
    SEQUENCES,
    EmbeddedTask,
    Work,
    open_work,
)
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import ExtractorRefused, LimitExceeded, ResultRefused
from geneb_ci.sandbox.limits import MIB, Limits, advice
from geneb_ci.sandbox.run import Batching, SandboxRun, run_in_sandbox

if TYPE_CHECKING:
    import numpy as np


def rerun(
    plan: Plan,
    layout: Layout,
    machine: Machine,
    clock: Callable[[], float],
    say: Say,
    work: Path | None = None,
) -> AuditOutcome:
    """Rerun the tasks of a plan and return the outcome.

    `clock` returns seconds since 1970; `say` gets a line of progress for each step. What is
    finished is kept in the folder `work`, from which the next call continues; without one it is
    lost when this ends.
    Raises StepMismatch when the plan does not recompute, AuditRefused when something here is not
    what was committed to, SandboxUnavailable or SandboxLeaks, ExtractorFailed, LimitExceeded or
    ResultRefused for the extractor, NothingChecked for what is missing, UsageProblem for options
    that contradict the submission.
    """
    begun = clock()
    recompute(plan)
    subject = subject_of(plan.commitment, layout)
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(open_work(work)) if work is not None else None
        here = stack.enter_context(
            ready(plan.commitment, subject, layout, machine, kept, say, begun)
        )
        return outcome_of(plan, here, clock, say)


def outcome_of(plan: Plan, here: Ready, clock: Callable[[], float], say: Say) -> AuditOutcome:
    """Rerun the tasks of a plan that recomputes, one after another, and return the outcome.

    Raises what `rerun` does.
    """
    tasks = _Tasks(plan, here, say)
    try:
        rescoring, embedded = tasks.done()
    except ExtractorRefused as error:
        error.at = RunFacts(
            *tasks.running,
            here.facts,
            here.settings.started_at,
            moment_of(int(clock())),
        )
        raise
    here.check_weights()
    benchmark = here.subject.benchmark
    compared = _compared(plan, here.subject, rescoring)
    decoys = _all_decoys(embedded)
    notes = [
        *compare.notes(compared, rescoring),
        *_loaded(here.digests),
        *_run_with(here.packages),
        *_attempted([one for task in embedded.values() for one in task.attempts]),
        _used(embedded),
    ]
    return AuditOutcome(
        schema_version="1.0",
        plan=plan,
        tasks=compared,
        decoys=decoys,
        verdict=overall_verdict(compared, decoys),
        sandbox=here.facts,
        noise=here.settings.noise,
        harness=HarnessFacts(
            # The version of the protocol; the release of the harness is among the packages.
            version=benchmark.harness_version,
            commit=rescoring.harness.commit,
            dirty=rescoring.harness.dirty,
        ),
        benchmark_sha256=rescoring.benchmark.sha256,
        dataset_revision=rescoring.dataset.revision,
        packages={"geneb-ci": rescoring.harness.version, **rescoring.packages},
        notes=notes,
        started_at=here.settings.started_at,
        finished_at=moment_of(int(clock())),
    )


def check_outcome(
    outcome: AuditOutcome, place: Path, plan: Plan, subject: AuditSubject, work: Work
) -> None:
    """Refuse an outcome, kept at `place`, that does not follow from the plan and the kept scores.

    Raises AuditRefused, which names the place.
    """
    again = f"remove {place} and run the command again: only what is missing is computed"
    tasks = [one.task for one in plan.chosen]
    folders = {task: work.task(task) for task in tasks}
    lacking = [
        folder / name
        for folder in folders.values()
        for name in (EMBEDDED, RESCORED)
        if not work.has_result(folder / name)
    ]
    if lacking:
        raise AuditRefused(
            f"{place}: made from {lacking[0]}, which is not there as this audit wrote it", again
        )
    rescoring = merged([read_rescored(folder / RESCORED) for folder in folders.values()])
    read = {task: work.read_as(folder / EMBEDDED, EmbeddedTask) for task, folder in folders.items()}
    decoys = _all_decoys({task: one for task, one in read.items() if one is not None})
    follows = {
        "plan": outcome.plan == plan,
        "comparison": outcome.tasks == _compared(plan, subject, rescoring),
        "result of the decoys": outcome.decoys == decoys,
        "verdict": outcome.verdict == overall_verdict(outcome.tasks, outcome.decoys),
    }
    wrong = [name for name, holds in follows.items() if not holds]
    if wrong:
        raise AuditRefused(
            f"{place}: its {wrong[0]} does not follow from the plan and the scores of its folder",
            again,
        )


def _compared(plan: Plan, subject: AuditSubject, rescoring: Rescored) -> list[AuditedTask]:
    """Return the comparison of each task of a plan with its claims."""
    claimed = compare.claims(subject.document, subject.benchmark, plan.commitment.regimes)
    return compare.compare(claimed, rescoring, plan.chosen, subject.benchmark)


def _run_with(packages: Installed | None) -> list[str]:
    return [] if packages is None else [f"environment: lock with sha256 {packages.lock_sha256}"]


def _loaded(digests: dict[str, str]) -> list[str]:
    return [f"weights: {name} {digest}" for name, digest in sorted(digests.items())]


class KnownRow(NamedTuple):
    """Where the embedding of a sequence is kept."""

    task: str
    row: int


def matrix_of(
    task: str,
    sequences: Sequence[str],
    values: "np.ndarray | None",
    known: Mapping[str, KnownRow],
    work: Work,
) -> "np.ndarray":
    """Return the (n, d) matrix of a task: rows of earlier tasks from the work folder, others new.

    `values` has the rows of the sequences that are not known, in their order; None where all are.
    Raises ResultRefused when the tasks have embeddings of different width or dtype.
    """
    import numpy as np  # noqa: PLC0415 (slow to import, and only needed here)

    if values is not None and len(values) == len(sequences):
        return values
    # In the order in which the tasks ran, so that a refusal names the same one each time.
    tasks = dict.fromkeys(known[sequence].task for sequence in sequences if sequence in known)
    kept = {one: np.load(work.task(one) / EMBEDDINGS, mmap_mode="r") for one in tasks}
    parts = kept if values is None else kept | {task: values}
    begun, first = next(iter(parts.items()))
    for name, part in parts.items():
        if (part.shape[1], part.dtype) != (first.shape[1], first.dtype):
            raise ResultRefused(
                f"task {name} has embeddings of {part.shape[1]} numbers of {part.dtype}; expected "
                f"{first.shape[1]} of {first.dtype}, as task {begun} has, with which it shares "
                "sequences",
                "an extractor has to return rows of one width and one dtype for every task",
            )
    found = np.empty((len(sequences), first.shape[1]), dtype=first.dtype)
    if values is not None:
        found[[row for row, one in enumerate(sequences) if one not in known]] = values
    for row, sequence in enumerate(sequences):
        if sequence in known:
            found[row] = kept[known[sequence].task][known[sequence].row]
    return found


class _Tasks:
    """The tasks of one plan, each embedded and scored, or found in the work folder."""

    def __init__(self, plan: Plan, here: Ready, say: Say) -> None:
        self.names = [one.task for one in plan.chosen]
        self.here = here
        self.say = say
        self.embedded: dict[str, EmbeddedTask] = {}
        self.known: dict[str, KnownRow] = {}
        self.running: tuple[Literal["embedding", "scoring"], str] = ("embedding", "")
        """Stage and task."""

    def done(self) -> tuple[Rescored, dict[str, EmbeddedTask]]:
        """Return the scores of all tasks, and what embedding each took."""
        found = []
        for number, task in enumerate(self.names, 1):
            place = f"task {number} of {len(self.names)}, {task}"
            self.running = ("embedding", task)
            kept = self.here.work.embedded(task)
            self.embedded[task] = kept or self._embed(task, place)
            for row, sequence in enumerate(self._sequences(task)):
                self.known.setdefault(sequence, KnownRow(task, row))
            self.running = ("scoring", task)
            found.append(self._score(task, place))
        return merged(found), self.embedded

    def _sequences(self, task: str) -> list[str]:
        file = self.here.work.task(task) / SEQUENCES
        return file.read_text(encoding="ascii").splitlines()

    def _embed(self, task: str, place: str) -> EmbeddedTask:
        """Embed the sequences of a task that no earlier task has, and keep its matrix."""
        import numpy as np  # noqa: PLC0415 (slow to import, and only needed here)

        work, folder = self.here.work, self.here.work.task(task)
        file = sequences_of([task], self.here.source, folder)
        sequences = self._sequences(task)
        new = [row for row, sequence in enumerate(sequences) if sequence not in self.known]
        runs = _Runs(self.here, sum(one.seconds for one in self.embedded.values()))
        decoys, values = None, None
        if new:
            decoyed = with_decoys([sequences[row] for row in new], secrets.token_bytes(32))
            self.say(
                f"{place}: embedding {len(new)} sequences and "
                f"{len(decoyed.sequences) - len(new)} decoys"
            )
            values, decoys = runs.embed(decoyed)
        matrix = matrix_of(task, sequences, values, self.known, work)
        # Kept before it is named: a matrix without its entry is embedded again.
        work.keep_binary(
            folder / EMBEDDINGS,
            lambda stream: np.lib.format.write_array(stream, matrix, allow_pickle=False),
        )
        found = EmbeddedTask(
            sequences_sha256=file_sha256(file),
            embeddings_sha256=file_sha256(folder / EMBEDDINGS),
            computed=len(new),
            decoys=decoys,
            attempts=runs.attempts,
            seconds=runs.seconds,
            peak=runs.peak,
        )
        work.keep_result(folder / EMBEDDED, found.model_dump_json(indent=1) + "\n")
        return found

    def _score(self, task: str, place: str) -> Rescored:
        """Return the scores of a task, which are computed unless they are kept."""
        folder, settings = self.here.work.task(task), self.here.settings
        expected = self.embedded[task]
        work = self.here.work
        if work.has_result(folder / RESCORED):
            kept = read_rescored(folder / RESCORED)
            if kept.embeddings_sha256 == expected.embeddings_sha256:
                return kept
        self.say(f"{place}: scoring the embeddings and {settings.copies} jittered copies")
        how = Scoring(
            noise=settings.noise,
            seed=settings.seed,
            copies=settings.copies,
            workers=self.here.machine.workers,
            canonical=self.here.subject.has_canonical,
        )
        found = rescored([task], self.here.source, folder / SEQUENCES, folder / EMBEDDINGS, how)
        work.note_result(folder / RESCORED)
        return found


class _Runs:
    """Runs of the extractor for one task, within the limits of a run and of the whole audit."""

    def __init__(self, here: Ready, used: float) -> None:
        self._here = here
        self._used = used
        self.seconds = 0.0
        self.peak = 0
        self.attempts: list[str] = []

    def embed(self, decoyed: SequencesWithDecoys) -> tuple["np.ndarray", Decoys]:
        """Return the rows of the real sequences, in their order, and what the decoys show."""
        return embed_among_decoys(
            decoyed,
            functools.partial(self._run, batching="budget"),
            functools.partial(self._run, batching="file"),
            self._here.settings.noise,
        )

    def _run(self, sequences: Sequence[str], batching: Batching) -> "np.ndarray":
        limits = self._here.machine.limits
        left = int(limits.total_seconds - self._used - self.seconds)
        if left < 1:
            raise _too_long(limits)
        started = time.monotonic()
        try:
            ran = self._limited(sequences, batching, min(left, limits.seconds))
        except LimitExceeded as error:
            if error.limit == "seconds" and left < limits.seconds:
                raise _too_long(limits) from error
            raise
        self.seconds += time.monotonic() - started
        self.peak = max(self.peak, ran.peak)
        self.attempts += [one for one in ran.attempts if one not in self.attempts]
        return ran.values

    def _limited(self, sequences: Sequence[str], batching: Batching, seconds: int) -> SandboxRun:
        return run_in_sandbox(
            sequences,
            dataclasses.replace(self._here.spec, batching=batching),
            self._here.sandbox,
            dataclasses.replace(self._here.machine.limits, seconds=seconds),
        )


def _too_long(limits: Limits) -> LimitExceeded:
    return LimitExceeded(
        "total_seconds",
        f"the extractor ran longer than {limits.total_seconds} s in the whole audit",
        advice("total_seconds"),
    )


def _all_decoys(embedded: dict[str, EmbeddedTask]) -> Decoys:
    """Return what the decoys of all tasks show."""
    judged = {task: one.decoys for task, one in embedded.items() if one.decoys is not None}
    alike: dict[str, list[str]] = {}
    for task, one in judged.items():
        alike.setdefault(one.detail, []).append(task)
    return Decoys(
        order_dependent=any(one.order_dependent for one in judged.values()),
        memorised=any(one.memorised for one in judged.values()),
        detail="; ".join(f"{', '.join(tasks)}: {text}" for text, tasks in alike.items()),
    )


def _attempted(attempts: list[str]) -> list[str]:
    """Return a note of what the extractor attempted, as far as Python saw it."""
    if not attempts:
        return []
    called = ", ".join(dict.fromkeys(attempts))
    return [f"the extractor's Python code called, inside the sandbox: {called}"]


def _used(embedded: dict[str, EmbeddedTask]) -> str:
    """Return a note of the time and memory that the extractor took."""
    seconds = sum(one.seconds for one in embedded.values())
    peak = max(one.peak for one in embedded.values())
    rows = sum(one.computed for one in embedded.values())
    return f"embedding {rows} sequences took {seconds:.0f} s and up to {peak // MIB} MiB"

"""The cost of a rerun on this machine, from a timed sample in the sandbox.

A run of the extractor costs its start, measured with a few sequences, and time in proportion to the
letters, measured with `SAMPLE` sequences of the tasks; where these are too few to time, they are
repeated, and start and sample are timed in turn three times. No timing is repeated for an audit
that embeds no more letters than were timed, or takes no longer than the timing has. Scoring is
timed once, on the smallest task with made-up embeddings of the same width, and scaled by the number
of sequences.
"""

import random
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.decoys import FRESH, TRIANGLES, TWICE
from geneb_ci.audit.rerun.honesty import sequences_varied
from geneb_ci.audit.rerun.prepare import PreparedRerun
from geneb_ci.audit.rerun.scoring import sequences_of
from geneb_ci.audit.sampling.design import allocation, parts_of
from geneb_ci.audit.sampling.plan import TaskPlan
from geneb_ci.common.errors import LimitExceeded, NothingChecked
from geneb_ci.sandbox.limits import MIB, advice
from reference_harness.formats.base import Count, Positive, StrictModel
from reference_harness.formats.text import Say, plural

if TYPE_CHECKING:
    import numpy as np

SAMPLE = 256
"""Sequences that are timed."""
START_SEQUENCES = 8
"""Sequences of the run whose time is taken for the start."""
TIMED_MIN = 2.0
"""Seconds by which the sample has to take longer than the start, or as long as the start where that
is more: less is within the noise of a start on a busy machine."""
QUICK, MORE_PAIRS = 30.0, 2
"""A start and a sample that together take fewer seconds are timed so often again: a longer one has
most of the load of a busy machine in its own mean."""
REPEATS_MAX = 256
"""The sample is repeated at most so often: 65,536 sequences that take no longer cost nothing."""
GROWTH = 4
"""Factor between two repeats."""
RUNS = 2
"""Runs of the extractor a task: all sequences, then the decoys in file order."""
DECOYS = 2 * TWICE + 2 * TRIANGLES + FRESH
"""Sequences that a task of ordinary size adds, those of the second run included."""
VARIANTS_OF_BOTH, VARIANTS_A_SEQUENCE = 4, 3
"""Variants for each row that is varied: three of a test sequence and one of a training sequence;
and at most for each sequence of a task, all of them being test sequences."""
FINE, MINUTES = 10, 120
"""Seconds below which a time is shown with tenths, and from which in minutes."""
SAMPLED = "sample.json"
_SAMPLE_SEED = 20261122  # of the choice of the sample, which is not secret


class TaskSize(StrictModel):
    """A task's distinct sequences."""

    sequences: Positive
    letters: Count
    test: Positive | None = None
    """Rows of the test split, where the benchmark says how many; each may be varied three times."""


class Measurements(StrictModel):
    """Measurements of a model on this machine."""

    sizes: dict[str, TaskSize]
    start_seconds: float = Field(ge=0)
    """Seconds of a run without sequences."""
    seconds_per_letter: float = Field(ge=0)
    """Seconds."""
    embedding_bytes: Positive
    peak_bytes: Count
    """Bytes of memory of the sample."""
    listing_seconds: float = Field(ge=0)
    """Seconds that the harness takes to list the sequences of a task."""
    scored_sequences: Positive
    """Sequences of the task whose scoring was timed."""
    scoring_seconds: float = Field(ge=0)
    """Seconds of that."""


class Cost(NamedTuple):
    """Expected cost of what is left of an audit."""

    tasks: float
    """For a draw to come, the numbers are expectations."""
    sequences: float
    letters: float
    variants: float
    """Sequences beside them, at most."""
    embedding: float
    """Seconds."""
    scoring: float
    memory: int
    """Bytes."""
    disk: float
    """Bytes of embeddings and weights."""
    slowest: float
    """Seconds of the largest task in the sandbox."""
    setup: float
    """Seconds of the checks before the first task."""

    @property
    def seconds(self) -> float:
        """Expected seconds of all steps together."""
        return self.setup + self.embedding + self.scoring


def measurements_of(
    prepared: PreparedRerun, weights: Mapping[str, float], say: Say
) -> Measurements:
    """Return the measurements for these tasks; they are made once and kept in the work folder.

    `weights` has the tasks drawn, or before the draw all that may be drawn, each with its chance:
    their data are read, so that what is missing is found before a draw is spent. Raises
    NothingChecked for missing data, and what the sandbox raises for an extractor that fails.
    """
    earlier = prepared.work.read_as(SAMPLED, Measurements)
    if earlier is not None and weights.keys() <= earlier.sizes.keys():
        return earlier
    say(f"reading the data of {len(weights)} tasks")
    started = time.monotonic()
    sizes, samples = {}, {}
    for task in weights:
        sizes[task], samples[task] = _size_and_sample(prepared, task)
    reading = (time.monotonic() - started) / len(weights)
    chosen = _sampled_sequences(sizes, samples)
    say(f"timing the extractor on {len(chosen)} sequences")
    timed = _timed(prepared, chosen, _expected_work(sizes, weights))
    values = timed.values
    smallest = min(sizes, key=lambda task: (sizes[task].sequences, task))
    say(f"timing the scoring on {smallest}")
    measurements = Measurements(
        sizes=sizes,
        start_seconds=timed.start,
        seconds_per_letter=timed.per_letter,
        embedding_bytes=values.shape[1] * values.dtype.itemsize,
        peak_bytes=timed.peak,
        listing_seconds=reading,
        scored_sequences=sizes[smallest].sequences,
        scoring_seconds=_scoring(prepared, smallest, values),
    )
    prepared.work.keep(SAMPLED, measurements.model_dump_json(indent=1) + "\n")
    return measurements


def _size_and_sample(prepared: PreparedRerun, task: str) -> tuple[TaskSize, list[str]]:
    """Return the size of a task and up to `SAMPLE` of its sequences."""
    file = sequences_of(
        [task], prepared.source, prepared.runner.sandbox.scratch, prepared.runner.harness
    )
    sequences = file.read_text(encoding="ascii").splitlines()
    if not sequences:
        raise NothingChecked(f"task {task} has no sequence", "pull its data again")
    some = random.Random(_SAMPLE_SEED).sample(sequences, min(SAMPLE, len(sequences)))  # noqa: S311
    test_size = prepared.subject.benchmark.by_id[task].n_test
    size = TaskSize(sequences=len(sequences), letters=sum(map(len, sequences)), test=test_size)
    return size, some


def _sampled_sequences(
    sizes: Mapping[str, TaskSize], samples: Mapping[str, list[str]]
) -> list[str]:
    """Return up to `SAMPLE` sequences, of each task in proportion to its size, one at least."""
    total = sum(size.sequences for size in sizes.values())
    shares = {t: max(1, round(SAMPLE * size.sequences / total)) for t, size in sizes.items()}
    return [sequence for task, share in shares.items() for sequence in samples[task][:share]]


class TimedRun(NamedTuple):
    """One run of the extractor."""

    seconds: float
    values: "np.ndarray"
    peak: int
    """Bytes."""


class Rate(NamedTuple):
    """The speed of the extractor on a sample."""

    start: float
    """Seconds of a run without sequences."""
    per_letter: float
    """Seconds."""
    values: "np.ndarray"
    """Embeddings of the sample."""
    peak: int
    """Bytes of memory of its largest run."""


class ExpectedWork(NamedTuple):
    """The sequences that an audit will embed."""

    runs: float
    """Number of runs of the extractor."""
    letters: float
    """In the mean of all draws, or of the largest task where that has more."""


def _expected_work(sizes: Mapping[str, TaskSize], weights: Mapping[str, float]) -> ExpectedWork:
    tasks = sum(weights.values())
    letters = {task: _letters(sizes[task], max(1, round(tasks))) for task in weights}
    mean = sum(weight * letters[task] for task, weight in weights.items())
    return ExpectedWork(RUNS * tasks, max(mean, *letters.values()))


def _timed(prepared: PreparedRerun, sequences: list[str], expected_work: ExpectedWork) -> Rate:
    """Time the extractor in the sandbox. Raises what the sandbox does."""

    def run(sequences: list[str]) -> TimedRun:
        started = time.monotonic()
        ran = prepared.runner.embed(sequences, prepared.spec, prepared.machine.limits)
        return TimedRun(time.monotonic() - started, ran.values, ran.peak)

    return rate_of(run, sequences, expected_work, prepared.machine.limits.seconds / 2)


def rate_of(
    run: Callable[[list[str]], TimedRun],
    sequences: list[str],
    expected_work: ExpectedWork,
    allowed: float,
) -> Rate:
    """Return the rate at which `run` embeds; no run may take more than about `allowed` seconds.

    Start and sample are timed in turn, and the median of their differences is taken: one run that
    another program delays changes it little, and a load that both have cancels. What is ahead
    limits the precision: where all its letters were timed, the error is that of a start.
    """
    few = sequences[: min(START_SEQUENCES, len(sequences))]
    spent = [run(few).seconds]  # the first start also reads libraries and weights from disk
    start, sample, times = run(few).seconds, run(sequences), 1
    spent += [start, sample.seconds]
    values, peak = sample.values, sample.peak
    fewest, letters = sum(map(len, few)), sum(map(len, sequences))
    while (
        sample.seconds - start < max(TIMED_MIN, start)
        and times < REPEATS_MAX
        and letters * times < expected_work.letters
        and start + GROWTH * (sample.seconds - start) < allowed
    ):
        times *= GROWTH
        sample = run(sequences * times)
        spent.append(sample.seconds)
        peak = max(peak, sample.peak)
    starts, differences = [start], [sample.seconds - start]
    over = max(1, letters * times - fewest)
    expected = expected_work.runs * start + expected_work.letters * differences[0] / over
    if start + sample.seconds < QUICK and sum(spent) < expected:
        for _ in range(MORE_PAIRS):
            starts.append(run(few).seconds)
            differences.append(run(sequences * times).seconds - starts[-1])
    per_letter = max(0.0, statistics.median(differences)) / over
    start = max(0.0, statistics.median(starts) - per_letter * fewest)
    return Rate(start, per_letter, values, peak)


def _scoring(prepared: PreparedRerun, task: str, values: "np.ndarray") -> float:
    """Return the seconds of scoring a task, with rows made of the sample's."""
    import numpy as np  # slow to import, and only needed here

    folder = prepared.runner.sandbox.scratch
    file = sequences_of([task], prepared.source, folder, prepared.runner.harness)
    count = len(file.read_text(encoding="ascii").splitlines())
    draw = np.random.default_rng(_SAMPLE_SEED)
    rows = values[draw.integers(len(values), size=count)]
    # Other rows than those of the sample, so that the probe has to separate as many as in earnest.
    mixed = (rows + values[draw.integers(len(values), size=count)]) / 2
    embeddings = folder / "sample.npy"
    np.save(embeddings, mixed.astype(values.dtype), allow_pickle=False)
    started = time.monotonic()
    prepared.rescored(task, file, embeddings, prepared.settings.noise)
    return time.monotonic() - started


def cost_of(
    prepared: PreparedRerun, measurements: Measurements, weights: Mapping[str, float], setup: float
) -> Cost:
    """Return the expected cost of tasks, each with its weight: 1, or the chance to be drawn.

    `setup` is in seconds: what the checks before the first task took.
    """
    tasks = max(1, round(sum(weights.values())))
    embedding = {task: _embedding(measurements, task, tasks) for task in weights}
    sizes = measurements.sizes
    largest = max((sizes[task].sequences for task in weights), default=0)
    scoring = {
        task: 2 * measurements.listing_seconds
        + max(0.0, measurements.scoring_seconds - measurements.listing_seconds)
        * sizes[task].sequences
        / measurements.scored_sequences
        for task in weights
    }
    rows = sum(weight * sizes[task].sequences for task, weight in weights.items())
    files = sum(path.stat().st_size for path in prepared.work.folder.glob("weights/**/*"))
    return Cost(
        tasks=sum(weights.values()),
        sequences=rows,
        letters=sum(weight * sizes[task].letters for task, weight in weights.items()),
        variants=sum(
            weight * variant_count(sizes[task], tasks) for task, weight in weights.items()
        ),
        embedding=sum(weight * embedding[task] for task, weight in weights.items()),
        scoring=sum(weight * scoring[task] for task, weight in weights.items()),
        memory=measurements.peak_bytes + largest * measurements.embedding_bytes,
        disk=rows * measurements.embedding_bytes + files,
        slowest=max(embedding.values(), default=0.0),
        setup=setup,
    )


def variant_count(size: TaskSize, tasks: int) -> int:
    """Return how many variants of a task's sequences an audit of so many tasks embeds, at most."""
    rows, variants = sequences_varied(tasks), VARIANTS_A_SEQUENCE
    if size.test is None:
        return min(VARIANTS_OF_BOTH * rows, variants * size.sequences)
    return variants * min(rows, size.test) + min(rows, size.sequences)


def _embedding(measurements: Measurements, task: str, tasks: int) -> float:
    """Return the seconds that a task takes in the sandbox, in an audit of so many tasks."""
    return (
        RUNS * measurements.start_seconds
        + _letters(measurements.sizes[task], tasks) * measurements.seconds_per_letter
    )


def _letters(size: TaskSize, tasks: int) -> float:
    """Return the letters of a task with those beside it, in an audit of so many tasks."""
    beside = DECOYS + variant_count(size, tasks)
    return size.letters * (1 + beside / size.sequences)


def draw_probabilities(commitment: Commitment) -> dict[str, float]:
    """Return the probability of each task to be drawn."""
    drawn, strata = commitment.policy.drawn, commitment.policy.strata
    parts = parts_of(commitment.tasks, strata)
    places = allocation([len(part) for part in parts], len(strata), drawn)
    return {
        task: places_of_part / len(part)
        for part, places_of_part in zip(parts, places, strict=True)
        for task in part
    }


def remaining_tasks(plan: TaskPlan, prepared: PreparedRerun) -> dict[str, float]:
    """Return the tasks of a plan that are not embedded yet, each with weight 1."""
    return {
        choice.task: 1.0 for choice in plan.chosen if prepared.work.embedded(choice.task) is None
    }


def refuse_too_large(
    prepared: PreparedRerun, measurements: Measurements, tasks: Sequence[str], drawn: int
) -> None:
    """Refuse an audit that this machine or its limits cannot carry, whatever is drawn.

    Raises LimitExceeded, whose fix names the option, for a task above the limit of time or memory,
    AuditRefused where the disk is too small for the largest tasks.
    """
    limits, sizes = prepared.machine.limits, measurements.sizes
    slowest = max(tasks, key=lambda task: _embedding(measurements, task, drawn))
    seconds = _embedding(measurements, slowest, drawn)
    if seconds > limits.seconds:
        raise LimitExceeded(
            "seconds",
            f"task {slowest} would take about {seconds:.0f} s here; the limit is "
            f"{limits.seconds} s",
            advice("seconds"),
        )
    largest = sorted(tasks, key=lambda task: -sizes[task].sequences)[:drawn]
    whole = sum(_embedding(measurements, task, drawn) for task in largest)
    if whole > limits.total_seconds:
        raise LimitExceeded(
            "total_seconds",
            f"the largest {drawn} tasks would take about {whole:.0f} s here; the limit is "
            f"{limits.total_seconds} s",
            advice("total_seconds"),
        )
    needed = sum(sizes[task].sequences for task in largest) * measurements.embedding_bytes
    free = shutil.disk_usage(prepared.work.folder).free
    if needed > free:
        raise AuditRefused(
            f"{prepared.work.folder}: embeddings of up to {needed // MIB:,} MiB are expected, and "
            f"{free // MIB:,} MiB are free",
            "free disk space, or name a folder on another disk: --work DIR",
        )


def cost_text(cost: Cost, prepared: PreparedRerun, *, drawn: bool) -> str:
    """Return a cost as lines of text."""
    subject = "what is left of the draw" if drawn else "a draw to come, in the mean"
    return (
        f"cost of {subject}, on this machine ({prepared.machine.device}):\n"
        f"  {plural(round(cost.tasks), 'task')}, {cost.sequences:,.0f} sequences, "
        f"{cost.letters:,.0f} letters (a token has one letter or more)\n"
        f"  up to {cost.variants:,.0f} variants beside them: "
        f"{cost.variants / max(1.0, cost.sequences):.0%} more sequences\n"
        f"  {_minutes(cost.seconds)}: embedding {_minutes(cost.embedding)}, scoring "
        f"{_minutes(cost.scoring)}, checks {_minutes(cost.setup)}; the largest task "
        f"{_minutes(cost.slowest)} in the sandbox\n"
        f"  memory of the extractor {cost.memory // MIB:,} MiB, of "
        f"{prepared.machine.limits.memory_mib:,} allowed; GPU memory is not measured\n"
        f"  disk {cost.disk / MIB:,.0f} MiB in {prepared.work.folder}\n"
    )


def _minutes(seconds: float) -> str:
    if seconds < FINE:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < MINUTES else f"{seconds / 60:.0f} min"

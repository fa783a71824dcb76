"""The cost of a rerun on this machine, from a timed sample in the sandbox.

A run of the extractor takes the time of its start, measured with a few sequences, and time in
proportion to its letters, measured with `SAMPLE_SEQUENCES` sequences of the tasks. If these take
too little time, they are repeated, and start and sample are timed in turn three times. No timing is
repeated for an audit that embeds no more letters than were timed, or that takes less time than the
timing took. Scoring is timed once, on the smallest task with invented embeddings of the same width,
and scaled by the number of sequences.
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
from geneb_ci.audit.rerun.honesty import varied_sequence_count
from geneb_ci.audit.rerun.prepare import PreparedRerun
from geneb_ci.audit.rerun.scoring import write_sequences
from geneb_ci.audit.sampling.design import part_sample_sizes, task_parts
from geneb_ci.common.errors import LimitExceeded, NothingChecked
from geneb_ci.sandbox.limits import MIB, limit_fix
from reference_harness.formats.base import Count, Positive, StrictModel
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.text import Say, plural

if TYPE_CHECKING:
    import numpy as np

SAMPLE_SEQUENCES = 256
"""Number of sequences whose embedding is timed."""
START_SEQUENCES = 8
"""Number of sequences of the run whose duration is that of starting the extractor."""
TIMED_SECONDS_MIN = 2.0
"""Smallest difference in seconds between a run on the sample and a run of `START_SEQUENCES`, or the
duration of the latter if that is more: a smaller difference may be noise of a busy machine."""
QUICK_SECONDS, FURTHER_PAIRS = 30.0, 2
"""A start and a sample that together take fewer than `QUICK_SECONDS` are timed `FURTHER_PAIRS`
times more: a longer timing already averages over the load of a busy machine."""
REPEATS_MAX = 256
"""Largest number of copies of the sample in a timed run: if 65,536 sequences take no longer than a
start, they cost nothing."""
REPEATS_GROWTH = 4
"""Factor by which the number of copies of the sample grows from one timed run to the next."""
RUNS_PER_TASK = 2
"""Runs of the extractor per task: all sequences, then the decoys in file order."""
DECOYS_PER_TASK = 2 * TWICE + 2 * TRIANGLES + FRESH
"""Number of decoys of a task of ordinary size, those of the second run included."""
VARIANTS_PER_PAIR, VARIANTS_PER_TEST_SEQUENCE = 4, 3
"""Number of variants of one test and one training sequence together, three and one; and of one test
sequence alone."""
TENTHS_BELOW_SECONDS, MINUTES_FROM_SECONDS = 10, 120
"""Times below `TENTHS_BELOW_SECONDS` are written with one decimal, and times from
`MINUTES_FROM_SECONDS` on in minutes."""
MEASUREMENTS_FILE = "sample.json"
"""File of the work folder that contains the `Measurements`."""
_SAMPLE_SEED = 20261122  # decides which sequences are timed, which is no secret


class TaskSize(StrictModel):
    """The size of a task in distinct sequences and letters."""

    sequences: Positive
    letters: Count
    """Sum of the lengths of the sequences, in nucleotides."""
    test: Positive | None = None
    """Number of test sequences; None where the benchmark does not say. Each has up to three
    variants."""
    support: Count = 0
    """Largest number of training sequences of few-shot probes, each of which has a variant."""


class Measurements(StrictModel):
    """Times and sizes that were measured while a model embedded a sample on this machine."""

    sizes: dict[str, TaskSize]
    """Size of each task, by its id."""
    start_seconds: float = Field(ge=0)
    """Seconds that a run would take without sequences."""
    seconds_per_letter: float = Field(ge=0)
    """Seconds per nucleotide, without those of the start."""
    embedding_bytes: Positive
    """Bytes of one embedding."""
    peak_bytes: Count
    """Largest memory of the extractor while it embedded the sample, in bytes."""
    listing_seconds: float = Field(ge=0)
    """Seconds that the harness takes to list the sequences of a task."""
    scored_sequences: Positive
    """Number of sequences of the task whose scoring was timed."""
    scoring_seconds: float = Field(ge=0)
    """Seconds that the scoring of this task took."""


class Cost(NamedTuple):
    """Expected cost of the unfinished part of an audit; before the draw, its mean over draws."""

    tasks: float
    """Number of tasks."""
    sequences: float
    """Expected number of distinct sequences of these tasks, without variants."""
    letters: float
    """Number of nucleotides of these sequences."""
    variants: float
    """Largest number of variants of the sequences, which are embedded too."""
    embedding_seconds: float
    """Seconds that the extractor runs in the sandbox."""
    scoring_seconds: float
    """Seconds that the harness fits and scores probes."""
    memory_bytes: int
    """Memory of the extractor, in bytes."""
    disk_bytes: float
    """Size of embeddings and weights, in bytes."""
    slowest_task_seconds: float
    """Seconds that the slowest task takes in the sandbox."""
    setup_seconds: float
    """Seconds that the checks before the first task took."""

    @property
    def seconds(self) -> float:
        """Expected seconds of all steps together."""
        return self.setup_seconds + self.embedding_seconds + self.scoring_seconds


def measurements_of(
    prepared: PreparedRerun, task_weights: Mapping[str, float], say: Say
) -> Measurements:
    """Return measurements for the tasks in `task_weights`, made once and kept in the work folder.

    The keys of `task_weights` are the drawn tasks, or before the draw all tasks that may be drawn,
    with their probabilities. The data of all of them are read, so that missing data are found
    before the draw. Raises NothingChecked for missing data, and what the sandbox raises for an
    extractor that fails.
    """
    saved_measurements = prepared.work.read_as(MEASUREMENTS_FILE, Measurements)
    if saved_measurements is not None and task_weights.keys() <= saved_measurements.sizes.keys():
        return saved_measurements
    say(f"reading the data of {len(task_weights)} tasks")
    started = time.monotonic()
    sizes, samples = {}, {}
    for task in task_weights:
        sizes[task], samples[task] = _size_and_sample(prepared, task)
    seconds_per_task = (time.monotonic() - started) / len(task_weights)
    sequences = _sampled_sequences(sizes, samples)
    say(f"timing the extractor on {len(sequences)} sequences")
    timing = _timing_in_sandbox(prepared, sequences, _expected_work(sizes, task_weights))
    embeddings = timing.embeddings
    smallest_task = min(sizes, key=lambda task: (sizes[task].sequences, task))
    say(f"timing the scoring on {smallest_task}")
    measurements = Measurements(
        sizes=sizes,
        start_seconds=timing.start_seconds,
        seconds_per_letter=timing.seconds_per_letter,
        embedding_bytes=embeddings.shape[1] * embeddings.dtype.itemsize,
        peak_bytes=timing.peak_bytes,
        listing_seconds=seconds_per_task,
        scored_sequences=sizes[smallest_task].sequences,
        scoring_seconds=_scoring_seconds(prepared, smallest_task, embeddings),
    )
    prepared.work.write_text(MEASUREMENTS_FILE, measurements.model_dump_json(indent=1) + "\n")
    return measurements


def _size_and_sample(prepared: PreparedRerun, task: str) -> tuple[TaskSize, list[str]]:
    """Return the size of a task and up to `SAMPLE_SEQUENCES` of its sequences."""
    file = write_sequences(
        [task], prepared.source, prepared.runner.sandbox.scratch, prepared.runner.harness
    )
    sequences = file.read_text(encoding="ascii").splitlines()
    if not sequences:
        raise NothingChecked(
            f"task {task} has no sequence", "download its data again: geneb-ci data pull"
        )
    count = min(SAMPLE_SEQUENCES, len(sequences))
    sample = random.Random(_SAMPLE_SEED).sample(sequences, count)  # noqa: S311
    benchmark = prepared.subject.benchmark
    size = TaskSize(
        sequences=len(sequences),
        letters=sum(map(len, sequences)),
        test=benchmark.by_id[task].n_test,
        support=few_shot_sequence_count(benchmark, task),
    )
    return size, sample


def few_shot_sequence_count(benchmark: Benchmark, task: str) -> int:
    """Return the largest number of sequences that all few-shot probes of a task are fitted on.

    If the benchmark does not state the number of classes of the task, two are assumed.
    """
    protocol, counts = benchmark.protocol, benchmark.by_id[task].test_class_counts
    return sum(protocol.few_shot_k.values()) * len(protocol.seeds) * len(counts or (1, 1))


def _sampled_sequences(
    sizes: Mapping[str, TaskSize], samples: Mapping[str, list[str]]
) -> list[str]:
    """Return about `SAMPLE_SEQUENCES` sequences: more from larger tasks, at least one from each."""
    total_sequences = sum(size.sequences for size in sizes.values())
    shares = {
        task: max(1, round(SAMPLE_SEQUENCES * size.sequences / total_sequences))
        for task, size in sizes.items()
    }
    return [sequence for task, share in shares.items() for sequence in samples[task][:share]]


class TimedRun(NamedTuple):
    """One timed run of the extractor."""

    seconds: float
    embeddings: "np.ndarray"
    peak_bytes: int
    """Largest memory of the extractor, in bytes."""


class SampleTiming(NamedTuple):
    """Times, memory and embeddings of runs of the extractor on a sample."""

    start_seconds: float
    """Seconds that a run would take without sequences."""
    seconds_per_letter: float
    """Seconds per nucleotide, without those of the start."""
    embeddings: "np.ndarray"
    """Embeddings of the sample."""
    peak_bytes: int
    """Largest memory of any run, in bytes."""


class ExpectedWork(NamedTuple):
    """The expected number of runs of the extractor in an audit, and of nucleotides in them."""

    runs: float
    """Mean number of runs of a draw."""
    letters: float
    """Mean number of nucleotides of a draw, or that of the largest task if it is larger."""


def _expected_work(
    sizes: Mapping[str, TaskSize], task_weights: Mapping[str, float]
) -> ExpectedWork:
    """Return the work for tasks, each weighted by 1 or by its probability to be drawn."""
    task_count = sum(task_weights.values())
    letters = {task: _letter_count(sizes[task], max(1, round(task_count))) for task in task_weights}
    mean_letters = sum(weight * letters[task] for task, weight in task_weights.items())
    return ExpectedWork(RUNS_PER_TASK * task_count, max(mean_letters, *letters.values()))


def _timing_in_sandbox(
    prepared: PreparedRerun, sequences: list[str], expected_work: ExpectedWork
) -> SampleTiming:
    """Return how fast the extractor embeds in the sandbox. Raises what the sandbox raises."""

    def run(sequences: list[str]) -> TimedRun:
        started = time.monotonic()
        sandbox_run = prepared.runner.embed(sequences, prepared.spec, prepared.machine.limits)
        return TimedRun(time.monotonic() - started, sandbox_run.values, sandbox_run.peak)

    return timing_of(run, sequences, expected_work, prepared.machine.limits.seconds / 2)


def timing_of(
    run: Callable[[list[str]], TimedRun],
    sequences: list[str],
    expected_work: ExpectedWork,
    run_seconds_max: float,
) -> SampleTiming:
    """Return how fast `run` starts and embeds, by timing it on a few and on all `sequences`.

    No run takes much longer than `run_seconds_max`. Runs on few and on all sequences alternate, and
    the seconds per letter follow from the median of their differences: a single delayed run changes
    it little, and a load during both cancels. An audit that embeds no
    more letters than were timed needs no greater precision: the error is at most the noise of one
    start.
    """
    start_sequences = sequences[: min(START_SEQUENCES, len(sequences))]
    run_seconds = [
        run(start_sequences).seconds
    ]  # the first start also reads libraries and weights from disk
    start, sample, repeats = run(start_sequences).seconds, run(sequences), 1
    run_seconds += [start, sample.seconds]
    embeddings, peak_bytes = sample.embeddings, sample.peak_bytes
    start_letters, letters = sum(map(len, start_sequences)), sum(map(len, sequences))
    while (
        sample.seconds - start < max(TIMED_SECONDS_MIN, start)
        and repeats < REPEATS_MAX
        and letters * repeats < expected_work.letters
        and start + REPEATS_GROWTH * (sample.seconds - start) < run_seconds_max
    ):
        repeats *= REPEATS_GROWTH
        sample = run(sequences * repeats)
        run_seconds.append(sample.seconds)
        peak_bytes = max(peak_bytes, sample.peak_bytes)
    starts, differences = [start], [sample.seconds - start]
    letters_beyond_start = max(1, letters * repeats - start_letters)
    expected_seconds = (
        expected_work.runs * start + expected_work.letters * differences[0] / letters_beyond_start
    )
    if start + sample.seconds < QUICK_SECONDS and sum(run_seconds) < expected_seconds:
        for _ in range(FURTHER_PAIRS):
            starts.append(run(start_sequences).seconds)
            differences.append(run(sequences * repeats).seconds - starts[-1])
    per_letter = max(0.0, statistics.median(differences)) / letters_beyond_start
    start = max(0.0, statistics.median(starts) - per_letter * start_letters)
    return SampleTiming(start, per_letter, embeddings, peak_bytes)


def _scoring_seconds(prepared: PreparedRerun, task: str, sample_embeddings: "np.ndarray") -> float:
    """Return the seconds that scoring a task takes, with as many embeddings as it has sequences.

    Each is the mean of two embeddings of a sample.
    """
    import numpy as np  # slow to import, and only needed here

    folder = prepared.runner.sandbox.scratch
    file = write_sequences([task], prepared.source, folder, prepared.runner.harness)
    count = len(file.read_text(encoding="ascii").splitlines())
    generator = np.random.default_rng(_SAMPLE_SEED)
    first_embeddings, second_embeddings = (
        sample_embeddings[generator.integers(len(sample_embeddings), size=count)] for _ in range(2)
    )
    # Distinct embeddings, so that the probe has as many to separate as those of the task.
    embeddings = folder / "sample.npy"
    np.save(
        embeddings,
        ((first_embeddings + second_embeddings) / 2).astype(sample_embeddings.dtype),
        allow_pickle=False,
    )
    started = time.monotonic()
    prepared.rescore_task(task, file, embeddings, prepared.settings.noise)
    return time.monotonic() - started


def cost_of(
    prepared: PreparedRerun,
    measurements: Measurements,
    task_weights: Mapping[str, float],
    setup_seconds: float,
) -> Cost:
    """Return the expected cost of tasks, each weighted by 1 or by its probability to be drawn.

    `setup_seconds` is the time that the checks before the first task took.
    """
    task_count = max(1, round(sum(task_weights.values())))
    embedding = {task: _embedding_seconds(measurements, task, task_count) for task in task_weights}
    sizes = measurements.sizes
    largest_size = max((sizes[task].sequences for task in task_weights), default=0)
    scoring = {
        task: 2 * measurements.listing_seconds
        + max(0.0, measurements.scoring_seconds - measurements.listing_seconds)
        * sizes[task].sequences
        / measurements.scored_sequences
        for task in task_weights
    }
    sequences = sum(weight * sizes[task].sequences for task, weight in task_weights.items())
    model_bytes = sum(path.stat().st_size for path in prepared.work.folder.glob("weights/**/*"))
    return Cost(
        tasks=sum(task_weights.values()),
        sequences=sequences,
        letters=sum(weight * sizes[task].letters for task, weight in task_weights.items()),
        variants=sum(
            weight * variant_count(sizes[task], task_count) for task, weight in task_weights.items()
        ),
        embedding_seconds=sum(weight * embedding[task] for task, weight in task_weights.items()),
        scoring_seconds=sum(weight * scoring[task] for task, weight in task_weights.items()),
        memory_bytes=measurements.peak_bytes + largest_size * measurements.embedding_bytes,
        disk_bytes=sequences * measurements.embedding_bytes + model_bytes,
        slowest_task_seconds=max(embedding.values(), default=0.0),
        setup_seconds=setup_seconds,
    )


def variant_count(size: TaskSize, task_count: int) -> int:
    """Return the largest number of variants of a task in an audit of `task_count` tasks."""
    varied_count, variants = varied_sequence_count(task_count), VARIANTS_PER_TEST_SEQUENCE
    support = min(size.support, size.sequences)
    if size.test is None:
        return min(VARIANTS_PER_PAIR * varied_count, variants * size.sequences) + support
    return variants * min(varied_count, size.test) + min(varied_count, size.sequences) + support


def _embedding_seconds(measurements: Measurements, task: str, task_count: int) -> float:
    """Return the seconds that a task takes in the sandbox, in an audit of `task_count` tasks."""
    return (
        RUNS_PER_TASK * measurements.start_seconds
        + _letter_count(measurements.sizes[task], task_count) * measurements.seconds_per_letter
    )


def _letter_count(size: TaskSize, task_count: int) -> float:
    """Return the nucleotides of a task, its decoys and its variants.

    The audit has `task_count` tasks.
    """
    added_sequences = DECOYS_PER_TASK + variant_count(size, task_count)
    return size.letters * (1 + added_sequences / size.sequences)


def draw_probabilities(commitment: Commitment) -> dict[str, float]:
    """Return, by task, its probability to be drawn by the policy in a commitment."""
    drawn, strata = commitment.policy.drawn, commitment.policy.strata
    strata_tasks = task_parts(commitment.tasks, strata)
    drawn_counts = part_sample_sizes([len(part) for part in strata_tasks], len(strata), drawn)
    return {
        task: drawn_count / len(part)
        for part, drawn_count in zip(strata_tasks, drawn_counts, strict=True)
        for task in part
    }


def refuse_too_large(
    prepared: PreparedRerun, measurements: Measurements, tasks: Sequence[str], drawn_count: int
) -> None:
    """Refuse an audit that may exceed a limit of time or the free space on this machine's disk.

    Raises LimitExceeded for a task, or for the largest tasks together, above a limit of time, and
    AuditRefused if the disk is too small for the largest tasks.
    """
    limits, sizes = prepared.machine.limits, measurements.sizes
    slowest_task = max(tasks, key=lambda task: _embedding_seconds(measurements, task, drawn_count))
    seconds = _embedding_seconds(measurements, slowest_task, drawn_count)
    if seconds > limits.seconds:
        raise LimitExceeded(
            "seconds",
            f"task {slowest_task} would take about {seconds:.0f} s on this machine, but the limit "
            f"of a task is {limits.seconds} s",
            limit_fix("seconds"),
        )
    largest_tasks = sorted(tasks, key=lambda task: -sizes[task].sequences)[:drawn_count]
    total_seconds = sum(
        _embedding_seconds(measurements, task, drawn_count) for task in largest_tasks
    )
    if total_seconds > limits.total_seconds:
        raise LimitExceeded(
            "total_seconds",
            f"the largest {drawn_count} tasks would take about {total_seconds:.0f} s on this "
            f"machine, but the limit of an audit is {limits.total_seconds} s",
            limit_fix("total_seconds"),
        )
    bytes_needed = (
        sum(sizes[task].sequences for task in largest_tasks) * measurements.embedding_bytes
    )
    bytes_free = shutil.disk_usage(prepared.work.folder).free
    if bytes_needed > bytes_free:
        raise AuditRefused(
            f"{prepared.work.folder}: embeddings of up to {bytes_needed // MIB:,} MiB are "
            f"expected, and {bytes_free // MIB:,} MiB are free",
            "free disk space, or name a folder on another disk: --work DIR",
        )


class CostText(NamedTuple):
    """A cost as lines of text."""

    heading: str
    """The first line, which says whether the cost is of a future draw or of the unfinished
    tasks."""
    figures: str
    """The lines below the heading; "" if nothing is left to run."""

    @property
    def text(self) -> str:
        """The heading and the figures."""
        return self.heading + self.figures


NO_COST = CostText("", "")
"""The cost where nothing is left to rerun."""


def cost_text(cost: Cost, prepared: PreparedRerun, *, is_drawn: bool) -> CostText:
    """Return a cost as lines of text; `is_drawn` says whether the sample has been drawn."""
    subject = "what is left of the draw" if is_drawn else "a draw to come, in the mean"
    return CostText(
        f"cost of {subject}, on this machine ({prepared.machine.device}):\n",
        f"  {plural(round(cost.tasks), 'task')}, {cost.sequences:,.0f} sequences, "
        f"{cost.letters:,.0f} letters (a token has one letter or more)\n"
        f"  up to {cost.variants:,.0f} variants beside them: "
        f"{cost.variants / max(1.0, cost.sequences):.0%} more sequences\n"
        f"  {_time_text(cost.seconds)}: embedding {_time_text(cost.embedding_seconds)}, scoring "
        f"{_time_text(cost.scoring_seconds)}, checks {_time_text(cost.setup_seconds)}; the "
        f"largest task {_time_text(cost.slowest_task_seconds)} in the sandbox\n"
        f"  memory of the extractor {cost.memory_bytes // MIB:,} MiB, of "
        f"{prepared.machine.limits.memory_mib:,} allowed; GPU memory is not measured\n"
        f"  disk {cost.disk_bytes / MIB:,.0f} MiB in {prepared.work.folder}\n",
    )


def _time_text(seconds: float) -> str:
    """Return a duration as text: `9.5 s`, `80 s` or `12 min`."""
    if seconds < TENTHS_BELOW_SECONDS:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < MINUTES_FROM_SECONDS else f"{seconds / 60:.0f} min"

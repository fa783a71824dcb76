"""The audit policy, the sample that a seed draws, and its probability to detect fabrications."""

import hashlib
import heapq
import json
import re
import tomllib
from collections.abc import Sequence
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, ValidationError, model_validator

from geneb_ci.audit.commitment import PROTOCOL, Commitment
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.sampling.plan import Ticket
from geneb_ci.audit.trust.level import EvidenceRequirements, Versions
from geneb_ci.common.config import Layout, benchmark_of, setting_in_errors
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from geneb_ci.common.finding import first_and_more, percent
from geneb_ci.common.shipped import shipped
from reference_harness.formats import scorer
from reference_harness.formats.base import Hex64, Name, Positive, StrictModel, all_errors
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, path_exists, read_text
from reference_harness.formats.submission import Submission
from reference_harness.formats.text import plural

POLICY_FILE = "policy.toml"
"""File of the policy with the settings of audits."""
POLICY_BYTES_MAX = 20_000
"""Largest size of policy.toml, in bytes: the shipped file has 700, and any file of this size is
parsed quickly."""
_RESTORE_FIX = "restore the file from the main branch, or fix it: the shipped one has every setting"


class AuditPolicy(StrictModel):
    """The maintainers' requirements of audits: the table `[audit]` of policy.toml."""

    drawn: Positive
    """Number k of tasks of the guaranteed sample, at most the tasks of the benchmark; if a row has
    fewer, all of them are drawn."""
    stratified: bool
    """Whether the sample has at least one task of each of the larger categories."""
    regimes: Annotated[list[Name], Field(min_length=1)]
    """The regimes whose scores are audited."""
    minimum_drawn: Positive
    """Number of drawn tasks that a row needs to be `audited`."""
    minimum_rows: Positive = 1500
    """Number of test sequences of each regime that an audit by receipt has to draw in order to
    count."""
    minimum_level: Literal[1, 2, 3, 4]
    """Lowest sandbox level at which an agreeing audit counts."""
    scorer: Annotated[bool, Field(validation_alias=AliasChoices("scorer", "canonical"))] = False
    """Whether a cell counts for `audited` and `reproduced` only if its run names the scorer of
    record, which runs of format 1.0 do not. Earlier policies call this setting `canonical`."""
    aborts: Positive = 3
    """Number of consecutive aborted runs of a method that dispute its row. A machine fails once or
    twice by chance; an extractor that fails whenever a raised task is drawn fails each time."""
    receipt_days: Positive = 30
    """Number of days after which a receipt that cannot be fetched counts as missing."""
    fallback_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """SHA-256 of the raw bytes of each fallback key, published before it is used."""
    spent_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """Digests of revealed keys: earlier draws by them stay valid, and no new draw uses them."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        """Refuse a sample too small to audit a row, and duplicate regimes."""
        if self.minimum_drawn > self.drawn:
            raise ValueError(
                f"minimum_drawn = {self.minimum_drawn} is more than drawn = {self.drawn}: "
                "no audit could verify a row"
            )
        if len(set(self.regimes)) < len(self.regimes):
            raise ValueError(f"regimes {self.regimes} lists a regime twice")
        return self


def audit_policy(layout: Layout) -> AuditPolicy:
    """Return the audit policy of a repository, or else the shipped one fitted to its benchmark.

    Raises BadConfiguration, which names the file and the setting, when the policy cannot be used or
    requires tasks or regimes that the benchmark lacks.
    """
    benchmark = benchmark_of(layout)
    policy_file = layout.policy / POLICY_FILE if layout.policy is not None else None
    if policy_file is None or not path_exists(policy_file):
        return parse_policy(policy_text(benchmark).encode(), POLICY_FILE)
    with setting_in_errors(layout, "policy"):
        policy = load_policy(policy_file)
        require_drawable(policy, benchmark, str(policy_file))
    return policy


def load_policy(path: Path) -> AuditPolicy:
    """Read the policy from a file. Raises BadConfiguration when it cannot be used."""
    try:
        raw = read_text(path, POLICY_BYTES_MAX)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: [audit]: {error.reason}", _RESTORE_FIX) from error
    return parse_policy(raw, str(path))


def parse_policy(raw: bytes, file: str) -> AuditPolicy:
    """Return the policy in a file's bytes; `file` is its name. Raises BadConfiguration."""
    try:
        return AuditPolicy.model_validate(tomllib.loads(raw.decode("utf-8"))["audit"])
    except ValidationError as error:
        error_text = all_errors(error, "the table")
        raise BadConfiguration(f"{file}: [audit] {error_text}", _RESTORE_FIX) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfiguration(f"{file}: [audit] cannot be read: {error}", _RESTORE_FIX) from error


def require_drawable(policy: AuditPolicy, benchmark: Benchmark, file: str) -> None:
    """Raise BadConfiguration if a benchmark lacks tasks or regimes that its policy requires.

    `file` is the name of the file of the policy.
    """
    task_count = len(benchmark.tasks)
    strata = strata_of(benchmark, benchmark.task_ids) if policy.stratified else []
    unknown_regimes = [regime for regime in policy.regimes if regime not in benchmark.regimes]
    if policy.drawn > task_count:
        raise BadConfiguration(
            f"{file}: [audit] drawn = {policy.drawn} is more than the "
            f"{plural(task_count, 'task')} of {benchmark.name}",
            f"write drawn = {task_count} or less, and minimum_drawn no larger",
        )
    if policy.drawn < len(strata):
        raise BadConfiguration(
            f"{file}: [audit] drawn = {policy.drawn} is too few: stratified draws one of each "
            f"of the {len(strata)} larger categories of {benchmark.name}",
            f"write drawn = {len(strata)} or more, or stratified = false",
        )
    if unknown_regimes:
        raise BadConfiguration(
            f"{file}: [audit] regimes names {first_and_more(unknown_regimes)}, and "
            f"{benchmark.name} has {', '.join(benchmark.regimes)}",
            "name regimes of the benchmark",
        )


STATED_PROBABILITY = Fraction(95, 100)
"""Probability of detection for which a comment in the shipped policy states the number of tasks."""


def policy_text(benchmark: Benchmark) -> str:
    """Return the text of the shipped policy, with the regimes of a benchmark.

    It draws at most the tasks of the benchmark, and has comments on its sample.
    """
    path = shipped("policy", POLICY_FILE)
    defaults, policy = load_policy(path), path.read_text("utf-8")
    task_count = len(benchmark.tasks)
    drawn = min(defaults.drawn, task_count)
    sizes = [task.n_test for task in benchmark.tasks]
    rows = defaults.minimum_rows if None in sizes else sum(size or 0 for size in sizes)
    detection_text = _detection_text(task_count, drawn)
    settings = {
        "drawn": f"{drawn:<15} # tasks of the guaranteed sample: {detection_text}",
        "regimes": json.dumps(benchmark.regimes),
        "minimum_drawn": f"{min(defaults.minimum_drawn, drawn):<7} # drawn tasks that a row needs "
        "to be `audited`",
        "minimum_rows": f"{min(defaults.minimum_rows, rows or 1):<8} # test rows of each regime "
        "that an audit by receipt draws",
    }
    for setting, line_end in settings.items():
        policy = re.sub(rf"(?m)^{setting} = .*$", f"{setting} = {line_end}", policy)
    return policy


def _detection_text(task_count: int, drawn: int) -> str:
    """Return as text how many raised tasks a sample detects with `STATED_PROBABILITY`."""
    if drawn == task_count:
        return "all of them, so every raised one"
    population = DrawPopulation((task_count,))
    raised_count = next(
        m
        for m in range(1, task_count + 1)
        if detection_probability(population, m, drawn) >= STATED_PROBABILITY
    )
    return f"includes one of {raised_count} raised tasks with {percent(float(STATED_PROBABILITY))}"


STRATUM_TASKS_MIN = 5
"""Smallest number of tasks of a larger category, a stratum of the draw; the other categories form
one part. In GENEB, 8 of the 13 categories, with 91 of the 100 tasks, are larger."""


def strata_of(benchmark: Benchmark, tasks: Sequence[str]) -> list[list[str]]:
    """Return the strata of a draw: the tasks of each larger category, in the order of the board."""
    drawable_tasks = set(tasks)
    strata = (
        [task for task in category if task in drawable_tasks]
        for category in benchmark.categories.values()
    )
    return [stratum for stratum in strata if len(stratum) >= STRATUM_TASKS_MIN]


def part_sample_sizes(sizes: Sequence[int], guaranteed: int, drawn: int) -> list[int]:
    """Return how many of `drawn` tasks come from each part of the population.

    `sizes` has the number of tasks of each part. One task comes from each of the first `guaranteed`
    parts. Every further one comes from the part with the largest size / (2 count + 1), where count
    is the number of its tasks so far, or from the first of equal ones (Webster, 1832). No count
    falls when `drawn` grows, so a larger sample only adds tasks. Raises UsageProblem when `drawn`
    is below `guaranteed` or above the number of tasks.
    """
    if not guaranteed <= drawn <= sum(sizes):
        raise UsageProblem(
            f"cannot draw {drawn} of {sum(sizes)} tasks"
            + (
                f": each of the {guaranteed} larger categories needs one task"
                if drawn < guaranteed
                else ""
            ),
            f"draw {guaranteed} to {sum(sizes)} tasks",
        )
    counts = [int(number < guaranteed) for number in range(len(sizes))]
    queue = [
        (-Fraction(n, 2 * a + 1), i) for i, (n, a) in enumerate(zip(sizes, counts, strict=True))
    ]
    heapq.heapify(queue)
    for _ in range(drawn - guaranteed):
        _, part = heapq.heappop(queue)
        while counts[part] == sizes[part]:
            _, part = heapq.heappop(queue)
        counts[part] += 1
        heapq.heappush(queue, (-Fraction(sizes[part], 2 * counts[part] + 1), part))
    return counts


def drawable_regimes_and_tasks(
    submission: Submission, benchmark: Benchmark, audited_regimes: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the audited regimes with claims, and the tasks with a claim in any of them.

    Both are in the order of the benchmark. A claim in one regime is enough, so that a task with a
    missing cell in another regime can be audited. Raises AuditRefused if there is no claim.
    """
    regimes = [
        name
        for name in benchmark.regimes
        if name in audited_regimes and submission.results.get(name)
    ]
    claimed_tasks = {task for regime in regimes for task in submission.results[regime]}
    tasks = [task for task in benchmark.task_ids if task in claimed_tasks]
    if not tasks:
        raise AuditRefused(
            "the submission has no score in a regime that is audited",
            f"ask the contributor for scores in an audited regime: {', '.join(audited_regimes)}",
        )
    return regimes, tasks


TICKET_SEPARATOR = b"\x00"
"""Byte between the seed and the id of a task in the hashed bytes of a ticket."""


def seed_of(commitment_sha256: str, beacon_value: bytes, protocol: str = PROTOCOL) -> str:
    """Return the seed: SHA-256 of protocol, commitment digest and beacon value, as hex digits."""
    return hashlib.sha256(
        protocol.encode() + bytes.fromhex(commitment_sha256) + beacon_value
    ).hexdigest()


def ticket_of(seed: str, task: str) -> str:
    """Return the ticket of a task: SHA-256 of seed, 0x00 and task id, as hex digits."""
    return hashlib.sha256(bytes.fromhex(seed) + TICKET_SEPARATOR + task.encode()).hexdigest()


def tickets_of(seed: str, tasks: Sequence[str]) -> list[Ticket]:
    """Return the ticket of every task, smallest first, whatever the order of `tasks`."""
    tickets = [Ticket(task=task, ticket=ticket_of(seed, task)) for task in tasks]
    return sorted(tickets, key=lambda ticket: (ticket.ticket, ticket.task))


def sampled_tasks(
    ordered_tasks: Sequence[str], drawn: int, strata: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return the drawn tasks, in order of their tickets like `ordered_tasks`.

    Without strata, these are the first `drawn` tasks; with strata, the first tasks of each part, in
    the number that `part_sample_sizes` returns. Raises what `part_sample_sizes` raises.
    """
    if not strata:
        return list(ordered_tasks[:drawn])
    parts = task_parts(ordered_tasks, strata)
    counts = part_sample_sizes([len(part) for part in parts], len(strata), drawn)
    drawn_tasks = {task for part, count in zip(parts, counts, strict=True) for task in part[:count]}
    return [task for task in ordered_tasks if task in drawn_tasks]


def task_parts(ordered_tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the tasks of each stratum and, last, the other tasks, each in the order given."""
    part_index = {task: index for index, stratum in enumerate(strata) for task in stratum}
    parts: list[list[str]] = [[] for _ in range(len(strata) + 1)]
    for task in ordered_tasks:
        parts[part_index.get(task, len(strata))].append(task)
    return parts


CERTAINTY = Fraction(1)
"""Power of a rerun that always detects a drawn fabricated task."""
TABLE_FABRICATED = (1, 2, 3, 5, 10, 20, 30, 50)
"""Numbers of fabricated tasks in the columns of a table of detection."""
TABLE_DRAWN = (3, 5, 8, 10, 13, 25)
"""Numbers of drawn tasks in the lines of a table of detection."""


class DrawPopulation(NamedTuple):
    """The tasks that a draw chooses from, in parts: strata and the other tasks, or all in one."""

    sizes: tuple[int, ...]
    """Number of tasks of each part; the last part has the smaller categories."""
    guaranteed: int = 0
    """Number of parts, from the first, with at least one task in the sample."""

    @property
    def task_count(self) -> int:
        """Number of all tasks, N."""
        return sum(self.sizes)


def miss_probability(
    tasks: int, fabricated: int, drawn: int, power: Fraction = CERTAINTY
) -> Fraction:
    """Return the probability that the rerun of `drawn` of N `tasks` detects no fabricated task.

    With k drawn and m `fabricated` tasks it is sum_j C(m, j) C(N - m, k - j) (1 - q)^j / C(N, k),
    where q is `power`, the probability that the rerun of a fabricated task detects it.
    """
    terms = (
        comb(fabricated, j) * comb(tasks - fabricated, drawn - j) * (1 - power) ** j
        for j in range(min(fabricated, drawn) + 1)
        if drawn - j <= tasks - fabricated
    )
    return sum(terms, Fraction(0)) / comb(tasks, drawn)


def detection_probability(
    population: DrawPopulation, fabricated: int, drawn: int, power: Fraction = CERTAINTY
) -> Fraction:
    """Return the smallest probability that `drawn` tasks detect one of m `fabricated` tasks.

    It is 1 - max over all splits m = m_1 + ... + m_p of the product of miss_probability(N_i, m_i,
    k_i): the number k_i of tasks that are drawn from part i is public, so a forger can choose where
    to fabricate. Raises what `part_sample_sizes` raises.
    """
    drawn_counts = part_sample_sizes(population.sizes, population.guaranteed, drawn)
    largest_miss = [CERTAINTY]  # by number of fabricated tasks so far
    for size, drawn_count in zip(population.sizes, drawn_counts, strict=True):
        miss_probabilities = [
            miss_probability(size, m, drawn_count, power) for m in range(min(size, fabricated) + 1)
        ]
        total_max = min(fabricated, len(largest_miss) + len(miss_probabilities) - 2)
        largest_miss = [
            max(
                largest_miss[total - m] * miss_probabilities[m]
                for m in range(
                    max(0, total - len(largest_miss) + 1),
                    min(total, len(miss_probabilities) - 1) + 1,
                )
            )
            for total in range(total_max + 1)
        ]
    return 1 - largest_miss[fabricated]


def needed_sample_size(
    population: DrawPopulation, fabricated: int, confidence: Fraction, power: Fraction = CERTAINTY
) -> int:
    """Return the smallest sample size that detects fabrication with probability `confidence`.

    That is at least one of `fabricated` tasks; `power` is as in `miss_probability`.

    Raises UsageProblem when there are fewer tasks than fabricated ones, or when even a sample of
    all tasks does not reach the confidence.
    """
    if not 1 <= fabricated <= population.task_count:
        raise UsageProblem(
            f"--detect {fabricated}: the commitment has {plural(population.task_count, 'task')}, "
            f"so at most {population.task_count} can be fabricated",
            "pass --detect 1"
            + (f" to {population.task_count}" if population.task_count > 1 else ""),
        )
    low, high = max(1, population.guaranteed), population.task_count
    if detection_probability(population, fabricated, high, power) < confidence:
        raise UsageProblem(
            f"no sample detects one of {plural(fabricated, 'fabricated task')} with probability "
            f"{float(confidence):g}, if a rerun detects a drawn fabricated task with probability "
            f"{float(power):g} (--task-power)",
            "lower --confidence, or raise --detect",
        )
    # Detection never falls as the sample grows, so bisection finds the smallest sample.
    while low < high:
        middle = (low + high) // 2
        if detection_probability(population, fabricated, middle, power) >= confidence:
            high = middle
        else:
            low = middle + 1
    return low


class DetectionLine(NamedTuple):
    """A line of the table of detection: how probably `drawn` tasks detect fabricated ones."""

    drawn: int
    detection: tuple[Fraction, ...]
    """Probability of detection by number of fabricated tasks, as in the columns of the table."""


def detection_table(
    population: DrawPopulation,
    drawn: Sequence[int] = TABLE_DRAWN,
    fabricated: Sequence[int] = TABLE_FABRICATED,
    power: Fraction = CERTAINTY,
) -> list[DetectionLine]:
    """Return the table of detection, with one line per possible sample size, ascending."""
    sizes = sorted(
        {k for k in drawn if max(1, population.guaranteed) <= k <= population.task_count}
    )
    return [
        DetectionLine(k, tuple(detection_probability(population, m, k, power) for m in fabricated))
        for k in sizes
    ]


def probability_text(probability: Fraction) -> str:
    """Return a probability with three digits; only certainty is written as 1."""
    digits = f"{float(probability):.3f}"
    return ">.999" if digits == "1.000" and probability < 1 else digits.removeprefix("0")


def draw_population(tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> DrawPopulation:
    """Return the population of a draw of `tasks` with these strata, which may be none."""
    if not strata:
        return DrawPopulation((len(tasks),))
    return DrawPopulation(tuple(len(part) for part in task_parts(tasks, strata)), len(strata))


def sample_size_of(
    commitment: Commitment, drawn: int | None, drawn_min: int, earlier_sample_size: int
) -> int:
    """Return the number of tasks to draw: the largest of the committed number and these numbers.

    `drawn` is the value of --drawn, `drawn_min` the number that --detect needs. Raises UsageProblem
    when `drawn` is less than the committed number or the size of an earlier sample.
    """
    committed_count = commitment.policy.drawn
    if drawn is not None and drawn < max(committed_count, earlier_sample_size):
        raise UsageProblem(
            f"--drawn {drawn} would make the sample smaller: {committed_count} tasks are committed"
            + (
                f", and {earlier_sample_size} were drawn before"
                if earlier_sample_size > committed_count
                else ""
            ),
            f"pass --drawn {max(committed_count, earlier_sample_size)} or more, or leave out "
            "--drawn: a sample can only grow",
        )
    return max(committed_count, drawn or 0, drawn_min, earlier_sample_size)


def parse_probability(argument: str, option: str) -> Fraction:
    """Return the exact value of the probability that an option has, such as 0.95 or 19/20.

    Raises UsageProblem, which names `option`, unless it is above 0 and at most 1.
    """
    try:
        probability = Fraction(argument)
    except (ValueError, ZeroDivisionError):
        probability = Fraction(-1)
    if not 0 < probability <= 1:
        raise UsageProblem(
            f"{option} {argument!r} is not a number above 0 and at most 1",
            "pass a probability, for example 0.95",
        )
    return probability


def requirements_of(policy: AuditPolicy, benchmark: Benchmark) -> EvidenceRequirements:
    """Return what a policy requires of audits on a benchmark, for the evidence of a row."""
    return EvidenceRequirements(
        minimum_drawn=policy.minimum_drawn,
        minimum_level=policy.minimum_level,
        minimum_rows=policy.minimum_rows,
        stratified=policy.stratified,
        tasks=frozenset(benchmark.task_ids),
        versions=Versions(benchmark.harness_version, benchmark.sha256, benchmark.dataset.revision),
        requires_scorer=policy.scorer,
        regimes=frozenset(policy.regimes),
        every_regime=tuple(benchmark.regimes),
        scorer=scorer.digest(),
    )

"""From policy and seed to the sample, and the probability that it detects fabricated tasks."""

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
from geneb_ci.common.config import Layout, benchmark_of, naming
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from geneb_ci.common.finding import first_and_more, percent
from geneb_ci.common.shipped import shipped
from reference_harness.formats import scorer
from reference_harness.formats.base import Hex64, Name, Positive, StrictModel, first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, lies_there, read_text
from reference_harness.formats.submission import Submission
from reference_harness.formats.text import plural

POLICY_FILE = "policy.toml"
# The shipped one has 700 bytes. Parsing is never slow at this size, whatever it holds.
POLICY_BYTES_MAX = 20_000
_RESTORE = "restore the file from the main branch, or fix it: the shipped one has every setting"


class AuditPolicy(StrictModel):
    """The table `[audit]`."""

    drawn: Positive
    """k: tasks of the guaranteed sample, no more than the benchmark has; all, where a row has fewer
    of them."""
    stratified: bool
    regimes: Annotated[list[Name], Field(min_length=1)]
    minimum_drawn: Positive
    """Drawn tasks that a row needs to be `audited`."""
    minimum_rows: Positive = 1500
    """Test sequences of each regime that an audit by receipt has to draw for the board to say that
    cells were recomputed."""
    minimum_level: Literal[1, 2, 3, 4]
    """Lowest sandbox level at which an agreeing audit counts; level 0 never does."""
    scorer: Annotated[bool, Field(validation_alias=AliasChoices("scorer", "canonical"))] = False
    """Whether only cells of a run that names the scorer of record count towards `audited` and
    `reproduced`; format 1.0 names none. The shipped policy says true. Earlier policies call it
    `canonical`."""
    aborts: Positive = 3
    """Runs of one method aborted in a row, without a record between them, that dispute its row. A
    machine fails by chance once or twice; an extractor that fails whenever a raised task is drawn
    does so each time."""
    receipt_days: Positive = 30
    """Days for which a published receipt may not be there before the board says that it is
    missing: servers move, and a holiday is three weeks."""
    fallback_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """SHA-256 of the raw bytes of each fallback key, published before it is used."""
    spent_keys: Annotated[list[Hex64], Field(default_factory=list)]
    """Keys revealed since: earlier draws under them stay valid, no new one is made."""

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.minimum_drawn > self.drawn:
            raise ValueError(
                f"minimum_drawn {self.minimum_drawn} is more than the {self.drawn} that are drawn: "
                "no audit could verify a row"
            )
        if len(set(self.regimes)) < len(self.regimes):
            raise ValueError(f"regimes {self.regimes} lists one twice")
        return self


def audit_policy(layout: Layout) -> AuditPolicy:
    """Return the audit policy of a place: its own, or the shipped one as its benchmark allows.

    Raises BadConfiguration, which names the file and the setting, when it cannot be used, or asks
    for what the benchmark does not have.
    """
    benchmark = benchmark_of(layout)
    policy_file = layout.policy / POLICY_FILE if layout.policy is not None else None
    if policy_file is None or not lies_there(policy_file):
        return shipped_policy(benchmark)
    with naming(layout, "policy"):
        policy = load_policy(policy_file)
        require_drawable(policy, benchmark, str(policy_file))
    return policy


def load_policy(path: Path) -> AuditPolicy:
    """Read the policy from a file. Raises BadConfiguration when it cannot be used."""
    try:
        raw = read_text(path, POLICY_BYTES_MAX)
    except NotReadable as error:
        raise BadConfiguration(f"{path}: [audit]: {error.reason}", _RESTORE) from error
    return parse_policy(raw, str(path))


def parse_policy(raw: bytes, name: str) -> AuditPolicy:
    """Return the policy in `raw`; `name` is the file name for messages. Raises BadConfiguration."""
    try:
        return AuditPolicy.model_validate(tomllib.loads(raw.decode("utf-8"))["audit"])
    except ValidationError as error:
        error_text = first_error(error, "the table")
        raise BadConfiguration(f"{name}: [audit] {error_text}", _RESTORE) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfiguration(f"{name}: [audit] cannot be read: {error}", _RESTORE) from error


def require_drawable(policy: AuditPolicy, benchmark: Benchmark, name: str) -> None:
    """Raise BadConfiguration, which names a file, where a benchmark lacks what a policy draws."""
    tasks = len(benchmark.tasks)
    strata = strata_of(benchmark, benchmark.task_ids) if policy.stratified else []
    unknown = [regime for regime in policy.regimes if regime not in benchmark.regimes]
    if policy.drawn > tasks:
        raise BadConfiguration(
            f"{name}: [audit] drawn = {policy.drawn} is more than the "
            f"{plural(tasks, 'task')} of {benchmark.name}",
            f"write drawn = {tasks} or less, and minimum_drawn at most as much",
        )
    if policy.drawn < len(strata):
        raise BadConfiguration(
            f"{name}: [audit] drawn = {policy.drawn} is too few: stratified draws one of each "
            f"of the {len(strata)} larger categories of {benchmark.name}",
            f"write drawn = {len(strata)} or more, or stratified = false",
        )
    if unknown:
        raise BadConfiguration(
            f"{name}: [audit] regimes names {first_and_more(unknown)}, and {benchmark.name} "
            f"has {', '.join(benchmark.regimes)}",
            "name regimes of the benchmark",
        )


def shipped_policy(benchmark: Benchmark) -> AuditPolicy:
    """Return the shipped policy with as many tasks, and those regimes, as a benchmark has."""
    return parse_policy(policy_text(benchmark).encode(), POLICY_FILE)


CONFIDENCE = Fraction(95, 100)


def policy_text(benchmark: Benchmark) -> str:
    """Return the text of the shipped policy for a benchmark; it says what the sample includes."""
    path = shipped("policy", POLICY_FILE)
    usual, text = load_policy(path), path.read_text("utf-8")
    tasks = len(benchmark.tasks)
    drawn = min(usual.drawn, tasks)
    sizes = [task.n_test for task in benchmark.tasks]
    rows = usual.minimum_rows if None in sizes else sum(size or 0 for size in sizes)
    values = {
        "drawn": f"{drawn:<15} # tasks of the guaranteed sample: {_included(tasks, drawn)}",
        "regimes": json.dumps(benchmark.regimes),
        "minimum_drawn": f"{min(usual.minimum_drawn, drawn):<7} # drawn tasks that a row needs to "
        "be `audited`",
        "minimum_rows": f"{min(usual.minimum_rows, rows or 1):<8} # test rows of each regime that "
        "an audit by receipt draws",
    }
    for name, value in values.items():
        text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
    return text


def _included(tasks: int, drawn: int) -> str:
    """Return in words which number of fabricated tasks a sample includes with `CONFIDENCE`."""
    if drawn == tasks:
        return "all of them, so every raised one"
    design = Design((tasks,))
    raised = next(
        m for m in range(1, tasks + 1) if detection_probability(design, m, drawn) >= CONFIDENCE
    )
    return f"includes one of {raised} raised tasks with {percent(float(CONFIDENCE))}"


# Categories of fewer tasks share what is left. Of GENEB's 13 categories 8 have 5 tasks or more, 91
# of the 100 tasks.
LARGER = 5


def strata_of(benchmark: Benchmark, tasks: Sequence[str]) -> list[list[str]]:
    """Return the tasks of each of the larger categories, both in board order."""
    chosen = set(tasks)
    parts = ([task for task in ids if task in chosen] for ids in benchmark.categories.values())
    return [part for part in parts if len(part) >= LARGER]


def allocation(sizes: Sequence[int], guaranteed: int, drawn: int) -> list[int]:
    """Divide `drawn` places among the parts: one to each of the first `guaranteed`, then by size.

    `sizes` counts the tasks of each part. The rest goes by highest averages (Webster, 1832):
    each place to the part with the largest size / (2 places + 1), the first of equals. No part
    loses a place when `drawn` grows, so a larger sample only adds tasks.
    Raises UsageProblem when there are fewer places than guarantees, or more than tasks.
    """
    if not guaranteed <= drawn <= sum(sizes):
        raise UsageProblem(
            f"{drawn} tasks cannot be drawn from {sum(sizes)} with one of each of {guaranteed} "
            "larger categories",
            f"draw at least {guaranteed} and at most {sum(sizes)}",
        )
    places = [int(number < guaranteed) for number in range(len(sizes))]
    queue = [
        (-Fraction(n, 2 * a + 1), i) for i, (n, a) in enumerate(zip(sizes, places, strict=True))
    ]
    heapq.heapify(queue)
    for _ in range(drawn - guaranteed):
        _, part = heapq.heappop(queue)
        while places[part] == sizes[part]:
            _, part = heapq.heappop(queue)
        places[part] += 1
        heapq.heappush(queue, (-Fraction(sizes[part], 2 * places[part] + 1), part))
    return places


def drawable_cells(
    submission: Submission, benchmark: Benchmark, audited: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the audited regimes that have scores, and the tasks with a score in any of them.

    Both are in the order of the benchmark. A score in one regime is enough: otherwise a missing
    cell, declared in one regime, would keep a task's other scores from every audit.
    Raises AuditRefused when nothing is claimed.
    """
    regimes = [
        name for name in benchmark.regimes if name in audited and submission.results.get(name)
    ]
    claimed = {task for regime in regimes for task in submission.results[regime]}
    tasks = [task for task in benchmark.task_ids if task in claimed]
    if not tasks:
        raise AuditRefused(
            "the submission has no score in a regime that is audited",
            f"the policy audits {', '.join(audited)}; without a score there, no audit is possible",
        )
    return regimes, tasks


SEPARATOR = b"\x00"  # ends the seed; no id begins inside it


def seed_of(commitment: str, value: bytes, protocol: str = PROTOCOL) -> str:
    """Return SHA-256(protocol || c || rho) as hex digits, of the raw 32 bytes of both."""
    return hashlib.sha256(protocol.encode() + bytes.fromhex(commitment) + value).hexdigest()


def ticket_of(seed: str, task: str) -> str:
    """Return SHA-256(seed || 0x00 || id) as hex digits, of the seed's raw bytes."""
    return hashlib.sha256(bytes.fromhex(seed) + SEPARATOR + task.encode()).hexdigest()


def tickets_of(seed: str, tasks: Sequence[str]) -> list[Ticket]:
    """Return the ticket of every task, smallest first, whatever the order of `tasks`."""
    tickets = [Ticket(task=task, ticket=ticket_of(seed, task)) for task in tasks]
    return sorted(tickets, key=lambda ticket: (ticket.ticket, ticket.task))


def sample(
    ordered_tasks: Sequence[str], drawn: int, strata: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return the drawn tasks, given all tasks in order of their tickets; in that order too.

    Without strata, the first `drawn`; with strata, the first of each, as many as `allocation` says.
    Raises UsageProblem, as `allocation` does.
    """
    if not strata:
        return list(ordered_tasks[:drawn])
    parts = parts_of(ordered_tasks, strata)
    seats = allocation([len(part) for part in parts], len(strata), drawn)
    chosen = {task for part, places in zip(parts, seats, strict=True) for task in part[:places]}
    return [task for task in ordered_tasks if task in chosen]


def parts_of(ordered_tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> list[list[str]]:
    """Split tasks into the strata and, last, all others; each part keeps their order."""
    number = {task: index for index, stratum in enumerate(strata) for task in stratum}
    parts: list[list[str]] = [[] for _ in range(len(strata) + 1)]
    for task in ordered_tasks:
        parts[number.get(task, len(strata))].append(task)
    return parts


CERTAIN = Fraction(1)
# What the tables of the docs and of `audit plan` show, as far as there are so many tasks.
SHOWN_FABRICATED = (1, 2, 3, 5, 10, 20, 30, 50)
SHOWN_DRAWN = (3, 5, 8, 10, 13, 25)


class Design(NamedTuple):
    """The population of a draw: all tasks alike, or strata, each with a guaranteed share."""

    sizes: tuple[int, ...]
    """Tasks of each part; the last part holds the smaller categories."""
    guaranteed: int = 0
    """Number of parts, the first ones, with at least one task in the sample."""

    @property
    def tasks(self) -> int:
        """N: how many tasks there are."""
        return sum(self.sizes)


def miss_probability(
    tasks: int, fabricated: int, drawn: int, power: Fraction = CERTAIN
) -> Fraction:
    """Return the probability that k drawn tasks of N detect none of m fabricated ones.

    sum_j C(m, j) C(N - m, k - j) (1 - q)^j / C(N, k), with q the `power` of one rerun.
    """
    terms = (
        comb(fabricated, j) * comb(tasks - fabricated, drawn - j) * (1 - power) ** j
        for j in range(min(fabricated, drawn) + 1)
        if drawn - j <= tasks - fabricated
    )
    return sum(terms, Fraction(0)) / comb(tasks, drawn)


def detection_probability(
    design: Design, fabricated: int, drawn: int, power: Fraction = CERTAIN
) -> Fraction:
    """Return the probability to detect at least one of m fabricated tasks, at the worst placing.

    1 - max over all splits m = m_1 + ... + m_p of the product of missed(N_i, m_i, k_i). The places
    k_i of each stratum are public, so a forger can choose where to fabricate.
    Raises UsageProblem, as `allocation` does.
    """
    places = allocation(design.sizes, design.guaranteed, drawn)
    worst = [CERTAIN]  # by number of fabricated tasks so far
    for size, seats in zip(design.sizes, places, strict=True):
        missed = [miss_probability(size, m, seats, power) for m in range(min(size, fabricated) + 1)]
        top = min(fabricated, len(worst) + len(missed) - 2)
        worst = [
            max(
                worst[total - m] * missed[m]
                for m in range(max(0, total - len(worst) + 1), min(total, len(missed) - 1) + 1)
            )
            for total in range(top + 1)
        ]
    return 1 - worst[fabricated]


def needed_sample_size(
    design: Design, fabricated: int, confidence: Fraction, power: Fraction = CERTAIN
) -> int:
    """Return the smallest sample that detects a fabricated task with probability `confidence`.

    Raises UsageProblem when there are fewer tasks than fabricated ones, or when even a sample of
    all tasks does not reach the confidence.
    """
    if not 1 <= fabricated <= design.tasks:
        raise UsageProblem(
            f"--detect {fabricated}: the commitment has {plural(design.tasks, 'task')}, so at most "
            f"{design.tasks} can be fabricated",
            "pass --detect 1" + (f" to {design.tasks}" if design.tasks > 1 else ""),
        )
    low, high = max(1, design.guaranteed), design.tasks
    if detection_probability(design, fabricated, high, power) < confidence:
        raise UsageProblem(
            f"no sample detects one of {fabricated} fabricated tasks with probability "
            f"{float(confidence):g}, when a rerun detects a drawn one with {float(power):g}",
            "lower --confidence, or raise --detect",
        )
    # Detection never falls as the sample grows, so bisection finds the smallest sample.
    while low < high:
        middle = (low + high) // 2
        if detection_probability(design, fabricated, middle, power) >= confidence:
            high = middle
        else:
            low = middle + 1
    return low


class PowerLine(NamedTuple):
    """One row of the table of detection."""

    drawn: int
    detection: tuple[Fraction, ...]
    """One value for each number of fabricated tasks."""


def detection_table(
    design: Design,
    drawn: Sequence[int] = SHOWN_DRAWN,
    fabricated: Sequence[int] = SHOWN_FABRICATED,
    power: Fraction = CERTAIN,
) -> list[PowerLine]:
    """Return the table of detection: one row a possible sample size, ascending."""
    sizes = sorted({k for k in drawn if max(1, design.guaranteed) <= k <= design.tasks})
    return [
        PowerLine(k, tuple(detection_probability(design, m, k, power) for m in fabricated))
        for k in sizes
    ]


def probability_text(probability: Fraction) -> str:
    """Return a probability with three digits, as the tables show it; only a certain one is 1."""
    text = f"{float(probability):.3f}"
    return ">.999" if text == "1.000" and probability < 1 else text.removeprefix("0")


def design_of(tasks: Sequence[str], strata: Sequence[Sequence[str]]) -> Design:
    """Return the design of a draw from these tasks."""
    if not strata:
        return Design((len(tasks),))
    return Design(tuple(len(part) for part in parts_of(tasks, strata)), len(strata))


def sample_size_of(commitment: Commitment, drawn: int | None, requested: int, before: int) -> int:
    """Return k: the largest of what is committed, wanted, and drawn before.

    Raises UsageProblem when `drawn`, the value of --drawn, is less.
    """
    committed = commitment.policy.drawn
    if drawn is not None and drawn < max(committed, before):
        raise UsageProblem(
            f"--drawn {drawn} would lower the sample: {committed} tasks are committed"
            + (f", and {before} were drawn before" if before > committed else ""),
            "a sample can only be raised: pass a larger number, or leave out --drawn",
        )
    return max(committed, drawn or 0, requested, before)


def parse_probability(text: str, option: str) -> Fraction:
    """Return a probability exactly as it is written, such as 0.95 or 19/20.

    Raises UsageProblem, which names `option`, unless it is above 0 and at most 1.
    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not 0 < value <= 1:
        raise UsageProblem(
            f"{option} {text!r} is not a probability", "pass a number above 0 and at most 1: 0.95"
        )
    return value


def demands_of(policy: AuditPolicy, benchmark: Benchmark) -> EvidenceRequirements:
    """Return the requirements of a policy for audits of a benchmark."""
    return EvidenceRequirements(
        minimum_drawn=policy.minimum_drawn,
        minimum_level=policy.minimum_level,
        minimum_rows=policy.minimum_rows,
        stratified=policy.stratified,
        tasks=frozenset(benchmark.task_ids),
        versions=Versions(benchmark.harness_version, benchmark.sha256, benchmark.dataset.revision),
        defined=policy.scorer,
        regimes=frozenset(policy.regimes),
        every_regime=tuple(benchmark.regimes),
        scorer=scorer.digest(),
    )

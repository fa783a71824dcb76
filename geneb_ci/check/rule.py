"""The parts of a rule: an id, three texts, its needs, and a pure function of one frozen context."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from geneb_ci.check.claims import (
    MatrixClaims,
    ScoreClaim,
    SeedClaims,
    claims_of,
    has_impossible_accuracy,
    matrix_claims_of,
    seed_claims_of,
)
from geneb_ci.check.rounding import Rounding, rounding_of
from geneb_ci.check.row_facts import ExtractorFile
from geneb_ci.common.finding import ROWS_MIN, Fault, KeyPath, Need, Severity
from geneb_ci.statistics.reference import Vector, score_vector
from geneb_ci.statistics.view import RowView, view_of
from geneb_ci.submission.document import Document
from geneb_ci.submission.names import Card
from geneb_ci.submission.other_cards import OtherCards
from geneb_ci.submission.peers import Peers, results_digest
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import member_at, table_at, text_at

if TYPE_CHECKING:
    from geneb_ci.check.change import Change, ChangeFault
    from reference_harness.formats.submission import Submission


@dataclass(frozen=True)
class Policy:
    """Decisions of the maintainers: the digests of official files."""

    official: dict[str, str] = field(default_factory=dict)
    """By model id: the SHA-256 of the official file."""


class Cell(NamedTuple):
    """A task in a regime, with those of its scores that are numbers."""

    regime: str
    task: str
    """Id of the task."""
    scores: dict[str, float]
    """Score by metric."""

    @property
    def path(self) -> KeyPath:
        """Path of the cell in the document."""
        return ("results", self.regime, self.task)


@dataclass(frozen=True)
class Context:
    """One submission and what it is checked against.

    A rule that needs only a part of the document reads that part through `cells` and `text`, so
    that one error does not hide others.
    """

    document: Document
    """The submission as parsed, with the position of each value."""
    submission: "Submission | None"
    """The submission as a typed model; None if the structure has errors."""
    reported: dict[str, tuple[Fault, ...]]
    """The errors found while the file was read, by rule id."""
    benchmark: Benchmark
    policy: Policy
    peers: Peers
    """The other rows, with which the submission is compared."""
    card: Card | None
    """The model card of the submission; None without one."""
    is_in_repository: bool
    """Whether the file is in the folder of submissions of a repository."""
    is_practice: bool
    """Whether the file is checked against the synthetic practice benchmark."""
    extractor: ExtractorFile | None
    """The extractor file that `run` names, if it is available."""
    lock: ExtractorFile | None = None
    """The lock file beside the extractor, which pins packages; None if there is none."""
    needs_extractor: bool = False
    """Whether `run` names an extractor that must be in the repository."""
    other_cards: OtherCards = field(default_factory=OtherCards)
    """The cards in the repository, and its rows."""
    registry_facts: Mapping[str, Any] = field(default_factory=dict)
    """The facts about the model in the model registry; empty if it has no entry."""
    upgraded_entry: Mapping[str, Any] = field(default_factory=dict)
    """The member `entry` that an upgrade writes now; empty if the file was not upgraded."""

    @functools.cached_property
    def root(self) -> dict[str, Any]:
        """The document's members; empty when it is not an object."""
        return table_at(self.document.value)

    def member(self, *path: str) -> Any:
        """Return a member by its path, or None when it is missing."""
        return member_at(self.document.value, *path)

    def text(self, *path: str) -> str:
        """Return a string by its path, or "" when it is missing or not a string."""
        return text_at(self.document.value, *path)

    def table(self, *path: str) -> dict[str, Any]:
        """Return an object by its path, or an empty one when it is missing or not an object."""
        return table_at(self.document.value, *path)

    def is_reported(self, *path: str) -> bool:
        """Whether an error of this member was already found when the file was read."""
        return path in self._faulty_paths

    @functools.cached_property
    def _faulty_paths(self) -> frozenset[KeyPath]:
        """Paths of the members with errors that were found when the file was read."""
        return frozenset(fault.path for faults in self.reported.values() for fault in faults)

    @property
    def model_id(self) -> str:
        """The document's member `model_id`; "" if it has none."""
        return self.text("model_id")

    @property
    def is_official(self) -> bool:
        """Whether this is a file of the benchmark's authors, or was upgraded from such a file."""
        return bool(self.document.sha256) and self.document.origin in self.policy.official.values()

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, of known and unknown tasks, with its numeric scores, in file order."""
        return tuple(self._cells())

    def _cells(self) -> Iterator[Cell]:
        """Yield the elements of `cells`."""
        for regime, tasks in self.table("results").items():
            for task, scores in tasks.items() if isinstance(tasks, dict) else ():
                if isinstance(scores, dict) and tuple(map(type, scores.values())) == _THREE_FLOATS:
                    yield Cell(regime, task, scores)  # the fast path, taken by nearly every cell
                elif isinstance(scores, dict):
                    numeric_scores = {m: v for m, v in scores.items() if type(v) in {int, float}}
                    yield Cell(regime, task, numeric_scores)

    @functools.cached_property
    def claims(self) -> tuple[ScoreClaim, ...]:
        """The scores claimed for the benchmark's cells, with their precision."""
        evidence = self.table("evidence")
        return tuple(claims_of(self.table("results"), evidence, self.benchmark))

    @functools.cached_property
    def impossible_accuracy_paths(self) -> frozenset[KeyPath]:
        """Paths of the claims whose accuracy no whole number of correct predictions gives."""
        return frozenset(claim.path for claim in self.claims if has_impossible_accuracy(claim))

    @functools.cached_property
    def seed_claims(self) -> tuple[SeedClaims, ...]:
        """The scores of each seed for the benchmark's cells; empty for format 1.0."""
        return tuple(seed_claims_of(self.table("evidence"), self.benchmark))

    @functools.cached_property
    def matrix_claims(self) -> tuple[MatrixClaims, ...]:
        """The confusion matrices of the benchmark's cells; empty before format 1.2."""
        return tuple(matrix_claims_of(self.table("evidence"), self.benchmark))

    @functools.cached_property
    def rounding(self) -> Rounding | None:
        """The decimals of the scores in the benchmark's regimes; None if unrounded or too few."""
        regimes = self.benchmark.regimes
        return rounding_of(cell.scores for cell in self.cells if cell.regime in regimes)

    def gaps(self, regime: str) -> dict[str, Any]:
        """Return the cells of a regime that are declared missing: task to reason."""
        return self.table("gaps", regime)

    @functools.cached_property
    def vector(self) -> Vector:
        """The primary metric of each cell, regime by regime; NaN where there is none."""
        return primary_scores(self.table("results"), self.benchmark)

    @functools.cached_property
    def view(self) -> RowView:
        """The row beside the other rows, for the plausibility rules."""
        return view_of(self.vector, self.document.path, self.peers, self.benchmark)

    @functools.cached_property
    def scores_digest(self) -> str | None:
        """The digest of all scores; None without scores."""
        return results_digest(self.member("results"))

    def meets(self, need: Need) -> bool:
        """Whether the submission has what a rule needs, such as other rows; computed once."""
        if need not in self._met_needs:
            self._met_needs[need] = _NEED_TESTS[need](self)
        return self._met_needs[need]

    @functools.cached_property
    def _met_needs(self) -> dict[Need, bool]:
        """Whether each need is met, for the needs that were asked for so far."""
        return {}


def primary_scores(results: dict[str, Any], benchmark: Benchmark) -> Vector:
    """Return the primary metric of each cell, regime by regime; NaN where it is no score."""
    numbers: list[float] = []
    metric = benchmark.primary_metric
    for regime in benchmark.regimes:
        tasks = results.get(regime)
        if not isinstance(tasks, dict):
            tasks = {}
        for task in benchmark.task_ids:
            cell = tasks.get(task)
            score: Any = cell.get(metric) if isinstance(cell, dict) else None
            is_score = type(score) in {int, float} and -1 <= score <= 1
            numbers.append(float(score) if is_score else math.nan)
    return score_vector(numbers)


_THREE_FLOATS = (float, float, float)
"""Types of the scores in a usual cell."""
_NEED_TESTS: dict[Need, Callable[[Context], bool]] = {
    Need.OTHER_ROWS: lambda context: context.peers.has_other(context.document.path),
    Need.MANY_ROWS: lambda context: context.view.others_count >= ROWS_MIN,
    Need.COMPLETE_ROWS: lambda context: context.view.reference is not None,
    Need.FOLDER: lambda context: context.is_in_repository,
    Need.CARD: lambda context: context.is_in_repository,
    Need.EXTRACTOR: lambda context: context.extractor is not None or not context.needs_extractor,
    Need.TEST_SIZES: lambda context: any(task.n_test for task in context.benchmark.tasks),
    Need.CLASS_SIZES: lambda context: any(
        task.test_class_counts for task in context.benchmark.tasks
    ),
}
"""Function that returns whether a context meets a need, by need."""


Check = Callable[[Context], Iterator[Fault]]
"""A function that yields the faults of a submission that a rule reports."""
ChangeCheck = Callable[["Change"], "Iterator[ChangeFault]"]
"""A function that yields the faults of a pull request that a rule reports."""
RULES_PACKAGE = "geneb_ci.check.rules"
"""Package with a module for each family of rules."""


@dataclass(frozen=True)
class AnyRule:
    """One kind of problem that can be found, with the texts of `geneb-ci explain` and RULES.md."""

    id: str
    severity: Severity
    what: str
    """The problem, in a sentence."""
    why: str
    """The harm that the problem does."""
    fix: str
    """How to solve the problem."""
    check: Callable[[Any], Iterator[Any]]
    """The function that finds the problem and yields a fault for each case."""
    needs: tuple[Need, ...] = ()
    """Conditions under which the rule can run; a report names the first that is not met."""

    @property
    def family(self) -> str:
        """The rule's family: the first word of the name of its module in `geneb_ci/check/rules`."""
        return self.check.__module__.removeprefix(f"{RULES_PACKAGE}.").split("_")[0]


@dataclass(frozen=True)
class Rule(AnyRule):
    """A rule about one file, run by `geneb-ci check`."""

    check: Check


@dataclass(frozen=True)
class ChangeRule(AnyRule):
    """A rule about what a pull request changes, run by `geneb-ci reconcile`."""

    check: ChangeCheck


def reading_rule(
    family: str, rule_id: str, *, what: str, why: str, fix: str, needs: tuple[Need, ...] = ()
) -> Rule:
    """Return a rule of severity error that reports faults found when the file was read."""

    def check(context: Context) -> Iterator[Fault]:
        yield from context.reported.get(rule_id, ())

    check.__module__ = f"{RULES_PACKAGE}.{family}"  # so that `family` works as for other rules
    return Rule(rule_id, Severity.ERROR, what, why, fix, check, needs)

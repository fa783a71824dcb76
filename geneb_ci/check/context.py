"""All that a rule may know of a submission: read once, frozen, without I/O of its own."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from geneb_ci.check.claims import Claim, SeedClaims, claims_of, seed_claims_of
from geneb_ci.check.need import Need
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.statistics.reference import ROWS_MIN
from geneb_ci.statistics.view import RowView, view_of
from geneb_ci.submission.card import Card
from geneb_ci.submission.document import Document
from geneb_ci.submission.fault import Fault, Path
from geneb_ci.submission.models import Submission
from geneb_ci.submission.peers import Peers


class Cell(NamedTuple):
    """One task in one regime, as far as its scores are numbers."""

    regime: str
    task: str
    scores: dict[str, float]

    @property
    def path(self) -> Path:
        """Where it stands in the document."""
        return ("results", self.regime, self.task)


@dataclass(frozen=True)
class Policy:
    """What the maintainers decided: digests of official files and attributes of models."""

    official: dict[str, str] = field(default_factory=dict)
    registry: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """One submission and what it is held against.

    `submission` is None where the structure has faults: a rule that needs only a part of the
    document reads it through `cells` and `text`, so that one fault does not hide the next.
    """

    document: Document
    submission: Submission | None
    reported: dict[str, tuple[Fault, ...]]
    benchmark: Benchmark
    policy: Policy
    peers: Peers
    card: Card | None
    in_repository: bool
    practice: bool
    """Whether the file was held against the synthetic practice benchmark."""
    extractor_sha256: str | None
    """Digest of the extractor file that `run` names, where that file is at hand."""
    extractor_needed: bool = False
    """Whether `run` names an extractor that must lie in the repository."""

    @functools.cached_property
    def root(self) -> dict[str, Any]:
        """The document's members, or none when it is not an object."""
        return self.document.value if isinstance(self.document.value, dict) else {}

    def member(self, *path: str) -> Any:  # noqa: ANN401 (JSON has no narrower type)
        """Return a member by its path, or None when it is not there."""
        value: Any = self.root
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def text(self, *path: str) -> str:
        """Return a text by its path, or "" when it is not there or no text."""
        value = self.member(*path)
        return value if isinstance(value, str) else ""

    def table(self, *path: str) -> dict[str, Any]:
        """Return an object by its path, or an empty one."""
        value = self.member(*path)
        return value if isinstance(value, dict) else {}

    def is_reported(self, *path: str) -> bool:
        """Whether reading already found a fault of this very member."""
        return path in self._reported_paths

    @functools.cached_property
    def _reported_paths(self) -> frozenset[Path]:
        return frozenset(fault.path for faults in self.reported.values() for fault in faults)

    @property
    def model_id(self) -> str:
        """The id the document gives itself, or ""."""
        return self.text("model_id")

    @property
    def is_official(self) -> bool:
        """Whether these very bytes are listed as official."""
        return bool(self.document.sha256) and self.document.sha256 in self.policy.official.values()

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, known or not, with the scores that are numbers, in the order written."""
        return tuple(self._cells())

    def _cells(self) -> Iterator[Cell]:
        for regime, tasks in self.table("results").items():
            for task, scores in tasks.items() if isinstance(tasks, dict) else ():
                if isinstance(scores, dict):
                    numbers = {m: v for m, v in scores.items() if type(v) in {int, float}}
                    yield Cell(regime, task, numbers)

    @functools.cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Every triple of known tasks and regimes, with how exactly it is known."""
        evidence = self.table("evidence")
        return tuple(claims_of(self.table("results"), evidence, self.benchmark))

    @functools.cached_property
    def seed_claims(self) -> tuple[SeedClaims, ...]:
        """The triples of each seed of known tasks and regimes; format 1.0 has none."""
        return tuple(seed_claims_of(self.table("evidence"), self.benchmark))

    def gaps(self, regime: str) -> dict[str, Any]:
        """Return the declared gaps of a regime: task to reason."""
        return self.table("gaps", regime)

    @functools.cached_property
    def view(self) -> RowView:
        """The row among the rows beside it, for the family plausibility."""
        results = self.table("results")
        return view_of(results, self.document.path, self.peers, self.benchmark)

    def lacks(self, needs: tuple[Need, ...]) -> Need | None:
        """Return the first of some needs that is not at hand, or None."""
        return next((need for need in needs if not self._has(need)), None)

    def _has(self, need: Need) -> bool:
        if need not in self._at_hand:
            self._at_hand[need] = _PRESENT[need](self)
        return self._at_hand[need]

    @functools.cached_property
    def _at_hand(self) -> dict[Need, bool]:
        return {}


_PRESENT: dict[Need, Callable[[Context], bool]] = {
    Need.OTHER_ROWS: lambda context: context.peers.others(context.document.path) > 0,
    Need.MANY_ROWS: lambda context: context.view.others_count >= ROWS_MIN,
    Need.COMPLETE_ROWS: lambda context: context.view.reference is not None,
    Need.FOLDER: lambda context: context.in_repository,
    Need.CARD: lambda context: context.in_repository,
    Need.EXTRACTOR: lambda context: (
        context.extractor_sha256 is not None or not context.extractor_needed
    ),
    Need.TEST_SIZES: lambda context: any(task.n_test for task in context.benchmark.tasks),
    Need.CLASS_SIZES: lambda context: any(
        task.test_class_counts for task in context.benchmark.tasks
    ),
}

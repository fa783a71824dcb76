"""The public rows as a board, for tests that look at it from several sides."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from geneb_ci.audit.trust.level import AuditSummary, Decision
from geneb_ci.board.board import analyses_of, checked_rows
from geneb_ci.board.columns import Row, row_of
from geneb_ci.board.marks import Defect, marks_of, read_defects
from geneb_ci.board.uncertainty import (
    RegimeIntervals,
    ranked_intervals,
    ranks_by_score_name,
    scores_by_regime,
)
from geneb_ci.check.runner import files_of
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.types import Evidence, TrustLevel
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.models.tasks import NO_NOTES
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import Submission
from tests.paths import PUBLIC, ROOT, SUBMISSIONS

POLICY = ROOT / "leaderboard/policy"


def entry(
    submission: Submission,
    level: TrustLevel = TrustLevel.SELF_REPORTED,
    audit: AuditSummary | None = None,
    registry: Mapping[str, Mapping[str, Any]] | None = None,
) -> Row:
    """Return the entry of a submission as the board makes it, at a level that is given."""
    known = attributes() if registry is None else registry
    is_official = level is TrustLevel.OFFICIAL
    decision = Decision(level, "an audit differs", EVIDENCE[level], is_official, audit)
    return row_of(
        submission,
        decision,
        known,
        marks_of(submission.model_id, (), defects(), is_official=is_official),
    )


EVIDENCE = {
    TrustLevel.SELF_REPORTED: Evidence.CHECKED,
    TrustLevel.VERIFIED: Evidence.AUDITED,
    TrustLevel.REPRODUCED: Evidence.REPRODUCED,
    TrustLevel.OFFICIAL: Evidence.CHECKED,
    TrustLevel.DISPUTED: Evidence.DISPUTED,
    TrustLevel.STALE: Evidence.STALE,
}


@functools.cache
def defects() -> tuple[Defect, ...]:
    return read_defects(find_layout(POLICY))


@functools.cache
def entries() -> tuple[Row, ...]:
    """Return the public rows as `build` reads them, with their evidence, warnings and defects."""
    return tuple(checked_rows(find_layout(PUBLIC), files_of([SUBMISSIONS])))


@functools.cache
def attributes() -> Mapping[str, Mapping[str, Any]]:
    return ModelRegistry(find_layout(POLICY))


def intervals(
    entries: Iterable[Row], benchmark: Benchmark, regimes: Iterable[str] | None = None
) -> dict[str, RegimeIntervals]:
    """Return the intervals of the ranked models in some regimes, by default in all of them."""
    boards = scores_by_regime(entries, benchmark, regimes)
    ranks = {regime: ranks_by_score_name(board) for regime, board in boards.items()}
    return ranked_intervals(boards, benchmark, ranks)


def diagnostics(entries: Iterable[Row], benchmark: Benchmark) -> dict[str, Any]:
    """Return diagnostics.json of some rows as a value."""
    return analyses_of(entries, benchmark, NO_NOTES).diagnostics


@functools.cache
def found_intervals() -> dict[str, RegimeIntervals]:
    return intervals(entries(), shipped_benchmark())


@functools.cache
def found_diagnostics() -> dict[str, Any]:
    return diagnostics(entries(), shipped_benchmark())

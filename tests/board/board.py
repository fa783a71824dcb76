"""The public rows as a board, for tests that look at it from several sides."""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from geneb_ci.audit.trust import Decision, Summary
from geneb_ci.board.columns import Entry, entry_of
from geneb_ci.board.diagnostics.whole import diagnostics
from geneb_ci.board.uncertainty import Intervals, intervals
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.types import TrustLevel
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.models import Submission, SubmissionV10
from tests.paths import ROOT, SUBMISSIONS

POLICY = ROOT / "leaderboard/policy"
DRAWS = 300
"""Enough for what tests look at; the published number takes six times as long."""


def entry(
    submission: Submission,
    level: TrustLevel = TrustLevel.SELF_REPORTED,
    audit: Summary | None = None,
    registry: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entry:
    """Return the entry of a submission as the board makes it, at a level that is given."""
    known = attributes() if registry is None else registry
    return entry_of(submission, Decision(level, "", audit=audit), known)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return the public rows with their levels."""
    official = json.loads((POLICY / "official.json").read_bytes())["files"]
    found = []
    for path in sorted(SUBMISSIONS.glob("*.json")):
        raw = path.read_bytes()
        listed = hashlib.sha256(raw).hexdigest() in official.values()
        level = TrustLevel.OFFICIAL if listed else TrustLevel.SELF_REPORTED
        found.append(entry(SubmissionV10.model_validate(json.loads(raw)), level))
    return tuple(found)


@functools.cache
def attributes() -> Mapping[str, Mapping[str, Any]]:
    return ModelRegistry(find_layout(POLICY))


@functools.cache
def found_intervals() -> Intervals:
    return intervals(entries(), shipped_benchmark(), draws=DRAWS)


@functools.cache
def found_diagnostics() -> dict[str, Any]:
    return diagnostics(entries(), shipped_benchmark(), found_intervals())

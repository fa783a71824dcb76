"""The verdict: all that crosses from the job that reads a pull request to the one that may write.

Its schema is fixed, its size bounded, and the reader trusts nothing in it: what contradicts itself
or the rules is refused, and every text is neutralised where it is shown.
"""

import enum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from geneb_ci.read.submission import MODEL_ID_MAX, MODEL_ID_PATTERN

# Outputs of a job are capped at 1 MB, one variable of an environment at 128 kB on Linux.
BYTES_MAX = 64 * 1024
# One sweep: with 200 open pull requests, four sweeps an hour stay below 1,000 requests.
PULLS_MAX = 4
FINDINGS_MAX = 60
# Of one rule: who mends five places knows how to mend fifty, and `geneb-ci check` lists them all.
PLACES_MAX = 5
RULES_MAX = 200
TIES_MAX = 3  # names of a tie group; the rest is a number
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$"
_VISIBLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=10**12)]
Short = Annotated[str, Field(max_length=255, pattern=_VISIBLE)]
Text = Annotated[str, Field(max_length=600, pattern=_VISIBLE)]
RuleId = Annotated[str, Field(max_length=60, pattern=r"^[a-z0-9-]+$")]
Score = Annotated[float, Field(ge=-1, le=1)]
Model = Annotated[str, Field(max_length=MODEL_ID_MAX, pattern=MODEL_ID_PATTERN)]


TrustLevel = Literal["self-reported", "verified", "reproduced", "official", "disputed", "stale"]


class Outcome(enum.StrEnum):
    """What became of a pull request, in one word: also its label."""

    PASSED = "passed"
    WARNINGS = "warnings"
    CHANGES_NEEDED = "changes-needed"
    NEEDS_MAINTAINER = "needs-maintainer"
    NOT_CHECKED = "not-checked"


class Part(BaseModel):
    """Nothing unknown, nothing coerced, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class VerdictFinding(Part):
    """One finding, as `geneb-ci check` gives it."""

    rule: RuleId
    severity: Literal["error", "warning", "note"]
    message: Text
    file: Short
    pointer: Short
    line: Annotated[int, Field(ge=1, le=10**9)]
    column: Annotated[int, Field(ge=1, le=10**9)]
    found: Short
    expected: Short
    fix: Text
    """Empty where the rule's own text says it."""
    score: Annotated[float, Field(ge=0, le=10)]


class FileDigest(Part):
    """One file that was checked: a verdict is on these bytes, not on a number."""

    path: Short
    blob: Hex40
    """Git's name of the bytes."""
    sha256: Hex64


class CategoryScores(Part):
    """One category: the score of each model of the comparison, in its order."""

    category: Short
    scores: Annotated[list[Score], Field(min_length=1, max_length=4)]


class Comparison(Part):
    """The row beside others, in the benchmark's first regime and primary metric."""

    regime: Short
    metric: Short
    models: Annotated[list[Model], Field(min_length=1, max_length=4)]
    """The row itself, the two that are nearest by category, the best where it is none of them."""
    best: Model
    categories: Annotated[list[CategoryScores], Field(max_length=50)]


class Standing(Part):
    """Where the row stands in one regime, by the mean of the category means."""

    regime: Short
    score: Score
    rank: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    before: Annotated[int, Field(ge=1)] | None
    """Rank of the row that it replaces; null for a new one."""
    ties: Count | None
    """Rows that its confidence interval cannot be told from; null where that is not known."""
    tied_with: Annotated[list[Model], Field(max_length=TIES_MAX)]
    """The first of them by name: on a board of hundreds, all would fill the verdict."""


class Neighbour(Part):
    """The row on the board that has most scores in common."""

    model: Model
    near: Count
    """Scores within the noise of a rerun."""
    cells: Count
    limit: Count
    """As many as this make a copy."""


class AuditEstimate(Part):
    """What an audit would take, and what it would find."""

    drawn: Annotated[int, Field(ge=1)]
    tasks: Annotated[int, Field(ge=1)]
    sequences: Count
    """Test sequences to embed, on average over the draws; training sequences come on top."""
    fabricated: Annotated[int, Field(ge=1)]
    """An example: so many of the tasks with made-up scores."""
    detection: Annotated[float, Field(ge=0, le=1)]
    """Probability that the draw holds at least one of them."""


class PullVerdict(Part):
    """What is to be said of one pull request."""

    number: Annotated[int, Field(ge=1, le=10**9)]
    head_sha: Hex40
    base_sha: Hex40
    """Where the branch left the base; all that was read is held against this commit."""
    outcome: Outcome
    model: Model | None
    level: TrustLevel | None
    """What the row would have on the board: an audit of these very bytes counts."""
    is_edit: bool
    """Whether the row is on the board already."""
    files: Annotated[list[FileDigest], Field(max_length=8)]
    places: Annotated[dict[RuleId, Annotated[int, Field(ge=1)]], Field(max_length=RULES_MAX)]
    """Each rule that found something, and in how many places: complete, whatever else is cut."""
    weight: Annotated[float, Field(ge=0, le=10**6)]
    """Sum of the scores of all warnings, each at least 1: how strange it is."""
    findings: Annotated[list[VerdictFinding], Field(max_length=FINDINGS_MAX)]
    """At most `PLACES_MAX` of one rule: the first of each, the heaviest above, then the second."""
    comparison: Comparison | None
    standings: Annotated[list[Standing], Field(max_length=10)]
    neighbour: Neighbour | None
    audit: AuditEstimate | None


class Verdict(Part):
    """Verdicts on pull requests of one repository, format 1.0."""

    format_version: Literal["1.0"]
    repository: Annotated[str, Field(pattern=REPOSITORY)]
    tool_version: Annotated[str, Field(max_length=40, pattern=r"^[0-9A-Za-z.+-]+$")]
    pulls: Annotated[list[PullVerdict], Field(max_length=PULLS_MAX)]
    waiting: Count
    """Pull requests without a verdict that are left for the next run."""

"""The verdict: all data that the job reading pull requests passes to the job that writes."""

import enum
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, Strict, ValidationError

from geneb_ci.check.registry import BY_ID
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.common.types import Hex40, Hex64, Signed, StrictModel, TrustLevel, first_error
from geneb_ci.github.errors import Tampered
from geneb_ci.render.plain import visible
from geneb_ci.submission.models import MODEL_ID_MAX, MODEL_ID_PATTERN
from geneb_ci.submission.scanner import scan

# GitHub limits the outputs of a job to 1 MB, Linux an environment variable to 128 kB.
BYTES_MAX = 64 * 1024
# Per sweep: with 200 open pull requests, four sweeps an hour need fewer than 1,000 requests.
PULLS_MAX = 4
FINDINGS_MAX = 60
# Listed findings per rule; `geneb-ci check` lists all.
PLACES_MAX = 5
RULES_MAX = 200
TIES_MAX = 3  # names of a tie group; the rest is a number
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$"
_VISIBLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"

Count = Annotated[int, Field(ge=0, le=10**12)]
Short = Annotated[str, Field(max_length=255, pattern=_VISIBLE)]
Text = Annotated[str, Field(max_length=600, pattern=_VISIBLE)]
RuleId = Annotated[str, Field(max_length=60, pattern=r"^[a-z0-9-]+$")]
Model = Annotated[str, Field(max_length=MODEL_ID_MAX, pattern=MODEL_ID_PATTERN)]


Level = Annotated[TrustLevel, Strict(strict=False)]
"""Also as its text, which is all that a pull request's job hands on."""


class PullOutcome(enum.StrEnum):
    """Result of a pull request; also the name of its label."""

    PASSED = "passed"
    WARNINGS = "warnings"
    CHANGES_NEEDED = "changes-needed"
    NEEDS_MAINTAINER = "needs-maintainer"
    NOT_CHECKED = "not-checked"


class VerdictFinding(StrictModel):
    """One finding of `geneb-ci check`."""

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
    """Empty if it is the rule's own text."""
    score: Annotated[float, Field(ge=0, le=10)]


class FileDigest(StrictModel):
    """One file that was checked, identified by digest."""

    path: Short
    blob: Hex40
    """Git object id of the file."""
    sha256: Hex64


class CategoryScores(StrictModel):
    """One category: the score of each model of the comparison, in its order."""

    category: Short
    scores: Annotated[list[Signed], Field(min_length=1, max_length=4)]


class RowComparison(StrictModel):
    """The row beside others, in the benchmark's first regime and primary metric."""

    regime: Short
    metric: Short
    models: Annotated[list[Model], Field(min_length=1, max_length=4)]
    """The row itself, the two most similar rows, and the best row if it is not among them."""
    best: Model
    categories: Annotated[list[CategoryScores], Field(max_length=50)]


class RowStanding(StrictModel):
    """Rank of the row in one regime, by the mean over category means."""

    regime: Short
    score: Signed
    rank: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    before: Annotated[int, Field(ge=1)] | None
    """Rank of the row that it replaces; null for a new one."""
    ties: Count | None
    """Rows from which it does not differ significantly; null if unknown."""
    tied_with: Annotated[list[Model], Field(max_length=TIES_MAX)]
    """The first of them by name; limited to keep the verdict small."""


class Neighbour(StrictModel):
    """The published row with the most scores in common."""

    model: Model
    near: Count
    """Number of scores that are equal within rerun noise."""
    cells: Count
    limit: Count
    """Number of such scores from which a row counts as a copy."""


class AuditEstimate(StrictModel):
    """Cost and detection probability of an audit."""

    drawn: Annotated[int, Field(ge=1)]
    tasks: Annotated[int, Field(ge=1)]
    sequences: Count
    """Expected number of test sequences to embed, without training sequences."""
    fabricated: Annotated[int, Field(ge=1)]
    """Assumed number of tasks with fabricated scores."""
    detection: Annotated[float, Field(ge=0, le=1)]
    """Probability that the sample includes at least one of them."""


class PullVerdict(StrictModel):
    """The verdict on one pull request."""

    number: Annotated[int, Field(ge=1, le=10**9)]
    head_sha: Hex40
    base_sha: Hex40
    """Merge base; changes are relative to this commit."""
    outcome: PullOutcome
    model: Model | None
    level: Level | None
    """Trust level that the row would have on the board."""
    is_edit: bool
    """Whether the row is already published."""
    files: Annotated[list[FileDigest], Field(max_length=8)]
    places: Annotated[dict[RuleId, Annotated[int, Field(ge=1)]], Field(max_length=RULES_MAX)]
    """Rule to its number of findings; never truncated."""
    weight: Annotated[float, Field(ge=0, le=10**6)]
    """Sum of the scores of all warnings, each at least 1."""
    findings: Annotated[list[VerdictFinding], Field(max_length=FINDINGS_MAX)]
    """At most `PLACES_MAX` per rule; the first of every rule by severity, then the second."""
    comparison: RowComparison | None
    standings: Annotated[list[RowStanding], Field(max_length=10)]
    neighbour: Neighbour | None
    audit: AuditEstimate | None


class Verdicts(StrictModel):
    """Verdicts on pull requests of one repository, format 1.0."""

    format_version: Literal["1.0"]
    repository: Annotated[str, Field(pattern=REPOSITORY)]
    tool_version: Annotated[str, Field(max_length=40, pattern=r"^[0-9A-Za-z.+-]+$")]
    pulls: Annotated[list[PullVerdict], Field(max_length=PULLS_MAX)]
    waiting: Count
    """Pull requests without a verdict that are left for the next run."""


# Rules whose findings need a maintainer's decision.
FOR_MAINTAINERS = frozenset(
    {
        "truncated-tree",
        "too-many-files",
        "foreign-file",
        "generated-file",
        "several-models",
        "deleted-file",
    }
)
CRASHED = "check-crashed"


class Counts(NamedTuple):
    """Number of findings by severity; crashed rules are counted separately."""

    error: int
    crashed: int
    warning: int
    note: int


def counts_of(places: Mapping[str, int]) -> Counts:
    """Return the numbers of findings by severity, from those by rule."""
    found: Counter[str] = Counter()
    for rule, number in places.items():
        found["crashed" if rule == CRASHED else BY_ID[rule].severity.value] += number
    return Counts(**{name: found[name] for name in Counts._fields})


def outcome_of(places: Mapping[str, int], *, is_checked: bool) -> PullOutcome:
    """Return the outcome; `is_checked` is whether a row was read."""
    counts = counts_of(places)
    if FOR_MAINTAINERS & places.keys():
        return PullOutcome.NEEDS_MAINTAINER
    if counts.error:
        return PullOutcome.CHANGES_NEEDED
    if counts.crashed:
        return PullOutcome.NOT_CHECKED
    if not is_checked:
        return PullOutcome.NEEDS_MAINTAINER
    return PullOutcome.WARNINGS if counts.warning else PullOutcome.PASSED


def shown_places_of(findings: Iterable[Finding]) -> dict[str, int]:
    """Return rule id to number of findings."""
    return dict(sorted(Counter(finding.rule for finding in findings).items()))


def chosen(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of importance, at most `PLACES_MAX` per rule.

    The first finding of every rule comes before the second of any, so that cutting the end hides no
    rule.
    """
    met: Counter[str] = Counter()
    ordered: list[tuple[int, tuple[bool, int, bool], Finding]] = []
    for finding in findings:
        ordered.append((met[finding.rule], _weight(finding), finding))
        met[finding.rule] += 1
    ordered.sort(key=lambda entry: entry[:2])
    return [finding for nth, _, finding in ordered if nth < PLACES_MAX][:FINDINGS_MAX]


def _weight(finding: Finding) -> tuple[bool, int, bool]:
    severity = list(Severity).index(finding.severity)
    return (finding.rule not in FOR_MAINTAINERS, severity, finding.rule == CRASHED)


_AGAIN = "run `geneb-ci reconcile` again, and pass its output unchanged"


def encode(verdict: Verdicts) -> str:
    """Return a verdict as one line of ASCII of at most `BYTES_MAX` bytes; findings are cut to fit.

    The numbers by rule stay complete. "##[", which a runner would take for a command, is escaped.
    """
    limit = max((len(pull.findings) for pull in verdict.pulls), default=0)
    while len(text := _line(verdict)) > BYTES_MAX:
        if limit == 0:
            raise AssertionError(len(text))  # the schema bounds everything else
        limit = limit * 3 // 4
        pulls = [p.model_copy(update={"findings": p.findings[:limit]}) for p in verdict.pulls]
        verdict = verdict.model_copy(update={"pulls": pulls})
    return text


def _line(verdict: Verdicts) -> str:
    text = json.dumps(verdict.model_dump(mode="json"), ensure_ascii=True, allow_nan=False)
    return text.replace("##[", "\\u0023#[")


def decode(text: str, repository: str) -> Verdicts:
    """Return a validated verdict. Raises Tampered if it is invalid or contradicts itself."""
    # 1. Size, before parsing.
    if not text.strip():
        raise UsageProblem("there is no verdict: VERDICT is empty", _AGAIN)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > BYTES_MAX:
        raise Tampered(f"the verdict has {size:,} bytes; the limit is {BYTES_MAX:,}", _AGAIN)
    # 2. Strict JSON.
    faults = scan(text).faults
    if faults:
        raise Tampered(f"the verdict is not JSON: {visible(faults[0].message, 200)}", _AGAIN)
    # 3. Schema.
    try:
        verdict = Verdicts.model_validate_json(text)
    except ValidationError as error:
        raise Tampered(
            f"the verdict does not fit its schema at {first_error(error)}", _AGAIN
        ) from error
    # 4. Repository and pull requests.
    if verdict.repository.casefold() != repository.casefold():
        raise Tampered(f"the verdict is about {verdict.repository}, not about {repository}", _AGAIN)
    numbers = [pull.number for pull in verdict.pulls]
    if len(set(numbers)) < len(numbers):
        raise Tampered("the verdict has a duplicate pull request", _AGAIN)
    # 5. Consistency: known rules, their severities, and the outcome that follows from them.
    for pull in verdict.pulls:
        _hold_together(pull)
    return verdict


def _hold_together(pull: PullVerdict) -> None:
    unknown = next((rule for rule in pull.places if rule not in BY_ID), None)
    if unknown is not None:
        raise Tampered(f"the verdict on {pull.number} names an unknown rule: {unknown}", _AGAIN)
    for finding in pull.findings:
        if finding.rule not in pull.places or BY_ID[finding.rule].severity != finding.severity:
            raise Tampered(
                f"the verdict on {pull.number} lists an uncounted {finding.severity} "
                f"{finding.rule}",
                _AGAIN,
            )
    told = Counter(finding.rule for finding in pull.findings)
    if any(number > pull.places[rule] for rule, number in told.items()):
        raise Tampered(f"the verdict on {pull.number} lists more findings than it counts", _AGAIN)
    expected = outcome_of(pull.places, is_checked=bool(pull.files and pull.model))
    if pull.outcome is not expected:
        raise Tampered(
            f"the verdict on {pull.number} is {pull.outcome.value}, but its findings give "
            f"{expected.value}",
            _AGAIN,
        )

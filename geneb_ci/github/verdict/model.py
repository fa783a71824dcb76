"""The verdict: all data that the job that checks pull requests passes to the job that writes."""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, Strict

from geneb_ci.check.change import MODEL_FILES_MAX
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.report import Verdict
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.common.types import TrustLevel
from geneb_ci.render.plain import visible
from reference_harness.formats.base import Hex40, Hex64, MinusOneToOne, StrictModel
from reference_harness.formats.submission_terms import MODEL_ID_MAX, MODEL_ID_PATTERN
from reference_harness.formats.text import plural

REASON_MAX, FAILED_REASON_MAX = 200, 160  # characters of the reason of a command, of a failure
AUDIT_RECORD, UNRANKED = "audit record", "not ranked"
"""Effects of a merge that changes no rank."""
VERDICTS_MAX = 50
"""Maximum number of verdicts of a sweep; four sweeps an hour give 200."""
OPEN_PULLS_MAX = 1_000
"""Maximum number of open pull requests that a sweep reads: ten pages of GitHub."""
GROUPS_MAX = 5
"""Maximum number of groups of a merge queue that a sweep checks; GitHub makes five at once."""
FINDINGS_MAX = 60
"""Maximum number of findings that a verdict lists."""
LISTED_PER_RULE_MAX = 5
"""Maximum number of findings of one rule that a verdict lists; `geneb-ci check` lists all."""
FILES_MAX = 50
"""Maximum number of files that a verdict identifies by digests."""
RULES_MAX = 200
"""Maximum number of rules whose findings a verdict counts."""
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}$"
"""Pattern of OWNER/NAME of a repository on GitHub."""
SHORT_MAX, LONG_MAX = 255, 600  # characters of a field of the verdict
ENCODED_CELLS_MAX = 8_000
"""Maximum characters of a fingerprint's scores: base64 of two bytes for each of 3,000 cells."""
SIMILAR_ROWS_COMPARED = 2
"""Number of most similar rows with which a verdict compares a row."""
_VISIBLE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
"""Pattern of a text without control characters and line breaks."""
PullNumber = Annotated[int, Field(ge=1, le=10**9)]
"""Number of a pull request."""
Count = Annotated[int, Field(ge=0, le=10**12)]
"""A number of things, such as rows, cells or findings."""
ShortText = Annotated[str, Field(max_length=SHORT_MAX, pattern=_VISIBLE_PATTERN)]
"""A name, path or value without control characters."""
LongText = Annotated[str, Field(max_length=LONG_MAX, pattern=_VISIBLE_PATTERN)]
"""A message without control characters."""
RuleId = Annotated[str, Field(max_length=60, pattern=r"^[a-z0-9-]+$")]
ModelId = Annotated[str, Field(max_length=MODEL_ID_MAX, pattern=MODEL_ID_PATTERN)]
Level = Annotated[TrustLevel, Strict(strict=False)]
"""A trust level; its text is also accepted, because a pull request's job passes only text."""
PENDING, FAILURE, SUCCESS = "pending", "failure", "success"
FOREIGN_FILE_RULE = "foreign-file"
"""Rule about a file that is no part of a submission."""
# Rules whose findings need a maintainer's decision.
MAINTAINER_RULES = frozenset(
    {
        "truncated-tree",
        "too-many-files",
        FOREIGN_FILE_RULE,
        "generated-file",
        "several-models",
        "deleted-file",
    }
)
CRASH_RULE = "check-crashed"
"""Rule that reports a rule that crashed."""


class CommandName(enum.StrEnum):
    """The commands that a comment can give."""

    RECHECK = "recheck"
    AUDIT = "audit"
    DISPUTE = "dispute"


class Command(StrictModel):
    """The last command on a pull request by somebody with write permission."""

    comment: Annotated[int, Field(ge=1)]
    """Id of the comment; a later comment has a larger one."""
    name: CommandName
    login: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
    """Account that gave the command."""
    reason: Annotated[str, Field(max_length=REASON_MAX)]
    """Text after the command; "" without one."""


class PullOutcome(enum.StrEnum):
    """Outcome of the verdict on a pull request; each has a label on GitHub."""

    PASSED = "passed"
    WARNINGS = "warnings"
    CHANGES_NEEDED = "changes-needed"
    NEEDS_MAINTAINER = "needs-maintainer"
    NOT_CHECKED = "not-checked"


PASSING = frozenset({PullOutcome.PASSED, PullOutcome.WARNINGS})
"""Outcomes with a status that allows a merge."""


STATE_BY_OUTCOME = {
    PullOutcome.PASSED: SUCCESS,
    PullOutcome.WARNINGS: SUCCESS,
    PullOutcome.CHANGES_NEEDED: FAILURE,
    PullOutcome.NEEDS_MAINTAINER: PENDING,
    PullOutcome.NOT_CHECKED: "error",
}
"""State of the commit status that GitHub shows for each outcome."""


_CHECK_VERDICT_BY_OUTCOME = {
    PullOutcome.PASSED: Verdict.CLEAN,
    PullOutcome.WARNINGS: Verdict.WARNINGS,
    PullOutcome.CHANGES_NEEDED: Verdict.ERRORS,
    PullOutcome.NOT_CHECKED: Verdict.NOT_CHECKED,
}
"""Verdict of `geneb-ci check` for each outcome."""


class CommandState(NamedTuple):
    """The commands of maintainers on a pull request that are in force."""

    command: Command | None = None
    """The last command."""
    dispute: Command | None = None
    """An earlier dispute that is still in force, because the last command is an audit."""
    seen: int = 0
    """Id of the last comment that was read for commands."""

    def after(self, command: Command) -> "CommandState":
        """Return the state after a newer command; an audit keeps a dispute, a recheck ends it."""
        dispute = self.dispute_in_force if command.name is CommandName.AUDIT else None
        return CommandState(command, dispute, self.seen)

    @property
    def dispute_in_force(self) -> Command | None:
        """The dispute that withdraws a pass; None without one."""
        is_dispute = self.command is not None and self.command.name is CommandName.DISPUTE
        return self.command if is_dispute else self.dispute


def status_state_of(outcome: PullOutcome, commands: CommandState) -> str:
    """Return the state of a verdict's status: pending if a dispute withdraws a pass."""
    return (
        PENDING if commands.dispute_in_force and outcome in PASSING else STATE_BY_OUTCOME[outcome]
    )


class SeverityCounts(NamedTuple):
    """Number of findings by severity; crashed rules are counted separately."""

    error: int
    crashed: int
    """Number of rules that crashed."""
    warning: int
    note: int

    def __str__(self) -> str:
        """Return the numbers as words: "2 errors, 1 warning"."""
        nouns = {"crashed": "failed rule"}
        pairs = self._asdict().items()
        counts = [plural(number, nouns.get(name, name)) for name, number in pairs if number]
        return ", ".join(counts) or "nothing to fix"


def counts_of(rule_counts: Mapping[str, int]) -> SeverityCounts:
    """Return the numbers of findings by severity from the numbers by rule."""
    numbers: Counter[str] = Counter()
    for rule, number in rule_counts.items():
        numbers["crashed" if rule == CRASH_RULE else BY_ID[rule].severity.value] += number
    return SeverityCounts(**{name: numbers[name] for name in SeverityCounts._fields})


def failed_rules(rule_counts: Mapping[str, int]) -> list[str]:
    """Return the sorted ids of the rules that found errors."""
    return sorted(rule for rule in rule_counts if counts_of({rule: 1}).error)


def outcome_of(rule_counts: Mapping[str, int], *, is_checked: bool) -> PullOutcome:
    """Return the outcome of a verdict; `is_checked` is whether a row or a record was checked."""
    counts = counts_of(rule_counts)
    if MAINTAINER_RULES & rule_counts.keys():
        return PullOutcome.NEEDS_MAINTAINER
    if counts.error:
        return PullOutcome.CHANGES_NEEDED
    if counts.crashed:
        return PullOutcome.NOT_CHECKED
    if not is_checked:
        return PullOutcome.NEEDS_MAINTAINER
    return PullOutcome.WARNINGS if counts.warning else PullOutcome.PASSED


class VerdictFinding(StrictModel):
    """One finding of `geneb-ci check`."""

    rule: RuleId
    severity: Literal["error", "warning", "note"]
    message: LongText
    file: ShortText
    pointer: ShortText
    line: Annotated[int, Field(ge=1, le=10**9)]
    column: Annotated[int, Field(ge=1, le=10**9)]
    found: ShortText
    expected: ShortText
    fix: LongText
    """Empty if the fix of the rule applies."""
    score: Annotated[float, Field(ge=0, le=10)]

    @classmethod
    def of(cls, finding: Finding) -> "VerdictFinding":
        """Return a finding with hidden characters shown, cut to the maximum lengths."""
        return cls(
            rule=finding.rule,
            severity=Severity(finding.severity).value,
            message=visible(finding.message, LONG_MAX),
            file=visible(finding.file, SHORT_MAX),
            pointer=visible(finding.pointer, SHORT_MAX),
            line=finding.line,
            column=finding.column,
            found=visible(finding.found, SHORT_MAX),
            expected=visible(finding.expected, SHORT_MAX),
            fix="" if finding.fix == BY_ID[finding.rule].fix else visible(finding.fix, LONG_MAX),
            score=finding.score,
        )

    @property
    def finding(self) -> Finding:
        """The finding; its fix is the rule's if the field is empty."""
        members = self.model_dump() | {"severity": Severity(self.severity)}
        return Finding(**members | {"fix": self.fix or BY_ID[self.rule].fix})


class FileDigest(StrictModel):
    """One file that was checked, identified by digest."""

    path: ShortText
    blob: Hex40
    """Git object id of the file."""
    sha256: Hex64


class CategoryScores(StrictModel):
    """The scores of one category, in the order of the `models` of the comparison."""

    category: ShortText
    scores: Annotated[list[MinusOneToOne], Field(min_length=1, max_length=4)]
    """Mean score of each compared row in the category."""


class RowComparison(StrictModel):
    """The category scores of a row and of others, in the first regime and the primary metric."""

    regime: ShortText
    metric: ShortText
    models: Annotated[list[ModelId], Field(min_length=1, max_length=4)]
    """The row itself, the two most similar rows, and the best row if it is not among them."""
    best: ModelId
    """Id of the row with the highest score."""
    categories: Annotated[list[CategoryScores], Field(max_length=50)]


class RowStanding(StrictModel):
    """Score and rank of the row in one regime; the score is the mean of the category means."""

    regime: ShortText
    score: MinusOneToOne
    """Mean over the category means."""
    rank: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    """Number of ranked rows."""
    before: Annotated[int, Field(ge=1)] | None
    """Rank of the row that this row replaces; null for a new row."""
    decided: "DecidedStanding | None"
    """Rank range and significant differences; null if they cannot be computed."""


class DecidedStanding(StrictModel):
    """A row's rank range, and how many rows score significantly lower or higher."""

    rank_low: Annotated[int, Field(ge=1)]
    """The best rank that the row may have, with 95 % confidence."""
    rank_high: Annotated[int, Field(ge=1)]
    """The worst rank that the row may have, with 95 % confidence."""
    better_than: Count
    """Number of rows that score significantly lower."""
    worse_than: Count
    """Number of rows that score significantly higher."""
    best_in: Count
    """Number of categories in which no row scores significantly higher."""
    categories: Count
    """Number of categories."""


class Neighbour(StrictModel):
    """The published row that has the most scores in common with the row of a pull request."""

    model: ModelId
    near: Count
    """Number of scores that are equal within rerun noise."""
    cells: Count
    """Number of compared scores."""
    limit: Count
    """Smallest number of such scores at which a row counts as a copy."""


class AuditEstimate(StrictModel):
    """Cost of an audit, and the probability that it detects fabricated scores."""

    drawn: Annotated[int, Field(ge=1)]
    """Number of tasks that the audit would rerun."""
    tasks: Annotated[int, Field(ge=1)]
    """Number of tasks of the benchmark."""
    sequences: Count
    """Expected number of test sequences to embed, without training sequences."""
    fabricated: Annotated[int, Field(ge=1)]
    """Assumed number of tasks with fabricated scores."""
    detection: Annotated[float, Field(ge=0, le=1)]
    """Probability that the sample includes at least one of these tasks."""


class Fingerprint(StrictModel):
    """Names, files and scores of a row, to compare it with rows of other open pull requests."""

    model: ModelId
    display: ShortText
    """Display name of the model."""
    paths: Annotated[list[ShortText], Field(max_length=MODEL_FILES_MAX)]
    """Paths of the row, card and extractor, as far as the pull request changes them."""
    cells: Annotated[str, Field(max_length=ENCODED_CELLS_MAX, pattern=r"^[A-Za-z0-9+/]*={0,2}$")]
    """Scores of the primary metric, regime by regime: base64 of unsigned 16-bit integers."""


class PullVerdict(StrictModel):
    """The verdict on one pull request."""

    number: PullNumber
    head_sha: Hex40
    base_sha: Hex40
    """Merge base; changes are relative to this commit."""
    outcome: PullOutcome
    model: ModelId | None
    """Id of the model; null if the pull request has none."""
    level: Level | None
    """Trust level that the row would have on the board."""
    is_edit: bool
    """Whether the row is already published."""
    files: Annotated[list[FileDigest], Field(max_length=FILES_MAX)]
    """The checked files, with their digests."""
    places: Annotated[dict[RuleId, Annotated[int, Field(ge=1)]], Field(max_length=RULES_MAX)]
    """Number of findings by rule; never truncated."""
    weight: Annotated[float, Field(ge=0, le=10**6)]
    """Sum of the scores of all warnings, each at least 1."""
    findings: Annotated[list[VerdictFinding], Field(max_length=FINDINGS_MAX)]
    """At most five of each rule: the first of every rule by severity, then the second of each."""
    comparison: RowComparison | None
    """The row compared with others; null if it has errors or is not ranked."""
    standings: Annotated[list[RowStanding], Field(max_length=10)]
    """Rank of the row in each regime."""
    neighbour: Neighbour | None
    """The most similar row; null if no row is similar, or the row has errors."""
    audit: AuditEstimate | None
    """Estimate of an audit of the row; null if the row has errors."""
    main_digest: Hex64 | None = None
    """Digest of everything on main that the pull request was compared with."""
    fingerprint: Fingerprint | None = None
    """The fingerprint of the row; null if the row itself has errors."""
    rivals: Annotated[list[PullNumber], Field(max_length=10)] = Field(default_factory=list)
    """Open pull requests that its findings name: at most five for each of the two rules."""
    command: Command | None = None
    """The last command of a maintainer in a comment."""
    dispute: Command | None = None
    """An earlier dispute that is still in force, because the last command is an audit."""
    seen: Count = 0
    """Id of the last comment of others that was read for commands."""

    @property
    def counts(self) -> SeverityCounts:
        """Numbers of the findings of this verdict, by severity."""
        return counts_of(self.places)

    @property
    def command_state(self) -> CommandState:
        """The commands that maintainers gave."""
        return CommandState(self.command, self.dispute, self.seen)

    @property
    def state(self) -> str:
        """State of the commit status on GitHub that this verdict sets, such as "success"."""
        return status_state_of(self.outcome, self.command_state)

    @property
    def passes(self) -> bool:
        """Whether its status lets the pull request be merged."""
        return self.state == SUCCESS

    @property
    def check_verdict(self) -> Verdict:
        """The result of `geneb-ci check`, which determines its exit code."""
        if self.state == PENDING and self.outcome in PASSING:
            return Verdict.NOT_CHECKED  # a maintainer disputes it
        if self.outcome is not PullOutcome.NEEDS_MAINTAINER:
            return _CHECK_VERDICT_BY_OUTCOME[self.outcome]
        return Verdict.ERRORS if self.counts.error else Verdict.NOT_CHECKED

    @property
    def description(self) -> str:
        """The text of the status."""
        dispute = self.command_state.dispute_in_force
        if dispute is not None and self.state != STATE_BY_OUTCOME[self.outcome]:
            return f"disputed by {dispute.login}: {dispute.reason}"
        if self.outcome is PullOutcome.NEEDS_MAINTAINER:
            return "a maintainer has to review this change"
        return str(self.counts)

    @property
    def effect(self) -> str:
        """The effect of a merge: the rank in the first regime, or the records; "" if none."""
        if not self.standings:
            effect = AUDIT_RECORD if self.level is None else UNRANKED
            return effect if self.outcome in PASSING else ""
        first_standing = self.standings[0]
        if first_standing.before is None:
            return f"new, {first_standing.rank} of {first_standing.rows}"
        if first_standing.before == first_standing.rank:
            return f"{first_standing.rank} of {first_standing.rows}, as before"
        return f"{first_standing.before} to {first_standing.rank} of {first_standing.rows}"

    @property
    def foreign_file(self) -> str:
        """A file that is no part of a submission; "" if none is listed."""
        return next((f.file for f in self.findings if f.rule == FOREIGN_FILE_RULE), "")

    @property
    def for_comment(self) -> "PullVerdict":
        """The verdict without members that are only shown, as our comment stores it.

        Later versions of geneb-ci read it, so new members need a default.
        """
        foreign = [finding for finding in self.findings if finding.rule == FOREIGN_FILE_RULE][:1]
        emptied_members: dict[str, Any] = {"files": [], "comparison": None, "neighbour": None}
        return self.model_copy(
            update={**emptied_members, "findings": foreign, "standings": self.standings[:1]}
        )


class PullHead(StrictModel):
    """The head of a pull request."""

    number: PullNumber
    head_sha: Hex40


class FailedPull(PullHead):
    """A pull request that could not be read or written; it waits without blocking others."""

    reason: LongText
    """Why the pull request could not be read or written."""

    @classmethod
    def of(cls, number: int, head_sha: str, reason: str) -> "FailedPull":
        """Return a waiting pull request; its reason is cut and shows hidden characters."""
        return cls(number=number, head_sha=head_sha, reason=visible(reason, FAILED_REASON_MAX))


class GroupVerdict(StrictModel):
    """The verdict on a group of a merge queue, a commit that would become main."""

    head_sha: Hex40
    places: Annotated[dict[RuleId, Annotated[int, Field(ge=1)]], Field(max_length=RULES_MAX)]
    """Number of findings by rule."""
    models: Annotated[list[ModelId], Field(max_length=OPEN_PULLS_MAX)]
    """Ids of the models whose rows or records the group changes."""

    @property
    def state(self) -> str:
        """State of the commit status on GitHub that this verdict sets, such as "success"."""
        counts = counts_of(self.places)
        return SUCCESS if self.models and not (counts.error or counts.crashed) else FAILURE

    @property
    def description(self) -> str:
        """The text of the status."""
        if self.state == SUCCESS:
            return f"merged together: {plural(len(self.models), 'model')}, no error"
        failed = [rule for rule in self.places if BY_ID[rule].severity is not Severity.NOTE]
        return ", ".join(failed) or "nothing was checked: the group has no file of a submission"


class Verdicts(StrictModel):
    """Verdicts on pull requests of one repository, format 1.0."""

    format_version: Literal["1.0"]
    repository: Annotated[str, Field(pattern=REPOSITORY)]
    tool_version: Annotated[str, Field(max_length=40, pattern=r"^[0-9A-Za-z.+-]+$")]
    pulls: Annotated[list[PullVerdict], Field(max_length=VERDICTS_MAX)]
    """Verdicts on pull requests."""
    waiting: Count
    """Pull requests without a verdict that are left for the next run."""
    main_sha: Hex40 | None = None
    """Head of the base branch that everything was compared with."""
    main_digest: Hex64 | None = None
    """Digest of everything on main that a verdict depends on."""
    stale: Annotated[list[PullHead], Field(max_length=OPEN_PULLS_MAX)] = Field(default_factory=list)
    """Pull requests whose status passes, but whose verdict is about another state of main."""
    troubles: Annotated[list[FailedPull], Field(max_length=OPEN_PULLS_MAX)] = Field(
        default_factory=list
    )
    """Pull requests that could not be read or checked, and wait."""
    settled: Annotated[list[PullNumber], Field(max_length=OPEN_PULLS_MAX)] = Field(
        default_factory=list
    )
    """Pull requests that no longer have to wait."""
    groups: Annotated[list[GroupVerdict], Field(max_length=GROUPS_MAX)] = Field(
        default_factory=list
    )
    """Verdicts on groups of the merge queue."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.pulls or self.stale or self.troubles or self.settled or self.groups)


def counts_by_rule(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings by rule, including those that are counted but not listed."""
    rule_counts: Counter[str] = Counter()
    for finding in findings:
        rule_counts[finding.rule] += 1 + finding.unlisted
    return dict(sorted(rule_counts.items()))


def listed_findings(findings: Iterable[Finding]) -> list[VerdictFinding]:
    """Return the findings that a verdict lists."""
    return [VerdictFinding.of(finding) for finding in important_findings(findings)]


def important_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of importance, at most `LISTED_PER_RULE_MAX` per rule.

    The first finding of every rule comes before the second of any, so cutting the end hides no
    rule.
    """
    counts: Counter[str] = Counter()
    weighted_findings: list[tuple[int, tuple[bool, int, bool], Finding]] = []
    for finding in findings:
        weighted_findings.append((counts[finding.rule], _importance_key(finding), finding))
        counts[finding.rule] += 1
    weighted_findings.sort(key=lambda weighted: weighted[:2])
    return [finding for nth, _, finding in weighted_findings if nth < LISTED_PER_RULE_MAX][
        :FINDINGS_MAX
    ]


def _importance_key(finding: Finding) -> tuple[bool, int, bool]:
    """Return a key that sorts the most important findings first."""
    severity = list(Severity).index(finding.severity)
    return (finding.rule not in MAINTAINER_RULES, severity, finding.rule == CRASH_RULE)

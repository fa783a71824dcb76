"""Renders findings as JSON, in the frozen format of `schemas/findings-1.0.schema.json`."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from geneb_ci import __version__
from geneb_ci.check.report import ProposalFacts, Report, Verdict
from geneb_ci.common.finding import Need, Severity
from geneb_ci.render.formats import (
    DEFAULT_WIDTH,
    counts_by_severity,
    rules_run_count,
    skipped_rules,
    sorted_findings,
    verdict_of,
)
from geneb_ci.render.plain import log_safe_json
from reference_harness.formats.base import Count


class ClosedObject:
    """Base class of the objects of the format; no object may have other members."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", use_attribute_docstrings=True
    )


@dataclass(frozen=True)
class ToolV1(ClosedObject):
    """The program that checked."""

    name: Literal["geneb-ci"]
    version: str


@dataclass(frozen=True)
class BenchmarkV1(ClosedObject):
    """A benchmark definition that submissions were checked against."""

    name: str
    sha256: str
    """Digest of the file that defines it."""


@dataclass(frozen=True)
class CountsV1(ClosedObject):
    """Number of findings of each severity; only an error fails a submission."""

    error: Count
    warning: Count
    note: Count


@dataclass(frozen=True)
class FindingV1(ClosedObject):
    """One finding about a submission or its model card."""

    rule: str
    """Id of the rule; `geneb-ci explain RULE` explains it."""
    severity: Severity
    message: str
    file: str
    pointer: str
    """JSON Pointer (RFC 6901); empty for the whole document and in a card."""
    line: Annotated[int, Field(ge=1)]
    column: Annotated[int, Field(ge=1)]
    """Counted from 1 in code points."""
    found: str
    expected: str
    fix: str
    score: Annotated[float, Field(ge=0, le=10)]
    """How unusual the finding is, from 1 at the rule's threshold to 10; 0 if the rule has no
    measure."""


@dataclass(frozen=True)
class UnreadableV1(ClosedObject):
    """A file that could not be read and was not checked."""

    message: str
    fix: str


@dataclass(frozen=True)
class SkippedV1(ClosedObject):
    """Rules that were not run on some files because of one unmet need."""

    need: Need
    """The unmet need of these rules."""
    rules: list[str]
    files: Count
    """Number of files on which they were not run."""
    message: str
    fix: str


@dataclass(frozen=True)
class UncommittedV1(ClosedObject):
    """A file of the working tree whose content is not committed on the branch."""

    path: str
    reason: str
    """State of the file in git: untracked, ignored by git, staged, changed or deleted."""


@dataclass(frozen=True)
class PullRequestV1(ClosedObject):
    """The verdict of the server on a pull request, or on a branch that may become one."""

    outcome: str
    """Passed, warnings, changes-needed, needs-maintainer or not-checked."""
    status: str
    """The status on GitHub: success, failure, pending or error."""
    description: str
    """The text of the status."""
    title: str
    """The first line of the comment."""
    advice: str
    """The next step, if no finding states one; else empty."""
    model: str | None
    base: str
    """The branch or commit that it was compared with, as it was named."""
    base_sha: str
    """The commit that both sides have in common."""
    head_sha: str
    uncommitted: list[UncommittedV1]
    """Files that are not committed, so that the server does not see them."""
    unseen: list[str]
    """Checks that were not made, since they need facts that only GitHub has."""


@dataclass(frozen=True)
class ReportV1(ClosedObject):
    """Findings of `geneb-ci check`, format 1.0."""

    format_version: Literal["1.0"]
    tool: ToolV1
    verdict: Verdict
    """Also the exit code: clean 0, warnings 0 or under --strict 10, errors 11, not-checked 3.

    If settings or the benchmark are invalid, the exit code is 1 in any case.
    """
    files: Count
    """Number of submissions checked."""
    rules: Count
    """Number of rules that were run on at least one file."""
    counts: CountsV1
    benchmarks: list[BenchmarkV1]
    findings: list[FindingV1]
    """Sorted by file, line, column, pointer, rule, message."""
    unreadable: list[UnreadableV1]
    skipped: list[SkippedV1] = dataclasses.field(default_factory=list)
    """Rules that were not run, with the reason; absent in reports of older versions."""
    pull_request: PullRequestV1 | None = None
    """The verdict on a pull request; absent where files alone were checked."""


def render(report: Report, *, color: bool = False, width: int = DEFAULT_WIDTH) -> str:  # noqa: ARG001 (one signature)
    """Return a report as one JSON object."""
    members = dataclasses.asdict(report_v1(report))
    if members["pull_request"] is None:
        del members["pull_request"]
    return log_safe_json(members)


def report_v1(report: Report) -> ReportV1:
    """Return a report in the frozen format."""
    tally = {severity.value: number for severity, number in counts_by_severity(report).items()}
    return ReportV1(
        format_version="1.0",
        tool=ToolV1(name="geneb-ci", version=__version__),
        verdict=verdict_of(report),
        files=len(report.files),
        rules=rules_run_count(report),
        counts=CountsV1(**tally),
        benchmarks=[BenchmarkV1(name, sha) for name, sha in sorted(report.benchmarks.items())],
        findings=[
            FindingV1(**_members_of(FindingV1, finding)) for finding in sorted_findings(report)
        ],
        unreadable=[UnreadableV1(error.message, error.fix) for error in report.unreadable],
        skipped=[SkippedV1(**_members_of(SkippedV1, unmet)) for unmet in skipped_rules(report)],
        pull_request=_pull_request(report.proposal),
    )


def _pull_request(facts: ProposalFacts | None) -> PullRequestV1 | None:
    """Return the verdict on a pull request in the frozen format; None without one."""
    if facts is None:
        return None
    members = _members_of(PullRequestV1, facts)
    members["uncommitted"] = [UncommittedV1(*file) for file in facts.uncommitted]
    return PullRequestV1(**members | {"unseen": list(facts.unseen)})


def _members_of(class_: type[Any], facts: Any) -> dict[str, Any]:
    """Return the attributes of `facts` that are also members of an object of the format."""
    return {field.name: getattr(facts, field.name) for field in dataclasses.fields(class_)}


def findings_schema() -> dict[str, Any]:
    """Return the contents of `schemas/findings-1.0.schema.json` (Draft 2020-12)."""
    schema = TypeAdapter(ReportV1).json_schema(mode="serialization")
    members = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:geneb-ci:schema:findings-1.0",
        "title": "Findings of geneb-ci check, format 1.0",
    }
    return members | {
        key: _without_titles(value) for key, value in schema.items() if key != "title"
    }


def _without_titles(node: Any) -> Any:
    """Return a schema without its titles, which only repeat the members' names."""
    if isinstance(node, dict):
        return {key: _without_titles(value) for key, value in node.items() if key != "title"}
    return [_without_titles(item) for item in node] if isinstance(node, list) else node

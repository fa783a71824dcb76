"""The shape of findings, format 1.0: frozen, so that an internal change breaks no reader.

Members may be added, and none is required that was not there from the beginning: a reader takes
what it knows. Any other change makes a new version beside this one. The JSON Schema is
made from these classes; nothing is validated while rendering, since a report must always come out.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from geneb_ci.check.need import Need
from geneb_ci.finding import Severity
from geneb_ci.report.summary import Verdict

Count = Annotated[int, Field(ge=0)]


class Closed:
    """What every part shares: no member that is not listed."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", use_attribute_docstrings=True
    )


@dataclass(frozen=True)
class ToolV1(Closed):
    """The program that checked."""

    name: Literal["geneb-ci"]
    version: str


@dataclass(frozen=True)
class BenchmarkV1(Closed):
    """A benchmark definition that submissions were held against."""

    name: str
    sha256: str
    """Digest of the file that defines it."""


@dataclass(frozen=True)
class CountsV1(Closed):
    """Number of findings of each severity; only an error fails a submission."""

    error: Count
    warning: Count
    note: Count


@dataclass(frozen=True)
class FindingV1(Closed):
    """One fault of a submission or of its model card."""

    rule: str
    """Id of the rule: `geneb-ci explain RULE` says why it is there."""
    severity: Severity
    message: str
    file: str
    pointer: str
    """JSON Pointer (RFC 6901) to the place; empty for the whole document and in a card."""
    line: Annotated[int, Field(ge=1)]
    column: Annotated[int, Field(ge=1)]
    """Counted from 1 in code points."""
    found: str
    expected: str
    fix: str
    score: Annotated[float, Field(ge=0, le=10)]
    """How strange it is, 1 at a rule's threshold to 10; 0 where a rule has no such measure."""


@dataclass(frozen=True)
class UnreadableV1(Closed):
    """A file that could not be read, and so was not checked."""

    message: str
    fix: str


@dataclass(frozen=True)
class SkippedV1(Closed):
    """Rules that were not run on some files, for want of one thing."""

    need: Need
    """What was lacking."""
    rules: list[str]
    files: Count
    """Number of files that they were not run on."""
    message: str
    fix: str


@dataclass(frozen=True)
class ReportV1(Closed):
    """Findings of `geneb-ci check`, format 1.0."""

    format_version: Literal["1.0"]
    tool: ToolV1
    verdict: Verdict
    """Also the exit code: clean 0, warnings 0 or under --strict 10, errors 11, not-checked 3.

    Where settings or the benchmark cannot be used, the exit code is 1 whatever else was found.
    """
    files: Count
    """Number of submissions checked."""
    rules: Count
    """Number of rules that were run on one file at least."""
    counts: CountsV1
    benchmarks: list[BenchmarkV1]
    findings: list[FindingV1]
    """In the order of file, line, column, pointer, rule, message."""
    unreadable: list[UnreadableV1]
    skipped: list[SkippedV1] = dataclasses.field(default_factory=list)
    """Rules that were not run, and why; reports of older versions have no such member."""

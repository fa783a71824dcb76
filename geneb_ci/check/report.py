"""The result of a check: which files were checked, and the findings in each."""

import enum
import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.common.config import Finder, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked, UsageProblem
from geneb_ci.common.finding import Finding, Need
from geneb_ci.submission.reading import is_folder, submission_files
from geneb_ci.submission.tokens import UNUSABLE
from reference_harness.formats.files import NotReadable, member_at, read_json, read_text
from reference_harness.formats.text import well_formed

if TYPE_CHECKING:
    from geneb_ci.submission.document import Document
    from geneb_ci.submission.names import Card
    from reference_harness.formats.submission import Submission


CRASH_RULE = "check-crashed"
"""The rule that reports a bug of geneb-ci."""


class Verdict(enum.StrEnum):
    """Result of a check; corresponds to the exit code."""

    CLEAN = "clean"
    """Neither errors nor warnings."""
    WARNINGS = "warnings"
    """At least one warning, and no error."""
    ERRORS = "errors"
    """At least one error."""
    NOT_CHECKED = "not-checked"
    """No file was checked, or a check could not be run."""


class UncommittedFile(NamedTuple):
    """A file of a clone that differs from the last commit, so that the server does not see it."""

    path: str
    reason: str
    """How git lists it: untracked, ignored by git, staged, changed or deleted."""


@dataclass(frozen=True)
class ProposalFacts:
    """The server's verdict on a pull request as a whole, and what was not checked."""

    verdict: Verdict
    outcome: str
    """Outcome of the server's verdict, which is also the name of the label."""
    status: str
    """State of the commit status on GitHub."""
    description: str
    """Text of the commit status."""
    title: str
    """The first line of the comment."""
    advice: str
    """The next step, if no finding states one; else ""."""
    model: str | None
    """Id of the model; None if the pull request is not about one model."""
    base: str
    """The branch or commit that the pull request was compared with, as the user named it."""
    base_sha: str
    """Commit that `base` names."""
    head_sha: str
    """Newest commit of the pull request or of the branch."""
    is_row: bool
    """Whether a row was checked; otherwise only the list of changed files was."""
    uncommitted: tuple[UncommittedFile, ...] = ()
    """Files of the clone that the server does not see."""
    unseen: tuple[str, ...] = ()
    """Checks that need facts only GitHub knows, and that this verdict leaves out."""


@dataclass(frozen=True)
class FileResult:
    """The result of checking one file."""

    document: "Document"
    model_id: str
    submission: "Submission | None"
    """The typed submission; None if the structure has errors."""
    is_official: bool
    """Whether this is a file of the benchmark's authors, byte for byte."""
    card: "Card | None"
    findings: tuple[Finding, ...]
    skipped: tuple[tuple[str, Need], ...] = ()
    """Rules that were not run, each with its unmet need."""


class FileFindings(NamedTuple):
    """The findings of one file, without its contents."""

    name: str
    """Name of the file in messages."""
    sha256: str
    """SHA-256 of the file; "" if it could not be read."""
    findings: tuple[Finding, ...]
    excerpts: dict[Finding, tuple[str, int]]
    """By finding: the text around it, and the finding's column in that text, counted from 0."""
    skipped: tuple[tuple[str, Need], ...]
    """Rules that were not run, each with its unmet need."""


def file_findings(result: FileResult) -> FileFindings:
    """Return the findings, excerpts and skipped rules of a result, without the file's contents."""
    excerpts = {
        finding: excerpt
        for finding in result.findings
        if (excerpt := _excerpt(result, finding)) is not None
    }
    document = result.document
    return FileFindings(document.name, document.sha256, result.findings, excerpts, result.skipped)


class KnownFinding(NamedTuple):
    """The part of a finding that identifies it in an earlier report; lines may change."""

    rule: str
    file: str
    pointer: str
    message: str


BASELINE_BYTES_MAX = 50_000_000
"""Maximum size of a baseline, an earlier report: the largest of 10,000 files has 20 MB."""


def read_baseline(path: Path) -> Counter[KnownFinding]:
    """Return the findings of a baseline, an earlier report in JSON.

    Raises UsageProblem for any other file.
    """
    fix = f"write a report: geneb-ci check --format json --output {path}"
    try:
        baseline = read_json(read_text(path, BASELINE_BYTES_MAX))
    except NotReadable as error:
        raise UsageProblem(f"{path}: {error.reason}", fix) from error
    except ValueError as error:
        raise UsageProblem(
            f"{path}: this is not JSON, expected a report of findings in JSON", fix
        ) from error
    known_findings = member_at(baseline, "findings")
    members = KnownFinding._fields
    if not isinstance(known_findings, list) or not all(
        isinstance(known, dict) and all(isinstance(known.get(name), str) for name in members)
        for known in known_findings
    ):
        raise UsageProblem(f"{path}: this is not a report of findings in JSON", fix)
    return Counter(KnownFinding(*(known[name] for name in members)) for known in known_findings)


@dataclass
class Report:
    """The result of checking several files: findings in order, and what was not checked."""

    files: list[str] = field(default_factory=list)
    """Names of the checked files."""
    findings: list[Finding] = field(default_factory=list)
    unreadable: list[NothingChecked | BadConfiguration] = field(default_factory=list)
    """Errors of the files that could not be checked."""
    excerpts: dict[Finding, tuple[str, int]] = field(default_factory=dict)
    """By finding: the text around it, and the finding's column in that text, counted from 0."""
    rules: int = 0
    """Number of the rules that were chosen."""
    skipped: dict[Need, Counter[str]] = field(default_factory=dict)
    """By unmet need: the skipped rules, each with the number of files."""
    benchmarks: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each benchmark definition that was used, by name."""

    proposal: ProposalFacts | None = None
    """The pull request that was checked; None for a check of files."""
    known: int = 0
    """Number of the findings that were left out, because the baseline has them."""
    stale: list[KnownFinding] = field(default_factory=list)
    """Findings of the baseline that the checked files do not have any more."""

    def remove_known(self, baseline: Counter[KnownFinding], rules: Collection[str]) -> None:
        """Remove the findings that a baseline has, and set `known` and `stale`.

        `rules` are the ids of the rules that were run. A crash of a rule is never removed: a
        baseline must not hide that nothing was checked.
        """
        unmatched, new_findings = baseline.copy(), []
        for finding in self.findings:
            known = KnownFinding(
                *map(well_formed, (finding.rule, finding.file, finding.pointer, finding.message))
            )
            if unmatched[known] > 0 and finding.rule != CRASH_RULE:
                unmatched[known] -= 1
                self.known += 1
            else:
                new_findings.append(finding)
        self.findings = new_findings
        files = set(map(well_formed, self.files))
        self.stale = sorted(
            known for known in unmatched.elements() if known.rule in rules and known.file in files
        )

    def add(self, result: FileResult) -> None:
        """Add the result of one file, keeping only its findings and their excerpts."""
        self.add_findings(file_findings(result))

    def add_findings(self, file: FileFindings) -> None:
        """Add the findings of one file."""
        self.files.append(file.name)
        self.findings.extend(file.findings)
        for rule, need in file.skipped:
            self.skipped.setdefault(need, Counter())[rule] += 1
        self.excerpts.update(file.excerpts)


def named_files(
    arguments: Iterable[Path], find: Finder = find_layout
) -> tuple[list[Path], list[NothingChecked]]:
    """Return the submission files that the arguments name, and an error per argument without any.

    The root of a repository stands for its folder of submissions.
    """
    arguments = list(arguments)
    roots: dict[Path, Path] = {}
    for argument in arguments:
        if is_folder(argument):
            layout = find(argument.resolve())
            if layout.submissions is not None and layout.root == argument.resolve():
                roots[argument] = argument / os.path.relpath(layout.submissions, layout.root)
    return submission_files(arguments, roots)


def files_of(arguments: Iterable[Path]) -> list[Path]:
    """Return the submission files that the arguments name.

    Raises NothingChecked if any argument names none.
    """
    files, refusals = named_files(arguments)
    if refusals:
        raise NothingChecked("; ".join(error.message for error in refusals), refusals[0].fix)
    return files


def _excerpt(result: FileResult, finding: Finding) -> tuple[str, int] | None:
    """Return the text around a finding, and its column there from 0; None without such a text."""
    if finding.file == result.document.name:
        if result.document.value is UNUSABLE and not result.document.text:
            return None
        return result.document.excerpt(finding.line, finding.column)
    lines = result.card.text.split("\n") if result.card is not None else []
    return (lines[finding.line - 1], 0) if 0 < finding.line <= len(lines) else None

"""Runs rules on files: reads each file once and collects every finding."""

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geneb_ci.check.companions import NOTHING, Proposed, card_of, extractor_digest, names_module
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.place import Against, Place, place_of, practice_benchmark
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.rule import AnyRule, Rule
from geneb_ci.common.config import Finder, LayoutKind, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.finding import Finding, Position, quoted
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.card import Card
from geneb_ci.submission.document import Document, parse_document, read_document
from geneb_ci.submission.fault import Fault, pointer
from geneb_ci.submission.models import Submission
from geneb_ci.submission.paths import is_folder, located, submission_files
from geneb_ci.submission.peers import peers_of
from geneb_ci.submission.scanner import UNUSABLE
from geneb_ci.submission.structure import Engine, check_structure

# Findings of one rule in one file. Enough for two regimes of 100 tasks; the rest is counted.
FINDINGS_MAX = 200


@dataclass(frozen=True)
class FileResult:
    """The result of checking one file."""

    document: Document
    model_id: str
    submission: Submission | None
    official: bool
    card: Card | None
    findings: tuple[Finding, ...]
    skipped: tuple[tuple[str, Need], ...] = ()
    """Rules that were not run, each with its unmet need."""


@dataclass
class Report:
    """The result of a run over several files: findings in order, and what was not checked."""

    files: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unreadable: list[NothingChecked | BadConfiguration] = field(default_factory=list)
    frames: dict[Finding, tuple[str, int]] = field(default_factory=dict)
    """Excerpt of the text around a finding, and the column of the finding in it, from 0."""
    rules: int = 0
    """How many rules were chosen."""
    skipped: dict[Need, Counter[str]] = field(default_factory=dict)
    """Unmet need to the rules that were skipped, each with the number of files."""
    benchmarks: dict[str, str] = field(default_factory=dict)
    """Name to sha256 of each benchmark definition that was used."""

    def add(self, result: FileResult) -> None:
        """Add the result of one file, keeping only its findings and their excerpts."""
        self.files.append(result.document.name)
        self.findings.extend(result.findings)
        for rule, need in result.skipped:
            self.skipped.setdefault(need, Counter())[rule] += 1
        for finding in result.findings:
            frame = _frame(result, finding)
            if frame is not None:
                self.frames[finding] = frame


class Checker:
    """Checks files with one set of rules; files of one folder share settings and other rows."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        engine: Engine = check_structure,
        find: Finder = find_layout,
        against: Against | None = None,
    ) -> None:
        self.rules = rules
        self.engine = engine
        self.find = find
        self.against = against
        self._given: tuple[Path, ...] = ()
        self._places: dict[Path, Place] = {}
        self.benchmarks: dict[str, str] = {}
        """Name to sha256 of each benchmark definition that was used."""

    def run(self, files: list[Path]) -> Iterator[FileResult | NothingChecked]:
        """Yield the result of each file, or the NothingChecked error of one that cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        self._given, self._places = tuple(map(located, files)), {}
        broken: dict[str, str] = {}
        for path in files:
            try:
                yield self.check(path)
            except NothingChecked as error:
                yield error
            except BadConfiguration as error:
                broken.setdefault(error.message, error.fix)
        if broken:
            raise BadConfiguration("; ".join(broken), next(iter(broken.values())))

    def check(self, path: Path) -> FileResult:
        """Check one file.

        Raises NothingChecked if it cannot be opened, and BadConfiguration if its settings,
        benchmark or policy are invalid.
        """
        return self.result(self.context(path))

    def proposed(self, path: Path, name: str, proposed: Proposed) -> Context:
        """Return the context of a row as if it were at `path`; findings use the file name `name`.

        Raises BadConfiguration if settings, benchmark or policy are invalid.
        """
        return self.context_of(parse_document(proposed.raw, located(path), name), proposed)

    def context_of(self, document: Document, proposed: Proposed = NOTHING) -> Context:
        """Return the context of a document that was read already. Raises BadConfiguration."""
        return self._context(document, self._place(document.path.parent), proposed)

    def result(self, context: Context) -> FileResult:
        """Run every rule whose needs are met on one context."""
        runnable, skipped = [], []
        for rule in self.rules:
            need = _lacking(rule, context)
            if need is None:
                runnable.append(rule)
            else:
                skipped.append((rule.id, need))
        findings = sorted(_findings(runnable, context), key=Finding.sort_key)
        return FileResult(
            context.document,
            context.model_id,
            context.submission,
            context.is_official,
            context.card,
            tuple(findings),
            tuple(skipped),
        )

    def context(self, path: Path) -> Context:
        """Return the context of one file. Raises the same errors as `check`."""
        return self.context_of(read_document(path))

    def _place(self, folder: Path) -> Place:
        if folder not in self._places:
            self._places[folder] = place_of(folder, self.find, self._given, self.against)
        return self._places[folder]

    def _context(self, document: Document, place: Place, proposed: Proposed) -> Context:
        submission, faults = self.engine(document.value)
        benchmark, practice = place.benchmark, False
        layout = place.layout
        if layout.kind is LayoutKind.ALONE:
            practice = _benchmark_name(document) == practice_benchmark().name
            benchmark = practice_benchmark() if practice else benchmark
        self.benchmarks[benchmark.name] = benchmark.sha256
        in_repository = layout.holds(document.path)
        card = card_of(document, layout, proposed) if in_repository else None
        if card is not None and card.fault is not None:
            faults.append(card.fault)
        reported: dict[str, list[Fault]] = {}
        for fault in (*document.faults, *faults):
            reported.setdefault(fault.rule, []).append(fault)
        return Context(
            document=document,
            submission=submission,
            reported={rule: tuple(found) for rule, found in reported.items()},
            benchmark=benchmark,
            policy=place.policy,
            # Rows of the real benchmark are not comparable with a practice run.
            peers=peers_of(place.peers.paths) if practice else place.peers,
            card=card,
            in_repository=in_repository,
            practice=practice,
            extractor_sha256=extractor_digest(document, layout, proposed)
            if in_repository
            else None,
            extractor_needed=names_module(document),
            facts=_facts(document, place.registry),
        )


def _facts(document: Document, registry: ModelRegistry) -> Mapping[str, Any]:
    """Return what the model registry says of a document's model."""
    model_id = document.value.get("model_id") if isinstance(document.value, dict) else None
    return registry.get(model_id, {}) if isinstance(model_id, str) else {}


def _lacking(rule: Rule, context: Context) -> Need | None:
    try:
        return context.lacks(rule.needs)
    except Exception:  # noqa: BLE001 (the rule then runs into the same error and reports it)
        return None


def _findings(rules: Iterable[Rule], context: Context) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(context))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            message = crash_message(rule, error)
            crash = Fault("check-crashed", (), message, rule.id, "a verdict", at=0)
            yield _finding(BY_ID["check-crashed"], crash, context)
            continue
        for fault in _first(rule, faults):
            yield _finding(rule, fault, context)


def crash_message(rule: AnyRule, error: Exception) -> str:
    """Return the message of a crashed rule: its id, the exception type and text."""
    return f"the rule {rule.id} crashed: {type(error).__name__}: {quoted(str(error))}"


def _first(rule: Rule, faults: list[Fault]) -> list[Fault]:
    """Return the first `FINDINGS_MAX` faults; if there are more, the last one states how many."""
    if len(faults) <= FINDINGS_MAX:
        return faults
    *kept, cut = faults[:FINDINGS_MAX]
    more = len(faults) - len(kept)
    message = f"{more:,} more findings of {rule.id} are not listed; this is the first of them"
    found, expected = f"{len(faults)} findings", "none"
    return [*kept, dataclasses.replace(cut, message=message, found=found, expected=expected)]


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
    files, lost = named_files(arguments)
    if lost:
        raise NothingChecked("; ".join(one.message for one in lost), lost[0].fix)
    return files


def _benchmark_name(document: Document) -> object:
    value = document.value
    for key in ("run", "benchmark", "name"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _finding(rule: AnyRule, fault: Fault, context: Context) -> Finding:
    document = context.document
    if fault.card and context.card is not None:
        file, place = context.card.name, Position(max(fault.at or 1, 1), 1)
    else:
        file, place = document.name, document.position(document.offset(fault))
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=file,
        pointer=pointer(fault.path),
        line=place.line,
        column=place.column,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
        score=fault.score,
    )


def _frame(result: FileResult, finding: Finding) -> tuple[str, int] | None:
    if finding.file == result.document.name:
        if result.document.value is UNUSABLE and not result.document.text:
            return None
        return result.document.excerpt(finding.line, finding.column)
    lines = result.card.text.split("\n") if result.card is not None else []
    return (lines[finding.line - 1], 0) if 0 < finding.line <= len(lines) else None

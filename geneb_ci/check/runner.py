"""Runs rules on files, in one process or several; each file is read once, every finding is kept."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from geneb_ci.check.folder_context import (
    ComparisonRows,
    FolderContext,
    folder_context,
    practice_benchmark,
)
from geneb_ci.check.registry import rule_of
from geneb_ci.check.report import (
    FileFindings,
    FileResult,
    Report,
    file_findings,
    files_of,
    named_files,
)
from geneb_ci.check.row_facts import (
    EMPTY_ROW,
    ProposedRow,
    card_of,
    extractor_of,
    lock_of,
    names_module,
)
from geneb_ci.check.rule import AnyRule, Context, Rule
from geneb_ci.common.config import Finder, LayoutKind, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.finding import Fault, Finding, Need, Position, pointer
from geneb_ci.common.parallel import in_processes, jobs_for
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.document import Document, parse_document, read_document
from geneb_ci.submission.peers import peers_of
from geneb_ci.submission.reading import located
from geneb_ci.submission.structure import Validator, check_structure
from reference_harness.formats.files import text_at
from reference_harness.formats.recognition import FOREIGN
from reference_harness.formats.submission_terms import ENTRY_MEMBER
from reference_harness.formats.text import plural, quoted

__all__ = ["Checker", "FileResult", "Report", "crash_message", "files_of", "named_files"]

FINDINGS_MAX = 1_000
"""Maximum number of findings of one rule in one file that are listed; the others are counted. It is
enough for all 900 scores of 100 tasks in three regimes."""
CHUNK_FILES = 16
"""Number of files that a process receives at once: checking them takes a tenth of a second."""


class Checker:
    """Checks files with one set of rules; files in one folder share settings and other rows."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        validate: Validator = check_structure,
        find: Finder = find_layout,
        comparison_rows: ComparisonRows | None = None,
    ) -> None:
        self.rules = rules
        self.validate = validate
        self.find = find
        self.comparison_rows = comparison_rows
        self._files: tuple[Path, ...] = ()
        self._context_by_folder: dict[Path, FolderContext] = {}
        self.benchmarks: dict[str, str] = {}
        """SHA-256 of each benchmark definition that was used, by name."""

    def run(self, files: list[Path]) -> Iterator[FileResult | NothingChecked]:
        """Yield the result of each file, or a NothingChecked error if the file cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        self._files, self._context_by_folder = tuple(map(located, files)), {}
        fix_by_message: dict[str, str] = {}
        for path in files:
            try:
                yield self.check(path)
            except NothingChecked as error:
                yield error
            except BadConfiguration as error:
                fix_by_message.setdefault(error.message, error.fix)
        _raise_bad_configuration(fix_by_message)

    def prepare(self, files: list[Path]) -> None:
        """Read in advance what the files are compared with, so that processes share it."""
        self._files, self._context_by_folder = tuple(map(located, files)), {}
        for folder in {path.parent for path in self._files}:
            with contextlib.suppress(
                BadConfiguration, NothingChecked
            ):  # `picklable_result` reports it
                _ = self._folder_context(folder).peers.rows

    def picklable_result(self, path: Path) -> tuple[bool, Any]:
        """Return whether a file could be checked, and its result in a form that can be pickled.

        That is its findings with the benchmarks used so far, or an error's type, message and fix.
        """
        try:
            return True, (file_findings(self.check(path)), self.benchmarks)
        except (NothingChecked, BadConfiguration) as error:
            return False, (type(error), error.message, error.fix)

    def check(self, path: Path) -> FileResult:
        """Check one file.

        Raises NothingChecked if it cannot be opened, and BadConfiguration if its settings,
        benchmark or policy are invalid.
        """
        return self.run_rules(self.context(path))

    def proposed_context(self, path: Path, name: str, proposed: ProposedRow) -> Context:
        """Return the context of a row as if it were at `path`; findings call the file `name`.

        Raises BadConfiguration if settings, benchmark or policy are invalid.
        """
        return self.context_of(parse_document(proposed.raw, located(path), name), proposed)

    def check_bytes(self, raw: bytes | Fault, path: Path, name: str) -> FileResult:
        """Check the bytes of a submission as if they were at `path`; findings name it `name`.

        Raises BadConfiguration if settings, benchmark or policy are invalid.
        """
        folder = folder_context(path.parent, self.find, (path,), self.comparison_rows)
        bytes_by_path = {path: raw if isinstance(raw, bytes) else b""}
        folder = dataclasses.replace(
            folder, peers=dataclasses.replace(folder.peers, bytes_by_path=bytes_by_path)
        )
        return self.run_rules(self.context_in(parse_document(raw, path, name), folder))

    def context_of(self, document: Document, proposed: ProposedRow = EMPTY_ROW) -> Context:
        """Return the context of a document that is already read. Raises BadConfiguration."""
        return self.context_in(document, self._folder_context(document.path.parent), proposed)

    def run_rules(self, context: Context) -> FileResult:
        """Run every rule whose needs are met on one context."""
        runnable, skipped = [], []
        for rule in self.rules:
            need = _unmet_need(rule, context)
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

    def _folder_context(self, folder: Path) -> FolderContext:
        """Return what the files of a folder are checked against; it is read once."""
        if folder not in self._context_by_folder:
            self._context_by_folder[folder] = folder_context(
                folder, self.find, self._files, self.comparison_rows
            )
        return self._context_by_folder[folder]

    def context_in(
        self, document: Document, folder: FolderContext, proposed: ProposedRow = EMPTY_ROW
    ) -> Context:
        """Return the context of a document, as one of the files of a folder."""
        submission, faults = self.validate(document.value)
        # In a file of another program, errors of the JSON itself do not matter.
        is_foreign = any(fault.rule == FOREIGN for fault in faults)
        benchmark, is_practice = folder.benchmark, False
        layout = folder.layout
        if layout.kind is LayoutKind.ALONE:
            is_practice = (
                text_at(document.value, "run", "benchmark", "name") == practice_benchmark().name
            )
            benchmark = practice_benchmark() if is_practice else benchmark
        self.benchmarks[benchmark.name] = benchmark.sha256
        is_in_repository = layout.has_submission(document.path)
        card = card_of(document, layout, proposed) if is_in_repository else None
        if card is not None and card.fault is not None:
            faults.append(card.fault)
        extractor = extractor_of(document, layout, proposed) if is_in_repository else None
        if extractor is not None and extractor.fault is not None:
            faults.append(extractor.fault)
        reported: dict[str, list[Fault]] = {}
        for fault in faults if is_foreign else (*document.faults, *faults):
            reported.setdefault(fault.rule, []).append(fault)
        return Context(
            document=document,
            submission=submission,
            reported={rule: tuple(faults_of_rule) for rule, faults_of_rule in reported.items()},
            benchmark=benchmark,
            policy=folder.policy,
            # Rows of the real benchmark are not comparable with a practice run.
            peers=peers_of(folder.peers.paths) if is_practice else folder.peers,
            card=card,
            is_in_repository=is_in_repository,
            is_practice=is_practice,
            extractor=extractor,
            lock=lock_of(document, layout, proposed) if is_in_repository else None,
            needs_extractor=names_module(document),
            other_cards=folder.cards,
            registry_facts=_registry_facts(document, folder.registry),
            upgraded_entry=_upgraded_entry(document, folder.registry),
        )


def _registry_facts(document: Document, registry: ModelRegistry) -> Mapping[str, Any]:
    """Return what the model registry says about a document's model."""
    model_id = document.value.get("model_id") if isinstance(document.value, dict) else None
    return registry.get(model_id, {}) if isinstance(model_id, str) else {}


def _upgraded_entry(document: Document, registry: ModelRegistry) -> Mapping[str, Any]:
    """Return what an upgrade writes today as the member `entry`; empty if the file has none."""
    members = document.value
    if not isinstance(members, dict) or ENTRY_MEMBER not in members:
        return {}
    model_id = members.get("model_id")
    return registry.entry_member(model_id, document.origin) if isinstance(model_id, str) else {}


def _unmet_need(rule: Rule, context: Context) -> Need | None:
    """Return the first need of a rule that is not met; None if the rule can be run."""
    try:
        return next((need for need in rule.needs if not context.meets(need)), None)
    except Exception:  # noqa: BLE001 (the rule then runs into the same error and reports it)
        return None


def _findings(rules: Iterable[Rule], context: Context) -> Iterator[Finding]:
    """Yield the findings of each rule; a rule that raises an exception gives one finding."""
    for rule in rules:
        try:
            faults = list(rule.check(context))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            message = crash_message(rule, error)
            crash = Fault("check-crashed", (), message, rule.id, "a verdict", at=0)
            yield _finding(rule_of("check-crashed"), crash, context)
            continue
        for fault in _listed_faults(rule, faults):
            yield _finding(rule, fault, context)


def crash_message(rule: AnyRule, error: Exception) -> str:
    """Return the message of a crashed rule: its id, the exception type and text."""
    return f"the rule {rule.id} crashed: {type(error).__name__}: {quoted(str(error))}"


def _listed_faults(rule: Rule, faults: list[Fault]) -> list[Fault]:
    """Return the first `FINDINGS_MAX` faults; if there are more, the last one states how many."""
    if len(faults) <= FINDINGS_MAX:
        return faults
    *listed_faults, last_listed = faults[:FINDINGS_MAX]
    hidden_count = len(faults) - len(listed_faults)
    message = (
        f"{hidden_count:,} more findings of {rule.id} are not listed; this is the first of them"
    )
    actual, expected = plural(len(faults), "finding"), "none"
    last = dataclasses.replace(
        last_listed, message=message, found=actual, expected=expected, unlisted=hidden_count - 1
    )
    return [*listed_faults, last]


def _finding(rule: AnyRule, fault: Fault, context: Context) -> Finding:
    """Return a fault of a rule as a finding, with its file, line and column."""
    document = context.document
    if fault.card and context.card is not None:
        file, position = context.card.name, Position(max(fault.at or 1, 1), 1)
    elif fault.file:
        file, position = fault.file, Position(fault.at or 1, 1)
    else:
        file, position = document.name, document.position(document.offset(fault))
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=file,
        pointer=pointer(fault.path),
        line=position.line,
        column=position.column,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
        score=fault.score,
        unlisted=fault.unlisted,
    )


def findings_by_file(
    checker: Checker, files: list[Path], jobs: int | None = 1
) -> Iterator[FileFindings | NothingChecked]:
    """Yield the findings of each file, in their order, computed in `jobs` processes.

    If `jobs` is None, the number of processes follows from the number of files. Raises
    BadConfiguration as `run` does.
    """
    jobs = jobs or jobs_for(len(files))
    if jobs == 1:
        for checked in checker.run(files):
            yield checked if isinstance(checked, NothingChecked) else file_findings(checked)
        return
    checker.prepare(files)
    fix_by_message: dict[str, str] = {}
    for is_checked, answer in in_processes(checker.picklable_result, files, jobs, CHUNK_FILES):
        if is_checked:
            checked, benchmarks = answer
            checker.benchmarks.update(benchmarks)
            yield checked
        else:
            error_class, message, fix = answer
            if error_class is BadConfiguration:
                fix_by_message.setdefault(message, fix)
            else:
                yield error_class(message, fix)
    _raise_bad_configuration(fix_by_message)


def _raise_bad_configuration(fix_by_message: Mapping[str, str]) -> None:
    """Raise BadConfiguration with all messages, unless there are none."""
    if fix_by_message:
        raise BadConfiguration("; ".join(fix_by_message), next(iter(fix_by_message.values())))

"""Read a contributor's clone: the parts of a submission in the branch and the working tree.

Nothing is written, and no code of a submission is run: an extractor is only parsed, to compare its
functions with those that the harness calls.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from geneb_ci.check.change import Change, FileChange
from geneb_ci.check.fixes import is_fixable
from geneb_ci.check.interface import EMBED_SIGNATURE, extractor_class, interface_fault
from geneb_ci.check.registry import FILE_RULES, RULES
from geneb_ci.check.report import Report
from geneb_ci.check.row_facts import ExtractorFile, extractor_module, is_built_in
from geneb_ci.check.rules.pullrequest import right_place
from geneb_ci.check.runner import Checker
from geneb_ci.common.answers import saved_answers
from geneb_ci.common.config import Layout, is_practice
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.github.main_branch import Clone, configured_folders
from geneb_ci.github.trees import Main, main_at, read_proposal
from geneb_ci.github.verdict.branch import judge_branch
from geneb_ci.github.verdict.checker import repository_folders
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.models.scaffold import run_words
from geneb_ci.publish.git import BadRepository, GitRepository, NoBranch
from geneb_ci.receipt.seen import published_receipt
from geneb_ci.situation.contributor import (
    MISSING_CARD_RULE,
    NO_PROBLEMS,
    BranchState,
    DeclaredReceipt,
    MisplacedFile,
    ProblemSummary,
    ResultsFolder,
)
from geneb_ci.situation.table import board_address, is_board, repository_name
from geneb_ci.situation.work_tree import OpenClone, WorkTree, blob_of_file, open_clone
from geneb_ci.submission.document import read_document
from geneb_ci.submission.names import Card, read_card
from geneb_ci.submission.reading import FileKind, read_bytes
from geneb_ci.submission.result_folders import MODEL_META_FILE, model_meta, options_from
from geneb_ci.submission.structure import check_structure
from reference_harness.formats.files import text_at
from reference_harness.formats.package_lock import LOCK_SUFFIX
from reference_harness.formats.submission import SubmissionV12
from reference_harness.formats.submission_terms import EMBEDDINGS_SUFFIX
from reference_harness.formats.text import quoted

CARD_RULES = frozenset(FILE_RULES["card"])
"""Rules whose findings are about the card of a row."""
EXTRACTOR_RULES = ("uncallable-extractor", "extractor-mismatch")
"""Rules whose findings are about the extractor of a row."""
SEARCHED_FILES_MAX = 20
"""Maximum number of files outside of a board that are read to find a submission."""
_RESULTS_NAME = re.compile(r"results_.*\.json")
"""Name of a file of results that another program has written."""


def read_branch(
    layout: Layout, report: Report | None = None, clone: OpenClone | None = None
) -> BranchState:
    """Return the state of a contributor's clone; no server is asked.

    `report` is a report on the row or on the branch, which is then not checked again; `clone` is
    the clone if it has been read.
    Raises BadConfiguration if the settings or the policy of the board are invalid.
    """
    if not is_board(layout):
        return BranchState(
            address=board_address(repository_name()),
            is_board=False,
            submission_file=_submission_in(layout.root),
        )
    try:
        return _BranchReader(layout, *(clone or open_clone(layout)), report).state()
    except BadRepository as error:
        return BranchState(refusal=error.message, refusal_fix=error.fix)


def _submission_in(folder: Path) -> str:
    """Return the name of the first file of a folder that may be a submission; "" without one."""
    for path in sorted(folder.glob("*.json"))[:SEARCHED_FILES_MAX]:
        try:
            raw = read_bytes(path)
        except NothingChecked:
            continue
        if isinstance(raw, bytes) and FileKind.SUBMISSION.fits_text(raw):
            return path.name
    return ""


class _BranchReader:
    """A reader of a contributor's clone: the commits of its branch, and the working tree."""

    def __init__(
        self,
        layout: Layout,
        repository: GitRepository,
        tree: WorkTree,
        report: Report | None = None,
    ) -> None:
        self.layout = layout
        self.tree = tree
        self.report = report
        self.folders = repository_folders(layout)
        self.clone = Clone(repository)
        self.main: Main | None = None
        self.committed = Change((), folders=self.folders)
        if tree.base and tree.head:
            self.main = main_at(
                self.clone, self.clone.commit(tree.base), configured_folders(layout)
            )
            proposal = read_proposal(self.clone, tree.head, self.folders, self.main)
            self.committed = proposal.change
        self.change = self._with_working_tree()

    def _with_working_tree(self) -> Change:
        """Return the change that the branch makes once the whole working tree is committed."""
        files = {file.path: file for file in self.committed.files}
        files_of_main = self.main.files if self.main is not None else {}
        for path in self.tree.pending:
            after = blob_of_file(self.layout.root, path)
            files[path] = FileChange(path, files_of_main.get(path), after)
        existing_files = (f for f in files.values() if f.before is not None or f.after is not None)
        return dataclasses.replace(
            self.committed, files=tuple(sorted(existing_files, key=lambda file: file.path))
        )

    def state(self) -> BranchState:
        """Return the state of the branch."""
        models = self._models()
        branch = BranchState(
            tree=self.tree,
            address=board_address(repository_name(saved_answers(self.layout.root))),
            misplaced_files=tuple(self._misplaced_files()),
            models=models,
            other_models_files=self._other_models_files(models),
            results=self._results(),
            changed_file_count=len(self.committed.files),
            outdated=self.committed.outdated_paths,
        )
        if len(models) == 1:
            branch = self._with_model(branch, models[0])
        uncommitted = tuple(
            path for path in self.tree.pending if path in self._submission_paths(branch)
        )
        other_paths = tuple(
            path
            for path in self.tree.pending
            if path not in uncommitted and path.startswith(f"{self.folders.submissions}/")
        )
        branch = dataclasses.replace(branch, uncommitted=uncommitted, other_uncommitted=other_paths)
        is_complete = not (uncommitted or branch.row_errors.number or branch.card_errors.number)
        if is_complete and self.committed.files and not branch.misplaced_files and len(models) <= 1:
            return dataclasses.replace(branch, verdict_errors=self._verdict_errors())
        return branch

    def _models(self) -> tuple[str, ...]:
        """Return the models with a changed row; without any, those with a changed card.

        The model whose row was checked comes first; the others are sorted by name.
        """
        rows = {PurePosixPath(f.path).stem for f in self.change.rows if f.after is not None}
        if rows:
            files = self.report.files if self.report is not None else ()
            checked_model = PurePosixPath(files[0]).stem if len(files) == 1 else ""
            return tuple(sorted(rows, key=lambda model: (model != checked_model, model)))
        cards = (f for f in self.change.files if f.path.startswith(f"{self.folders.cards}/"))
        models = {PurePosixPath(f.path).stem for f in cards if self.change.is_model_path(f.path)}
        return tuple(sorted(models))

    def _other_models_files(self, models: tuple[str, ...]) -> tuple[str, ...]:
        """Return the files of all models except the first; empty if any of them is committed."""
        model_paths = {f"{self.folders.submissions}/{model}.json" for model in models[1:]}
        model_paths |= {f"{self.folders.cards}/{model}.md" for model in models[1:]}
        paths = [file.path for file in self.change.files if file.path in model_paths]
        return tuple(paths) if {*paths} <= {*self.tree.pending} else ()

    def _submission_paths(self, branch: BranchState) -> frozenset[str]:
        """Return the paths of the submission: row, card, extractor, and its lock and modules."""
        further_paths = (
            f.path for f in self.change.files if self._belongs_to_submission(f.path, branch)
        )
        lock = f"{branch.module.removesuffix('.py')}{LOCK_SUFFIX}" if branch.module else ""
        return frozenset({branch.row, branch.card, branch.module, lock, *further_paths} - {""})

    def _belongs_to_submission(self, path: str, branch: BranchState) -> bool:
        """Whether a path is the row, or an extractor if there is no row yet."""
        is_row = path == f"{self.folders.submissions}/{branch.model}.json"
        return is_row or (not branch.row and path.startswith(f"{self.folders.extractors}/"))

    def _misplaced_files(self) -> Iterable[MisplacedFile]:
        """Yield the files of a submission in wrong folders."""
        for file in self.change.files:
            right_path = right_place(file, self.change)
            is_tracked = file.path not in self.tree.untracked_files
            if right_path and (is_tracked or self._is_misplaced(file, right_path)):
                yield MisplacedFile(file.path, right_path, is_tracked)

    def _is_misplaced(self, file: FileChange, right_path: str) -> bool:
        """Whether an untracked file is part of a submission in the wrong folder.

        A row is recognised by its content; a card or a module by a changed row with the same name.
        """
        if right_path.endswith(".json"):
            raw = read_bytes(self.layout.root / file.path)
            return isinstance(raw, bytes) and FileKind.SUBMISSION.fits_text(raw)
        stem = PurePosixPath(right_path).stem
        return any(PurePosixPath(row.path).stem == stem for row in self.change.rows)

    def _results(self) -> ResultsFolder | None:
        """Return the first folder with untracked files of results; None without one."""
        folders = {
            str(path.parent)
            for path in map(PurePosixPath, self.tree.untracked_files)
            if _RESULTS_NAME.fullmatch(path.name) or path.name == MODEL_META_FILE
        }
        for folder in sorted(folders):
            files = [p for p in self.tree.untracked_files if str(PurePosixPath(p).parent) == folder]
            meta = options_from(model_meta(self.layout.root / folder))
            placeholders = (("model_id", "ID"), ("display", "NAME"), ("params", "N"))
            words: list[str] = []
            for option, placeholder in placeholders:
                if option not in meta:
                    words += [f"--{option.replace('_', '-')}", placeholder]
            return ResultsFolder(folder, len(files), tuple(words), str(meta.get("model_id", "")))
        return None

    def _with_model(self, branch: BranchState, model: str) -> BranchState:
        """Return a branch completed with the facts of the row, the card and the extractor."""
        row = f"{self.folders.submissions}/{model}.json"
        card_path = f"{self.folders.cards}/{model}.md"
        has_row = (self.layout.root / row).is_file()
        card = read_card(self.layout.root / card_path, card_path)
        module = next((f.path for f in self.change.files if self._is_module(f)), "")
        if not has_row:
            branch = dataclasses.replace(
                branch,
                card=card_path if card is not None else "",
                module=module,
                class_name=_extractor_class_name(self.layout.root / module) if module else "",
            )
            words = self._run_words(branch, model, card)
            return dataclasses.replace(
                branch, run_command=words, card_errors=_placeholder_problems(card)
            )
        document = read_document(self.layout.root / row, spans=False)
        submission = document.value
        findings = self._findings(row)
        errors = [f for f in findings if f.severity is Severity.ERROR]
        card_findings = [f for f in findings if f.rule in CARD_RULES]
        card_errors = [f for f in card_findings if f.rule == MISSING_CARD_RULE or f in errors]
        other_errors = [f for f in errors if f not in card_errors and f.rule not in EXTRACTOR_RULES]
        module_name = "" if is_built_in(submission) else extractor_module(submission)
        extractor = dataclasses.replace(self.change, named_module=module_name).extractor
        path = f"{self.folders.extractors}/{module_name}" if module_name else ""
        if extractor is not None and extractor.after is not None:
            path = extractor.path  # format 1.0 names no extractor: the only added one counts
        return dataclasses.replace(
            branch,
            row=row,
            card=card_path,
            module=path,
            class_name=text_at(submission, "run", "extractor", "class_name"),
            is_fixable=is_fixable(self.layout.root / row, other_errors),
            row_errors=problem_summary(other_errors),
            card_errors=problem_summary(card_errors),
            warnings=problem_summary(
                f for f in findings if f.severity is Severity.WARNING and f not in card_errors
            ),
            extractor_error=self._extractor_error(path, submission, errors),
            is_module_missing=bool(path) and not (self.layout.root / path).is_file(),
            receipt=self._receipt(submission),
            is_practice_board=not self.tree.remotes
            and is_practice(text_at(submission, "run", "benchmark", "sha256") or ""),
        )

    def _is_module(self, file: FileChange) -> bool:
        """Whether a file is a module in the folder of extractors."""
        folder = f"{self.folders.extractors}/"
        return (
            file.after is not None
            and file.path.startswith(folder)
            and self.change.is_model_path(file.path)
        )

    def _run_words(self, branch: BranchState, model: str, card: Card | None) -> tuple[str, ...]:
        """Return the words of the command that makes the row.

        Its extractor is that of the model's registry entry; without one, the module of the branch.
        """
        registry_entry = ModelRegistry(self.layout).entry(model)
        extractor, location, options = "EXTRACTOR", "OWNER/MODEL", dict[str, str]()
        if branch.module:
            extractor = f"{branch.module}:{branch.class_name or 'CLASS'}"
        if (
            registry_entry is not None
            and registry_entry.entry.run is not None
            and registry_entry.entry.run.extractor
        ):
            extractor, options = registry_entry.entry.run.extractor, registry_entry.entry.options
        if registry_entry is not None and registry_entry.entry.weights is not None:
            location = registry_entry.entry.weights.location
        facts = _card_facts(card)
        return tuple(run_words(extractor, location, options, {"model_id": model, **facts}))

    def _extractor_error(self, path: str, submission: Any, errors: Sequence[Finding]) -> str:
        """Return why the extractor that a row names cannot be called; "" if it can."""
        if not path:
            return ""
        file = self.layout.root / path
        if not file.is_file():
            return f"the row names the extractor {quoted(path)[1:-1]}, which does not exist"
        raw = read_bytes(file)
        module = ExtractorFile(path, raw if isinstance(raw, bytes) else b"")
        if module.fault is not None:
            return module.fault.message
        fault = interface_fault(module.raw, text_at(submission, "run", "extractor", "class_name"))
        if fault is not None:
            return f"{module.name}:{fault.line}: {fault.message}; expected {EMBED_SIGNATURE}"
        mismatch = next((f for f in errors if f.rule in EXTRACTOR_RULES), None)
        return mismatch.message if mismatch is not None else ""

    def _findings(self, row: str) -> Sequence[Finding]:
        """Return the findings about a row in the working tree."""
        report = self.report
        if report is not None and not (report.proposal and {*self.tree.pending}):
            return report.findings
        return Checker(RULES).check(self.layout.root / row).findings

    def _receipt(self, document: Any) -> DeclaredReceipt | None:
        """Return the receipt that a row declares; None without one."""
        if not isinstance(document, dict) or not document.get("receipt"):
            return None
        submission, _ = check_structure(document)
        if not isinstance(submission, SubmissionV12) or submission.receipt is None:
            return None
        receipt = submission.receipt
        matrix_names = {f"{task}{EMBEDDINGS_SUFFIX}" for task in receipt.tasks}
        folder = next(
            (
                str(PurePosixPath(path).parent)
                for path in self.tree.untracked_files
                if PurePosixPath(path).name in matrix_names
            ),
            "",
        )
        is_mini = is_practice(submission.run.benchmark.sha256)
        return DeclaredReceipt(
            published_receipt(submission) is not None, len(matrix_names), folder, not is_mini
        )

    def _verdict_errors(self) -> ProblemSummary:
        """Return the errors of the server's verdict on the last commit."""
        if self.report is not None:
            return NO_PROBLEMS
        try:
            branch_verdict = judge_branch(self.layout.root, clone=self.clone)
        except NoBranch:
            return NO_PROBLEMS
        findings = branch_verdict.decision.findings
        return problem_summary(f for f in findings if f.severity is Severity.ERROR)


def problem_summary(findings: Iterable[Finding]) -> ProblemSummary:
    """Return the summary of findings."""
    all_findings = list(findings)
    first_message = all_findings[0].message if all_findings else ""
    return ProblemSummary(
        len(all_findings), tuple(dict.fromkeys(f.rule for f in all_findings)), first_message
    )


def _placeholder_problems(card: Card | None) -> ProblemSummary:
    """Return the placeholders that are left in a card, counted as findings."""
    from geneb_ci.check.rules.card import PLACEHOLDER_IN_CARD, placeholders_of

    faults = list(placeholders_of(card)) if card is not None else []
    first_message = f"line {faults[0].at}: {faults[0].message}" if faults else ""
    return ProblemSummary(len(faults), (PLACEHOLDER_IN_CARD.id,) * bool(faults), first_message)


_NUMBER = re.compile(r"\d[\d,]*")
"""Number of parameters in a card, perhaps with commas between its digits."""


def _card_facts(card: Card | None) -> Mapping[str, str]:
    """Return values that a card states, by the option of `geneb-harness run` that takes them."""
    if card is None:
        return {}
    entries = {
        "display": card.field_named("display name"),
        "params": card.field_named("parameters"),
        "training_data": card.field_named("training data"),
        "zero_shot": card.field_named("zero-shot"),
        "submitted_by": card.field_named("submitted by"),
    }
    facts = {name: entry.value for name, entry in entries.items() if entry and entry.value}
    number = _NUMBER.search(facts.pop("params", ""))
    if number is not None:
        facts["params"] = number.group().replace(",", "")
    return facts


def _extractor_class_name(path: Path) -> str:
    """Return the name of the extractor's class in a module; "" if there is none."""
    raw = read_bytes(path)
    return extractor_class(raw) if isinstance(raw, bytes) else ""

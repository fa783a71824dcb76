"""Check one pull request: find its change from git's trees, and the findings about it."""

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.events import StatementKind
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX
from geneb_ci.audit.record.verify import StepState, Verification, message_without_step
from geneb_ci.audit.sampling.plan import BasePlan
from geneb_ci.audit.trust.applicability import HARNESS_STEP, SUBMISSION_STEP
from geneb_ci.check.change import REGULAR, Blob, Change, ChangeFault, RepositoryFolders
from geneb_ci.check.registry import BY_ID, CHANGE_RULES, RULES
from geneb_ci.check.row_facts import (
    ExtractorFile,
    ProposedRow,
    extractor_module,
    is_built_in,
)
from geneb_ci.check.rule import AnyRule, ChangeRule, Context
from geneb_ci.check.runner import Checker, FileResult, crash_message
from geneb_ci.common.config import Layout, benchmark_of, default_folder, is_practice
from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.finding import Fault, Finding, Severity
from geneb_ci.github.errors import GitHubProblem
from geneb_ci.github.fingerprints import fingerprint, rivals
from geneb_ci.github.main_branch import Clone, changed_main
from geneb_ci.github.trees import (
    GitReader,
    Main,
    Proposal,
    read_blob,
    read_proposal,
)
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.model import FILES_MAX, FileDigest, Fingerprint
from geneb_ci.submission.document import parse_document
from geneb_ci.submission.names import Card, parse_card
from reference_harness.formats.files import blob_id
from reference_harness.formats.text import plural

REASON_MAX = 200  # characters of a reason in a finding
STEPS_KNOWN_LATER = frozenset({SUBMISSION_STEP, HARNESS_STEP})
"""Steps of a verification that need the audited row on main; they may be unknown before a merge.

If the audit differs, its record is merged without the row, and then only its draw counts.
"""
# Listed findings per rule; the others are counted.
LISTED_FINDINGS_MAX = 20
# With these findings no file of the pull request is read, because its changes are too many or not
# all known.
UNREADABLE_CHANGE_RULES = frozenset({"truncated-tree", "too-many-files"})
RIVAL_RULES = frozenset({"open-collision", "open-copy"})
"""Rules that compare a row with the rows of other open pull requests."""
_CORRECTION_FIELD = "correction"
"""Field of a card that says why a published row is corrected."""
CHANGED_AUDIT_REASON = "audit files are added, never changed"
"""Reason for which a change of a published audit file is refused."""


def unverified_records(
    layout: Layout, main: Main, bytes_by_path: Mapping[str, bytes], reader: GitReader
) -> tuple[tuple[str, str], ...]:
    """Return path and reason for each record of a pull request that does not verify.

    Keys, policy, benchmark and submissions of the base branch are used; `reader` tells when
    commitments were published.
    """
    with changed_main(layout, main, bytes_by_path) as changed_layout:
        folder, repository = changed_layout.root, AuditRepository(changed_layout)
        failures = []
        for path in sorted(bytes_by_path):
            try:
                reasons = list(
                    _record_errors(repository, folder / path, reader, main, bytes_by_path)
                )
            except GitHubProblem:
                raise
            except GenebError as error:
                reasons = [error.message]
            short_reasons = (reason.replace(f"{folder}/", "")[:REASON_MAX] for reason in reasons)
            failures += [(path, reason) for reason in short_reasons]
    return tuple(failures)


def _record_errors(
    repository: AuditRepository,
    path: Path,
    reader: GitReader,
    main: Main,
    changed_paths: Collection[str],
) -> Iterator[str]:
    """Yield the errors of a record, a withdrawal or a statement about an audit, as messages."""
    if path in repository.files:
        yield from _step_errors(repository.verification(path))
    event = repository.events.get(path)
    if isinstance(event, StepMismatch):
        yield message_without_step(event)
    statement = f"{path.parent.name}/{path.name}"
    file = repository.history.files.get(statement)
    if file is not None and file.signer is not None:
        yield from _link_errors(repository, statement, reader, main)
        if file.heads is not None:
            yield from _board_mismatch(repository, statement, changed_paths)
    for record, withdrawn in repository.withdrawals.items():
        is_own = path.parent == record.parent and path.name == f"{record.stem}{WITHDRAWN_SUFFIX}"
        if is_own and isinstance(withdrawn, StepMismatch):
            yield message_without_step(withdrawn)


def _board_mismatch(
    repository: AuditRepository, statement: str, changed_paths: Collection[str]
) -> Iterator[str]:
    """Yield why a statement may belong to another board: it links to no statement of main.

    The statement need not link to those that were added to main meanwhile, because audits may run
    at the same time. `changed_paths` are those of the pull request.
    """
    history, audits = repository.history, repository_folders(repository.layout).audits
    on_main = {path for path in history.files if f"{audits}/{path}" not in changed_paths}
    if on_main and not on_main & history.with_predecessors(
        {statement: history.files[statement].sha256}
    ):
        yield (
            f"links: the statement links to none of the {plural(len(on_main), 'statement')} on "
            "main; sign the statement in a clone of main"
        )


def _link_errors(
    repository: AuditRepository, statement: str, reader: GitReader, main: Main
) -> Iterator[str]:
    """Yield which linked statements are missing, and why the commitment's date is not proven."""
    history = repository.history
    file = history.files[statement]
    if file.heads is None:
        yield (
            "links: the statement does not list the earlier statements that it links to; "
            "sign the statement again with this version of geneb-ci"
        )
        return
    yield from (f"links: {reason}" for reason in history.loss_reasons_of_heads(statement).values())
    is_start = file.event is not None and file.event.kind is StatementKind.START
    if file.plan is None or not (is_start or file.event is None):
        return
    if file.plan.beacon.kind == "practice":
        if not is_practice(benchmark_of(repository.layout).sha256):
            yield (
                "dating: the sample was drawn by the practice beacon, which anybody can predict, "
                "on a board of another benchmark than the practice benchmark; draw again without "
                "--practice, by the public beacon"
            )
    elif not isinstance(reader, Clone):
        yield from _dating_errors(repository, file.plan, reader, main)


def _dating_errors(
    repository: AuditRepository, plan: BasePlan, reader: GitReader, main: Main
) -> Iterator[str]:
    """Yield why GitHub does not prove a commitment's date; nothing for a clone."""
    from geneb_ci.github.api import GitHub  # of the extra, which a clone does not need
    from geneb_ci.github.verdict.dating import dating_errors

    if isinstance(reader, GitHub):
        audits = repository_folders(repository.layout).audits
        yield from dating_errors(repository, plan, audits, reader, main)


def _step_errors(verification: Verification) -> Iterator[str]:
    """Yield each step of a record that differs; if none does, name those that are unknown."""
    for step in verification.steps:
        if step.state is StepState.DIFFERS:
            yield f"{step.name}: {step.message}"
    unknown_steps = [
        s.name
        for s in verification.steps
        if s.state is StepState.UNKNOWN and s.name not in STEPS_KNOWN_LATER
    ]
    if unknown_steps and not verification.differs:
        yield f"steps that could not be computed: {', '.join(unknown_steps)}"


def change_findings(change: Change, rules: Iterable[ChangeRule] = CHANGE_RULES) -> list[Finding]:
    """Return the findings about a change, sorted by file and rule."""
    return sorted(_change_findings(change, rules), key=Finding.sort_key)


def _change_findings(change: Change, rules: Iterable[ChangeRule]) -> Iterator[Finding]:
    """Yield the findings of each rule about a change."""
    for rule in rules:
        try:
            faults = list(rule.check(change))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            crash = ChangeFault("check-crashed", "", crash_message(rule, error), rule.id)
            yield change_finding(BY_ID["check-crashed"], crash)
            continue
        yield from (change_finding(rule, fault) for fault in faults[:LISTED_FINDINGS_MAX])
        if len(faults) > LISTED_FINDINGS_MAX:
            hidden_count = len(faults) - LISTED_FINDINGS_MAX
            message = f"{hidden_count:,} more findings of {rule.id} are not listed"
            yield change_finding(
                rule, ChangeFault(rule.id, "", message, plural(len(faults), "path"), "none")
            )


def change_finding(rule: AnyRule, fault: ChangeFault) -> Finding:
    """Return the finding of a rule for a fault of a change."""
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=fault.file,
        pointer="",
        line=1,
        column=1,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
    )


@dataclass(frozen=True)
class CheckedPull:
    """The results of checking one pull request."""

    merge_base: str
    """Id of the last commit that the pull request has in common with the base branch."""
    change: Change
    """The changed files, and what is known about them."""
    findings: tuple[Finding, ...]
    files: tuple[FileDigest, ...] = ()
    """The checked files; empty if neither a row nor a record was checked."""
    context: Context | None = None
    """The row with its context; None if no row was read."""
    result: FileResult | None = None
    """Findings and scores of the row; None if no row was read."""
    fingerprint: Fingerprint | None = None
    """Names, files and scores to compare with other open rows; None if the row has errors."""


def repository_folders(layout: Layout) -> RepositoryFolders:
    """Return the folders of a repository relative to its root.

    Raises UsageProblem if this is not a repository of submissions.
    """
    if layout.submissions is None:
        raise UsageProblem(
            "this is not a repository of submissions",
            "run this in a checkout of the base branch, whose rows are used for comparison",
        )
    folder_by_name = {}
    for field in dataclasses.fields(RepositoryFolders):
        folder: Path | None = getattr(layout, field.name)
        default = default_folder(layout.kind, field.name)
        relative_path = (
            PurePosixPath(folder.relative_to(layout.root)) if folder else PurePosixPath(default)
        )
        folder_by_name[field.name] = relative_path.as_posix()
    return RepositoryFolders(**folder_by_name)


class PullChecker:
    """A checker of pull requests to a base branch: their files, rows and audit records."""

    def __init__(self, reader: GitReader, base: BaseBranch, main: Main) -> None:
        self.reader = reader
        self.base = base
        self.layout = base.layout
        self.main = main
        self.folders = repository_folders(base.layout)
        self.checker = Checker(RULES)
        self._proposals: dict[str, Proposal] = {}

    def proposal(self, head: str) -> Proposal:
        """Return the change that a head makes on main; read once. Raises GitHubProblem."""
        if head not in self._proposals:
            self._proposals[head] = read_proposal(self.reader, head, self.folders, self.main)
        return self._proposals[head]

    def has_read(self, head: str) -> bool:
        """Whether the change of a head has been read, so that a check needs fewer requests."""
        return head in self._proposals

    def blobs_to_read(self, head: str) -> list[Blob]:
        """Return the files that `judge` reads first: the model's regular files, and its row."""
        proposal = self.proposal(head)
        return [
            proposal.merged_files[path]
            for path in self._paths_to_read(proposal.change, proposal.merged_files)
        ]

    def judge(
        self, head: str, other_fingerprints: Mapping[int, Fingerprint] | None = None
    ) -> CheckedPull:
        """Read and check the head of a pull request, in at most six requests.

        `other_fingerprints` are those of open pull requests that pass; the row is compared with
        them. Raises GitHubProblem.
        """
        checked_pull = self.judge_alone(self.proposal(head))
        if checked_pull.fingerprint is None:
            return checked_pull
        open_rivals = rivals(checked_pull.fingerprint, other_fingerprints or {})
        change = dataclasses.replace(checked_pull.change, rivals=open_rivals)
        rival_findings = [f for f in change_findings(change) if f.rule in RIVAL_RULES]
        findings = tuple(sorted((*checked_pull.findings, *rival_findings), key=Finding.sort_key))
        return dataclasses.replace(checked_pull, change=change, findings=findings)

    def judge_alone(self, proposal: Proposal) -> CheckedPull:
        """Check the change, without comparing it with other open pull requests."""
        proposal = dataclasses.replace(proposal, change=_with_changed_records(proposal.change))
        first_findings = change_findings(proposal.change)
        if {
            finding.rule for finding in first_findings
        } & UNREADABLE_CHANGE_RULES or not proposal.change.model:
            return CheckedPull(proposal.merge_base, proposal.change, tuple(first_findings))
        change, contents = proposal.change, dict[str, bytes | Fault]()
        if not change.is_evidence:
            contents = self._read(change, proposal.merged_files)
            change = self._with_named_files(proposal, contents)
            if any(file.path not in contents for file in (change.extractor, change.lock) if file):
                contents |= self._read(change, proposal.merged_files)  # now known to be the row's
        records, unverified = self._records(change, contents)
        change = dataclasses.replace(change, invalid_records=(*change.invalid_records, *unverified))
        findings = change_findings(change)
        files = _file_digests(contents | records)
        row = f"{self.folders.submissions}/{change.model}.json"
        if row not in contents:
            checked_files = files if change.is_evidence else ()
            return CheckedPull(proposal.merge_base, change, tuple(findings), checked_files)
        context = self._context(change, contents, row)
        result = self.checker.run_rules(context)
        findings += [*_unusable_extractor(change, contents, context), *result.findings]
        if any(finding.rule == "row-without-card" for finding in findings):
            findings = [finding for finding in findings if finding.rule != "missing-card"]
        findings.sort(key=Finding.sort_key)
        is_sound = all(finding.severity is not Severity.ERROR for finding in findings)
        submission = result.submission if is_sound else None
        row_fingerprint = (
            fingerprint(submission, change, context.benchmark) if submission is not None else None
        )
        return CheckedPull(
            proposal.merge_base, change, tuple(findings), files, context, result, row_fingerprint
        )

    def _records(
        self, change: Change, contents: Mapping[str, bytes | Fault]
    ) -> tuple[dict[str, bytes | Fault], tuple[tuple[str, str], ...]]:
        """Return the bytes of a change's audit records by path, and path and reason of each error.

        Records are verified on the base branch, changed by `contents`, the files of the model.
        """
        record_contents = {
            file.path: read_blob(self.reader, file.after)
            for file in change.records
            if file.after is not None
        }
        if not record_contents:
            return {}, ()
        faults = [
            (path, raw.message) for path, raw in record_contents.items() if isinstance(raw, Fault)
        ]
        proposed_files = {
            path: raw
            for path, raw in {**contents, **record_contents}.items()
            if isinstance(raw, bytes)
        }
        return record_contents, tuple(
            sorted(
                (*faults, *unverified_records(self.layout, self.main, proposed_files, self.reader))
            )
        )

    def _read(self, change: Change, merged_files: Mapping[str, Blob]) -> dict[str, bytes | Fault]:
        """Return the bytes or the fault of each file of the model, by path; also of its row."""
        paths = self._paths_to_read(change, merged_files)
        if isinstance(self.reader, Clone):
            self.reader.prefetch(merged_files[path] for path in paths)
        return {path: read_blob(self.reader, merged_files[path]) for path in paths}

    def _paths_to_read(self, change: Change, merged_files: Mapping[str, Blob]) -> list[str]:
        """Return the paths of the model's regular files, and the path of its row."""
        row = f"{self.folders.submissions}/{change.model}.json"
        paths = [file.path for file in change.model_files if file.after is not None]
        if change.model and row in merged_files and row not in paths:
            paths.append(row)
        return [path for path in paths if merged_files[path].mode == REGULAR]

    def _with_named_files(
        self, proposal: Proposal, contents: Mapping[str, bytes | Fault]
    ) -> Change:
        """Return the change, completed by the extractor and the correction that its files name."""
        change = proposal.change
        row = contents.get(f"{self.folders.submissions}/{change.model}.json")
        row_document = parse_document(row, Path(), "").value if row is not None else None
        module = extractor_module(row_document)
        card = _parsed_card(contents, f"{self.folders.cards}/{change.model}.md")
        correction = card.field_named(_CORRECTION_FIELD) if card is not None else None
        modules = self.base.extractor_by_model
        published_module = modules.get(change.model, "")
        is_shared = any(
            name == published_module for model, name in modules.items() if model != change.model
        )
        return dataclasses.replace(
            change,
            named_module=module,
            has_extractor=is_built_in(row_document)
            or f"{self.folders.extractors}/{module}" in proposal.merged_files,
            published_module="" if is_shared else published_module,
            correction=correction.value if correction is not None else "",
        )

    def _context(self, change: Change, contents: Mapping[str, bytes | Fault], row: str) -> Context:
        """Return the row with its context, as rules get them; `row` is its path."""
        card_path = f"{self.folders.cards}/{change.model}.md"
        code_by_name = {}
        for file in (change.extractor, change.lock):
            code = contents.get(file.path) if file is not None else None
            if file is not None and isinstance(code, bytes):
                code_by_name[file.path.rsplit("/", 1)[-1]] = code
        if change.lock is not None and change.lock.path not in contents:
            code_by_name[change.lock.path.rsplit("/", 1)[-1]] = b""  # deleted, or no regular file
        proposed = ProposedRow(contents[row], _parsed_card(contents, card_path), code_by_name)
        row_path = Path(str(self.layout.submissions)) / f"{change.model}.json"
        return self.checker.proposed_context(row_path, row, proposed)


def _with_changed_records(change: Change) -> Change:
    """Return a change that lists its changed and deleted files of audits as invalid records."""
    folder = f"{change.folders.audits}/"
    paths = (f.path for f in change.files if f.path.startswith(folder) and f.before is not None)
    return dataclasses.replace(
        change, invalid_records=tuple((path, CHANGED_AUDIT_REASON) for path in paths)
    )


def _file_digests(contents: Mapping[str, bytes | Fault]) -> tuple[FileDigest, ...]:
    """Return the digests of the files that were checked."""
    return tuple(
        FileDigest(path=path, blob=blob_id(raw), sha256=hashlib.sha256(raw).hexdigest())
        for path, raw in sorted(contents.items())
        if isinstance(raw, bytes)
    )[:FILES_MAX]


def _parsed_card(contents: Mapping[str, bytes | Fault], path: str) -> Card | None:
    """Return the card at a path; None if it was not read."""
    return parse_card(contents[path], path) if path in contents else None


def _unusable_extractor(
    change: Change, contents: Mapping[str, bytes | Fault], context: Context
) -> list[Finding]:
    """Return the finding about an extractor that is no usable module, if no rule reports it.

    A row of format 1.0 names no extractor. Rows and cards have their own rules.
    """
    raw = contents.get(change.extractor.path) if change.extractor is not None else None
    if change.extractor is None or raw is None:
        return []
    fault = raw if isinstance(raw, Fault) else ExtractorFile(change.extractor.path, raw).fault
    if fault is None or (isinstance(raw, bytes) and context.extractor is not None):
        return []
    path, line = change.extractor.path, (fault.at or 1) if fault.file else 1
    change_fault = ChangeFault(
        fault.rule, path, fault.message, fault.found, fault.expected, fault.fix or ""
    )
    return [dataclasses.replace(change_finding(BY_ID[fault.rule], change_fault), line=line)]

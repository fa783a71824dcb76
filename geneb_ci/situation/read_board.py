"""Read the repository of a board for a maintainer: statements, started audits, rows, keys.

Nothing is written, and no code of a submission is run.
"""

import datetime as dt
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from geneb_ci.audit.canonical import TIME_FORMAT, moment_of, seconds_of
from geneb_ci.audit.commit import commit, read_submission
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.record.events import AuditEvent, StatementKind
from geneb_ci.audit.record.keys import (
    KEY_VARIABLE,
    KEYS_FOLDER,
    TrustedKey,
    key_entry_of,
    private_key,
)
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.statement import Record
from geneb_ci.audit.record.verify import Verification
from geneb_ci.audit.rerun.workspace import WorkFolder
from geneb_ci.audit.samples import OUTCOME_FILE, EmbeddingSample, TaskSample
from geneb_ci.audit.sampling.beacon import QUICKNET, round_at, time_of_round
from geneb_ci.audit.sampling.plan import BasePlan, EmbeddingPlan, read_any_plan, read_commitment
from geneb_ci.audit.trust.evidence import RepositoryEvidence, evidence_from
from geneb_ci.audit.workflow import COMMITMENT_FILE, PLAN_FILE, SHOWN_FILE, words_of_last_command
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.common.answers import saved_answers
from geneb_ci.common.config import Layout, benchmark_of, cache_folder, is_practice
from geneb_ci.common.errors import GenebError, UsageProblem
from geneb_ci.common.finding import Severity
from geneb_ci.common.types import Evidence
from geneb_ci.github.verdict.checker import repository_folders
from geneb_ci.github.verdict.decide import weight_of
from geneb_ci.publish.git import BadRepository, GitRepository
from geneb_ci.situation.maintainer import (
    EXPIRED,
    NOT_LISTED,
    REVOKED,
    AuditCandidate,
    BoardState,
    BrokenStatement,
    DrawKey,
    KeyFacts,
    LostStatement,
    OpenAudit,
    PendingStatements,
)
from geneb_ci.situation.table import is_board, repository_name
from geneb_ci.situation.work_tree import OpenClone, WorkTree, open_clone
from geneb_ci.submission.reading import FileKind, files_in, read_bytes

SEARCHED_COMMITS_MAX = 50
"""Maximum number of commits that are searched for a lost statement."""
TESTED_ROWS_MAX = 3
"""Maximum number of rows for which it is tested whether they can be audited."""


def read_board(layout: Layout, now: dt.datetime, clone: OpenClone | None = None) -> BoardState:
    """Return the state of a board's repository at a time; no server is asked.

    `clone` is the repository if it has been read.
    Raises BadConfiguration if settings, benchmark or policy are invalid.
    """
    if not is_board(layout):
        return BoardState(is_board=False, repository=repository_name())
    try:
        return BoardReader(layout, *(clone or open_clone(layout)), now).state()
    except BadRepository as error:
        return BoardState(refusal=error.message, refusal_fix=error.fix)


class BoardReader:
    """A reader of a board's repository on this machine, for a maintainer's next step."""

    def __init__(
        self, layout: Layout, repository: GitRepository, tree: WorkTree, now: dt.datetime
    ) -> None:
        self.layout = layout
        self.root = layout.root
        self.repository = repository
        self.tree = tree
        self.now = now
        self.audits = AuditRepository(layout)
        self.audits_folder = repository_folders(layout).audits
        self.benchmark = benchmark_of(layout)

    def state(self) -> BoardState:
        """Return the state of the board."""
        answers = saved_answers(self.root)
        verifications = list(self.audits.verifications())
        evidence = evidence_from(self.audits, verifications)
        checked_rows, audits = self._checked_rows(), self.open_audits({})
        return BoardState(
            tree=self.tree,
            row_count=len(checked_rows),
            has_answers=bool(answers),
            signer_count=len(self.audits.keys),
            key=self.key(),
            lost_statement=self.lost_statement(),
            broken_statement=self._broken_statement(verifications),
            pending=self._pending(),
            unmerged=self._unmerged(),
            audits=audits,
            audit_candidates=tuple(self._audit_candidates(checked_rows, evidence, audits)),
            failing_rows=tuple(r.document.path.stem for r in checked_rows if not _passes(r)),
            disputed=tuple(_models_with_evidence(checked_rows, evidence, Evidence.DISPUTED)),
            repository=self.tree.repository or repository_name(answers),
            space=answers.get("space", ""),
            needs_data=not is_practice(self.benchmark.sha256),
        )

    def key(self) -> KeyFacts:
        """Return the user's private key for audits, preferably one whose signatures count."""
        key_file = os.environ.get(KEY_VARIABLE, "")
        folder = self.root / KEYS_FOLDER
        paths = [Path(key_file)] if key_file else []
        paths += sorted(folder.glob("*.pem"), reverse=True)
        facts = [fact for path in paths if (fact := self._key_facts(path)) is not None]
        best_states_first = ["", NOT_LISTED, EXPIRED, REVOKED]
        free_path = next(
            f"{KEYS_FOLDER}/{name}.pem"
            for name in ("audit", *(f"audit-{number}" for number in range(2, 2 + len(paths) + 1)))
            if not (folder / f"{name}.pem").exists()
        )
        best_key = min(
            facts, key=lambda fact: best_states_first.index(fact.state), default=KeyFacts()
        )
        return best_key._replace(free_path=free_path)

    def _key_facts(self, path: Path) -> KeyFacts | None:
        """Return the facts of a private key; None for a file that is not a private key."""
        try:
            raw = private_key(path).public_key().public_bytes_raw()
        except UsageProblem:
            return None
        key_path = os.path.relpath(path, self.root) if path.is_relative_to(self.root) else str(path)
        moment = self.now.strftime(TIME_FORMAT)
        key_entry = key_entry_of(raw, "NAME", moment)
        trusted_key = self.audits.keys.get(key_entry.keyid)
        if not isinstance(trusted_key, TrustedKey):
            entry_json = json.dumps(key_entry.model_dump(mode="json", exclude_none=True))
            return KeyFacts(key_path, NOT_LISTED, entry=entry_json)
        status = REVOKED if trusted_key.revoked_at is not None else ""
        if not status and trusted_key.valid_until is not None and trusted_key.valid_until < moment:
            status = EXPIRED
        return KeyFacts(key_path, status, trusted_key.owner)

    def lost_statement(self) -> LostStatement | None:
        """Return the first lost statement, with a commit that has it; None if none is lost."""
        losses = self.audits.history.loss_reasons
        for file, loss in losses.items():
            path = f"{self.audits_folder}/{file}"
            return LostStatement(
                path, loss, self._commit_of(path, self._digests_of(file)), len(losses)
            )
        return self._uncommitted_loss()

    def _uncommitted_loss(self) -> LostStatement | None:
        """Return the first committed statement that the working tree changed or deleted.

        A statement that has the content to which another one links counts as restored.
        """
        prefix = f"{self.audits_folder}/"
        if (
            not any(path.startswith(prefix) for path in self.tree.changed_files)
            or not self.tree.head
        ):
            return None
        committed_paths = {
            file.path for file in self.repository.tree(self.tree.head, (self.audits_folder,))
        }
        for path in self.tree.changed_files:
            file = path.removeprefix(prefix)
            if path not in committed_paths or self.audits.history.digests.get(
                file
            ) in self._digests_of(file):
                continue  # the statement is new, or was restored
            change = "changed" if (self.root / path).is_file() else "deleted"
            loss = f"{file} was {change} since the last commit"
            return LostStatement(path, loss, self.tree.head, 1)
        return None

    def _digests_of(self, file: str) -> set[str]:
        """Return the digests with which other statements link to a statement."""
        heads = (statement.heads or {} for statement in self.audits.history.files.values())
        return {digest_by_name[file] for digest_by_name in heads if file in digest_by_name}

    def _commit_of(self, path: str, digests: set[str]) -> str:
        """Return the newest commit in which a file has one of these digests; "" without one."""
        if not self.tree.head or not digests:
            return ""
        log = self.repository.run(
            *("log", "--all", "--format=%H %P", f"--max-count={SEARCHED_COMMITS_MAX}", "--", path)
        )
        for commit_id in dict.fromkeys(log.decode().split()):
            for file in self.repository.tree(commit_id, (path,)):
                ((_, raw),) = self.repository.blobs([file.blob])
                if hashlib.sha256(raw).hexdigest() in digests:
                    return commit_id
        return ""

    def _broken_statement(self, verifications: Sequence[Verification]) -> BrokenStatement | None:
        """Return the first statement that does not verify; None if all verify."""
        broken = [v for v in verifications if v.broken and v.withdrawn is None]
        if not broken:
            return None
        step = broken[0].broken[0]
        path = f"{self.audits_folder}/{broken[0].name}"
        return BrokenStatement(path, f"{step.name}: {step.message}", len(broken))

    def _pending(self) -> PendingStatements | None:
        """Return the statements of the working tree that are not committed; None without any."""
        prefix = f"{self.audits_folder}/"
        paths = [path for path in self.tree.pending if path.startswith(prefix)]
        paths = [path for path in paths if (self.root / path).is_file()]
        if not paths:
            return None
        files = [file for path in paths if (file := self.root / path) in self.audits.files]
        records = map(self.audits.record_at, files)
        differing_models = (
            record.outcome.plan.commitment.model_id
            for record in records
            if isinstance(record, Record) and record.outcome.verdict == "differs"
        )
        return PendingStatements(tuple(paths), next(differing_models, ""))

    def _unmerged(self) -> tuple[str, ...]:
        """Return the paths of the last commit's statements that the base branch lacks."""
        if not self.tree.head or not self.tree.base or self.tree.base == self.tree.branch:
            return ()
        branch_files = {
            file.path for file in self.repository.tree(self.tree.head, (self.audits_folder,))
        }
        main_files = {
            file.path for file in self.repository.tree(self.tree.base, (self.audits_folder,))
        }
        return tuple(sorted(branch_files - main_files))

    def _checked_rows(self) -> list[FileResult]:
        """Return the result of checking each row."""
        folder = self.layout.submissions
        files = sorted(files_in(folder)) if folder is not None and folder.is_dir() else []
        return [r for r in Checker(RULES).run(files) if isinstance(r, FileResult)]

    def _audit_candidates(
        self,
        checked_rows: Sequence[FileResult],
        evidence: RepositoryEvidence,
        audits: tuple[OpenAudit, ...],
    ) -> Iterator[AuditCandidate]:
        """Yield the rows that need an audit, those with the heaviest warnings first.

        `audits` are the started ones, whose rows are left out.
        """
        started_models = {audit.model for audit in audits}
        models = {
            *_models_with_evidence(checked_rows, evidence, Evidence.CHECKED, Evidence.STALE)
        } - started_models
        rows = [r for r in checked_rows if r.document.path.stem in models and not r.is_official]
        ordered = sorted(rows, key=lambda r: (-weight_of(r.findings), r.document.path.stem))
        tested_count, has_auditable_row = 0, False
        for checked_row in ordered:
            model, row = checked_row.document.path.stem, checked_row.document
            decision = evidence.decide(row.sha256, row.origin, row.scorer)
            shortfall = decision.reason if decision.basis else ""
            refusal = ""
            if not has_auditable_row and tested_count < TESTED_ROWS_MAX:
                tested_count += 1
                refusal = self._refusal(checked_row.document.path, shortfall)
                has_auditable_row = not refusal
            withdrawn_audits = [a for a in evidence.audits_of_model(model) if a.withdrawn]
            yield AuditCandidate(
                model,
                os.path.relpath(checked_row.document.path, self.root),
                weight_of(checked_row.findings),
                withdrawn_audits[-1].withdrawn if withdrawn_audits else "",
                refusal,
            )

    def _refusal(self, path: Path, shortfall: str) -> str:
        """Return why a row cannot be audited now; "" if it can.

        `shortfall` is the reason why the row's audits confirm nothing; "" if there is none. The row
        is read and hashed as by `audit commit`; its code is not run.
        """
        try:
            commitment = commit(read_submission(path))
        except GenebError as error:
            return error.message
        # A commitment has only one draw, so the same command would make the same record.
        return shortfall if (commitment.sha256, ()) in self._ended_draws else ""

    def open_audits(self, shown_at: Mapping[str, str]) -> tuple[OpenAudit, ...]:
        """Return the started audits without a record, the most urgent one first.

        `shown_at` has the time at which each commitment became public, by its digest.
        """
        audits = {audit.draw_key: audit for audit in self._signed_audits(shown_at)}
        for local_audit in (*self._audits_of_plans(), *self._audits_of_work_folders()):
            # A signed commitment without a draw does not contain the kind of sample.
            undrawn = (local_audit.commitment, ())
            has_no_draw = undrawn in audits and not audits[undrawn].is_drawn
            signed_audit = audits.pop(undrawn if has_no_draw else local_audit.draw_key, None)
            audits[local_audit.draw_key] = (
                local_audit
                if signed_audit is None
                else _with_signed_facts(local_audit, signed_audit)
            )
        return tuple(sorted(audits.values(), key=_urgency))

    @functools.cached_property
    def _ended_draws(self) -> set[DrawKey]:
        """The draws with a record, or with a statement that the extractor ended the run."""
        records = (self.audits.record_at(path) for path in self.audits.files)
        plans: list[BasePlan] = [r.outcome.plan for r in records if isinstance(r, Record)]
        for _, event in self.audits.history.events(StatementKind.ABORT):
            plans += [event.plan] if event.plan is not None else []
        return {(plan.commitment_sha256, _sample_options(plan)) for plan in plans}

    def _signed_audits(self, shown_at: Mapping[str, str]) -> Iterator[OpenAudit]:
        """Yield the audits of the repository's signed commitments and starts."""
        ended_draws, history = self._ended_draws, self.audits.history
        starts = {
            (event.commitment.sha256, _sample_options(event.plan)): (name, event.plan, event)
            for name, event in history.events(StatementKind.START)
            if event.plan is not None
        }
        drawn_commitments = {sha256 for sha256, _ in {*ended_draws, *starts}}
        for file, event in history.events(StatementKind.COMMITMENT):
            if event.commitment.sha256 not in drawn_commitments:
                yield self._audit_of_commitment(
                    event.commitment, f"{self.audits_folder}/{file}", shown_at
                )
        for draw, (file, plan, event) in starts.items():
            if draw not in ended_draws and self._is_current(event):
                audit = self._audit_of_plan(plan)
                yield audit._replace(
                    statement=f"{self.audits_folder}/{file}", shown_on=event.shown_on
                )

    def _is_current(self, event: AuditEvent) -> bool:
        """Whether the present row is the one for which the sample was drawn."""
        submission = self.audits.inputs.submission(event.commitment.model_id)
        return submission is not None and submission.sha256 == event.commitment.submission_sha256

    def _audit_of_commitment(
        self, commitment: Commitment, statement: str, shown_at: Mapping[str, str]
    ) -> OpenAudit:
        """Return the audit of a commitment for which nothing is drawn yet."""
        commit_id, added = self._commit_that_added(statement)
        audit = OpenAudit(
            model=commitment.model_id,
            file=self._row_path(commitment.model_id),
            commitment=commitment.sha256,
            statement=statement,
            is_practice=is_practice(commitment.benchmark.sha256),
            shown_on=commit_id,
            committed_at=shown_at.get(commitment.sha256, ""),
            age_seconds=None if added is None else int(self.now.timestamp()) - added,
        )
        if not audit.committed_at:
            return audit
        round_time = time_of_round(round_at(seconds_of(audit.committed_at)), QUICKNET)
        return audit._replace(due=moment_of(round_time), is_due=round_time <= self.now.timestamp())

    def _commit_that_added(self, path: str) -> tuple[str, int | None]:
        """Return the commit of main that added a file, and its time in seconds since 1970.

        Return "" and None if main does not have the file.
        """
        if not self.tree.base or not path:
            return "", None
        log = self.repository.run(
            *("log", "--first-parent", "--diff-filter=A", "--format=%H %ct", "-1"),
            *(self.tree.base, "--", path),
        )
        commit_id, _, seconds = log.decode().strip().partition(" ")
        return commit_id, int(seconds) if seconds else None

    def _audit_of_plan(self, plan: BasePlan) -> OpenAudit:
        """Return the audit of a plan, whose sample is drawn."""
        return OpenAudit(
            model=plan.commitment.model_id,
            file=self._row_path(plan.commitment.model_id),
            commitment=plan.commitment_sha256,
            sample=_sample_options(plan),
            is_drawn=True,
            is_practice=plan.beacon.kind == "practice",
            committed_at=plan.committed_at,
            age_seconds=int(self.now.timestamp()) - seconds_of(plan.committed_at),
        )

    def _row_path(self, model: str) -> str:
        """Return the path of a model's row, relative to the root of the repository."""
        folder = self.layout.submissions or self.root
        return os.path.relpath(folder / f"{model}.json", self.root)

    def _audits_of_plans(self) -> Iterator[OpenAudit]:
        """Yield the audits of the commitments and plans in the root folder of the repository."""
        ended_draws = self._ended_draws
        for path in sorted(self.root.glob("*.json")):
            raw = read_bytes(path)
            if not isinstance(raw, bytes):
                continue
            try:
                if FileKind.PLAN.fits_text(raw) or FileKind.EMBEDDING_PLAN.fits_text(raw):
                    audit = self._audit_of_plan(read_any_plan(path))._replace(plan=path.name)
                elif FileKind.COMMITMENT.fits_text(raw):
                    audit = self._audit_of_commitment(read_commitment(path), path.name, {})
                else:
                    continue
            except GenebError:
                continue
            if audit.draw_key not in ended_draws:
                yield audit

    def _audits_of_work_folders(self) -> Iterator[OpenAudit]:
        """Yield the unfinished audits that have a work folder in the user's cache."""
        ended_draws = self._ended_draws
        models = {path.stem for path in files_in(self.layout.submissions or self.root)}
        for sample in (TaskSample, EmbeddingSample):
            for folder in sorted(cache_folder(sample.cache_name).glob("*/*")):
                if folder.parent.name not in models or not (folder / COMMITMENT_FILE).is_file():
                    continue
                try:
                    audit = self._audit_of_work_folder(folder, sample.name)
                except GenebError:
                    continue
                if audit is not None and audit.draw_key not in ended_draws:
                    yield audit

    def _audit_of_work_folder(self, folder: Path, sample: str) -> OpenAudit | None:
        """Return the audit of a work folder; None for a dry run or another board."""
        commitment = read_commitment(folder / COMMITMENT_FILE)
        is_begun = (folder / SHOWN_FILE).exists() or (folder / PLAN_FILE).exists()
        if commitment.benchmark.sha256 != self.benchmark.sha256 or not is_begun:
            return None
        sample_options = () if sample == TaskSample.name else ("--sample", sample)
        typed_words = tuple(words_of_last_command(folder, self.root))
        if (folder / PLAN_FILE).exists():
            audit = self._audit_of_plan(read_any_plan(folder / PLAN_FILE))
            is_rerun = WorkFolder(folder).has_result(OUTCOME_FILE)
            return audit._replace(
                work_folder=str(folder),
                sample=sample_options,
                is_rerun=is_rerun,
                typed_words=typed_words,
            )
        audit = self._audit_of_commitment(commitment, "", {})
        return audit._replace(
            work_folder=str(folder), sample=sample_options, typed_words=typed_words
        )


def _sample_options(plan: BasePlan) -> tuple[str, ...]:
    """Return the options of `audit FILE` for the plan's kind of sample."""
    return ("--sample", EmbeddingSample.name) if isinstance(plan, EmbeddingPlan) else ()


def _with_signed_facts(local: OpenAudit, signed: OpenAudit) -> OpenAudit:
    """Return an audit of this machine, completed by what only its signed statements show."""
    return local._replace(
        statement=signed.statement,
        shown_on=signed.shown_on,
        committed_at=local.committed_at or signed.committed_at,
        due=signed.due,
        is_due=signed.is_due,
        is_drawn=local.is_drawn or signed.is_drawn,
        age_seconds=signed.age_seconds if local.age_seconds is None else local.age_seconds,
    )


def _urgency(audit: OpenAudit) -> tuple[bool, bool, bool, int, str]:
    """Return a key that sorts the most urgent audit first."""
    return (
        not audit.is_rerun,
        not audit.is_drawn,
        not audit.is_due,
        -(audit.age_seconds or 0),
        audit.commitment,
    )


def _passes(row: FileResult) -> bool:
    """Whether a row has no error."""
    return all(finding.severity is not Severity.ERROR for finding in row.findings)


def _models_with_evidence(
    checked_rows: Sequence[FileResult], evidence: RepositoryEvidence, *accepted: Evidence
) -> Iterator[str]:
    """Yield the ids of the rows that pass and have one of these kinds of evidence."""
    for checked_row in checked_rows:
        row = checked_row.document
        decision = evidence.decide(row.sha256, row.origin, row.scorer)
        if _passes(checked_row) and decision.evidence in accepted:
            yield row.path.stem

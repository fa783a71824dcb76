"""Reads the records of a repository, each once, and verifies them together."""

import dataclasses
import functools
import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from geneb_ci.audit.canonical import digest
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.events import (
    AuditEvent,
    StatementKind,
    WithdrawnAudit,
    parse_event,
    read_withdrawal,
    withdrawal_heads,
)
from geneb_ci.audit.record.history import OLD_LOG_NAME, History, SignedFile, revocation_name
from geneb_ci.audit.record.keys import RevokedKey, log_keys, signer_of, trusted_keys
from geneb_ci.audit.record.old_log import LOG_FOLDER, AuditLog, LogBroken, log_files, read_log
from geneb_ci.audit.record.statement import (
    WITHDRAWN_SUFFIX,
    Record,
    check_path,
    event_files,
    parse_record,
    read_record,
    record_files,
    withdrawal_files,
)
from geneb_ci.audit.record.verify import (
    EARLIER_STEP,
    Verification,
    lost_statement,
    message_without_step,
    unreadable_record,
    verify_record,
)
from geneb_ci.audit.sampling.design import audit_policy
from geneb_ci.audit.sampling.embedding_draw import check_any_plan
from geneb_ci.audit.sampling.plan import AnyPlan, EmbeddingPlan, TaskPlan, read_any_plan
from geneb_ci.audit.sampling.task_draw import plans_of_method, require_one_draw
from geneb_ci.audit.trust.applicability import TrustInputs
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Layout, LayoutKind, benchmark_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.seen import read_receipt_notes


class AuditRepository:
    """The audit records of a repository, each read once, and their verification."""

    def __init__(self, layout: Layout, submissions: Path | None = None) -> None:
        folder = layout.root / "leaderboard" / "audits"
        if layout.audits is None and layout.kind is LayoutKind.GENEB_CI and folder.is_dir():
            # The first signed statement makes this folder, after the layout was read.
            layout = dataclasses.replace(layout, audits=folder)
        self.layout = layout
        self.submissions = submissions or layout.submissions
        self.keys = trusted_keys(layout)
        self._parsed: dict[Path, Record | StepMismatch] = {}
        self._raw: dict[Path, bytes | StepMismatch] = {}
        """The bytes of each file that was read, so that all steps see the same bytes."""

    def read(self, path: Path) -> bytes:
        """Return the bytes of a signed file, read once. Raises what `read_record` raises."""
        if path not in self._raw:
            try:
                self._raw[path] = read_record(path)
            except StepMismatch as error:
                self._raw[path] = error
        raw = self._raw[path]
        if isinstance(raw, StepMismatch):
            raise raw
        return raw

    @functools.cached_property
    def files(self) -> list[Path]:
        """Paths of the records of the repository, in order."""
        return record_files(self.layout.audits) if self.layout.audits is not None else []

    @functools.cached_property
    def withdrawals(self) -> dict[Path, WithdrawnAudit | StepMismatch]:
        """The withdrawal of each withdrawn record, or why it is invalid, by the path of the record.

        Withdrawals by a revoked key, or that `History.is_counted` rejects, are left out.
        """
        by_record: dict[Path, WithdrawnAudit | StepMismatch] = {}
        for path in withdrawal_files(self.layout.audits) if self.layout.audits is not None else ():
            record = path.with_name(f"{path.name.removesuffix(WITHDRAWN_SUFFIX)}.json")
            try:
                record_bytes = self.read(record) if record.is_file() else None
                name = f"{path.parent.name}/{path.name}"
                if self.history.is_counted(name, StatementKind.WITHDRAWAL):
                    log_index, precedes_compromise = self.history.revocation_arguments(
                        name, StatementKind.WITHDRAWAL
                    )
                    by_record[record] = read_withdrawal(
                        path,
                        self.read(path),
                        self.keys,
                        record_bytes,
                        log_index,
                        precedes_compromise=precedes_compromise,
                    )
            except RevokedKey:
                continue
            except StepMismatch as error:
                by_record[record] = error
        return by_record

    @functools.cached_property
    def history(self) -> History:
        """All signed statements of the repository, linked by the digests that each contains."""
        audits = self.layout.audits
        paths = [*self.files, *self.events]
        paths += withdrawal_files(audits) if audits is not None else []
        files = {
            f"{path.parent.name}/{path.name}": file
            for path in sorted(paths)
            if (file := self._signed_file(path)) is not None
        }
        other_digests = {
            revocation_name(key.keyid): digest(["revoked", key.keyid])
            for key in self.keys.values()
            if key.revoked_at is not None
        }
        checkpoint = audits / OLD_LOG_NAME if audits is not None else None
        if checkpoint is not None and checkpoint.is_file():
            other_digests[OLD_LOG_NAME] = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
        log, fault = self._old_log()
        return History(files, other_digests, log, fault, self.keys)

    def _signed_file(self, path: Path) -> SignedFile | None:
        """Return the digests, signer, heads, event and plan of a file.

        Heads are the newest statements of its time, which the file names. Of a withdrawal or an
        invalid statement, return the parts that can be read; return None if the file cannot be
        read.
        """
        try:
            raw = self.read(path)
        except StepMismatch:
            return None
        sha256 = hashlib.sha256(raw).hexdigest()
        if path.name.endswith(WITHDRAWN_SUFFIX):
            return self._unparsed_file(sha256, raw, is_withdrawal=True)
        statement = self.events[path] if path in self.events else self.record_at(path)
        if isinstance(statement, StepMismatch):
            return self._unparsed_file(sha256, raw)
        file = SignedFile(
            sha256, statement.sha256, statement.signer.keyid, statement.signer, statement.heads
        )
        if isinstance(statement, Record):
            return file._replace(plan=statement.outcome.plan)
        return file._replace(event=statement, plan=statement.plan)

    def _unparsed_file(self, sha256: str, raw: bytes, *, is_withdrawal: bool = False) -> SignedFile:
        """Return the readable parts of a withdrawal, or of a file whose statement is invalid."""
        file = SignedFile(sha256)
        try:
            envelope = parse_envelope(raw)
            payload = envelope.payload
            file = file._replace(
                statement_sha256=hashlib.sha256(payload).hexdigest(), keyid=envelope.keyid
            )
            if is_withdrawal:
                signer = signer_of(envelope, self.keys)
                file = file._replace(signer=signer, heads=withdrawal_heads(payload))
        except StepMismatch:
            pass  # the fields that could be read are set
        return file

    def _old_log(self) -> tuple[AuditLog | None, str]:
        """Return the old log, None if the policy names none; and why the log is broken, or ""."""
        keys, audits = log_keys(self.layout), self.layout.audits
        if keys is None:
            return None, ""
        if audits is None or not (audits / LOG_FOLDER).is_dir():
            return AuditLog(), ""
        try:
            return read_log(log_files(audits / LOG_FOLDER), keys), ""
        except LogBroken as error:
            return AuditLog(), message_without_step(error)

    @functools.cached_property
    def events(self) -> dict[Path, AuditEvent | StepMismatch]:
        """The commitment, start or abort in each file, or why the file is invalid, by path."""
        by_path: dict[Path, AuditEvent | StepMismatch] = {}
        for path in event_files(self.layout.audits) if self.layout.audits is not None else ():
            try:
                statement_name = f"{path.parent.name}/{path.name}"
                by_path[path] = parse_event(self.read(path), statement_name, self.keys)
            except StepMismatch as error:
                by_path[path] = error
        return by_path

    @functools.cached_property
    def inputs(self) -> TrustInputs:
        """The public inputs with which every record is verified."""
        plans: list[AnyPlan] = []
        unreadable: dict[str, str] = {}
        for path in self.files:
            record = self.record_at(path)
            if isinstance(record, Record):
                plans.append(record.outcome.plan)
            elif not isinstance(self.withdrawals.get(path), WithdrawnAudit):
                unreadable[path.parent.name] = path.name
        for path, event in self.events.items():
            if isinstance(event, StepMismatch):
                unreadable.setdefault(path.parent.name, path.name)
            elif event.plan is not None:
                plans.append(event.plan)
        return TrustInputs(
            benchmark_of(self.layout),
            audit_policy(self.layout),
            self.submissions,
            tuple(plans),
            unreadable,
            self.history,
            read_receipt_notes(self.layout),
        )

    def verification(self, path: Path, shown_name: str = "") -> Verification:
        """Return the verification of a record, which may be outside of the repository.

        `shown_name` is its name in messages. Raises NothingChecked when it cannot be opened.
        """
        shown_name = shown_name or str(path)
        withdrawn = self.withdrawals.get(path)
        if isinstance(withdrawn, StepMismatch):
            step_mismatch = StepMismatch(
                withdrawn.step, f"its withdrawal is invalid: {message_without_step(withdrawn)}"
            )
            return unreadable_record(shown_name, step_mismatch)
        record = self.record_at(path)
        if isinstance(record, StepMismatch):
            return unreadable_record(shown_name, record, withdrawn)
        return verify_record(shown_name, record, self._inputs_for(record), withdrawn)

    def _inputs_for(self, record: Record) -> TrustInputs:
        """Return the public inputs with which a record is verified.

        Outside of a repository, a record of an audit on the practice benchmark is verified with
        that benchmark.
        """
        if self.layout.kind is LayoutKind.ALONE:
            practice = shipped_benchmark(PRACTICE_BENCHMARK)
            if record.outcome.plan.commitment.benchmark.name == practice.name:
                return dataclasses.replace(self.inputs, benchmark=practice)
        return self.inputs

    def verifications(self, model_id: str | None = None) -> Iterator[Verification]:
        """Yield the verification of every record of the repository, or of one model, by path.

        Also yields one for each withdrawal without a record, each event that cannot be read, and
        each lost statement.
        """
        for path in sorted({*self.files, *self.withdrawals, *self.events}):
            if model_id not in {None, path.parent.name}:
                continue
            statement_name, event = f"{path.parent.name}/{path.name}", self.events.get(path)
            if event is None:
                yield self.verification(path, statement_name)
            elif isinstance(event, StepMismatch):
                yield unreadable_record(statement_name, event)
        yield from self.lost_statements(model_id)

    def lost_statements(self, model_id: str | None = None) -> Iterator[Verification]:
        """Yield a verification of each deleted or changed statement that others name."""
        for statement_name, reason in self.history.loss_reasons_of_model(model_id).items():
            yield lost_statement(statement_name, reason)

    def check_readable(self, model_id: str) -> None:
        """Raise StepMismatch, of the step "earlier", if a record of a model cannot be read."""
        if model_id in self.inputs.unreadable:
            raise StepMismatch(
                EARLIER_STEP,
                f"{model_id}/{self.inputs.unreadable[model_id]} cannot be read, so its draw is "
                "not known",
                "fix that record first; `geneb-ci audit verify` shows what is wrong with it",
            )

    def record_at(self, path: Path) -> Record | StepMismatch:
        """Return the record in a file, which is parsed once, or why the file cannot be parsed."""
        if path not in self._parsed:
            try:
                record = parse_record(self.read(path), self.keys)
                if path in self.files:
                    check_path(path, record)
                self._parsed[path] = record
            except StepMismatch as error:
                self._parsed[path] = error
        return self._parsed[path]


_P = TypeVar("_P", TaskPlan, EmbeddingPlan)


def earlier_plans(
    plan_class: type[_P],
    commitment: Commitment,
    committed_at: str,
    repository: AuditRepository,
    files: Sequence[Path],
    near_roots: Collection[str] = (),
) -> list[_P]:
    """Return the plans of class `plan_class` for the same method as a commitment, in order of time.

    They are those of the repository and of `files`. A plan that draws from a receipt whose root is
    in `near_roots` counts as a plan for this method. Raises AuditRefused if the commitment was
    already drawn with another `committed_at`; StepMismatch if a plan is not the one that its inputs
    give, or if a record of the model cannot be read; UsageProblem for a file with a plan of another
    method or class.
    """
    repository.check_readable(commitment.model_id)
    candidates = list(repository.inputs.plans)  # of any model: several may be one method
    for file in files:
        plan = read_any_plan(file)
        if not plans_of_method(plan_class, [plan], commitment):
            drawn_units, expected_units = (_DRAWN_UNITS[type(plan)], _DRAWN_UNITS[plan_class])
            raise UsageProblem(
                f"{file}: this plan drew {drawn_units} of {plan.commitment.model_id!r}, expected a "
                f"plan that drew {expected_units} of {commitment.model_id!r}",
                f"pass to --earlier only plans that drew {expected_units} of {commitment.model_id}",
            )
        candidates.append(plan)
    require_one_draw(plan_class, candidates, commitment, committed_at)
    earlier = plans_of_method(plan_class, candidates, commitment, near_roots)
    for plan in earlier:
        check_any_plan(plan)
    return earlier


_DRAWN_UNITS: dict[type[AnyPlan], str] = {
    TaskPlan: "tasks",
    EmbeddingPlan: "embeddings",
}
"""By class of plan, what such a plan draws."""

"""The records of a repository: each read once, each verified beside the others."""

import dataclasses
import functools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from geneb_ci.audit.canonical import StepMismatch
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.log.check import log_content, lost_files, sha256_of
from geneb_ci.audit.record.events import (
    AuditEvent,
    EntryKind,
    WithdrawnAudit,
    parse_event,
    read_withdrawal,
)
from geneb_ci.audit.record.keys import RevokedKey, log_keys, trusted_keys
from geneb_ci.audit.record.statement import (
    WITHDRAWN,
    Record,
    check_place,
    event_files,
    parse_record,
    read_record,
    record_files,
    withdrawal_files,
)
from geneb_ci.audit.record.verify import (
    EARLIER,
    Verification,
    lost_entry,
    message_of,
    unreadable_record,
    verify_record,
)
from geneb_ci.audit.sampling.design import audit_policy
from geneb_ci.audit.sampling.embedding_draw import recompute_any
from geneb_ci.audit.sampling.plan import Plan, RowPlan, read_any_plan
from geneb_ci.audit.sampling.task_draw import plans_of_method, require_one_draw
from geneb_ci.audit.trust.applicability import LogContent, TrustInputs
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Layout, LayoutKind, benchmark_of
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt.seen import seen_receipts

_Parsed = Record | StepMismatch


class AuditRepository:
    """Reads the records of one place, and verifies records with its public inputs."""

    def __init__(self, layout: Layout, submissions: Path | None = None) -> None:
        folder = layout.root / "leaderboard" / "audits"
        if layout.audits is None and layout.kind is LayoutKind.GENEB_CI and folder.is_dir():
            # The first statement of a repository makes it, after the layout was read.
            layout = dataclasses.replace(layout, audits=folder)
        self.layout = layout
        self.submissions = submissions or layout.submissions
        self.keys = trusted_keys(layout)
        self._parsed: dict[Path, _Parsed] = {}
        self._raw: dict[Path, bytes] = {}
        """Records that have a withdrawal: both are read with the same bytes."""

    @functools.cached_property
    def files(self) -> list[Path]:
        """The records of the repository, in order of their paths."""
        return record_files(self.layout.audits) if self.layout.audits is not None else []

    @functools.cached_property
    def withdrawals(self) -> dict[Path, WithdrawnAudit | StepMismatch]:
        """Withdrawals, or why they are invalid, by the path of their record.

        One by a key that was revoked, or that the log does not have yet, is none.
        """
        by_record: dict[Path, WithdrawnAudit | StepMismatch] = {}
        for path in withdrawal_files(self.layout.audits) if self.layout.audits is not None else ():
            record = path.with_name(f"{path.name.removesuffix(WITHDRAWN)}.json")
            try:
                if record.is_file():
                    self._raw[record] = read_record(record)
                index, is_due = self._withdrawal_index(path)
                if is_due:
                    by_record[record] = read_withdrawal(
                        path, self.keys, self._raw.get(record), index
                    )
            except RevokedKey:
                continue
            except StepMismatch as error:
                by_record[record] = error
        return by_record

    def _withdrawal_index(self, path: Path) -> tuple[int | None, bool]:
        """Return the entry of a withdrawal in the log, and whether it counts already."""
        if self.logged is None:
            return None, True
        sha256 = sha256_of(read_record(path))
        index = self.logged.log.index_of(EntryKind.WITHDRAWAL, sha256)
        return index, index is not None

    @functools.cached_property
    def logged(self) -> LogContent | None:
        """The log beside what it lists; None where the policy names none."""
        keys = log_keys(self.layout)
        if keys is None or self.layout.audits is None:
            return None if keys is None else log_content(keys, None, {}, self.keys)
        return log_content(keys, self.layout.audits, self.events, self.keys)

    @functools.cached_property
    def events(self) -> dict[Path, AuditEvent | StepMismatch]:
        """Commitments, starts and aborts, or why they are invalid, by their path."""
        by_path: dict[Path, AuditEvent | StepMismatch] = {}
        for path in event_files(self.layout.audits) if self.layout.audits is not None else ():
            try:
                name = f"{path.parent.name}/{path.name}"
                by_path[path] = parse_event(read_record(path), name, self.keys)
            except StepMismatch as error:
                by_path[path] = error
        return by_path

    @functools.cached_property
    def inputs(self) -> TrustInputs:
        """The public inputs with which every record is verified."""
        drawn: list[Plan | RowPlan] = []
        unreadable: dict[str, str] = {}
        for path in self.files:
            record = self.parsed(path)
            if isinstance(record, Record):
                drawn.append(record.outcome.plan)
            elif not isinstance(self.withdrawals.get(path), WithdrawnAudit):
                unreadable[path.parent.name] = path.name
        for path, event in self.events.items():
            if isinstance(event, StepMismatch):
                unreadable.setdefault(path.parent.name, path.name)
            elif event.plan is not None:
                drawn.append(event.plan)
        return TrustInputs(
            benchmark_of(self.layout),
            audit_policy(self.layout),
            self.submissions,
            tuple(drawn),
            unreadable,
            self.logged,
            seen_receipts(self.layout),
        )

    def verification(self, path: Path, name: str = "") -> Verification:
        """Verify one record, of the repository or from elsewhere.

        `name` is how the record is shown. Raises NothingChecked when it cannot be opened.
        """
        name = name or str(path)
        withdrawn = self.withdrawals.get(path)
        if isinstance(withdrawn, StepMismatch):
            error = StepMismatch(withdrawn.step, f"its withdrawal: {message_of(withdrawn)}")
            return unreadable_record(name, error)
        record = self.parsed(path)
        if isinstance(record, StepMismatch):
            return unreadable_record(name, record, withdrawn)
        return verify_record(name, record, self._inputs_for(record), withdrawn)

    def _inputs_for(self, record: Record) -> TrustInputs:
        """Return the inputs; outside of any repository, the practice benchmark for its audits."""
        if self.layout.kind is LayoutKind.ALONE:
            practice = shipped_benchmark(PRACTICE_BENCHMARK)
            if record.outcome.plan.commitment.benchmark.name == practice.name:
                return dataclasses.replace(self.inputs, benchmark=practice)
        return self.inputs

    def verifications(self, model_id: str | None = None) -> Iterator[Verification]:
        """Verify every record of the repository, or of one model, in the order of their paths.

        A withdrawal without its record is among them, and so is what the log lists and is lost.
        """
        for path in sorted({*self.files, *self.withdrawals}):
            if model_id in {None, path.parent.name}:
                yield self.verification(path, f"{path.parent.name}/{path.name}")
        yield from self.lost(model_id)

    def lost(self, model_id: str | None = None) -> Iterator[Verification]:
        """Return a verification of each file that the log lists and that is deleted or changed."""
        if self.logged is not None:
            for name, reason in lost_files(model_id, self.logged).items():
                yield lost_entry(name, reason)

    def plans_of(self, model_id: str) -> list[Plan | RowPlan]:
        """Return every plan, of tasks and of rows: any may turn out to be for the same method.

        Raises StepMismatch, of the step "earlier", when a record cannot be read.
        """
        self.check_readable(model_id)
        return list(self.inputs.drawn)

    def check_readable(self, model_id: str) -> None:
        """Raise StepMismatch, of the step "earlier", when a record of a model cannot be read."""
        if model_id in self.inputs.unreadable:
            raise StepMismatch(
                EARLIER,
                f"{model_id}/{self.inputs.unreadable[model_id]} cannot be read, so its draw is "
                "not known",
                "fix that record first; `geneb-ci audit verify` shows what is wrong with it",
            )

    def parsed(self, path: Path) -> Record | StepMismatch:
        """Return a record, or why it cannot be parsed; each is read once."""
        if path not in self._parsed:
            try:
                raw = self._raw.get(path)
                record = parse_record(read_record(path) if raw is None else raw, self.keys)
                if path in self.files:
                    check_place(path, record)
                self._parsed[path] = record
            except StepMismatch as error:
                self._parsed[path] = error
        return self._parsed[path]


_P = TypeVar("_P", Plan, RowPlan)


def earlier_plans(
    kind: type[_P],
    commitment: Commitment,
    committed_at: str,
    repository: AuditRepository,
    files: Sequence[Path],
    near: Collection[str] = (),
) -> list[_P]:
    """Return the plans of earlier draws of tasks or of rows for this method, by time.

    They are of the repository and of files. Those of receipts whose root is among `near` count as
    of this method. Raises AuditRefused when this very commitment was drawn for as of another time;
    StepMismatch when a plan does not recompute, or a record cannot be read, since its draw would be
    missing; UsageProblem for a file with the plan of another model or kind.
    """
    candidates = repository.plans_of(commitment.model_id)
    for file in files:
        plan = read_any_plan(file)
        if not plans_of_method(kind, [plan], commitment):
            drawn, expected = (_DRAWN[type(plan)], _DRAWN[kind])
            raise UsageProblem(
                f"{file}: this plan is of {drawn} of {plan.commitment.model_id!r}, expected one of "
                f"{expected} of {commitment.model_id!r}",
                f"pass to --earlier only plans that drew {expected} of {commitment.model_id}",
            )
        candidates.append(plan)
    require_one_draw(kind, candidates, commitment, committed_at)
    earlier = plans_of_method(kind, candidates, commitment, near)
    for plan in earlier:
        recompute_any(plan)
    return earlier


_DRAWN: dict[type[Plan | RowPlan], str] = {Plan: "tasks", RowPlan: "rows"}

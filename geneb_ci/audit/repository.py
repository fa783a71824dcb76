"""The audits of a repository: each opened once, each verified against all the others."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from geneb_ci.audit.applicability import TrustInputs
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.draw import recompute
from geneb_ci.audit.keys import trusted_keys
from geneb_ci.audit.plan import Plan, read_plan
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.record import (
    WITHDRAWN,
    Record,
    check_place,
    opened_record,
    read_record,
    record_files,
    withdrawal_files,
)
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.audit.verify import EARLIER, Verification, said, unopened, verify
from geneb_ci.audit.withdrawal import Withdrawn, read_withdrawal
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK, Layout, LayoutKind, benchmark_of
from geneb_ci.common.errors import UsageProblem

_Opened = Record | StepMismatch


class AuditRepository:
    """Verifies records against one place."""

    def __init__(self, layout: Layout, submissions: Path | None = None) -> None:
        self.layout = layout
        self.submissions = submissions or layout.submissions
        self.keys = trusted_keys(layout)
        self._opened: dict[Path, _Opened] = {}

    @functools.cached_property
    def files(self) -> list[Path]:
        """The records that lie in the repository."""
        return record_files(self.layout.audits) if self.layout.audits is not None else []

    @functools.cached_property
    def withdrawals(self) -> dict[Path, Withdrawn | StepMismatch]:
        """What was withdrawn, by the path of its record."""
        found: dict[Path, Withdrawn | StepMismatch] = {}
        for path in withdrawal_files(self.layout.audits) if self.layout.audits is not None else ():
            record = path.with_name(f"{path.name.removesuffix(WITHDRAWN)}.json")
            try:
                found[record] = read_withdrawal(path, self.keys)
            except StepMismatch as error:
                found[record] = error
        return found

    @functools.cached_property
    def ground(self) -> TrustInputs:
        """What every record is held against."""
        drawn: dict[str, tuple[Plan, ...]] = {}
        unreadable: dict[str, str] = {}
        for path in self.files:
            record = self._open(path)
            if isinstance(record, Record):
                plan = record.outcome.plan
                model_id = plan.commitment.model_id
                drawn[model_id] = (*drawn.get(model_id, ()), plan)
            elif not isinstance(self.withdrawals.get(path), Withdrawn):
                unreadable[path.parent.name] = path.name
        return TrustInputs(
            benchmark_of(self.layout),
            audit_policy(self.layout),
            self.submissions,
            drawn,
            unreadable,
        )

    def verify(self, path: Path, name: str = "") -> Verification:
        """Verify one record, of the repository or from elsewhere.

        Raises NothingChecked when the file cannot be opened.
        """
        name = name or str(path)
        withdrawn = self.withdrawals.get(path)
        if isinstance(withdrawn, StepMismatch):
            error = StepMismatch(withdrawn.step, f"its withdrawal: {said(withdrawn)}")
            return unopened(name, error)
        record = self._open(path)
        if isinstance(record, StepMismatch):
            return unopened(name, record, withdrawn)
        return verify(name, record, self._ground_of(record), withdrawn)

    def _ground_of(self, record: Record) -> TrustInputs:
        """Return the ground; outside of any repository, the practice benchmark for its audits."""
        if self.layout.kind is LayoutKind.ALONE:
            practice = shipped_benchmark(PRACTICE_BENCHMARK)
            if record.outcome.plan.commitment.benchmark.name == practice.name:
                return dataclasses.replace(self.ground, benchmark=practice)
        return self.ground

    def verifications(self, model_id: str | None = None) -> Iterator[Verification]:
        """Verify every record of the repository, or of one model, in the order of their paths.

        A withdrawal without its record is among them.
        """
        for path in sorted({*self.files, *self.withdrawals}):
            if model_id in {None, path.parent.name}:
                yield self.verify(path, f"{path.parent.name}/{path.name}")

    def plans_of(self, model_id: str) -> list[Plan]:
        """Return the plan of each record of a model, whichever of its files was audited.

        Raises StepMismatch, of the step "earlier", when a record cannot be read.
        """
        if model_id in self.ground.unreadable:
            raise StepMismatch(
                EARLIER,
                f"{model_id}/{self.ground.unreadable[model_id]} cannot be read, so what it drew is "
                "not known",
                "mend that record first; `geneb-ci audit verify` shows what is wrong with it",
            )
        return list(self.ground.drawn.get(model_id, ()))

    def _open(self, path: Path) -> _Opened:
        if path not in self._opened:
            try:
                record = opened_record(read_record(path), self.keys)
                if path in self.files:
                    check_place(path, record)
                self._opened[path] = record
            except StepMismatch as error:
                self._opened[path] = error
        return self._opened[path]


def earlier_plans(
    commitment: Commitment, repository: AuditRepository, files: Sequence[Path]
) -> list[Plan]:
    """Read the plans of earlier draws for this model, from its records and from files.

    Raises StepMismatch when one of them does not follow from its own commitment and beacon, or
    cannot be read: what it drew would be missing.
    """
    plans = repository.plans_of(commitment.model_id)
    for plan in plans:
        recompute(plan)
    for file in files:
        plan = read_plan(file)
        if plan.commitment.model_id != commitment.model_id:
            raise UsageProblem(
                f"{file}: this plan is for another model: {plan.commitment.model_id!r}",
                f"name plans of {commitment.model_id} alone",
            )
        recompute(plan)
        plans.append(plan)
    return plans

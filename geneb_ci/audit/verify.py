"""Verifies a record step by step from public data: no network, and no step on its own word."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from geneb_ci.audit import bearing, steps
from geneb_ci.audit.claims import COMPARISON, check_comparison
from geneb_ci.audit.earlier import earlier_draws
from geneb_ci.audit.envelope import ENVELOPE, SIGNER, STATEMENT
from geneb_ci.audit.fallback import is_open
from geneb_ci.audit.ground import Ground, NotHere
from geneb_ci.audit.outcome import Outcome
from geneb_ci.audit.plan import FallbackBeacon, Plan
from geneb_ci.audit.recompute import recompute
from geneb_ci.audit.record import Record
from geneb_ci.audit.steps import AuditRefused, StepMismatch
from geneb_ci.audit.withdrawal import Withdrawn

EARLIER = "earlier"
OPENING = (ENVELOPE, SIGNER, STATEMENT)
_Check = Callable[[Outcome, Ground], None]


class State(StrEnum):
    """What became of a step."""

    HOLDS = "holds"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    """It could not be computed: a step before it differs, or something it needs is not here."""


class Step(NamedTuple):
    """One step of a verification."""

    name: str
    state: State
    message: str = ""
    fix: str = ""


class Verification(NamedTuple):
    """What became of one record."""

    name: str
    record: Record | None
    """None when it could not be opened."""
    steps: tuple[Step, ...]
    withdrawn: Withdrawn | None = None

    @property
    def holds(self) -> bool:
        """Whether every step holds: the record is evidence here."""
        return all(step.state is State.HOLDS for step in self.steps)

    @property
    def differs(self) -> tuple[Step, ...]:
        """The steps that came out otherwise."""
        return tuple(step for step in self.steps if step.state is State.DIFFERS)

    @property
    def broken(self) -> tuple[Step, ...]:
        """The steps that differ although they need nothing that changes: forged, or damaged."""
        return tuple(step for step in self.differs if step.name not in _BEARING)

    @property
    def is_sound(self) -> bool:
        """Whether the record holds in itself, be it evidence here or not."""
        return all(step.state is State.HOLDS for step in self.steps if step.name not in _BEARING)


def _check_earlier(outcome: Outcome, ground: Ground) -> None:
    """Refuse a plan that leaves out a draw for the same model before it."""
    plan = outcome.plan
    model_id = plan.commitment.model_id
    before = [one for one in ground.drawn.get(model_id, ()) if _moment(one) < _moment(plan)]
    try:
        due = earlier_draws(before, plan.commitment, plan.committed_at)
    except AuditRefused as error:
        raise StepMismatch(EARLIER, error.message, error.fix) from error
    listed = {one.commitment: set(one.drawn) for one in plan.earlier}
    for draw in due:
        if not set(draw.drawn) <= listed.get(draw.commitment, set()):
            raise StepMismatch(
                EARLIER,
                f"the draw for commitment {draw.commitment[:16]}... came before, and is left out",
                "plan the audit again with the records of the repository",
            )
    if model_id in ground.unreadable:
        raise NotHere(
            EARLIER,
            f"{ground.unreadable[model_id]} cannot be read, so what it drew is not known",
            "mend that record first",
        )


def _moment(plan: Plan) -> tuple[str, str]:
    return (plan.committed_at, plan.commitment_sha256)


def _check_beacon(outcome: Outcome, ground: Ground) -> None:
    """Take a fallback only under a key that was published, and once that key is revealed."""
    beacon = outcome.plan.beacon
    if not isinstance(beacon, FallbackBeacon):
        return
    policy = ground.policy
    if beacon.key_sha256 not in (*policy.fallback_keys, *policy.spent_keys):
        raise StepMismatch(
            steps.SIGNATURE,
            f"the fallback key {beacon.key_sha256[:16]}... was never published",
            "policy.toml lists their digests: fallback_keys, and spent_keys once they are revealed",
        )
    if is_open(beacon):
        raise NotHere(
            steps.SIGNATURE,
            "the fallback key is not revealed yet, so nobody can verify the draw",
            "wait for the end of the key's epoch",
        )


# Steps that hold a record against what may change after it was signed.
_BEARING: dict[str, _Check] = {
    bearing.SUBMISSION: bearing.check_submission,
    bearing.BENCHMARK: bearing.check_benchmark,
    bearing.POLICY: bearing.check_policy,
    bearing.HARNESS: bearing.check_harness,
    bearing.SANDBOX: bearing.check_sandbox,
}
_OWN: dict[str, _Check] = {EARLIER: _check_earlier, COMPARISON: check_comparison}
STEPS = (*OPENING, *steps.STEPS, *_OWN, *_BEARING)
"""Every step, in the order in which they are shown."""


def unopened(name: str, error: StepMismatch, withdrawn: Withdrawn | None = None) -> Verification:
    """Give the verification of a record that could not be opened."""
    found = [*_up_to(OPENING, error)]
    rest = [Step(step, State.UNKNOWN) for step in STEPS[len(OPENING) :]]
    return Verification(name, None, (*found, *rest), withdrawn)


def verify(
    name: str, record: Record, ground: Ground, withdrawn: Withdrawn | None = None
) -> Verification:
    """Verify a record that was opened; every step is looked at, whatever the others say."""
    found = [Step(step, State.HOLDS) for step in OPENING]
    found += _draw(record.outcome, ground)
    for step, check in (_OWN | _BEARING).items():
        try:
            check(record.outcome, ground)
        except StepMismatch as error:
            # A claim that is not here leaves several steps open; each names itself.
            found.append(_failed(step, error))
        else:
            found.append(Step(step, State.HOLDS))
    return Verification(name, record, tuple(found), withdrawn)


def _draw(outcome: Outcome, ground: Ground) -> Iterator[Step]:
    """Give the steps of the draw; each follows from the one before."""
    try:
        recompute(outcome.plan)
        _check_beacon(outcome, ground)
    except StepMismatch as error:
        yield from _up_to(steps.STEPS, error)
    else:
        yield from (Step(step, State.HOLDS) for step in steps.STEPS)


def _up_to(names: tuple[str, ...], error: StepMismatch) -> Iterator[Step]:
    at = names.index(error.step)
    yield from (Step(name, State.HOLDS) for name in names[:at])
    yield _failed(error.step, error)
    yield from (Step(name, State.UNKNOWN) for name in names[at + 1 :])


def _failed(step: str, error: StepMismatch) -> Step:
    state = State.UNKNOWN if isinstance(error, NotHere) else State.DIFFERS
    return Step(step, state, said(error), error.fix)


def said(error: StepMismatch) -> str:
    """Give what a mismatch says beside the name of its step."""
    return error.message.removeprefix(f"{error.step}: ")

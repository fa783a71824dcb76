"""A repository whose signed statements name each other, and steps of an audit in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, RerunResult
from geneb_ci.audit.record.events import AuditAbort, AuditStart, signed_event, withdrawal_of
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.signing import Signing, heads_for_statement, write_record
from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX, record_of
from geneb_ci.audit.record.verify import StepState, Verification
from geneb_ci.audit.sampling.plan import TaskPlan
from geneb_ci.common.config import Layout, find_layout
from tests.audit.recorded import FIRST, MODEL, entry, key, outcome_of, plan_for, submission_bytes

AUDITS = "leaderboard/audits"
RAW = submission_bytes()
AGAIN = submission_bytes(" again")
OTHER = key("another")
KEYS = [entry(), entry(OTHER, owner="another maintainer")]
"""A submission, a later version of it, a second key, and a list of both."""


def layout_of(root: Path) -> Layout:
    """Return the layout as it is now."""
    find_layout.cache_clear()
    return find_layout(root)


def read(root: Path) -> AuditRepository:
    """Read the repository from its files."""
    return AuditRepository(layout_of(root))


def name_of(path: Path) -> str:
    """Return the path of a statement below the folder of audits."""
    return f"{path.parent.name}/{path.name}"


def heads_of(root: Path) -> list[str]:
    """Return the names of the heads."""
    return list(read(root).history.heads)


def signing_of(
    root: Path, of: Ed25519PrivateKey | None = None, shown_on: str | None = None
) -> Signing:
    """Return what signs statements of the repository."""
    return Signing(layout_of(root), of or key(), root / AUDITS, print, shown_on)


def committed(root: Path, commitment: Commitment, of: Ed25519PrivateKey | None = None) -> Path:
    """Sign a commitment."""
    path = signing_of(root, of).sign_commitment(commitment)
    assert path is not None
    return path


def started(
    root: Path, plan: TaskPlan, of: Ed25519PrivateKey | None = None, shown_on: str | None = None
) -> Path:
    """Sign the start of a plan."""
    path = signing_of(root, of, shown_on).sign_start(plan)
    assert path is not None
    return path


def recorded(root: Path, outcome: AnyOutcome, of: Ed25519PrivateKey | None = None) -> Path:
    """Sign a record."""
    return write_record(RerunResult(outcome), of or key(), layout_of(root), root / AUDITS)


def signed(
    root: Path,
    what: Commitment | AuditStart | AuditAbort | AnyOutcome,
    heads: Mapping[str, str] | None,
    of: Ed25519PrivateKey | None = None,
) -> Path:
    """Sign what names these heads, whether they are the newest or not."""
    if isinstance(what, Commitment | AuditStart | AuditAbort):
        made = signed_event(what, of or key(), heads)
    else:
        made = record_of(what, of or key(), heads)
    path = root / AUDITS / made.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.content)
    return path


def withdrawn(path: Path, of: Ed25519PrivateKey | None = None) -> Path:
    """Withdraw a record."""
    root = path.parents[3]
    heads = heads_for_statement(read(root), name_of(path))
    now = "2026-11-20T08:30:00Z"
    raw = withdrawal_of(
        path.parent.name, path.read_bytes(), "wrong weights", now, of or key(), heads
    )
    withdrawal_path = path.with_name(f"{path.stem}{WITHDRAWN_SUFFIX}")
    withdrawal_path.write_bytes(raw)
    return withdrawal_path


def begun(root: Path, plan: TaskPlan, of: Ed25519PrivateKey | None = None) -> TaskPlan:
    """Commit and start."""
    committed(root, plan.commitment, of)
    started(root, plan, of)
    return plan


def audited(
    root: Path, raw: bytes, number: int = FIRST, shift: float = 0.0, **changes: Any
) -> Path:
    """Make a whole audit; gives the record."""
    plan = begun(root, plan_for(raw, number, **changes))
    return recorded(root, outcome_of(plan, raw, shift))


def abort_of(plan: TaskPlan, message: str = "CUDA out of memory", at: int = 0) -> AuditAbort:
    """Return the abort of a run of a plan."""
    outcome = outcome_of(plan, submission_bytes())
    return AuditAbort(
        schema_version="1.0",
        plan=plan,
        stage="embedding",
        task=plan.chosen[0].task,
        kind="failed",
        message=message,
        sandbox=outcome.sandbox,
        started_at=outcome.started_at,
        finished_at=moment_of(1_700_000_000 + at),
    )


def aborted(root: Path, plan: TaskPlan, at: int = 0, of: Ed25519PrivateKey | None = None) -> Path:
    """Sign the abort of a run of a plan."""
    return signed(root, abort_of(plan, at=at), heads_for_statement(read(root)), of)


def step(verification: Verification, name: str = "links") -> tuple[StepState, str]:
    """Return state and message of a step."""
    (named_step,) = (item for item in verification.steps if item.name == name)
    return named_step.state, named_step.message


def files_of(root: Path, suffix: str) -> list[Path]:
    """Return the statements of the model of the tests, by the end of their names."""
    return sorted((root / AUDITS / MODEL).glob(f"*{suffix}"))

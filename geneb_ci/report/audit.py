"""What became of audit records: every step with a tick or its fault, as text or JSON."""

import json
from collections.abc import Sequence
from typing import Any

from geneb_ci.audit.verify import State, Verification
from geneb_ci.finding import counted
from geneb_ci.report.plain import visible

_MARKS = {State.HOLDS: "✓", State.DIFFERS: "✗", State.UNKNOWN: "?"}
_NOT_LOOKED_AT = "not looked at, because of the step above"


def verification_text(found: Sequence[Verification]) -> str:
    """Render verifications for a terminal; ends with one newline."""
    lines: list[str] = []
    for one in found:
        lines += [f"{visible(one.name)}: {_headline(one)}"]
        for step in one.steps:
            message = step.message or (_NOT_LOOKED_AT if step.state is State.UNKNOWN else "")
            said = f": {visible(message)}" if message else ""
            lines.append(f"  {_MARKS[step.state]} {step.name}{said}")
            if step.fix:
                lines.append(f"      fix: {visible(step.fix)}")
        if one.withdrawn is not None:
            lines.append(
                f"  withdrawn {one.withdrawn.withdrawn_at}: {visible(one.withdrawn.reason)}"
            )
        lines.append("")
    held = sum(one.holds for one in found)
    return "\n".join([*lines, f"{counted(len(found), 'record')}: {held} verified"]) + "\n"


def _headline(one: Verification) -> str:
    if one.differs:
        return f"refused at {', '.join(step.name for step in one.differs)}"
    if not one.holds:
        unknown = [step.name for step in one.steps if step.state is State.UNKNOWN]
        return f"not verified: {', '.join(unknown)} could not be computed"
    if one.record is None:
        return "verified"
    outcome = one.record.outcome
    return (
        f"verified; {counted(len(outcome.plan.drawn), 'task')} drawn of "
        f"{len(outcome.plan.commitment.tasks)}, {len(outcome.tasks)} rerun in sandbox level "
        f"{outcome.sandbox.level}; the claim {visible(outcome.verdict)}"
    )


def verification_json(found: Sequence[Verification]) -> str:
    """Render verifications for a program."""
    value = {"schema_version": "1.0", "records": [_record(one) for one in found]}
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _record(one: Verification) -> dict[str, Any]:
    outcome = one.record.outcome if one.record is not None else None
    return {
        "record": one.name,
        "audit_id": one.record.audit_id if one.record is not None else None,
        "model_id": outcome.plan.commitment.model_id if outcome is not None else None,
        "submission_sha256": outcome.plan.commitment.submission_sha256 if outcome else None,
        "verdict": outcome.verdict if outcome is not None else None,
        "signed_by": one.record.signer.owner if one.record is not None else None,
        "verified": one.holds,
        "refused_at": [step.name for step in one.differs],
        "withdrawn": one.withdrawn.reason if one.withdrawn is not None else None,
        "steps": [
            {"step": s.name, "state": str(s.state), "message": s.message, "fix": s.fix}
            for s in one.steps
        ],
    }

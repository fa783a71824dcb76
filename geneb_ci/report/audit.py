"""What became of audit records: every step with a tick or its fault, as text or JSON."""

import json
from collections.abc import Sequence
from typing import Any

from geneb_ci.audit.verify import State, Verification
from geneb_ci.finding import counted
from geneb_ci.report.text import escape

_MARKS = {State.HOLDS: "✓", State.DIFFERS: "✗", State.UNKNOWN: "?"}
_HELD = {
    "envelope": "one DSSE envelope with one signature, in the bytes that we write",
    "signer": "signed by a trusted key that was valid then",
    "statement": "an audit record, in itself without contradiction",
    "commitment": "its digest is the one that was published",
    "round": "the round of the beacon that the moment of the commitment fixes",
    "signature": "the beacon signed this round",
    "seed": "of commitment and beacon alone",
    "tickets": "of seed and tasks alone",
    "sample": "the tasks with the smallest tickets, and those of earlier draws",
    "earlier": "no earlier draw of the repository is left out",
    "comparison": "every verdict follows from its numbers",
    "submission": "the file here is the one that was audited",
    "benchmark": "the definition in force",
    "policy": "as many tasks and regimes as it asks for",
    "harness": "the version in force, unchanged",
    "sandbox": "a level that counts, and every escape refused",
}
_WIDTH = max(map(len, _HELD))
_NOT_LOOKED_AT = "not looked at, because of the step above"


def verification_text(found: Sequence[Verification]) -> str:
    """Render verifications for a terminal; ends with one newline."""
    lines: list[str] = []
    for one in found:
        lines += [f"{escape(one.name)}: {_headline(one)}"]
        for step in one.steps:
            message = step.message or (_NOT_LOOKED_AT if step.state is State.UNKNOWN else "")
            said = escape(message) if message else _HELD[step.name]
            lines.append(f"  {_MARKS[step.state]} {step.name:<{_WIDTH}}  {said}")
            if step.fix:
                lines.append(f"      fix: {escape(step.fix)}")
        if one.withdrawn is not None:
            lines.append(
                f"  withdrawn {one.withdrawn.withdrawn_at}: {escape(one.withdrawn.reason)}"
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
        f"{outcome.sandbox.level}; the claim {escape(outcome.verdict)}"
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

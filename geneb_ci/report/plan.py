"""What a draw gave, for a terminal."""

from geneb_ci.audit.fallback import is_open
from geneb_ci.audit.plan import FallbackBeacon, Plan
from geneb_ci.finding import counted
from geneb_ci.report.plain import visible


def plan_text(plan: Plan, targeted: int, name: str) -> str:
    """Say what was drawn, and what to do next; `targeted` tasks were asked for beside it."""
    by_reason = {
        reason: [one.task for one in plan.chosen if one.reason == reason]
        for reason in ("drawn", "earlier", "targeted")
    }
    source = plan.beacon
    if isinstance(source, FallbackBeacon):
        what = "the fallback key" + (", to be revealed at its epoch's end" * is_open(source))
    else:
        what = f"round {source.round} of drand quicknet"
    lines = [f"{visible(plan.commitment.model_id)}: seed {plan.seed}, by {what}"]
    for reason, tasks in by_reason.items():
        if tasks:
            lines += [
                f"{counted(len(tasks), 'task')} {reason}:",
                *(f"  {visible(task)}" for task in tasks),
            ]
    if len(by_reason["targeted"]) < targeted:
        lines.append("no more tasks stand out: fewer are targeted than were asked for")
    lines += [
        f"check that commitment {plan.commitment_sha256[:16]}... was public at {plan.committed_at}",
        f"next: geneb-ci audit run {name}",
    ]
    return "\n".join(lines) + "\n"

"""Draws for earlier versions of a submission: whoever pushes again is audited on all of them.

Else a forger pushes until a draw misses what is forged: with 20 of 100 tasks fabricated and ten
drawn, one draw in ten misses, so that ten pushes mostly suffice. On the union no push helps.
"""

from collections.abc import Iterable

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.plan import EarlierDraw, Plan
from geneb_ci.audit.steps import AuditRefused


def earlier_draws(
    plans: Iterable[Plan], commitment: Commitment, committed_at: str
) -> list[EarlierDraw]:
    """Give the draw of each earlier plan for this model, and those which that plan lists.

    Each commitment counts once, with all that was ever drawn for it, in order of time. Plans for
    other models are left out. Raises AuditRefused when this very commitment was drawn for at
    another time: its draw stands.
    """
    found: dict[str, dict[str, None]] = {}
    mine = commitment.sha256
    for plan in sorted(plans, key=lambda one: (one.committed_at, one.commitment_sha256)):
        if plan.commitment.model_id != commitment.model_id:
            continue
        if plan.commitment_sha256 == mine and plan.committed_at != committed_at:
            raise AuditRefused(
                f"this commitment was drawn for already, as of {plan.committed_at}",
                "its draw stands: there is one draw for one commitment. Run that plan",
            )
        draws = [(one.commitment, one.drawn) for one in plan.earlier]
        for name, drawn in (*draws, (plan.commitment_sha256, plan.drawn)):
            if name != mine:
                found.setdefault(name, {}).update(dict.fromkeys(drawn))
    return [EarlierDraw(commitment=name, drawn=list(drawn)) for name, drawn in found.items()]


def drawn_before(plans: Iterable[Plan], commitment: Commitment) -> int:
    """Give the largest sample drawn for this very commitment; 0 when there was none."""
    mine = commitment.sha256
    return max((len(plan.drawn) for plan in plans if plan.commitment_sha256 == mine), default=0)

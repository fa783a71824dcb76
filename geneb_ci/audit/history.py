"""The plans of earlier draws for a model: from its records, and from files."""

from collections.abc import Sequence
from pathlib import Path

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.files import read_plan
from geneb_ci.audit.plan import Plan
from geneb_ci.audit.recompute import recompute
from geneb_ci.audit.repository import Repository
from geneb_ci.errors import UsageProblem


def earlier_plans(
    commitment: Commitment, repository: Repository, files: Sequence[Path]
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

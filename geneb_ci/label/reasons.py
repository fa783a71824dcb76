"""Why a row has its level, in sentences: the reason, and what became of each of its audits."""

import re

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.config import Layout
from geneb_ci.finding import Severity, counted
from geneb_ci.label.evidence import Evidence, gather
from geneb_ci.label.policy import NO_SANDBOX, Audit, Decision, Demands, shortcoming
from geneb_ci.read.submission import MODEL_ID_PATTERN


def standing(audit: Audit, sha256: str, demands: Demands) -> str:
    """Say what an audit is worth for a submission of these bytes."""
    other = [
        name
        for name in ("harness", "benchmark", "dataset")
        if getattr(audit.versions, name) != getattr(demands.versions, name)
    ]
    why_not = {
        f"withdrawn: {audit.withdrawn}": bool(audit.withdrawn),
        "it was of other bytes than the file has now": audit.submission_sha256 != sha256,
        "sandbox level 0 never counts": audit.sandbox == NO_SANDBOX,
        "the harness that scored had changes of its own": not audit.is_clean,
    }
    if audit.agrees:
        level = f"sandbox level {audit.sandbox}, and evidence begins at {demands.minimum_level}"
        why_not |= {
            level: audit.sandbox < demands.minimum_level,
            "not every escape from its sandbox was refused": not audit.is_tight,
            f"it was for another {', '.join(other)}": bool(other),
            shortcoming(audit, demands): bool(shortcoming(audit, demands)),
        }
    first = next((reason for reason, holds in why_not.items() if holds), "")
    return f"does not suffice: {first}" if first else "counts"


def reasons(model_id: str, sha256: str, evidence: Evidence) -> list[str]:
    """Say why a row has its level, one line a fact."""
    decision = evidence.decide(sha256)
    lines = [f"{decision.level}: {decision.reason}"]
    if decision.is_official and decision.level != "official":
        lines.append("the file is the authors' own, by its sha256")
    for audit in evidence.of_model(model_id):
        verdict = "agrees" if audit.agrees else "differs"
        lines.append(
            f"audit {audit.audit_id} of {audit.date}: {counted(audit.drawn, 'task')} drawn, "
            f"{len(audit.tasks)} rerun, with force {audit.force}, sandbox level {audit.sandbox}, "
            f"{verdict}; "
            f"{standing(audit, sha256, evidence.demands)}"
        )
    return lines


def shown_audit(decision: Decision) -> str:
    """Write what the board shows of a row's audits: "audited 13/100, sandbox level 2, ..."."""
    found = decision.audit
    if found is None:
        return ""
    return f"audited {found.tasks}/{found.of}, sandbox level {found.sandbox}, {found.date}"


def story(model_id: str, layout: Layout) -> list[str] | None:
    """Say why the row of a model has its level; None where the place has no such submission.

    Raises BrokenRecordError when a record of the model is broken.
    """
    if layout.submissions is None or not re.fullmatch(MODEL_ID_PATTERN, model_id):
        return None
    path = layout.submissions / f"{model_id}.json"
    if not path.is_file():
        return None
    result = Checker(RULES).check(path)
    errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
    if errors:
        return [f"not on the board: {counted(errors, 'error')}; `geneb-ci check` shows them"]
    evidence = gather(layout, model_id)
    evidence.require_sound()
    return reasons(model_id, result.document.sha256, evidence)

"""From what was judged to what may be said: texts cut to their fields, the rest in numbers."""

import math
from collections.abc import Sequence

from geneb_ci.check.registry import BY_ID
from geneb_ci.finding import Finding, Severity, shown
from geneb_ci.forge.base import Base
from geneb_ci.forge.judge import Judged
from geneb_ci.forge.outcome import CRASHED, chosen, counts_of, outcome_of, places_of
from geneb_ci.forge.replies import Pull
from geneb_ci.forge.standing import audit_estimate, comparison, neighbour, standings
from geneb_ci.forge.verdict import PullVerdict, VerdictFinding
from geneb_ci.report.plain import visible

SHORT, LONG = 255, 600  # characters of a field of the verdict


def pull_verdict(pull: Pull, judged: Judged, base: Base) -> PullVerdict:
    """Say what became of a pull request."""
    result, context = judged.result, judged.context
    places = places_of(judged.findings)
    is_sound = result is not None and not counts_of(places).error
    own = result.submission if result is not None and is_sound else None
    digest = result.document.sha256 if result is not None else ""
    board, benchmark = base.rows, base.benchmark
    model = judged.change.model or None
    return PullVerdict(
        number=pull.number,
        head_sha=pull.head.sha,
        base_sha=judged.merge_base,
        outcome=outcome_of(places, is_checked=result is not None),
        model=model,
        level=base.level(own, digest).value if own is not None else None,
        is_edit=any(row.model_id == model for row in board),
        files=list(judged.files),
        places=places,
        weight=_weight(judged.findings),
        findings=_findings(judged.findings),
        comparison=comparison(own, board, benchmark) if own is not None else None,
        standings=standings(own, board, benchmark, base.ties(own)) if own is not None else [],
        neighbour=neighbour(context) if own is not None and context is not None else None,
        audit=audit_estimate(benchmark, base.policy) if own is not None else None,
    )


def crash_verdict(pull: Pull, merge_base: str, error: Exception) -> PullVerdict:
    """Say that we failed, and of what: a pull request on which we fail does not pass."""
    rule = BY_ID[CRASHED]
    what = f"reading the pull request failed: {type(error).__name__}: {shown(str(error))}"
    finding = Finding(rule.id, rule.severity, what, "", "", 1, 1, "", "", rule.fix)
    places = places_of([finding])
    return PullVerdict(
        number=pull.number,
        head_sha=pull.head.sha,
        base_sha=merge_base,
        outcome=outcome_of(places, is_checked=False),
        model=None,
        level=None,
        is_edit=False,
        files=[],
        places=places,
        weight=0.0,
        findings=_findings([finding]),
        comparison=None,
        standings=[],
        neighbour=None,
        audit=None,
    )


def _weight(findings: Sequence[Finding]) -> float:
    """Sum the scores of all warnings; one without a measure counts as one at its threshold."""
    warnings = (finding for finding in findings if finding.severity is Severity.WARNING)
    return round(math.fsum(max(1.0, finding.score) for finding in warnings), 1)


def _findings(findings: Sequence[Finding]) -> list[VerdictFinding]:
    return [
        VerdictFinding(
            rule=finding.rule,
            severity=Severity(finding.severity).value,
            message=visible(finding.message, LONG),
            file=visible(finding.file, SHORT),
            pointer=visible(finding.pointer, SHORT),
            line=finding.line,
            column=finding.column,
            found=visible(finding.found, SHORT),
            expected=visible(finding.expected, SHORT),
            fix="" if finding.fix == BY_ID[finding.rule].fix else visible(finding.fix, LONG),
            score=finding.score,
        )
        for finding in chosen(findings)
    ]

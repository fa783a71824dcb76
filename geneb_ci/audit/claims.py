"""The comparison of a record, made again: claims of the file, verdicts of the numbers."""

from geneb_ci.audit.envelope import RESTORE
from geneb_ci.audit.ground import Ground
from geneb_ci.audit.outcome import Compared, Outcome, Triple, Verdict
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.audit.verdict import overall_verdict, task_verdict, verdict_of
from geneb_ci.read.submission import Evidence, Scores, Submission, SubmissionV11

COMPARISON = "comparison"


def check_comparison(outcome: Outcome, ground: Ground) -> None:
    """Make the comparison again; where the file is another or not here, without its claims."""
    plan = outcome.plan
    planned = [(one.task, one.reason) for one in plan.chosen]
    if [(one.task, one.reason) for one in outcome.tasks] != planned:
        _refuse("the tasks compared are not those of the plan, in its order")
    claim = ground.claim(plan.commitment.model_id)
    known = claim is not None and claim.sha256 == plan.commitment.submission_sha256
    submission = claim.submission if claim is not None and known else None
    for one in outcome.tasks:
        due = [
            regime
            for regime in plan.commitment.regimes
            if submission is None or one.task in submission.results.get(regime, {})
        ]
        if not set(one.regimes) <= set(due) or (
            submission is not None and len(one.regimes) < len(due)
        ):
            _refuse(f"{one.task} is compared in {sorted(one.regimes)}, and it claims {sorted(due)}")
        for regime, compared in one.regimes.items():
            place = f"{one.task}, {regime}"
            if submission is not None:
                _check_claim(place, compared, *_cell(submission, regime, one.task))
            _check_verdicts(place, compared)
        _check(one.task, one.verdict, task_verdict(one.regimes.values()))
    _check("the whole audit", outcome.verdict, overall_verdict(outcome.tasks, outcome.decoys))


def _cell(submission: Submission, regime: str, task: str) -> tuple[Scores | None, Evidence | None]:
    scores = submission.results.get(regime, {}).get(task)
    evidence = submission.evidence if isinstance(submission, SubmissionV11) else {}
    return scores, evidence.get(regime, {}).get(task)


def _check_claim(
    place: str, compared: Compared, scores: Scores | None, evidence: Evidence | None
) -> None:
    if not _same(compared.claimed, scores):
        _refuse(f"{place}: the submission does not claim {_text(compared.claimed)}")
    if (compared.predictions_equal is None) != (evidence is None):
        _refuse(f"{place}: predictions are compared without a digest, or not in spite of one")
    canonical = evidence.canonical if evidence is not None else None
    if (compared.canonical is None) != (canonical is None) or (
        compared.canonical is not None and not _same(compared.canonical.claimed, canonical)
    ):
        _refuse(f"{place}: the canonical scores are not those that the submission claims")


def _same(claimed: Triple, scores: Scores | None) -> bool:
    return scores is not None and claimed.model_dump() == scores.model_dump()


def _check_verdicts(place: str, compared: Compared) -> None:
    if compared.canonical is not None:
        _check(f"{place}, canonical", compared.canonical.verdict, verdict_of(compared.canonical))
    _check(place, compared.verdict, verdict_of(compared))


def _check(place: str, given: Verdict, due: Verdict) -> None:
    if given != due:
        _refuse(f"{place}: the verdict is {given!r}, and the numbers say {due!r}")


def _text(triple: Triple) -> str:
    return f"MCC {triple.MCC}, Acc {triple.Acc}, F1 {triple.F1}"


def _refuse(message: str) -> None:
    raise StepMismatch(COMPARISON, message, RESTORE)

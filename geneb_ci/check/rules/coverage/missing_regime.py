"""missing-regime: a regime of the benchmark has no scores."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "missing-regime"


def check(context: Context) -> Iterator[Fault]:
    """Report each regime that has no scores and is not declared missing as a whole."""
    results = context.member("results")
    if not isinstance(results, dict):
        return
    for regime in context.benchmark.regimes:
        if regime not in results and set(context.benchmark.task_ids) - set(context.gaps(regime)):
            yield Fault(
                ID,
                ("results",),
                f'no scores for the regime "{regime}"',
                "no scores",
                f"scores of {len(context.benchmark.tasks)} tasks",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A regime of the benchmark has no scores.",
    why="Leaving out the regime in which a model is weak would make it look better than it is.",
    fix="Run the missing regime: `geneb-harness run --regimes full,10shot,1shot`.",
    check=check,
)

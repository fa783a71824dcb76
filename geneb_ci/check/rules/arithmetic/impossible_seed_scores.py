"""impossible-seed-scores: no confusion matrix gives the three metrics of one seed together."""

from collections.abc import Iterator

from geneb_ci.check.claims import two_classes
from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.check.rules.arithmetic.impossible_scores import nearest_text
from geneb_ci.check.rules.arithmetic.inconsistent_metrics import broken
from geneb_ci.common.benchmark import Task
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.binary import acc_limits, runs
from geneb_ci.statistics.printed import Reading
from geneb_ci.submission.fault import Fault

ID = "impossible-seed-scores"


def check(context: Context) -> Iterator[Fault]:
    """Report, once per cell, the first seed whose metrics no confusion matrix gives."""
    seeds = context.benchmark.protocol.seeds
    for claim in context.seed_claims:
        verdicts: dict[Reading, bool] = {}
        for reading in claim.readings:
            if reading not in verdicts:
                verdicts[reading] = exists(claim.task, reading)
        wrong = [i for i, reading in enumerate(claim.readings) if not verdicts[reading]]
        if wrong:
            first = claim.readings[wrong[0]]
            more = f" (so for {len(wrong)} of {len(seeds)} seeds)" if len(wrong) > 1 else ""
            yield Fault(
                ID,
                claim.path,
                f'seed {seeds[wrong[0]]} of {quoted(claim.task.id)} in "{claim.regime}": '
                f"{_why(claim.task, first)}{more}",
                str(first.value),
                "metrics of one confusion matrix",
                on_key=True,
            )


def exists(task: Task, reading: Reading) -> bool:
    """Whether a confusion matrix may give a triple; True if n_test and class sizes are unknown."""
    classes = two_classes(task)
    if classes is not None:
        return next(runs(classes, reading), None) is not None
    if task.n_test is None:
        return True
    low, high = acc_limits(task.n_test, reading)
    return low <= high and not any(broken(task.n_test, reading, 1))


def _why(task: Task, reading: Reading) -> str:
    classes = two_classes(task)
    if classes is not None:
        return nearest_text(classes, reading)[0]
    return (
        f"no confusion matrix on {task.n_test} sequences, with any class sizes, gives "
        f"{reading.value}"
    )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="No confusion matrix gives the three metrics of one seed together.",
    why=(
        "Each seed is one fit with one confusion matrix, so it can be checked exactly, even when "
        "the mean cannot."
    ),
    fix="Write the values of each seed with `geneb-harness run --submission FILE`, unrounded.",
    check=check,
    needs=(Need.TEST_SIZES,),
)

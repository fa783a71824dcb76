"""all-scores-equal: every score of a regime is the same number."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "all-scores-equal"
# Two tasks can agree by chance; a whole regime cannot.
TASKS_MIN = 3


def check(context: Context) -> Iterator[Fault]:
    """Report each regime whose scores of one metric are all the same number."""
    for regime in context.benchmark.regimes:
        cells = [cell for cell in context.cells if cell.regime == regime]
        for metric in context.benchmark.metrics:
            values = [cell.scores[metric] for cell in cells if metric in cell.scores]
            if len(values) >= TASKS_MIN and len(set(values)) == 1:
                yield Fault(
                    ID,
                    ("results", regime),
                    f'all {len(values)} values of {metric} in "{regime}" are {values[0]!r}',
                    "one value",
                    "values that differ between tasks",
                    on_key=True,
                )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Every score of a regime is the same number.",
    why=("Tasks differ in difficulty and size: equal scores mean placeholders or a broken probe."),
    fix="Inspect the predictions: constant embeddings or weights that failed to load cause this.",
    check=check,
)

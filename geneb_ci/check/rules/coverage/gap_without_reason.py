"""gap-without-reason: a cell is declared missing without a reason."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "gap-without-reason"
# In characters. Anything shorter ("n/a", "oom", "-") explains nothing.
REASON_MIN = 10


def check(context: Context) -> Iterator[Fault]:
    """Report each declared missing cell whose reason is shorter than REASON_MIN."""
    for regime in context.benchmark.regimes:
        for task, reason in context.gaps(regime).items():
            if isinstance(reason, str) and len(reason.strip()) < REASON_MIN:
                yield Fault(
                    ID,
                    ("gaps", regime, task),
                    f"{quoted(task)} is declared missing with the reason {quoted(reason)}",
                    quoted(reason),
                    f"a sentence of at least {REASON_MIN} characters",
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A cell is declared missing without a reason.",
    why="Without a reason, a task that could not be run looks like one that was left out.",
    fix='State the reason, such as "sequences of 200 kb do not fit the memory of one GPU".',
    check=check,
)

"""gap-without-reason: a gap is declared with an empty reason."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "gap-without-reason"
# Shorter than this ("n/a", "oom", "-") tells a reader nothing that he could act on.
REASON_MIN = 10


def check(context: Context) -> Iterator[Fault]:
    """Report each gap whose reason says nothing."""
    for regime in context.benchmark.regimes:
        for task, reason in context.gaps(regime).items():
            if isinstance(reason, str) and len(reason.strip()) < REASON_MIN:
                yield Fault(
                    ID,
                    ("gaps", regime, task),
                    f"the gap for {quoted(task)} gives the reason {quoted(reason)}",
                    quoted(reason),
                    f"a sentence of at least {REASON_MIN} characters",
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A gap is declared without a reason.",
    why="Without a reason nobody can tell a task that could not be run from one that went badly.",
    fix='Say why, such as "sequences of 200 kb do not fit the memory of one GPU".',
    check=check,
)

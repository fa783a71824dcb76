"""declared-gap: a regime has declared missing cells and will not be ranked."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.submission.fault import Fault

ID = "declared-gap"


def check(context: Context) -> Iterator[Fault]:
    """Report each regime that will not be ranked because cells are declared missing."""
    for regime in context.benchmark.regimes:
        gaps = [task for task in context.gaps(regime) if task in context.benchmark.by_id]
        if gaps:
            yield Fault(
                ID,
                ("gaps", regime),
                f'"{regime}" declares {plural(len(gaps), "missing cell")}: {first_and_more(gaps)}',
                plural(len(gaps), "missing cell"),
                "no missing cell in a ranked regime",
                on_key=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A regime has cells that are declared missing.",
    why="Means over fewer tasks are not comparable, so this regime is not ranked.",
    fix='Nothing, if the tasks cannot be run; otherwise run them and remove them from "gaps".',
    check=check,
)

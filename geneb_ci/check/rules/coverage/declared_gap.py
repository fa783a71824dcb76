"""declared-gap: a regime has gaps, with reasons, and will not be ranked."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.submission.fault import Fault

ID = "declared-gap"


def check(context: Context) -> Iterator[Fault]:
    """Report each regime that will be left out of the board because of its gaps."""
    for regime in context.benchmark.regimes:
        gaps = [task for task in context.gaps(regime) if task in context.benchmark.by_id]
        if gaps:
            yield Fault(
                ID,
                ("gaps", regime),
                f'{plural(len(gaps), "declared gap")} in "{regime}": {first_and_more(gaps)}',
                plural(len(gaps), "gap"),
                "no gap in a ranked regime",
                on_key=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A regime has declared gaps.",
    why=(
        "The gap is honest, but means over fewer tasks cannot be compared: the regime is not "
        "ranked."
    ),
    fix="Nothing, if the tasks cannot be run; otherwise run them and delete the gaps.",
    check=check,
)

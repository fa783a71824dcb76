"""unknown-regime: the file names a regime that the benchmark does not have."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, first_and_more, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.structure import near

ID = "unknown-regime"
_TABLES = ("results", "evidence", "gaps")


def check(context: Context) -> Iterator[Fault]:
    """Report each regime, in any table, that the benchmark does not know."""
    regimes = context.benchmark.regimes
    for table in _TABLES:
        for name in context.table(table):
            if name not in regimes:
                yield Fault(
                    ID,
                    (table, name),
                    f"{quoted(name)} is not a regime{near(name, regimes)}",
                    quoted(name),
                    first_and_more(regimes),
                    on_key=True,
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The benchmark does not have this regime.",
    why="Programs skip names that they do not know, so the scores would be lost.",
    fix='Use exactly the names "full", "10shot" and "1shot".',
    check=check,
)

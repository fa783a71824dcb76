"""modified-harness: the harness had local changes."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "modified-harness"


def check(context: Context) -> Iterator[Fault]:
    """Report a run from a working tree with uncommitted changes."""
    if context.member("run", "harness", "dirty") is True:
        yield Fault(
            ID,
            ("run", "harness", "dirty"),
            "the harness was run with uncommitted changes",
            "true",
            "false",
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The harness was run with uncommitted changes.",
    why="Nobody else has these changes, so nobody can repeat the run.",
    fix="Run again from a clean checkout or an installed package.",
    check=check,
)

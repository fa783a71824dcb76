"""unknown-harness-version: harness_version differs from that of the benchmark."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "unknown-harness-version"


def check(context: Context) -> Iterator[Fault]:
    """Report a harness_version other than the benchmark's, ignoring letter case."""
    version = context.text("harness_version")
    expected = context.benchmark.harness_version
    if version and version.casefold() != expected.casefold():
        yield Fault(
            ID,
            ("harness_version",),
            f"harness_version is {quoted(version)}",
            quoted(version),
            f'"{expected}" (in any letter case)',
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The harness version is not the one that benchmark.json requires.",
    why="Another harness can give other scores for the same model: rows would not be comparable.",
    fix="Run the evaluation with the harness version that benchmark.json names.",
    check=check,
)

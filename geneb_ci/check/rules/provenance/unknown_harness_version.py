"""unknown-harness-version: the harness version is not the one this benchmark is measured with."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "unknown-harness-version"


def check(context: Context) -> Iterator[Fault]:
    """Report another version than the benchmark's; letter case is the harness's own slip."""
    version = context.text("harness_version")
    expected = context.benchmark.harness_version
    if version and version.casefold() != expected.casefold():
        yield Fault(
            ID,
            ("harness_version",),
            f"harness_version is {quoted(version)}",
            quoted(version),
            f'"{expected}" (letter case aside)',
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The harness version is not the one this benchmark is measured with.",
    why=(
        "Another harness can give other numbers for the same model, so rows would not be "
        "comparable."
    ),
    fix="Run the evaluation with the version that benchmark.json names.",
    check=check,
)

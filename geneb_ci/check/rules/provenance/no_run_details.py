"""no-run-details: format 1.0 does not say how the numbers were made."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "no-run-details"


def check(context: Context) -> Iterator[Fault]:
    """Tell a contributor who uses format 1.0 what 1.1 would allow."""
    if context.text("schema_version") == "1.0" and not context.is_official:
        yield Fault(
            ID,
            ("schema_version",),
            "format 1.0 has no run details, so this row can only be audited by hand",
            '"1.0"',
            '"1.1"',
        )


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="Format 1.0 does not say how the numbers were made.",
    why=(
        "Revision, layer, pooling and versions each move scores; without them a rerun has to guess."
    ),
    fix="Write format 1.1 with `geneb-harness run --submission FILE`; 1.0 stays valid.",
    check=check,
)

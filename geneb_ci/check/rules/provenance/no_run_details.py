"""no-run-details: format 1.0 does not record how the scores were computed."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault

ID = "no-run-details"


def check(context: Context) -> Iterator[Fault]:
    """Report a contributed file of format 1.0."""
    if context.text("schema_version") == "1.0" and not context.is_official:
        yield Fault(
            ID,
            ("schema_version",),
            "format 1.0 has no run details: this row can only be audited manually",
            '"1.0"',
            '"1.1"',
        )


RULE = Rule(
    id=ID,
    severity=Severity.NOTE,
    what="Format 1.0 does not record how the scores were computed.",
    why="Scores depend on revision, layer, pooling and versions; a rerun would have to guess them.",
    fix="Write format 1.1 with `geneb-harness run --submission FILE`; format 1.0 stays valid.",
    check=check,
)

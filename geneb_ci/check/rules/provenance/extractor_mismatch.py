"""extractor-mismatch: the extractor file is not the one used in the run."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "extractor-mismatch"


def check(context: Context) -> Iterator[Fault]:
    """Report an available extractor whose digest differs from that in `run`."""
    claimed = context.text("run", "extractor", "sha256")
    if context.extractor_sha256 is not None and claimed and claimed != context.extractor_sha256:
        path = context.text("run", "extractor", "path")
        yield Fault(
            ID,
            ("run", "extractor", "sha256"),
            "the extractor in the repository is not the one used in the run",
            f"sha256 {claimed}",
            f"sha256 {context.extractor_sha256} (of {quoted(path)})",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The extractor file is not the one used in the run.",
    why="An audit reruns the file in the repository: different code gives different scores.",
    fix="Submit the extractor exactly as used, or run again with the one you submit.",
    check=check,
    needs=(Need.EXTRACTOR,),
)

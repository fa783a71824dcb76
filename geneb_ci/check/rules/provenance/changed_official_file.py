"""changed-official-file: the bytes of an official file were changed."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "changed-official-file"


def check(context: Context) -> Iterator[Fault]:
    """Report a file with the id of an official row whose digest differs."""
    expected = context.policy.official.get(context.model_id)
    digest = context.document.sha256
    if expected is not None and digest and digest != expected:
        yield Fault(
            ID,
            ("model_id",),
            f"{quoted(context.model_id)} is an official row, but this file differs from the "
            "official one",
            f"sha256 {digest}",
            f"sha256 {expected}",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The bytes of an official file were changed.",
    why=(
        "Official rows are the benchmark authors' own, identified by the digest of the file; any "
        "change makes it another file."
    ),
    fix=(
        "Restore the file from the main branch. Submit a rerun of the same model as a new row "
        "with another model_id."
    ),
    check=check,
)

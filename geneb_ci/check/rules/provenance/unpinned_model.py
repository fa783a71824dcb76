"""unpinned-model: the weights are not pinned: a rerun could load others."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.models import SubmissionV11

ID = "unpinned-model"


def check(context: Context) -> Iterator[Fault]:
    """Report a model source without a commit or without the digest of a weight file."""
    if context.submission is None or not isinstance(context.submission, SubmissionV11):
        return
    model = context.submission.run.model
    if model.kind == "huggingface" and model.revision is None:
        yield Fault(
            ID,
            ("run", "model", "revision"),
            "the revision of the weights is null",
            "null",
            "the 40-hex commit of the model repository",
        )
    if model.kind != "none" and not model.weights:
        yield Fault(
            ID,
            ("run", "model", "weights"),
            "no weight file has a digest",
            "nothing",
            "the sha256 of each weight file",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The weights are not pinned.",
    why="A branch moves: a rerun would load other weights and honest numbers would look forged.",
    fix=(
        "Give the commit (`git ls-remote` or the Hub page shows it) and the sha256 of each "
        "weight file."
    ),
    check=check,
)

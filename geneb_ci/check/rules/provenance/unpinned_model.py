"""unpinned-model: the weights are not pinned to a commit and to digests."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.models import SubmissionV11

ID = "unpinned-model"


def check(context: Context) -> Iterator[Fault]:
    """Report a Hugging Face model without a commit, and a model without digests of its weights."""
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
            "no digest",
            "the sha256 of each weight file",
        )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The weights are not pinned.",
    why="Branches change: a rerun would load other weights, and honest scores would look forged.",
    fix=(
        'Write the sha256 of each weight file in "run.model.weights", such as '
        '{"model.safetensors": "<64 hex digits>"}, and for weights on the Hub the commit in '
        '"run.model.revision" (40 hex digits; `git ls-remote` shows it). The harness writes both '
        'if the extractor declares them in "source".'
    ),
    check=check,
)

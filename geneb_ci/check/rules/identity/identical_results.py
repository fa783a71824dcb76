"""identical-results: another file has exactly the same scores."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.peers import results_digest

ID = "identical-results"


def check(context: Context) -> Iterator[Fault]:
    """Report each other file with the same scores in every cell."""
    digest = results_digest(context.member("results"))
    if digest is None:
        return
    for other in context.peers.by_digest.get(digest, ()):
        if other != context.document.path:
            yield Fault(
                ID,
                ("results",),
                f"every score equals that of {quoted(other.name)}",
                "the same scores",
                "scores of this model",
                on_key=True,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Another file has exactly the same scores in every cell.",
    why=(
        "Two models never agree on every prediction: either the file was copied, or the wrong "
        "weights were loaded."
    ),
    fix="Check which weights the extractor loads. To correct your own row, edit its file.",
    check=check,
    needs=(Need.OTHER_ROWS,),
)

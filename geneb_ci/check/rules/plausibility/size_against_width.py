"""size-against-width: the parameter count does not fit the embedding width."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "size-against-width"
# Parameters / width^2. A transformer layer has 12 (4 attention, 8 feed-forward; Vaswani et al.
# 2017); the 40 published models have 27 to 910. Less than 2, a sixth of a layer, means a count in
# the wrong unit or the width of another model.
LEAST = 2.0
# More than 800 layers.
MOST = 10_000.0


def check(context: Context) -> Iterator[Fault]:
    """Report a parameter count impossible for the embedding width of the run or the registry."""
    params = context.member("meta", "params")
    width = context.member("run", "embedding", "dim")
    if type(width) is not int:
        width = context.facts.get("embedding_dim")
    # Methods without parameters, such as k-mer counts, have 0.
    if type(params) is not int or type(width) is not int or params <= 0 or width <= 0:
        return
    ratio = params / (width * width)
    if LEAST <= ratio <= MOST:
        return
    score = score_of(ratio / MOST if ratio > MOST else LEAST / ratio, 1.0)
    yield Fault(
        ID,
        ("meta", "params"),
        f"{params:,} parameters is {ratio:.3g} times the square of the embedding width {width:,}",
        f"{ratio:.3g}",
        f"{LEAST:g} to {MOST:g}; published models have 27 to 910",
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The parameter count does not fit the width of the embeddings.",
    why="A count in the wrong unit, or of another checkpoint, misplaces the model on the board.",
    fix="Count the parameters of the encoder that produced the embeddings, as an integer.",
    check=check,
)

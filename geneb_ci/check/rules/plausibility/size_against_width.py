"""size-against-width: so many parameters do not go with embeddings of this width."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "size-against-width"
# Parameters over width squared: a transformer layer has 12 (four for attention, eight for the two
# maps of the feed-forward part, Vaswani et al. 2017). The 40 published models have 27 to 910.
# Two is a sixth of a layer; less is a count in the wrong unit, or the width of another model.
LEAST = 2.0
# Ten thousand is more than 800 layers.
MOST = 10_000.0


def check(context: Context) -> Iterator[Fault]:
    """Report a count that is impossible for the width that the run, or the registry, has."""
    params = context.member("meta", "params")
    width = context.member("run", "embedding", "dim")
    if type(width) is not int:
        width = context.policy.registry.get(context.model_id, {}).get("embedding_dim")
    # 0 parameters is a method that has none, such as counting k-mers.
    if type(params) is not int or type(width) is not int or params <= 0 or width <= 0:
        return
    ratio = params / (width * width)
    if LEAST <= ratio <= MOST:
        return
    score = score_of(ratio / MOST if ratio > MOST else LEAST / ratio, 1.0)
    yield Fault(
        ID,
        ("meta", "params"),
        f"{params:,} parameters are {ratio:.3g} times the square of the embedding width {width:,}",
        f"{ratio:.3g}; score {score}",
        f"{LEAST:g} to {MOST:g}; published models have 27 to 910",
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="The parameter count does not go with the width of the embeddings.",
    why="A count in thousands, or of another checkpoint, misplaces the model among its peers.",
    fix="Count the parameters of the encoder that produced the embeddings, as an integer.",
    check=check,
)

"""Rules on ranges: scores lie in the range of their metric."""

from collections.abc import Iterator

from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Severity
from reference_harness.formats.text import quoted

# Share of accuracies and F1 above 1. Below half, single wrong scores are reported one by one.
SHARE_MIN = 0.5


def in_percent(context: Context) -> bool:
    """Whether at least half of all accuracies and F1 are above 1 and at most 100."""
    values = [v for cell in context.cells for m, v in cell.scores.items() if m != "MCC"]
    if not values or max(values) <= 1:
        return False
    over = sum(1 < value <= 100 for value in values)  # noqa: PLR2004 (percent ends at 100)
    return over >= SHARE_MIN * len(values)


def percent_scores(context: Context) -> Iterator[Fault]:
    """Report a file whose scores are percentages, once."""
    if in_percent(context):
        cell = context.cells[0]
        yield Fault(
            PERCENT_SCORES.id,
            ("results",),
            f"the scores are in percent: the first cell has {quoted(cell.scores)}",
            "values above 1",
            "fractions from 0 to 1 (MCC: -1 to 1)",
            on_key=True,
        )


PERCENT_SCORES = Rule(
    id="percent-scores",
    severity=Severity.ERROR,
    what="Scores are in percent.",
    why=(
        "The board, its means and every comparison with other rows expect fractions; a percentage "
        "counts a hundred times too much. Scores are not converted automatically, since that would "
        "be a guess: it could turn an MCC of 0.5 into 0.005."
    ),
    fix="Divide every score by 100 and submit again.",
    check=percent_scores,
)


def score_out_of_range(context: Context) -> Iterator[Fault]:
    """Report each score that the typed model rejected, unless all scores are in percent."""
    faults = context.reported.get(SCORE_OUT_OF_RANGE.id, ())
    if faults and not in_percent(context):
        yield from faults


SCORE_OUT_OF_RANGE = Rule(
    id="score-out-of-range",
    severity=Severity.ERROR,
    what="A score is outside the range of its metric.",
    why="No predictions have such a score: it is a typing error, or in another unit.",
    fix=(
        "MCC ranges from -1 to 1, accuracy and macro-F1 from 0 to 1; compute the score again from "
        "the predictions."
    ),
    check=score_out_of_range,
)


# Two tasks can agree by chance; a whole regime cannot.
TASKS_MIN = 3


def all_scores_equal(context: Context) -> Iterator[Fault]:
    """Report each regime whose scores of one metric are all the same number."""
    for regime in context.benchmark.regimes:
        cells = [cell for cell in context.cells if cell.regime == regime]
        for metric in context.benchmark.metrics:
            values = [cell.scores[metric] for cell in cells if metric in cell.scores]
            if len(values) >= TASKS_MIN and len(set(values)) == 1:
                yield Fault(
                    ALL_SCORES_EQUAL.id,
                    ("results", regime),
                    f'all {len(values)} values of {metric} in "{regime}" are {values[0]!r}',
                    "one value",
                    "values that differ between tasks",
                    on_key=True,
                )


ALL_SCORES_EQUAL = Rule(
    id="all-scores-equal",
    severity=Severity.WARNING,
    what="Every score of a regime is the same number.",
    why=("Tasks differ in difficulty and size: equal scores mean placeholders or a broken probe."),
    fix="Inspect the predictions: constant embeddings or weights that failed to load cause this.",
    check=all_scores_equal,
)

"""Rules on ranges: scores lie in the range of their metric, and differ between regimes."""

import itertools
from collections.abc import Iterator

from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Severity, first_and_more
from geneb_ci.statistics.metrics import WHOLE_SCORES
from geneb_ci.submission.structure import PERCENT_MAX
from reference_harness.formats.text import quoted

PERCENT_SHARE_MIN = 0.5
"""Minimum share of scores above 1 among those of a metric and regime that count as percentages;
otherwise each score above 1 is reported on its own."""
PERCENT_SCORES_MIN = 3
"""Minimum number of scores above 1 among such scores."""


def _percent_metrics(context: Context) -> dict[str, list[str]]:
    """Return, by regime, the metrics whose values are mostly above 1 and never above 100."""
    if not any(abs(score) > 1 for cell in context.cells for score in cell.scores.values()):
        return {}  # the fast path, taken by nearly every row
    columns: dict[str, dict[str, list[float]]] = {}
    for cell in context.cells:
        for metric, score in cell.scores.items():
            columns.setdefault(cell.regime, {}).setdefault(metric, []).append(abs(score))
    return {
        regime: percents
        for regime, metrics in columns.items()
        if (percents := [metric for metric, scores in metrics.items() if _is_percent(scores)])
    }


def _is_percent(scores: list[float]) -> bool:
    """Whether the scores of one metric and regime, without their signs, are percentages."""
    above_one = sum(score > 1 for score in scores)
    return (
        above_one >= max(PERCENT_SCORES_MIN, PERCENT_SHARE_MIN * len(scores))
        and max(scores) <= PERCENT_MAX
    )


def percent_scores(context: Context) -> Iterator[Fault]:
    """Report, in one finding, the regimes and metrics whose scores are percentages."""
    percent_metrics = _percent_metrics(context)
    if not percent_metrics:
        return
    regimes, metrics = list(percent_metrics), context.benchmark.metrics
    has_only_percents = {cell.regime for cell in context.cells} == set(regimes) and all(
        set(percents) >= set(metrics) for percents in percent_metrics.values()
    )
    cell = next(cell for cell in context.cells if cell.regime in percent_metrics)
    percent_texts = [
        f'{"all scores" if {*metrics} <= {*percents} else ", ".join(percents)} of "{regime}"'
        for regime, percents in percent_metrics.items()
    ]
    subject = "the scores are" if has_only_percents else f"{first_and_more(percent_texts)} are"
    yield Fault(
        PERCENT_SCORES.id,
        ("results",) if has_only_percents else ("results", regimes[0]),
        f"{subject} in percent: the first cell has {quoted(cell.scores)}",
        "values above 1",
        "fractions from 0 to 1 (MCC: -1 to 1)",
        on_key=True,
        fix=""
        if has_only_percents
        else f"Divide {first_and_more(percent_texts)} by 100 and submit again.",
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
    """Report each score out of range, unless its metric is in percent in the whole regime."""
    faults = context.reported.get(SCORE_OUT_OF_RANGE.id, ())
    percent_metrics = _percent_metrics(context) if faults else {}
    for fault in faults:
        if not {*percent_metrics.get(str(fault.path[1]), ())} & {*fault.path}:
            yield fault


SCORE_OUT_OF_RANGE = Rule(
    id="score-out-of-range",
    severity=Severity.ERROR,
    what="A score is outside the range of its metric.",
    why="No predictions have such a score: it is a typing error, or in another unit.",
    fix=(
        "Compute the score again from the predictions: MCC ranges from -1 to 1, accuracy and "
        "macro-F1 from 0 to 1."
    ),
    check=score_out_of_range,
)


EQUAL_TASKS_MIN = 3
"""Minimum number of tasks whose equal scores are reported: two may be equal by chance."""


def all_scores_equal(context: Context) -> Iterator[Fault]:
    """Report each regime whose scores of one metric are all the same number."""
    for regime in context.benchmark.regimes:
        cells = [cell for cell in context.cells if cell.regime == regime]
        for metric in context.benchmark.metrics:
            scores = [cell.scores[metric] for cell in cells if metric in cell.scores]
            if len(scores) >= EQUAL_TASKS_MIN and len(set(scores)) == 1:
                yield Fault(
                    ALL_SCORES_EQUAL.id,
                    ("results", regime),
                    f'all {len(scores)} values of {metric} in "{regime}" are {scores[0]!r}',
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


REPEATED_SHARE_MIN = 0.9
"""Minimum share of tasks with equal scores in two regimes that count as equal. In the 41 public
rows only constant predictions are equal in two regimes."""
REPEATED_SHARE_TASKS_MIN = 10
"""Minimum number of tasks for this share; in fewer tasks, all scores have to be equal."""


def repeated_regime(context: Context) -> Iterator[Fault]:
    """Report each regime that has the scores of an earlier regime, once."""
    repeated_regimes: set[str] = set()
    for earlier_regime, regime in itertools.combinations(context.benchmark.regimes, 2):
        pairs = _comparable_pairs(context, earlier_regime, regime)
        equal_cells = [
            cell_scores for cell_scores, earlier_scores in pairs if cell_scores == earlier_scores
        ]
        least_equal = (
            REPEATED_SHARE_MIN * len(pairs)
            if len(pairs) >= REPEATED_SHARE_TASKS_MIN
            else len(pairs)
        )
        is_varied = len({tuple(cell.values()) for cell in equal_cells}) >= EQUAL_TASKS_MIN
        if regime in repeated_regimes or not is_varied or len(equal_cells) < least_equal:
            continue
        repeated_regimes.add(regime)
        tasks = (
            f"all {len(pairs)}"
            if len(equal_cells) == len(pairs)
            else f"{len(equal_cells)} of {len(pairs)}"
        )
        yield Fault(
            REPEATED_REGIME.id,
            ("results", regime),
            f'"{regime}" has exactly the scores of "{earlier_regime}" in {tasks} tasks',
            f'the scores of "{earlier_regime}"',
            f'scores of its own for "{regime}"',
            on_key=True,
        )


def _comparable_pairs(
    context: Context, regime: str, other_regime: str
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Return the scores of each task in two regimes, except where they may agree by chance.

    Cells with an MCC of 0, 1 or -1 (one predicted class, or no error) may have equal scores.
    """
    other_scores = {cell.task: cell.scores for cell in context.cells if cell.regime == other_regime}
    metric = context.benchmark.primary_metric
    return [
        (cell.scores, other_scores[cell.task])
        for cell in context.cells
        if cell.regime == regime
        and cell.task in other_scores
        and cell.scores.get(metric) not in WHOLE_SCORES
    ]


REPEATED_REGIME = Rule(
    id="repeated-regime",
    severity=Severity.ERROR,
    what="Two regimes have the same scores.",
    why=(
        "Each regime trains the probe on another number of sequences. If all scores are equal, one "
        "of the regimes was not run, or was filled with the results of the other."
    ),
    fix=(
        "Run the regime that is a copy again, `geneb-harness run --regimes REGIME`, and find out "
        "which step wrote one result under two names."
    ),
    check=repeated_regime,
)

"""Rules on a row compared with other rows: gains, copies, blends and leads in one category."""

import math
from collections.abc import Iterator

from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Need, Severity, first_and_more, percent
from geneb_ci.statistics.neighbours import (
    COPY_SHARE_MIN,
    NEAR_DISTANCE,
    AffineFit,
    affine_copy,
    is_coarse,
    is_near_copy,
    lead_share,
    near_copies,
)
from geneb_ci.statistics.view import RowView, finding_score, led_categories
from reference_harness.formats.text import quoted

ABOVE_DEVIATIONS_MAX = 5.0
"""Maximum standard deviations of a score above its prediction in the full regime. Of the 3,900
cells of the 39 public rows without this warning, each row predicted from the others, the maximum is
4.3; row maxima have median 2.8 and mean excess 0.7, so about one honest row in 80 exceeds 5."""
ABOVE_FEW_SHOT_DEVIATIONS_MAX = 6.5
"""The same limit in few-shot regimes. The maximum of 7,800 cells is 5.3; row maxima have median 3.1
and mean excess 0.8, so that about one honest row in 150 exceeds 6.5."""
BELOW_DEVIATIONS_MAX = 8.0
"""Maximum standard deviations of a score below its prediction. Scores below are farther away, as a
model can fail where others do well: the largest deviation of the 11,700 cells is 6.7; row minima
have median 2.3 and mean excess 1.3. This limit is meant for broken extractors, not forgery; about
one honest row in 150 exceeds it."""


def implausible_cell(context: Context) -> Iterator[Fault]:
    """Report each cell whose score is too many standard deviations from its prediction."""
    view, prediction = context.view, context.view.prediction
    if prediction is None:
        return
    smallest_limit = min(BELOW_DEVIATIONS_MAX, ABOVE_FEW_SHOT_DEVIATIONS_MAX, ABOVE_DEVIATIONS_MAX)
    for number, distance in enumerate(view.distances):
        if abs(distance) <= smallest_limit:
            continue
        regime, task = view.cell(number)
        is_few_shot = regime in context.benchmark.protocol.few_shot_k
        limit = (
            BELOW_DEVIATIONS_MAX
            if distance < 0
            else ABOVE_FEW_SHOT_DEVIATIONS_MAX
            if is_few_shot
            else ABOVE_DEVIATIONS_MAX
        )
        if abs(distance) <= limit:
            continue
        metric = context.benchmark.primary_metric
        score = finding_score(abs(distance), limit)
        side = "above" if distance > 0 else "below"
        predicted = prediction.predicted[number]
        yield Fault(
            IMPLAUSIBLE_CELL.id,
            ("results", regime, task, metric),
            f"{metric} {view.row[number]:.4f} is {abs(distance):.1f} standard deviations {side} "
            f"the value predicted from the row's other cells and {view.others_count} other rows",
            f"{view.row[number]:.4f}",
            f"about {predicted:.3f}",
            score=score,
        )


IMPLAUSIBLE_CELL = Rule(
    id="implausible-cell",
    severity=Severity.WARNING,
    what="A score is far from what the model's other scores and the other rows predict.",
    why="Models agree on which tasks are hard: a single outlier is often a typing error.",
    fix="Run this task again; if the score is confirmed, keep it and explain it in the model card.",
    check=implausible_cell,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)


LINEAR_RESIDUAL_MAX = 0.01
"""Maximum residual (root mean square) of a row that counts as a linear function of another. All
1,640 ordered pairs of public rows have at least 0.020 in every regime; a copy with added noise of
0.005 has 0.005."""
LEAD_SHARE_MAX = 0.7
"""Maximum share of a regime's cells in which a row is better than all other rows, or than all but
one row, which is the same in all cells. The best public row has 0.23. In 100 random subsets of 20
public rows, the best row had at most 0.68, and at most 0.58 in 95."""
LEAD_ROWS_MIN = 20
"""Minimum number of other rows; among fewer, an honest row may lead in most tasks."""
REGIME_CELLS_MIN = 30
"""Minimum number of cells of a regime that is compared; in fewer, both may happen by chance."""


def uniform_gain(context: Context) -> Iterator[Fault]:
    """Report each regime that is a linear function of another row, or leads in almost all tasks."""
    view = context.view
    for regime, columns in zip(context.benchmark.regimes, view.table.regimes, strict=True):
        if columns.stop - columns.start < REGIME_CELLS_MIN:
            continue
        fit = affine_copy(
            view, columns, LINEAR_RESIDUAL_MAX, NEAR_DISTANCE
        )  # near-copy reports plain copies
        if fit is not None:
            yield _linear_fault(regime, fit, view)
        share = lead_share(view, columns) if view.others_count >= LEAD_ROWS_MIN else 0.0
        if share > LEAD_SHARE_MAX:
            score = finding_score(share, LEAD_SHARE_MAX)
            yield Fault(
                UNIFORM_GAIN.id,
                ("results", regime),
                f"the row is better than all {view.others_count} other rows, or all but one, in "
                f"{percent(share)} of the tasks",
                percent(share),
                f"at most {percent(LEAD_SHARE_MAX)}, as in every published row",
                on_key=True,
                score=score,
            )


def _linear_fault(regime: str, fit: AffineFit, view: RowView) -> Fault:
    """Return the fault of a regime that is a linear function of another row."""
    score = finding_score(LINEAR_RESIDUAL_MAX, max(fit.residual, 1e-9))
    model = quoted(view.table.models[fit.number])
    return Fault(
        UNIFORM_GAIN.id,
        ("results", regime),
        f"every score is {fit.slope:.4f} x that of {model} {fit.offset:+.4f}, with residuals "
        f"of {fit.residual:.4f} (root mean square)",
        "a linear function of another row",
        "scores of this model",
        on_key=True,
        score=score,
    )


UNIFORM_GAIN = Rule(
    id="uniform-gain",
    severity=Severity.WARNING,
    what="A regime is a linear function of another row, or better than all rows nearly everywhere.",
    why="Real models gain on some tasks and lose on others; no rerun raises all scores alike.",
    fix="Explain in the card where the scores come from; such a row is audited first.",
    check=uniform_gain,
    needs=(Need.OTHER_ROWS,),
)


NAMED_COPIES_MAX = 3
"""Maximum number of similar rows that are reported: in a folder of copies, each resembles all."""


def near_copy(context: Context) -> Iterator[Fault]:
    """Report each other row that agrees in more cells than any two different models do."""
    view = context.view
    if is_coarse(view.row):
        return
    similar = near_copies(view)
    if not similar:
        return
    identical_paths = context.peers.paths_by_digest.get(context.scores_digest or "", [])
    identical_indices = {view.table.index_by_file.get(path) for path in identical_paths}
    for similar_row in similar[:NAMED_COPIES_MAX]:
        if similar_row.number in identical_indices:  # reported by identical-results
            continue
        score = finding_score(similar_row.near_cells / similar_row.cells, COPY_SHARE_MIN)
        yield Fault(
            NEAR_COPY.id,
            ("results",),
            f"{similar_row.near_cells} of {similar_row.cells} scores are within {NEAR_DISTANCE} "
            f"of those of {quoted(view.table.models[similar_row.number])} "
            f"({similar_row.equal_cells} are equal)",
            f"{percent(similar_row.near_cells / similar_row.cells)} within {NEAR_DISTANCE}",
            f"below {percent(COPY_SHARE_MIN)}, as of any two different models",
            on_key=True,
            score=score,
        )


NEAR_COPY = Rule(
    id="near-copy",
    severity=Severity.WARNING,
    what="Too many scores equal those of another row within the noise of a rerun.",
    why="Even related models differ more: the row was copied, or both use the same weights.",
    fix="Check which weights the extractor loads; if it is the same model, edit its existing row.",
    check=near_copy,
    needs=(Need.OTHER_ROWS,),
)


RESIDUAL_SPREAD_MIN = 0.42
"""Minimum spread of the residuals of a row, averaged over regimes, relative to that of real rows
(about 1). The lowest of the 41 public rows is 0.55 (Omni-DNA-300M); 98 % of the means of two public
rows are below 0.35."""
NAMED_WEIGHT_MIN = 0.15
"""Minimum weight, in the weighted mean, of another row that the message names."""


def blended_rows(context: Context) -> Iterator[Fault]:
    """Report a row whose residuals from a fit on other rows are smaller than any public row's."""
    view, prediction = context.view, context.view.prediction
    if prediction is None:
        return
    spread = math.fsum(prediction.spread) / len(prediction.spread)
    heaviest_rows = sorted((-w, i) for i, w in prediction.weights.items() if w > NAMED_WEIGHT_MIN)
    if spread >= RESIDUAL_SPREAD_MIN or any(is_near_copy(view, i) for _, i in heaviest_rows):
        return
    score = finding_score(RESIDUAL_SPREAD_MIN, max(spread, 1e-9))
    mixture_text = first_and_more(
        [f"{-w:.2f} x {quoted(view.table.models[i])}" for w, i in heaviest_rows]
    )
    yield Fault(
        BLENDED_ROWS.id,
        ("results",),
        f"the residuals from a weighted mean of other rows are {spread:.2f} of the usual size: "
        f"this row is about {mixture_text or 'an equal mix of many rows'}",
        f"{spread:.2f}",
        f"at least {RESIDUAL_SPREAD_MIN}",
        on_key=True,
        score=score,
    )


BLENDED_ROWS = Rule(
    id="blended-rows",
    severity=Severity.WARNING,
    what="The row is closer to a weighted mean of other rows than related models are.",
    why="A real run has its own noise; a mean of published numbers has none.",
    fix="Submit the scores of one run of one model.",
    check=blended_rows,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)


CATEGORY_DEVIATIONS_MAX = 2.7
"""Maximum lead of a row in a category, in standard deviations of the other rows' category means
around their predictions. Seven public rows lead, alone or together with one row, by more than 1.5;
the largest lead is 2.9 (LucaOne, lncRNA), the next 2.4."""


def category_crown(context: Context) -> Iterator[Fault]:
    """Report each category in which the row is first or second, and far above its prediction.

    It is more than `CATEGORY_DEVIATIONS_MAX` standard deviations above.
    """
    view = context.view
    for lead in led_categories(view):
        if lead.size <= CATEGORY_DEVIATIONS_MAX:
            continue
        regime, task = view.cell(lead.cells[0])
        metric = context.benchmark.primary_metric
        yield Fault(
            CATEGORY_CROWN.id,
            ("results", regime, task, metric),
            f"the row is among the best two in {quoted(lead.category)} with a mean {metric} of "
            f"{lead.mean:.3f}; its other categories predict {lead.expected:.3f}, "
            f"{lead.size:.1f} standard deviations less",
            f"{lead.mean:.3f}",
            f"about {lead.expected:.3f}",
            score=finding_score(lead.size, CATEGORY_DEVIATIONS_MAX),
        )


CATEGORY_CROWN = Rule(
    id="category-crown",
    severity=Severity.NOTE,
    what="The row leads a category by far more than its other categories would suggest.",
    why="A specialised model does this, and so does a row in which one category was raised.",
    fix="Nothing has to be changed: an audit reruns a task of this category first.",
    check=category_crown,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)

"""uniform-gain: a regime is a linear function of another row, or leads in nearly every task."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, percent, quoted
from geneb_ci.statistics.neighbours import NEAR, Affine, affine_copy, lead
from geneb_ci.statistics.view import RowView, score_of
from geneb_ci.submission.fault import Fault

ID = "uniform-gain"
# Root mean square of the residuals of the linear fit. All 1,640 ordered pairs of public rows have
# at least 0.020 in every regime; a copy with added noise of 0.005 has 0.005.
RESIDUAL = 0.01
# Share of a regime's cells in which a row is above every other but one, the same in all cells. The
# best public row has 0.23. In 100 random subsets of 20 public rows, the best row had at most 0.68,
# and at most 0.58 in 95.
LEAD = 0.7
# With fewer rows an honest row may lead in most tasks.
LEAD_ROWS_MIN = 20
CELLS_MIN = 30


def check(context: Context) -> Iterator[Fault]:
    """Report each regime that is a linear function of another row, or leads nearly everywhere."""
    view = context.view
    for regime, part in zip(context.benchmark.regimes, view.table.regimes, strict=True):
        if part.stop - part.start < CELLS_MIN:
            continue
        found = affine_copy(view, part, RESIDUAL, NEAR)  # near-copy reports plain copies
        if found is not None:
            yield _affine(regime, found, view)
        share = lead(view, part) if view.others_count >= LEAD_ROWS_MIN else 0.0
        if share > LEAD:
            score = score_of(share, LEAD)
            yield Fault(
                ID,
                ("results", regime),
                f"better than all {view.others_count} other rows, or all but one, in "
                f"{percent(share)} of the tasks",
                percent(share),
                f"at most {percent(LEAD)}, as in every published row",
                on_key=True,
                score=score,
            )


def _affine(regime: str, found: Affine, view: RowView) -> Fault:
    score = score_of(RESIDUAL, max(found.residual, 1e-9))
    name = quoted(view.table.names[found.number])
    return Fault(
        ID,
        ("results", regime),
        f"every score is {found.slope:.4f} x that of {name} {found.offset:+.4f}, with residuals "
        f"of {found.residual:.4f} (root mean square)",
        "a linear function of another row",
        "scores of this model",
        on_key=True,
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A regime is a linear function of another row, or better than all rows nearly everywhere.",
    why="Real models gain on some tasks and lose on others; runs do not give a uniform gain.",
    fix="Explain in the card where the scores come from; such a row is audited first.",
    check=check,
    needs=(Need.OTHER_ROWS,),
)

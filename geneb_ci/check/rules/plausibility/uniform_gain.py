"""uniform-gain: a regime is another row's moved by a constant, or leads every row everywhere."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.neighbours import NEAR, Affine, affine_copy, lead
from geneb_ci.statistics.view import RowView, score_of
from geneb_ci.submission.fault import Fault

ID = "uniform-gain"
# Root mean square of what a line leaves over. None of the 1,640 ordered pairs of public rows comes
# below 0.020 in any regime; noise of 0.005 on a copy leaves 0.005.
RESIDUAL = 0.01
# Share of a regime's cells in which a row is above every other. The best public row has 0.20; of 20
# rows drawn from the 41, the best had at most 0.54 in 100 draws, and 0.44 in 95 of them.
LEAD = 0.6
# With fewer rows the best one may lead anywhere.
LEAD_ROWS_MIN = 20
CELLS_MIN = 30


def check(context: Context) -> Iterator[Fault]:
    """Report each regime that follows another row by a line, or leads nearly everywhere."""
    view = context.view
    for regime, part in zip(context.benchmark.regimes, view.table.regimes, strict=True):
        if part.stop - part.start < CELLS_MIN:
            continue
        found = affine_copy(view, part, RESIDUAL)
        if found is not None and found.moved > NEAR:  # else it is a near-copy, and no gain
            yield _affine(regime, found, view)
        share = lead(view, part) if view.others_count >= LEAD_ROWS_MIN else 0.0
        if share > LEAD:
            score = score_of(share, LEAD)
            yield Fault(
                ID,
                ("results", regime),
                f"above each of {view.others_count} other rows in {share:.0%} of the tasks",
                f"{share:.0%}; score {score}",
                f"at most {LEAD:.0%}, as in every row so far",
                on_key=True,
                score=score,
            )


def _affine(regime: str, found: Affine, view: RowView) -> Fault:
    score = score_of(RESIDUAL, max(found.residual, 1e-9))
    name = quoted(view.table.names[found.number])
    return Fault(
        ID,
        ("results", regime),
        f"every score is {found.slope:.4f} times that of {name} {found.offset:+.4f}, "
        f"within {found.residual:.4f}",
        f"a line through another row; score {score}",
        "scores of this model's own",
        on_key=True,
        score=score,
    )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A regime is another row's moved by a line, or better than every row everywhere.",
    why="Real models gain on some tasks and lose on others; a constant gain is made, not measured.",
    fix="Say where the numbers come from; a model this much better will be audited first.",
    check=check,
    needs=(Need.OTHER_ROWS,),
)

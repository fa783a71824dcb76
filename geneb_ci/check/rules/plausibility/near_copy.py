"""near-copy: too many scores equal those of another row within rerun noise."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, percent, quoted
from geneb_ci.statistics.neighbours import NEAR, SHARE, is_coarse, needed, resemblances
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.peers import results_digest

ID = "near-copy"
# Only the nearest rows are named, so that a folder of copies does not name each file in each.
NAMED_MAX = 3


def check(context: Context) -> Iterator[Fault]:
    """Report each other row that agrees in more cells than any two real models do."""
    view = context.view
    if is_coarse(view.row):
        return
    found = [near for near in resemblances(view) if near.near >= needed(near.cells)]
    if not found:
        return
    twins = context.peers.by_digest.get(results_digest(context.member("results")) or "", [])
    identical = {view.table.index.get(path) for path in twins}
    for near in found[:NAMED_MAX]:
        if near.number in identical:  # reported by identical-results
            continue
        score = score_of(near.near / near.cells, SHARE)
        yield Fault(
            ID,
            ("results",),
            f"{near.near} of {near.cells} scores are within {NEAR} of those of "
            f"{quoted(view.table.names[near.number])} ({near.equal} are equal); "
            "two different models agree in at most 5 % of theirs",
            f"{percent(near.near / near.cells)} within {NEAR}",
            f"below {percent(SHARE)}",
            on_key=True,
            score=score,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Too many scores equal those of another row within the noise of a rerun.",
    why="Even related models differ more: the row was copied, or both use the same weights.",
    fix="Check which weights the extractor loads; if it is the same model, edit its existing row.",
    check=check,
    needs=(Need.OTHER_ROWS,),
)

"""near-copy: too many scores are within noise of another row's."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.statistics.neighbours import NEAR, SHARE, is_coarse, needed, resemblances
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.peers import results_digest

ID = "near-copy"
# The nearest rows are named; a folder of copies would name each in each.
NAMED_MAX = 3


def check(context: Context) -> Iterator[Fault]:
    """Report each other row that is near in more cells than any two real models."""
    view = context.view
    if is_coarse(view.row):
        return
    found = [near for near in resemblances(view) if near.near >= needed(near.cells)]
    if not found:
        return
    twins = context.peers.by_digest.get(results_digest(context.member("results")) or "", [])
    identical = {view.table.index.get(path) for path in twins}
    for near in found[:NAMED_MAX]:
        if near.number in identical:  # said by identical-results
            continue
        score = score_of(near.near / near.cells, SHARE)
        yield Fault(
            ID,
            ("results",),
            f"{near.near} of {near.cells} scores lie within {NEAR} of those of "
            f"{quoted(view.table.names[near.number])}, {near.equal} are equal; "
            "two real models have at most 5 %",
            f"{near.near / near.cells:.0%} within {NEAR}; score {score}",
            f"below {SHARE:.0%}",
            on_key=True,
            score=score,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Too many scores lie within the noise of a rerun from those of another row.",
    why="Relatives of a family differ by more: a row was copied, or both have the same weights.",
    fix="Check which weights the extractor loads; if the model is the same, replace its row.",
    check=check,
    needs=(Need.OTHER_ROWS,),
)

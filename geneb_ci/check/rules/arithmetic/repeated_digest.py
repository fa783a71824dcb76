"""repeated-digest: two cells have the same predictions digest but different predictions."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "repeated-digest"


def check(context: Context) -> Iterator[Fault]:
    """Report each digest that an earlier cell has for different sequences or different scores.

    Two tasks of the same size may share a digest: constant predictions do.
    """
    seeds = {claim.path[:3]: claim.readings for claim in context.seed_claims}
    first: dict[str, tuple[str, str]] = {}
    for regime in context.benchmark.regimes:
        for task, cell in context.table("evidence", regime).items():
            known = context.benchmark.by_id.get(task)
            digest = cell.get("predictions_sha256") if isinstance(cell, dict) else None
            if known is None or known.n_test is None or not isinstance(digest, str):
                continue
            if digest not in first:
                first[digest] = (regime, task)
                continue
            other_regime, other = first[digest]
            same_size = context.benchmark.by_id[other].n_test == known.n_test
            ours, theirs = (
                seeds.get(("evidence", *cell)) for cell in ((regime, task), (other_regime, other))
            )
            if same_size and (other != task or ours == theirs):
                continue
            yield Fault(
                ID,
                ("evidence", regime, task, "predictions_sha256"),
                f'{quoted(task)} in "{regime}" has the predictions digest of {quoted(other)} in '
                f'"{other_regime}", which has different {"scores" if same_size else "sequences"}',
                quoted(digest),
                "a different digest",
            )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Two cells with different predictions have the same predictions digest.",
    why="An audit compares predictions by their digest; a copied digest proves nothing.",
    fix="Write the evidence with `geneb-harness run --submission FILE`; do not edit it by hand.",
    check=check,
    needs=(Need.TEST_SIZES,),
)

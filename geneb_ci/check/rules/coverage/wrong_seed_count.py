"""wrong-seed-count: evidence has more or fewer values than the benchmark has seeds."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, plural
from geneb_ci.submission.fault import Fault

ID = "wrong-seed-count"


def check(context: Context) -> Iterator[Fault]:
    """Report each list of values whose length is not the number of seeds."""
    seeds = len(context.benchmark.protocol.seeds)
    for regime in context.benchmark.regimes:
        for task in context.table("evidence", regime):
            for metric, values in context.table("evidence", regime, task, "per_seed").items():
                known = metric in context.benchmark.metrics and isinstance(values, list)
                if known and len(values) != seeds:
                    yield Fault(
                        ID,
                        ("evidence", regime, task, "per_seed", metric),
                        f"{metric} has {plural(len(values), 'value')} for {seeds} seeds",
                        plural(len(values), "value"),
                        plural(seeds, "value"),
                    )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="Evidence has more or fewer values than the benchmark has seeds.",
    why="The protocol's score is the mean over all seeds; a mean over some of them can be chosen.",
    fix="Report one value per seed of benchmark.json, in its order, even if all are equal.",
    check=check,
)

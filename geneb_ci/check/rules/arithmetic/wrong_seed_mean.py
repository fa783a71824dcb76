"""wrong-seed-mean: a reported mean is not the mean of its seeds."""

import math
from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault

ID = "wrong-seed-mean"
METRICS = {"mcc": "MCC", "acc": "Acc", "f1": "F1"}


def check(context: Context) -> Iterator[Fault]:
    """Report each metric that differs from the mean of its seeds by more than rounding."""
    reported = {claim.path: claim.reading for claim in context.claims}
    for claim in context.seed_claims:
        reading = reported.get(("results", claim.regime, claim.task.id))
        if reading is None:
            continue
        for name, metric in METRICS.items():
            seeds = [getattr(seed.value, name) for seed in claim.readings]
            width = max(getattr(seed.width, name) for seed in claim.readings)
            mean, found = math.fsum(seeds) / len(seeds), getattr(reading.value, name)
            if abs(mean - found) > width + getattr(reading.width, name):
                yield Fault(
                    ID,
                    ("results", claim.regime, claim.task.id, metric),
                    f'{metric} of {quoted(claim.task.id)} in "{claim.regime}" is {found!r}, but '
                    f"the mean of its {len(seeds)} seeds is {mean!r}",
                    repr(found),
                    repr(mean),
                )


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="A reported mean is not the mean of its seeds.",
    why=(
        "One of the two was changed after the run. The board shows the mean; audits rerun the "
        "seeds."
    ),
    fix="Write scores and evidence together, with `geneb-harness run --submission FILE`.",
    check=check,
)

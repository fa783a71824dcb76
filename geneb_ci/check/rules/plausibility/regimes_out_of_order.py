"""regimes-out-of-order: less training data gives better scores than more, over all tasks."""

import itertools
import math
from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, percent, plural
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "regimes-out-of-order"
# Share of tasks in which the regime with less data is better. Maxima of the 41 public rows: 0.06
# against the full regime, 0.25 between the two few-shot regimes.
SHARE_FULL = 0.2
SHARE_FEW_SHOT = 0.5
# With fewer tasks the share is too noisy.
TASKS_MIN = 20


def check(context: Context) -> Iterator[Fault]:
    """Report each pair of regimes in which the one with less data is better too often."""
    view = context.view
    for poor, rich in itertools.permutations(range(len(view.shots)), 2):
        if view.shots[poor] >= view.shots[rich]:
            continue
        parts = (view.row[view.table.regimes[k]] for k in (poor, rich))
        pairs = [(a, b) for a, b in zip(*parts, strict=True) if not math.isnan(a + b)]
        if len(pairs) < TASKS_MIN:
            continue
        share = sum(a > b for a, b in pairs) / len(pairs)
        limit = SHARE_FULL if view.shots[rich] == math.inf else SHARE_FEW_SHOT
        if share <= limit:
            continue
        score = score_of(share, limit)
        names = context.benchmark.regimes
        yield Fault(
            ID,
            ("results", names[poor]),
            f'"{names[poor]}" is better than "{names[rich]}" in {percent(share)} of '
            f"{plural(len(pairs), 'task')}",
            percent(share),
            f"at most {percent(limit)}",
            on_key=True,
            score=score,
        )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="Over all tasks, a regime with less training data does better than one with more.",
    why="Regimes were swapped, or one was filled with scores of another.",
    fix="Check which run each regime comes from.",
    check=check,
)

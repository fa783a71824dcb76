"""few-shot-above-full: few-shot training scores significantly better than all training data."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.need import Need
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.view import score_of
from geneb_ci.submission.fault import Fault

ID = "few-shot-above-full"
# In standard deviations of the difference, estimated from the other rows, with the sampling error
# of the test split as a lower bound. The largest value of the 41 public rows is 2.1 (BioFM-265M and
# caduceus-ph, on tasks where the probe on all data is no better than chance).
LIMIT = 3.5


def check(context: Context) -> Iterator[Fault]:
    """Report each few-shot score that exceeds the full score by more than LIMIT deviations."""
    view, reference = context.view, context.view.reference
    if reference is None or view.standing is None or float("inf") not in view.shots:
        return
    full = view.shots.index(float("inf"))
    without = reference.place(view.own)
    metric, size = context.benchmark.primary_metric, len(context.benchmark.tasks)
    for few, shots in enumerate(view.shots):
        for number, task in enumerate(context.benchmark.tasks if shots != float("inf") else ()):
            above = view.row[few * size + number] - view.row[full * size + number]
            if not above > 0:
                continue
            # An MCC of a balanced task has a standard error of about 1 / sqrt(n), and less near 1.
            sampling = 1.0 / task.n_test if task.n_test else 0.0
            noise_full = reference.scale(full * size + number, full, without)
            noise_few = reference.scale(few * size + number, few, without)
            noise = (max(noise_full**2, sampling) + noise_few**2) ** 0.5
            if above <= LIMIT * noise:
                continue
            score = score_of(above / noise, LIMIT)
            regimes = context.benchmark.regimes
            yield Fault(
                ID,
                ("results", regimes[few], task.id, metric),
                f'{metric} is {above:.3f} above that of "{regimes[full]}": '
                f"{above / noise:.1f} standard deviations",
                f"{above:+.4f}",
                f"at most {LIMIT * noise:+.3f}",
                score=score,
            )


RULE = Rule(
    id=ID,
    severity=Severity.WARNING,
    what="A few training sequences give a significantly better score than all of them.",
    why="More training data should not hurt: the probe did not converge, or cells were swapped.",
    fix="Check that the probe of the full regime converged and used the same test split.",
    check=check,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)

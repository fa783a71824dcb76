"""Rules on the three metrics of a cell: some combinations no confusion matrix gives."""

from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.check.claims import ScoreClaim, two_class_sizes
from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import Fault, Need, Severity
from geneb_ci.statistics import metrics
from geneb_ci.statistics.binary import (
    Classes,
    binary_metrics,
    correct_count_limits,
    fitting_rho_ranges,
    has_fitting_table,
    nearest_table,
)
from geneb_ci.statistics.mean_triples import ImpossibleMetric, hull_of, impossible_metric
from geneb_ci.statistics.metrics import ReportedTriple, Triple, distinct_texts
from reference_harness.formats.benchmark import Task
from reference_harness.formats.text import quoted


def accuracy_off_grid(context: Context) -> Iterator[Fault]:
    """Report each accuracy that no whole number of correct predictions gives."""
    for claim in context.claims:
        if claim.path in context.impossible_accuracy_paths:
            prediction_count = (claim.task.n_test or 0) * claim.fit_count
            acc = claim.reported.value.acc
            correct_below = int(acc * prediction_count)
            sizes = f"{claim.task.n_test} sequences" + (
                f" times {claim.fit_count} seeds" if claim.fit_count > 1 else ""
            )
            yield Fault(
                ACCURACY_OFF_GRID.id,
                (*claim.path, "Acc"),
                f'the accuracy {acc!r} of {quoted(claim.task.id)} in "{claim.regime}" is '
                f"impossible for {sizes}: {correct_below} correct predictions give "
                f"{correct_below / prediction_count:.6f}, "
                f"{correct_below + 1} give {(correct_below + 1) / prediction_count:.6f}",
                repr(acc),
                f"a multiple of 1/{prediction_count}",
            )


ACCURACY_OFF_GRID = Rule(
    id="accuracy-off-grid",
    severity=Severity.ERROR,
    what="An accuracy does not correspond to a whole number of correct predictions.",
    why=(
        "The test split has n_test sequences, so accuracy is a multiple of 1 / n_test; any other "
        "value comes from other data, from averaging, or from editing."
    ),
    fix=(
        "Score the whole test split of the pinned data, and report the accuracy as computed, with "
        "all its digits."
    ),
    check=accuracy_off_grid,
    needs=(Need.TEST_SIZES,),
)


_IGNORED_HALF_WIDTH = 3.0
"""Half-width above the range of every metric: a metric with this half-width is ignored."""
METRIC_NAMES = {"mcc": "MCC", "f1": "F1"}
"""Metrics that may contradict the two others of a cell: name in files, by field of a `Triple`."""


def impossible_scores(context: Context) -> Iterator[Fault]:
    """Report scores of a single probe on a two-class task that no confusion matrix gives."""
    for claim in context.claims:
        classes = claim.classes
        if classes is None or claim.fit_count > 1:
            continue
        if not has_fitting_table(classes, _widened(context, claim)):
            subject = f'{quoted(claim.task.id)} in "{claim.regime}": '
            contradiction = wrong_metric(classes, claim.reported)
            if contradiction is None:
                message, actual, expected = _nearest_matrix_texts(classes, claim.reported)
                fix = ""
            else:
                message, actual, expected = _wrong_metric_texts(
                    classes, claim.reported, contradiction
                )
                fix = f"Compute {contradiction.name} again from the same predictions."
            yield Fault(
                IMPOSSIBLE_SCORES.id,
                claim.path,
                subject + message,
                actual,
                expected,
                on_key=True,
                fix=fix,
            )


_ROUNDED_HALF_WIDTH = 0.01
"""Rounding error assumed for each metric of a cell whose accuracy is impossible, perhaps because it
has two decimals; only scores that are wrong by more are reported a second time."""


def _widened(context: Context, claim: ScoreClaim) -> ReportedTriple:
    """Return the scores of a claim; if its accuracy is impossible, as rounded to two decimals."""
    if claim.path not in context.impossible_accuracy_paths:
        return claim.reported
    scores, half_widths = claim.reported
    widened = Triple._make(max(half_width, _ROUNDED_HALF_WIDTH) for half_width in half_widths)
    return ReportedTriple(scores, widened)


def _nearest_matrix_texts(classes: Classes, reported: ReportedTriple) -> tuple[str, str, str]:
    """Return the texts of `_no_matrix_texts`, with the matrix that gives the nearest scores."""
    return _no_matrix_texts(
        classes, reported, nearest_table(classes, reported.value).scores, "the nearest matrix"
    )


def _no_matrix_texts(
    classes: Classes, reported: ReportedTriple, possible_scores: Triple, other_matrix: str
) -> tuple[str, str, str]:
    """Return the message, found and expected text for a triple that no confusion matrix gives."""
    actual, expected = distinct_texts(reported.value, possible_scores)
    sizes = f"{classes.total} sequences ({classes.small}/{classes.large})"
    message = f"no confusion matrix on {sizes} gives {actual}; {other_matrix} gives {expected}"
    return message, actual, expected


class WrongMetric(NamedTuple):
    """The only metric of a triple that contradicts the two others."""

    name: str
    other_metrics: str
    """The names of the two other metrics, joined by "and"."""
    scores: Triple
    """The scores of the only matrix that the two other metrics fit."""


def _wrong_metric_texts(
    classes: Classes, reported: ReportedTriple, contradiction: WrongMetric
) -> tuple[str, str, str]:
    """Return the texts of `_no_matrix_texts`, with the matrix that the two other metrics fit."""
    return _no_matrix_texts(
        classes,
        reported,
        contradiction.scores,
        f"the matrix that {contradiction.other_metrics} fit",
    )


def wrong_metric(classes: Classes, reported: ReportedTriple) -> WrongMetric | None:
    """Return the single metric that is wrong, if the other two fit exactly one matrix."""
    for metric, label in METRIC_NAMES.items():
        without_metric = ReportedTriple(
            reported.value, reported.width._replace(**{metric: _IGNORED_HALF_WIDTH})
        )
        first_run = next(fitting_rho_ranges(classes, without_metric), None)
        if first_run is not None and len(first_run) == 1:
            expected_scores = binary_metrics(classes, first_run.correct, first_run.first_rho)
            other_metrics = " and ".join(
                ["accuracy", *(other for other in METRIC_NAMES.values() if other != label)]
            )
            return WrongMetric(label, other_metrics, expected_scores)
    return None


IMPOSSIBLE_SCORES = Rule(
    id="impossible-scores",
    severity=Severity.ERROR,
    what="The three metrics of a cell fit no confusion matrix.",
    why=(
        "With known class sizes a confusion matrix has two degrees of freedom but gives three "
        "metrics: an edited, mistyped or swapped value contradicts the other two."
    ),
    fix=(
        "Compute MCC, accuracy and macro-F1 again from one set of predictions on the pinned test "
        "split, as scikit-learn defines them, and report all digits."
    ),
    check=impossible_scores,
    needs=(Need.CLASS_SIZES,),
)


def impossible_mean(context: Context) -> Iterator[Fault]:
    """Report each cell of a two-class task whose means over seeds no confusion matrices give."""
    for claim in context.claims:
        classes = claim.classes
        if classes is None or claim.fit_count == 1:
            continue
        impossible = impossible_metric(hull_of(classes), _widened(context, claim))
        if impossible is not None:
            yield _mean_fault(claim, classes, impossible)


def _mean_fault(claim: ScoreClaim, classes: Classes, impossible: ImpossibleMetric) -> Fault:
    """Return the fault of a cell whose mean MCC or F1 is impossible."""
    value = claim.reported.value
    if impossible.metric == "mcc":
        actual, condition, metric = value.mcc, "this mean accuracy and F1", "MCC"
    else:
        actual, condition, metric = value.f1, "this mean accuracy", "F1"
    expected = interval_text(impossible.low, impossible.high)
    return Fault(
        IMPOSSIBLE_MEAN.id,
        (*claim.path, metric),
        f'{quoted(claim.task.id)} in "{claim.regime}": no mean of {claim.fit_count} 2x2 '
        f"confusion matrices on {classes.total} sequences ({classes.small}/{classes.large}) is "
        f"{value}; with {condition}, the mean {metric} is {expected}",
        f"{actual:.4f}",
        expected,
    )


def interval_text(low: float, high: float) -> str:
    """Return an interval as text, with at least three decimals and enough that its ends differ."""
    for decimals in range(3, _INTERVAL_DECIMALS_MAX):
        ends = f"{low:.{decimals}f}", f"{high:.{decimals}f}"
        if ends[0] != ends[1]:
            return f"about {ends[0]} to {ends[1]}"
    return f"about {low:.{_INTERVAL_DECIMALS_MAX}f}"


_INTERVAL_DECIMALS_MAX = 8
"""Maximum decimals of an interval; if its ends still agree, it is written as a value."""


IMPOSSIBLE_MEAN = Rule(
    id="impossible-mean",
    severity=Severity.ERROR,
    what="No set of runs has the mean MCC, accuracy and macro-F1 of a cell together.",
    why=(
        "A mean over seeds averages confusion matrices with known class sizes, so two of the "
        "three means leave the third only a narrow range."
    ),
    fix=(
        "Average each metric over the same runs, one per seed. Do not leave out seeds, and do not "
        "compute a metric from the means of others."
    ),
    check=impossible_mean,
    needs=(Need.CLASS_SIZES,),
)


def inconsistent_metrics(context: Context) -> Iterator[Fault]:
    """Report each metric that no class sizes allow, in tasks whose class sizes are unknown."""
    for claim in context.claims:
        n = claim.task.n_test
        if claim.classes is None and n is not None:
            reported = _widened(context, claim)
            for metric, actual, low, high in metrics_out_of_bounds(n, reported, claim.fit_count):
                yield Fault(
                    INCONSISTENT_METRICS.id,
                    (*claim.path, metric),
                    f'{quoted(claim.task.id)} in "{claim.regime}": with accuracy '
                    f"{claim.reported.value.acc:.6g} on {n} sequences, {metric} must be between "
                    f"{low:.6g} and {high:.6g} for any class sizes; it is {actual:.6g}",
                    f"{actual:.6g}",
                    f"{low:.6g} to {high:.6g}",
                )


def metrics_out_of_bounds(
    n_test: int, reported: ReportedTriple, fit_count: int
) -> Iterator[tuple[str, float, float, float]]:
    """Yield each metric outside its bounds: name, value, lower bound, upper bound."""
    value, width = reported
    # The bounds are monotone in accuracy, so the two ends of its interval suffice.
    bounds_at_ends = [
        metrics.one_matrix_bounds(n_test, correct)
        if fit_count == 1
        else metrics.mean_bounds(n_test, correct, fit_count)
        for correct in correct_count_limits(n_test, reported, fit_count)
    ]
    for metric, actual, slack, low, high in (
        (
            "MCC",
            value.mcc,
            width.mcc,
            min(b.mcc_low for b in bounds_at_ends),
            max(b.mcc_high for b in bounds_at_ends),
        ),
        (
            "F1",
            value.f1,
            width.f1,
            min(b.f1_low for b in bounds_at_ends),
            max(b.f1_high for b in bounds_at_ends),
        ),
    ):
        if not low - slack <= actual <= high + slack:
            yield metric, actual, low, high


INCONSISTENT_METRICS = Rule(
    id="inconsistent-metrics",
    severity=Severity.ERROR,
    what="The three metrics contradict each other for any class sizes.",
    why=(
        "Even when the class sizes are unknown, accuracy bounds MCC and macro-F1, and only "
        "perfect predictions have a perfect score."
    ),
    fix=(
        "Compute the three metrics again from one set of predictions, as scikit-learn defines them."
    ),
    check=inconsistent_metrics,
    needs=(Need.TEST_SIZES,),
)


def impossible_seed_scores(context: Context) -> Iterator[Fault]:
    """Report, once per cell, the first seed whose metrics no confusion matrix gives."""
    seeds = context.benchmark.protocol.seeds
    for claim in context.seed_claims:
        is_possible_by_triple: dict[ReportedTriple, bool] = {}
        for reported in claim.seed_triples:
            if reported not in is_possible_by_triple:
                is_possible_by_triple[reported] = matrix_may_exist(claim.task, reported)
        impossible_indices = [
            i
            for i, reported in enumerate(claim.seed_triples)
            if not is_possible_by_triple[reported]
        ]
        if impossible_indices:
            first_impossible = claim.seed_triples[impossible_indices[0]]
            suffix = (
                f" (the same problem in {len(impossible_indices)} of {len(seeds)} seeds)"
                if len(impossible_indices) > 1
                else ""
            )
            yield Fault(
                IMPOSSIBLE_SEED_SCORES.id,
                claim.path,
                f"seed {seeds[impossible_indices[0]]} of {quoted(claim.task.id)} in "
                f'"{claim.regime}": '
                f"{_why_no_matrix(claim.task, first_impossible)}{suffix}",
                str(first_impossible.value),
                "metrics of one confusion matrix",
                on_key=True,
            )


def matrix_may_exist(task: Task, reported: ReportedTriple) -> bool:
    """Whether some confusion matrix may have these scores; True if no size is known."""
    classes = two_class_sizes(task)
    if classes is not None:
        return has_fitting_table(classes, reported)
    if task.n_test is None:
        return True
    low, high = correct_count_limits(task.n_test, reported)
    return low <= high and not any(metrics_out_of_bounds(task.n_test, reported, 1))


def _why_no_matrix(task: Task, reported: ReportedTriple) -> str:
    """Return a clause that no confusion matrix gives these scores."""
    classes = two_class_sizes(task)
    if classes is not None:
        return _nearest_matrix_texts(classes, reported)[0]
    return (
        f"no confusion matrix on {task.n_test} sequences, with any class sizes, gives "
        f"{reported.value}"
    )


IMPOSSIBLE_SEED_SCORES = Rule(
    id="impossible-seed-scores",
    severity=Severity.ERROR,
    what="The three metrics of one seed fit no confusion matrix.",
    why=(
        "Each seed is one fit with one confusion matrix, so it can be checked exactly, even when "
        "the mean cannot."
    ),
    fix="Write the values of each seed with `geneb-harness run --submission FILE`, unrounded.",
    check=impossible_seed_scores,
    needs=(Need.TEST_SIZES,),
)

"""Rules on unlikely scores within a row: tasks, regimes and digits that contradict each other."""

import functools
import itertools
import math
from collections.abc import Iterator

from geneb_ci.check.rounding import ROUNDED_DECIMALS_MAX, SHORT_SCORES_MIN, decimals
from geneb_ci.check.rule import Context, Rule
from geneb_ci.common.finding import ROWS_MIN, Fault, Need, Severity, percent
from geneb_ci.statistics.neighbours import relations_of, usual_difference_of
from geneb_ci.statistics.reference import ScoreTable
from geneb_ci.statistics.view import finding_score, shots_of
from reference_harness.formats.text import plural

NESTED_DEVIATIONS_MAX = 7.0
"""Maximum deviation of a difference between tasks, in standard deviations of this difference in the
other rows. The largest of the 41 public rows is 5.4 (JanusDNA without attention, H4)."""


def nested_tasks(context: Context) -> Iterator[Fault]:
    """Report each relation between tasks that other rows satisfy and this row violates."""
    view, tasks = context.view, context.benchmark.tasks
    metric = context.benchmark.primary_metric
    relations = relations_of(context.benchmark)
    for regime, columns, shots in zip(
        context.benchmark.regimes, view.table.regimes, view.shots, strict=True
    ):
        if shots != float("inf"):  # few-shot sampling noise exceeds these differences
            continue
        for number, relation in enumerate(relations):
            usual_difference = usual_difference_of(
                view.table, relations, number, columns.start, view.own_index, ROWS_MIN
            )
            difference = relation.difference(view.row, columns.start)
            if (
                usual_difference is None
                or not abs(difference - usual_difference.median)
                > NESTED_DEVIATIONS_MAX * usual_difference.scale
            ):
                continue
            deviations = abs(difference - usual_difference.median) / usual_difference.scale
            score = finding_score(deviations, NESTED_DEVIATIONS_MAX)
            parts = " and ".join(f'"{tasks[k].id}"' for k, _ in relation.parts)
            verb = "has" if len(relation.parts) == 1 else "have"
            yield Fault(
                NESTED_TASKS.id,
                ("results", regime, tasks[relation.task].id, metric),
                f"{metric} differs by {difference:+.3f} from {parts}, which {verb} the same "
                f"sequences; in other rows the difference is {usual_difference.median:+.3f} with "
                f"standard deviation {usual_difference.scale:.3f}",
                f"{difference:+.4f}",
                f"about {usual_difference.median:+.3f}",
                score=score,
            )


NESTED_TASKS = Rule(
    id="nested-tasks",
    severity=Severity.WARNING,
    what="The score of a task does not fit those of tasks with the same sequences.",
    why="One task is the union of two others, or another split of one assay, so a score is wrong.",
    fix=(
        "Verify the data files, `geneb-ci data verify FOLDER` with your folder of task data, and "
        "run the evaluation again."
    ),
    check=nested_tasks,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)


FEW_SHOT_DEVIATIONS_MAX = 3.5
"""Maximum excess of a few-shot score, in standard deviations of this difference: estimated from the
other rows, and at least the sampling error of the test split. The largest excess of the 41 public
rows is 2.1 (BioFM-265M and caduceus-ph, where the probe on all data is no better than chance)."""


def few_shot_above_full(context: Context) -> Iterator[Fault]:
    """Report each few-shot score that is significantly above that with all training sequences.

    It is more than `FEW_SHOT_DEVIATIONS_MAX` standard deviations above.
    """
    view, reference = context.view, context.view.reference
    if reference is None or view.prediction is None or float("inf") not in view.shots:
        return
    full_index = view.shots.index(float("inf"))
    scales = reference.scales(reference.index_of(view.own_index))
    metric, size = context.benchmark.primary_metric, len(context.benchmark.tasks)
    for few_shot_index, shots in enumerate(view.shots):
        for number, task in enumerate(context.benchmark.tasks if shots != float("inf") else ()):
            excess = view.row[few_shot_index * size + number] - view.row[full_index * size + number]
            if not excess > 0:
                continue
            # An MCC of a balanced task has a standard error of about 1 / sqrt(n), and less near 1.
            sampling_variance = 1.0 / task.n_test if task.n_test else 0.0
            noise_full, noise_few = (
                scales[full_index * size + number],
                scales[few_shot_index * size + number],
            )
            noise = (max(noise_full**2, sampling_variance) + noise_few**2) ** 0.5
            if excess <= FEW_SHOT_DEVIATIONS_MAX * noise:
                continue
            score = finding_score(excess / noise, FEW_SHOT_DEVIATIONS_MAX)
            regimes = context.benchmark.regimes
            yield Fault(
                FEW_SHOT_ABOVE_FULL.id,
                ("results", regimes[few_shot_index], task.id, metric),
                f'{metric} is {excess:.3f} above that of "{regimes[full_index]}", which is '
                f"{excess / noise:.1f} standard deviations",
                f"{excess:+.4f}",
                f"at most {FEW_SHOT_DEVIATIONS_MAX * noise:+.3f}",
                score=score,
            )


FEW_SHOT_ABOVE_FULL = Rule(
    id="few-shot-above-full",
    severity=Severity.WARNING,
    what="A few-shot score is significantly better than the one with all training sequences.",
    why="More training data should not hurt: the probe did not converge, or cells were swapped.",
    fix="Check that the probe of the full regime converged and used the same test split.",
    check=few_shot_above_full,
    needs=(Need.OTHER_ROWS, Need.COMPLETE_ROWS),
)


BETTER_THAN_FULL_SHARE_MAX = 0.2
"""Maximum share of tasks in which a few-shot regime is better than the full regime; the 41 public
rows have at most 0.06."""
BETTER_FEW_SHOT_SHARE_MAX = 0.5
"""Maximum share of tasks in which a few-shot regime is better than a few-shot regime with more
sequences; the 41 public rows have at most 0.25."""
SWAPPED_SHARE_MIN = 0.7
"""Minimum share of tasks from which the fix says that two regimes were swapped. Swapped regimes of
the 41 public rows would have at least 0.75."""
COMPARED_TASKS_MIN = 20
"""Minimum number of tasks in two regimes; with fewer, the share of tasks is too noisy."""


def regimes_out_of_order(context: Context) -> Iterator[Fault]:
    """Report each pair of regimes of which that with less data is better in too many tasks."""
    row, shots = context.vector, shots_of(context.benchmark)
    size = len(context.benchmark.task_ids)
    for smaller_regime, larger_regime in itertools.permutations(range(len(shots)), 2):
        if shots[smaller_regime] >= shots[larger_regime]:
            continue
        columns = (row[k * size : (k + 1) * size] for k in (smaller_regime, larger_regime))
        pairs = [(a, b) for a, b in zip(*columns, strict=True) if not math.isnan(a + b)]
        if len(pairs) < COMPARED_TASKS_MIN:
            continue
        share = sum(a > b for a, b in pairs) / len(pairs)
        limit = (
            BETTER_THAN_FULL_SHARE_MAX
            if shots[larger_regime] == math.inf
            else BETTER_FEW_SHOT_SHARE_MAX
        )
        if share <= limit:
            continue
        score = finding_score(share, limit)
        regimes = context.benchmark.regimes
        yield Fault(
            REGIMES_OUT_OF_ORDER.id,
            ("results", regimes[smaller_regime]),
            f'"{regimes[smaller_regime]}" is better than "{regimes[larger_regime]}" in '
            f"{percent(share)} of "
            f"{plural(len(pairs), 'task')}",
            percent(share),
            f"at most {percent(limit)}",
            on_key=True,
            fix=_SWAPPED_FIX.format(regimes[smaller_regime], regimes[larger_regime])
            if share >= SWAPPED_SHARE_MIN
            else "",
            score=score,
        )


_SWAPPED_FIX = (
    'The scores of "{0}" and "{1}" seem to be swapped: check which run each comes from, and swap '
    "them back."
)


REGIMES_OUT_OF_ORDER = Rule(
    id="regimes-out-of-order",
    severity=Severity.WARNING,
    what="Over all tasks, a regime with less training data does better than one with more.",
    why="Regimes were swapped, or one was filled with scores of another.",
    fix="Check which run each regime comes from.",
    check=regimes_out_of_order,
)


ZERO_MCC_MAX = 1e-12
"""Maximum MCC that counts as 0, that of constant predictions: a computed 0 has rounding errors."""
CLASS_SHARE_TOLERANCE = 5e-4
"""Maximum difference of the accuracy of constant predictions from the share of the predicted class;
both may be rounded to 3 decimals."""
CONSTANT_CELLS_SHARE = 0.05
"""Share of cells with constant predictions from which another row is ignored, so that a row of
zeros suppresses no finding. The largest share in the 41 public rows is 0.01."""
CONSTANT_CELLS_MIN = 5
"""Minimum number of cells with constant predictions in a row that is ignored."""


def constant_predictions(context: Context) -> Iterator[Fault]:
    """Report each cell with constant predictions if no other row has them in this cell."""
    view, size = context.view, len(context.benchmark.tasks)
    if view.others_count < ROWS_MIN or (context.rounding and context.rounding.is_coarse):
        return  # with two decimals, an MCC of 0 may be any below 0.005
    constant_cells_max = max(CONSTANT_CELLS_MIN, CONSTANT_CELLS_SHARE * len(view.row))
    constant_rows_by_cell = _constant_rows(view.table, constant_cells_max)
    for number, mcc in enumerate(view.row):
        if abs(mcc) > ZERO_MCC_MAX or math.isnan(mcc):
            continue
        regime, task = view.cell(number)
        counts = context.benchmark.tasks[number % size].test_class_counts
        accuracy = context.member("results", regime, task, "Acc")
        if counts and type(accuracy) in {int, float}:
            shares = [count / sum(counts) for count in counts]
            if all(abs(accuracy - share) > CLASS_SHARE_TOLERANCE for share in shares):
                continue
        if constant_rows_by_cell[number] - {view.own_index}:
            continue
        yield Fault(
            CONSTANT_PREDICTIONS.id,
            ("results", regime, task),
            "MCC is 0 and accuracy is the share of one class: the probe predicted a single class, "
            f"unlike in any of {view.others_count} other rows",
            "a single predicted class",
            "more than one predicted class",
            on_key=True,
            score=1.0,
        )


@functools.lru_cache(maxsize=4)
def _constant_rows(table: ScoreTable, cells_limit: float) -> list[frozenset[int | None]]:
    """Return, for each cell, the indices of the rows with constant predictions in this cell.

    Rows with constant predictions in `cells_limit` cells or more are left out.
    """
    rows_by_cell: list[set[int | None]] = [set() for _ in table.vectors[0]] if table.vectors else []
    for index, row in enumerate(table.vectors):
        zeros = [number for number, mcc in enumerate(row) if abs(mcc) <= ZERO_MCC_MAX]
        for number in zeros if len(zeros) < cells_limit else ():
            rows_by_cell[number].add(index)
    return [frozenset(rows) for rows in rows_by_cell]


CONSTANT_PREDICTIONS = Rule(
    id="constant-predictions",
    severity=Severity.WARNING,
    what="The probe predicted one class for every sequence, unlike for any other model.",
    why="Constant or badly scaled embeddings cause this: the score says nothing about the model.",
    fix="Inspect the embeddings of this task: they must be finite, distinct and of similar scale.",
    check=constant_predictions,
    needs=(Need.OTHER_ROWS, Need.MANY_ROWS),
)


SHORT_SCORE_DECIMALS_MAX = 4
"""Maximum decimals of a score that counts as round in a file of full precision."""
ROUND_DIGITS_DEVIATIONS_MAX = 6.0
"""Maximum excess of last digits 0 and 5 in a rounded file, in standard deviations: one digit in
five is expected. One honest file of 600 values in a hundred million exceeds this limit."""


def round_numbers(context: Context) -> Iterator[Fault]:
    """Report few decimals, round values in an unrounded file, and too many last digits 0 or 5."""
    rounding = context.rounding
    if rounding is None:
        return
    scores, decimal_counts = rounding
    usual_decimals = rounding.usual_decimals
    if rounding.is_coarse:
        yield _decimals_fault(
            f"scores have {usual_decimals} decimals",
            f"{usual_decimals} decimals",
            "4 decimals or more",
            1.0,
        )
    elif usual_decimals > ROUNDED_DECIMALS_MAX:
        round_count = sum(n <= SHORT_SCORE_DECIMALS_MAX for n in decimal_counts)
        if round_count >= SHORT_SCORES_MIN:
            message = (
                f"{round_count} values of MCC and F1 have at most {SHORT_SCORE_DECIMALS_MAX} "
                f"decimals; most have {usual_decimals}"
            )
            score = finding_score(round_count, SHORT_SCORES_MIN)
            yield _decimals_fault(
                message, f"{round_count} round values", "digits as computed", score
            )
    else:
        # A value with fewer decimals than the file ends in 0.
        round_ends = sum(
            n < usual_decimals or round(v * 10**usual_decimals) % 5 == 0
            for v in scores
            if (n := decimals(v))
        )
        excess = (round_ends - 0.2 * len(decimal_counts)) / (0.16 * len(decimal_counts)) ** 0.5
        if excess > ROUND_DIGITS_DEVIATIONS_MAX:
            message = (
                f"{round_ends} of {len(decimal_counts)} values of MCC and F1 end in 0 or 5 at "
                f"decimal {usual_decimals}"
            )
            score = finding_score(excess, ROUND_DIGITS_DEVIATIONS_MAX)
            yield _decimals_fault(
                message, f"{round_ends} of {len(decimal_counts)}", "about one in five", score
            )


def _decimals_fault(message: str, actual: str, expected: str, score: float) -> Fault:
    """Return a fault of the rule `round-numbers`, about all scores of the row."""
    return Fault(
        ROUND_NUMBERS.id, ("results",), message, actual, expected, on_key=True, score=score
    )


ROUND_NUMBERS = Rule(
    id="round-numbers",
    severity=Severity.WARNING,
    what="More values are round than in computed scores, or all are rounded to two decimals.",
    why="Computed numbers are rarely round; with two decimals, other checks find few errors.",
    fix="Submit the file as the harness wrote it.",
    check=round_numbers,
)


PARAMETER_RATIO_MIN = 2.0
"""Minimum number of parameters divided by the square of the embedding width. A transformer layer
has 12 (4 attention, 8 feed-forward; Vaswani et al. 2017); the 40 published models have 27 to 910.
Less than 2, a sixth of a layer, means a count in the wrong unit or the width of another model."""
PARAMETER_RATIO_MAX = 10_000.0
"""Maximum of the same ratio, that of more than 800 layers."""


def size_against_width(context: Context) -> Iterator[Fault]:
    """Report a parameter count that does not fit the embedding width in `run`.

    Without `run`, the width in the model registry is used.
    """
    params = context.member("meta", "params")
    width = context.member("run", "embedding", "dim")
    if type(width) is not int:
        width = context.registry_facts.get("embedding_dim")
    # Methods without parameters, such as k-mer counts, have 0.
    if type(params) is not int or type(width) is not int or params <= 0 or width <= 0:
        return
    ratio = params / (width * width)
    if _is_usual(ratio):
        return
    score = finding_score(
        ratio / PARAMETER_RATIO_MAX if ratio > PARAMETER_RATIO_MAX else PARAMETER_RATIO_MIN / ratio,
        1.0,
    )
    unit = next((u for u, n in _FACTOR_BY_UNIT.items() if _is_usual(n * ratio) and params < n), "")
    suggestion = f"; did you mean {params:,} {unit}?" if unit else ""
    yield Fault(
        SIZE_AGAINST_WIDTH.id,
        ("meta", "params"),
        f"{params:,} parameters is {ratio:.3g} times the square of the embedding width {width:,}"
        f"{suggestion}",
        f"{ratio:.3g}",
        f"{PARAMETER_RATIO_MIN:g} to {PARAMETER_RATIO_MAX:g}; published models have 27 to 910",
        score=score,
    )


def _is_usual(ratio: float) -> bool:
    """Whether parameters divided by the square of the width are those of some model."""
    return PARAMETER_RATIO_MIN <= ratio <= PARAMETER_RATIO_MAX


_FACTOR_BY_UNIT = {"million": 10**6, "thousand": 10**3, "billion": 10**9}
"""Factor of each unit in which a count may have been written, the most frequent mistake first."""


SIZE_AGAINST_WIDTH = Rule(
    id="size-against-width",
    severity=Severity.WARNING,
    what="The parameter count does not fit the width of the embeddings.",
    why="A count in the wrong unit, or of another checkpoint, misplaces the model on the board.",
    fix="Count the parameters of the encoder that produced the embeddings, as an integer.",
    check=size_against_width,
)

"""MCC, accuracy and F1: as reported, with their precision, and as computed from a matrix."""

import functools
import math
import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import array


class Triple(NamedTuple):
    """MCC, accuracy and macro-F1 of the same predictions, or means of such triples."""

    mcc: float
    acc: float
    f1: float

    def __str__(self) -> str:
        """Return the three metrics as a text, with four decimals."""
        return self.text(4)

    def text(self, decimals: int) -> str:
        """Return the three metrics as a text, with a number of decimals."""
        mcc, acc, f1 = (f"{value:.{decimals}f}" for value in self)
        return f"MCC {mcc}, accuracy {acc}, F1 {f1}"


class ReportedTriple(NamedTuple):
    """The metrics as a submission reports them, with their precision."""

    value: Triple
    """The metrics as written in the submission."""
    width: Triple
    """Half-width of each metric: the unrounded value differs from `value` by at most this."""

    def agrees_with(self, triple: Triple, slack: float = 0.0) -> bool:
        """Whether each metric of a triple is within the half-width, plus `slack`, of `value`."""
        return (
            abs(triple.mcc - self.value.mcc) <= self.width.mcc + slack
            and abs(triple.acc - self.value.acc) <= self.width.acc + slack
            and abs(triple.f1 - self.value.f1) <= self.width.f1 + slack
        )


def distinct_texts(actual: Triple, expected: Triple) -> tuple[str, str]:
    """Return two triples as texts with so many decimals, at least four, that they differ."""
    decimals = next((d for d in range(4, 16) if actual.text(d) != expected.text(d)), 16)
    return actual.text(decimals), expected.text(decimals)


UNROUNDED_DECIMALS = 13
"""Number of decimals from which a value counts as unrounded (doubles have 15 to 17 digits)."""
MEAN_ROUNDING_ERROR = 4e-15
"""Rounding error of a mean: 0.8123 averaged over five equal values is 0.8122999999999999."""
UNROUNDED_HALF_WIDTH = 1e-13
"""Half-width of unrounded values.

Formulas and orders of summation differ by at most 4e-16 in 3,731 published cells; neighbouring
matrices differ by at least 1e-10 at 70,000 sequences.
"""
SINGLE_HALF_WIDTH = 5e-7
"""Half-width of values computed in single precision, whose error is about 1e-7."""
SINGLE_DECIMALS = range(7, 10)
"""Numbers of decimals that a value computed in single precision may be printed with."""
ROUNDED_DECIMALS_MAX = 6
"""Maximum number of decimals of an MCC or F1 that counts as rounded; `WHOLE_SCORES` never do."""
MIXED_SHARE_MIN = 1 / 3
"""Minimum share of rounded scores with which a file counts as a mix of rounded and unrounded
scores. Of such a file, each score has its own precision."""


WHOLE_SCORES = (-1.0, 0.0, 1.0)
"""Scores that are equal at every precision, and so no evidence of rounding."""
ROUNDED_SCALE = 10.0 ** (UNROUNDED_DECIMALS - 1)
"""Factor by which every rounded score becomes a whole number."""
UNROUNDED_DISTANCE = 0.01
"""Distance of a score times `ROUNDED_SCALE` from a whole number that shows an unrounded score.

It is above `MEAN_ROUNDING_ERROR` and the error of the product.
"""


def is_unrounded(value: float) -> bool:
    """Whether a score was certainly not rounded."""
    return (
        -1 <= value <= 1
        and UNROUNDED_DISTANCE < value * ROUNDED_SCALE % 1.0 < 1.0 - UNROUNDED_DISTANCE
    )


def decimals(value: float) -> int:
    """Return the number of decimals of a value; `UNROUNDED_DECIMALS` if it was not rounded."""
    if is_unrounded(value):
        return UNROUNDED_DECIMALS
    if abs(value - round(value, UNROUNDED_DECIMALS - 1)) > MEAN_ROUNDING_ERROR:
        return UNROUNDED_DECIMALS
    return next(
        d for d in range(UNROUNDED_DECIMALS) if abs(value - round(value, d)) <= MEAN_ROUNDING_ERROR
    )


def column_decimals(values: Sequence[float], repeats: int = 1) -> int:
    """Return the greatest number of decimals of the values of a column.

    Each value is a mean of `repeats` numbers. If those were rounded, their decimals count instead.
    """
    most = 0
    for value in values:
        most = max(most, decimals(value))
        if most == UNROUNDED_DECIMALS:
            return UNROUNDED_DECIMALS
    return min(
        most, max((decimals(repeats * value) for value in values), default=UNROUNDED_DECIMALS)
    )


def is_mixed(values: Iterable[float]) -> bool:
    """Whether at least `MIXED_SHARE_MIN` of the MCC and F1 of a regime are rounded, but not all."""
    fractions = [value for value in values if value not in WHOLE_SCORES]
    rounded = sum(
        decimals(value) <= ROUNDED_DECIMALS_MAX for value in fractions if not is_unrounded(value)
    )
    return rounded < len(fractions) and rounded >= MIXED_SHARE_MIN * len(fractions)


def half_width(decimal_count: int) -> float:
    """Return how far a reported value with this many decimals may be from the unrounded one."""
    if decimal_count >= UNROUNDED_DECIMALS:
        return UNROUNDED_HALF_WIDTH
    half = max(0.5 * 10.0**-decimal_count, UNROUNDED_HALF_WIDTH) + MEAN_ROUNDING_ERROR
    return max(half, SINGLE_HALF_WIDTH) if decimal_count in SINGLE_DECIMALS else half


def half_widths(values: Sequence[float], repeats: int = 1, *, mixed: bool = False) -> list[float]:
    """Return the half-widths of the values of a column: how far each may be from the unrounded one.

    Each value is a mean of `repeats` numbers. With `mixed`, each value has its own precision.
    """
    if mixed:
        return [half_width(column_decimals([value], repeats)) for value in values]
    decimal_count = column_decimals(values, repeats)
    if decimal_count == UNROUNDED_DECIMALS and values and all(map(_is_single_precision, values)):
        return [SINGLE_HALF_WIDTH] * len(values)
    return [half_width(decimal_count)] * len(values)


def _is_single_precision(value: float) -> bool:
    """Whether a value is exactly representable in single precision."""
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


class MetricBounds(NamedTuple):
    """Least and greatest MCC and macro-F1."""

    mcc_low: float
    mcc_high: float
    f1_low: float
    f1_high: float


def one_matrix_bounds(n: int, correct: int) -> MetricBounds:
    """Return the least and greatest MCC and macro-F1 of a confusion matrix.

    It has n sequences, `correct` of them on the diagonal.
    """
    wrong = n - correct
    if not wrong:
        return MetricBounds(1.0, 1.0, 1.0, 1.0)
    if not correct:
        return MetricBounds(-1.0, 0.0, 0.0, 0.0)
    classes_max = n + wrong
    return MetricBounds(
        -wrong / n, n / (n + wrong), correct / n / classes_max, 1.0 - 2 * wrong / (classes_max * n)
    )


def mean_bounds(n: int, correct: int, repeats: int) -> MetricBounds:
    """Return the least and greatest means of MCC and macro-F1 over `repeats` confusion matrices.

    Each has n sequences; together they have `correct` of them on the diagonals.
    """
    total = n * repeats
    wrong = total - correct
    if not wrong or not correct:
        return one_matrix_bounds(n, correct // repeats)
    acc = correct / total
    return MetricBounds(acc - 1.0, (1.0 + acc) / 2, acc / (n * (2.0 - acc)), 1.0 - (1.0 - acc) / n)


Matrix = Sequence[Sequence[int]]
"""Counts of sequences: element [i][j] has true class i and predicted class j."""


def true_class_sizes(matrix: Matrix) -> list[int]:
    """Return the number of sequences of each true class."""
    return [sum(row) for row in matrix]


def scores_of_matrix(matrix: Matrix) -> Triple:
    """Return the metrics of a square matrix with at least one count.

    MCC is Gorodkin's (Comput. Biol. Chem. 28, 2004), 0 where a margin has one class only. Macro-F1
    is the mean over the classes that occur in truth or prediction, as scikit-learn has it. Counts
    are added as integers: only the last operations round.
    """
    margins = _margins(matrix)
    sums = _sums(matrix, margins)
    return Triple(_mcc(sums), sums.correct / sums.total, _mean_f1(_f1_by_class(matrix, margins)))


class _Margins(NamedTuple):
    """The number of sequences of each true class, and of each predicted class."""

    true: list[int]
    """Sums of the rows of a matrix: sequences of each true class."""
    predicted: list[int]
    """Sums of the columns of a matrix: sequences of each predicted class."""


def _margins(matrix: Matrix) -> _Margins:
    """Return the sums of the rows and of the columns of a matrix."""
    return _Margins(true_class_sizes(matrix), [sum(column) for column in zip(*matrix, strict=True)])


class _Sums(NamedTuple):
    """The sums from which MCC and accuracy follow."""

    total: int
    """Number of all sequences."""
    correct: int
    """Number of sequences that are predicted correctly."""
    chance: int
    """Sum over the classes of its true count times its predicted count."""
    true_squares: int
    """Sum over the classes of the squared true count."""
    predicted_squares: int
    """Sum over the classes of the squared predicted count."""


def _sums(matrix: Matrix, margins: _Margins) -> _Sums:
    """Return the sums of a matrix from which MCC and accuracy follow."""
    return _Sums(
        total=sum(margins.true),
        correct=sum(row[k] for k, row in enumerate(matrix)),
        chance=sum(map(operator.mul, *margins)),
        true_squares=sum(n * n for n in margins.true),
        predicted_squares=sum(n * n for n in margins.predicted),
    )


def _f1_by_class(matrix: Matrix, margins: _Margins) -> list[float | None]:
    """Return F1 of each class; None for a class that occurs neither in truth nor in prediction."""
    sizes = map(operator.add, *margins)
    return [_f1(row[k], size) for (k, row), size in zip(enumerate(matrix), sizes, strict=True)]


def largest_effect(matrix: Matrix) -> Triple:
    """Return how far one changed prediction can move each metric of a matrix.

    Rows are true classes, columns predicted ones. The metrics are those of `scores_of_matrix`.
    """
    margins = _margins(matrix)
    sums, terms = _sums(matrix, margins), _f1_by_class(matrix, margins)
    mcc, f1 = _mcc(sums), _mean_f1(terms)
    mcc_change = f1_change = 0.0
    for row, old, new in _changed_predictions(matrix):
        changed_sums = _changed_sums(sums, margins, row, old, new)
        mcc_change = max(mcc_change, abs(_mcc(changed_sums) - mcc))
        changed_terms = list(terms)
        for k, step in ((old, -1), (new, 1)):
            correct = matrix[k][k] + step * (row == k)
            changed_terms[k] = _f1(correct, margins.true[k] + margins.predicted[k] + step)
        f1_change = max(f1_change, abs(_mean_f1(changed_terms) - f1))
    return Triple(mcc_change, 1 / sums.total, f1_change)


def _changed_predictions(matrix: Matrix) -> Iterator[tuple[int, int, int]]:
    """Yield true, old and new predicted class of every possible change of one prediction."""
    classes = range(len(matrix))
    for row in classes:
        for old in classes:
            if matrix[row][old]:
                yield from ((row, old, new) for new in classes if new != old)


def _changed_sums(sums: _Sums, margins: _Margins, row: int, old: int, new: int) -> _Sums:
    """Return the sums after a prediction for class `row` has changed from `old` to `new`."""
    true, predicted = margins
    return sums._replace(
        correct=sums.correct - (row == old) + (row == new),
        chance=sums.chance - true[old] + true[new],
        predicted_squares=sums.predicted_squares + 2 * (predicted[new] - predicted[old]) + 2,
    )


def _mcc(sums: _Sums) -> float:
    """Return MCC; 0 where it is undefined."""
    square = sums.total * sums.total
    spread = (square - sums.predicted_squares) * (square - sums.true_squares)
    return (sums.correct * sums.total - sums.chance) / math.sqrt(spread) if spread else 0.0


def _f1(correct: int, margin_sum: int) -> float | None:
    """Return F1 of a class, where `margin_sum` is its true plus its predicted count; None if 0."""
    return 2 * correct / margin_sum if margin_sum else None


def _mean_f1(f1_by_class: Sequence[float | None]) -> float:
    """Return the mean of F1 over the classes for which it is defined."""
    present = [f1 for f1 in f1_by_class if f1 is not None]
    return math.fsum(present) / len(present)


class PackedNumbers(Mapping[str, Any]):
    """A mapping of names to numbers in one array, of 8 bytes each instead of 150."""

    __slots__ = ("numbers", "positions", "width")

    def __init__(
        self, positions: Mapping[str, int], numbers: "array.array[float]", width: int = 1
    ) -> None:
        """Keep `width` numbers per name; `positions` has the position of each name, from 0."""
        self.positions, self.numbers, self.width = positions, numbers, width

    def plain_dict(self) -> dict[str, Any]:
        """Return the number of each name, or if `width` is above 1 its tuple of numbers."""
        if self.width == 1:
            return dict(zip(self.positions, self.numbers, strict=True))
        groups = zip(*[iter(self.numbers)] * self.width, strict=True)
        return dict(zip(self.positions, groups, strict=True))

    def is_like(self, other: Mapping[str, Any]) -> bool:
        """Whether another mapping has the same object of `positions`; names are not compared."""
        return isinstance(other, PackedNumbers) and self.positions is other.positions

    def __getitem__(self, name: str) -> Any:
        index = self.positions[name]
        if self.width == 1:
            return self.numbers[index]
        return tuple(self.numbers[index * self.width : (index + 1) * self.width])

    def __iter__(self) -> Iterator[str]:
        return iter(self.positions)

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class ModelRanking(Mapping[str, dict[str, Any]]):
    """The models ranked by one score: a list of each fact, in which the best model is first.

    As a mapping: id of a model -> its facts, which `board.diagnostics.document.DiagnosedScore`
    describes.
    """

    models: Sequence[str]
    """Ids of the models, best first."""
    score: list[float]
    error: list[float]
    """Standard errors of the scores."""
    freedom: list[float | None]
    """Degrees of freedom of the errors; None if they do not depend on scores by seed."""
    low: list[float]
    """Lower ends of the 95 % intervals."""
    high: list[float]
    """Upper ends of the 95 % intervals."""
    rank: list[int]
    rank_low: list[int]
    """Best rank that each model may have."""
    rank_high: list[int]
    """Worst rank that each model may have."""
    could_be_best: list[bool]

    @functools.cached_property
    def columns(self) -> dict[str, list[Any]]:
        """By name of a fact, in published order: the list with the fact of each model."""
        return {name: getattr(self, name) for name in RANKING_FACTS}

    @functools.cached_property
    def positions(self) -> dict[str, int]:
        """By model: the position of its facts in the lists."""
        return {model: index for index, model in enumerate(self.models)}

    def plain_dict(self) -> dict[str, dict[str, Any]]:
        """Return the facts by name of each model, as plain dicts."""
        fact_rows = zip(*self.columns.values(), strict=True)
        facts_of_models = (dict(zip(RANKING_FACTS, row, strict=True)) for row in fact_rows)
        return dict(zip(self.models, facts_of_models, strict=True))

    def __getitem__(self, model: str) -> dict[str, Any]:
        index = self.positions[model]
        return {name: column[index] for name, column in self.columns.items()}

    def __contains__(self, model: object) -> bool:
        return model in self.positions

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)


RANKING_FACTS = tuple(ModelRanking.__annotations__)[1:]
"""The names of the facts that `ModelRanking` has of each model."""


class RowStatistics(NamedTuple):
    """Numbers computed from the file of a row, for each regime in which the row is ranked."""

    scores: Mapping[str, "array.array[float]"]
    """By regime, the scores of one metric after the other, each task by task in board order."""
    means: Mapping[str, "array.array[float]"]
    """By regime, the micro mean, macro mean and category means of every metric."""
    errors: Mapping[str, Any] = {}
    """By regime, the `uncertainty.RowScores` of the row; empty unless errors are needed."""
    matrices: Mapping[str, Sequence[int]] = {}
    """By regime with a single fit, three numbers per two-class task, which
    `page_data.recovered_matrices` explains."""

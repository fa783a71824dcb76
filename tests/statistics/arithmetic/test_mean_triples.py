"""The edge of what means can be: rounding errors do not cross it."""

import pytest

from geneb_ci.statistics.binary import BinaryTable, Classes, metrics_of_table
from geneb_ci.statistics.mean_triples import BOUND_TOLERANCE, hull_of, impossible_metric
from geneb_ci.statistics.metrics import UNROUNDED_HALF_WIDTH, ReportedTriple, Triple

SIZES = Classes(40, 40)
ONE_CLASS = BinaryTable(0, 40, 40, 0)
"""All predictions are of one class: the least F1 of its accuracy."""
HIGHEST = BinaryTable(6, 34, 40, 0)
"""No table of its accuracy and F1 has a greater MCC."""


@pytest.mark.parametrize(
    ("table", "metric", "step", "refused"),
    [
        (ONE_CLASS, "f1", 0.0, None),
        (ONE_CLASS, "f1", -1.5 * BOUND_TOLERANCE, None),
        (ONE_CLASS, "f1", -10 * BOUND_TOLERANCE, "f1"),
        (HIGHEST, "mcc", 0.0, None),
        (HIGHEST, "mcc", 5 * BOUND_TOLERANCE, None),
        (HIGHEST, "mcc", 100 * BOUND_TOLERANCE, "mcc"),
    ],
)
def test_no_rounding_error_is_taken_for_an_impossible_mean(
    table: BinaryTable, metric: str, step: float, refused: str | None
) -> None:
    triple = metrics_of_table(table)
    shifted = triple._replace(**{metric: getattr(triple, metric) + step})
    impossible = impossible_metric(
        hull_of(SIZES),
        ReportedTriple(
            shifted, Triple(UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH, UNROUNDED_HALF_WIDTH)
        ),
    )
    assert (impossible.metric if impossible else None) == refused

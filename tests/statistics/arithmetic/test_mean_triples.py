"""The edge of what means can be: rounding errors do not cross it."""

import pytest

from geneb_ci.statistics.binary import BinaryTable, Classes, scores_of
from geneb_ci.statistics.mean_triples import TOLERANCE, hull_of, impossible_metric
from geneb_ci.statistics.metrics import EXACT, ReportedTriple, Triple

SIZES = Classes(40, 40)
ONE_CLASS = BinaryTable(0, 40, 40, 0)
"""All predictions are of one class: the least F1 of its accuracy."""
HIGHEST = BinaryTable(6, 34, 40, 0)
"""No table of its accuracy and F1 has a greater MCC."""


@pytest.mark.parametrize(
    ("table", "metric", "step", "refused"),
    [
        (ONE_CLASS, "f1", 0.0, None),
        (ONE_CLASS, "f1", -1.5 * TOLERANCE, None),
        (ONE_CLASS, "f1", -10 * TOLERANCE, "f1"),
        (HIGHEST, "mcc", 0.0, None),
        (HIGHEST, "mcc", 5 * TOLERANCE, None),
        (HIGHEST, "mcc", 100 * TOLERANCE, "mcc"),
    ],
)
def test_no_rounding_error_is_taken_for_an_impossible_mean(
    table: BinaryTable, metric: str, step: float, refused: str | None
) -> None:
    triple = scores_of(table)
    shifted = triple._replace(**{metric: getattr(triple, metric) + step})
    impossible = impossible_metric(
        hull_of(SIZES), ReportedTriple(shifted, Triple(EXACT, EXACT, EXACT))
    )
    assert (impossible.metric if impossible else None) == refused

"""Means that were found possible before are possible: the verdict does not depend on the order."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from geneb_ci.statistics.binary import Classes, binary_metrics, rho_limits
from geneb_ci.statistics.mean_triples import Hull, impossible_metric
from geneb_ci.statistics.metrics import ReportedTriple, Triple

CLASSES = Classes(40, 60)
WIDTHS = st.sampled_from([1e-13, 5e-7, 5e-5, 5e-3])


@st.composite
def readings(draw):
    """Means of tables, most of them moved a little."""
    tables = []
    for _ in range(5):
        right = draw(st.integers(20, 100))
        least, most = rho_limits(CLASSES, right)
        rho = least + 2 * draw(st.integers(0, (most - least) // 2))
        tables.append(binary_metrics(CLASSES, right, rho))
    means = [sum(column) / 5 for column in zip(*tables, strict=True)]
    moved = [x + draw(st.sampled_from([0.0, 0.0, 1e-9, 1e-4, -1e-3, 0.02, -0.1])) for x in means]
    return ReportedTriple(Triple(*moved), Triple(*[draw(WIDTHS)] * 3))


EXACT = Triple(1e-13, 1e-13, 1e-13)
POSSIBLE = ReportedTriple(Triple(0.026006964512973612, 0.51, 0.49926528072807674), EXACT)
BEYOND = ReportedTriple(Triple(0.5412361110304418, 0.712, 0.6514923343555719), EXACT)
"""Impossible, though on the plane through the tables by which the other is possible."""


@settings(deadline=None)
@example([POSSIBLE, BEYOND])
@given(st.lists(readings(), min_size=1, max_size=12))
def test_the_verdict_is_that_of_a_hull_that_has_seen_nothing(expected):
    used = Hull(CLASSES)
    for reading in expected:
        assert impossible_metric(used, reading) == impossible_metric(Hull(CLASSES), reading)

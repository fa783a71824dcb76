"""Quantiles of Student's t: level, degrees of freedom, and what tables print."""

import pytest
from scipy import stats

from geneb_ci.audit.compare.tolerance import quantile
from tests.each import each


@each("freedom", [2, 3, 4, 5, 15, 16, 31, 48, 200])
@each("level", [0.95, 0.5, 1e-2, 1e-4, 1e-6, 1e-8])
def test_quantiles_are_scipys(freedom, level):
    t = quantile(level, freedom)
    assert t == pytest.approx(stats.t.isf(level / 2, freedom), rel=1e-6)
    assert 2 * stats.t.sf(t, freedom) == pytest.approx(level, rel=1e-6)


def test_the_published_table():
    """Two-sided 5 % and 0.1 % at 16 degrees of freedom, from any printed table."""
    assert quantile(0.05, 16) == pytest.approx(2.120, abs=5e-4)
    assert quantile(0.001, 16) == pytest.approx(4.015, abs=5e-4)


@pytest.mark.parametrize(("level", "freedom"), [(0.0, 16), (1.0, 16), (-0.1, 16), (0.1, 0)])
def test_what_has_no_quantile_is_refused(level, freedom):
    with pytest.raises(ValueError, match="no t for level"):
        quantile(level, freedom)

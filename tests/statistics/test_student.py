"""Quantiles of Student's t beside the exact ones, and their inverse."""

import numpy as np
import pytest
from scipy.stats import norm, t

from geneb_ci.audit.compare.tolerance import two_sided_quantile
from geneb_ci.statistics.student import normal_quantile_of, student_quantile
from tests.each import each


@each(("freedom", "slack"), [(4, 0.054), (8, 0.011), (16, 0.003), (30, 0.001), (400, 1e-4)])
@each("constant", [1.645, 1.96, 3.16, 4.0])
def test_it_is_students_quantile_or_little_more(constant, freedom, slack):
    exact = t.isf(norm.sf(constant), freedom)
    quantile = float(student_quantile(constant, freedom))
    assert (0.99 if freedom == 4 else 0.999) * exact < quantile < (1 + slack) * exact
    assert normal_quantile_of(np.array([quantile]), np.array([freedom])) == pytest.approx(constant)


def test_many_degrees_of_freedom_are_normal():
    quantiles = student_quantile(3.0, np.array([16.0, 1e5, np.inf]))
    assert quantiles[1:].tolist() == [3.0, 3.0]
    assert float(student_quantile(3.0, np.inf)) == 3.0
    assert normal_quantile_of(quantiles, np.array([16.0, 1e5, np.inf])) == pytest.approx(3.0)


@each("freedom", [16, 48, 95])
@each("level", [0.05, 1e-3, 3e-6])
def test_a_tolerance_has_the_two_sided_quantile_or_little_more(freedom, level):
    exact = t.isf(level / 2, freedom)
    assert exact * 0.9999 < two_sided_quantile(level, freedom) < exact * 1.004

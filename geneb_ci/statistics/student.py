"""Student's t by a formula that the page's script computes as well."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""An array of floating-point numbers."""
Positions = npt.NDArray[np.intp]
"""Indices, or other integers, in an array."""

FREEDOM_MAX = 1e5
"""Degrees of freedom from which Student's t counts as the normal distribution."""


def student_quantile(normal_quantile: float, freedom: Floats | float) -> Floats:
    """Return the quantile of Student's t that has the same probability as a normal quantile.

    `freedom` are the degrees of freedom. The approximation is Gaver and Kafadar's (Am. Stat.
    38:308, 1984). From normal quantiles of 1.96 on it is never too narrow by more than 0.6 %. At
    4 it is 5 % too wide with 4 degrees of freedom and 1 % with 8; at 5, 0.4 % with 16.
    """
    if np.asarray(freedom >= FREEDOM_MAX).all():
        return np.broadcast_to(normal_quantile, np.shape(freedom))
    finite = np.minimum(freedom, FREEDOM_MAX)
    quantiles = np.sqrt(finite * np.expm1(normal_quantile**2 * _expansion_factor(finite)))
    return np.where(freedom < FREEDOM_MAX, quantiles, normal_quantile)


def normal_quantile_of(statistic: Floats, freedom: Floats) -> Floats:
    """Return the normal quantile that has the same probability as a value of Student's t."""
    finite = np.minimum(freedom, FREEDOM_MAX)
    magnitude = np.sqrt(np.log1p(statistic * statistic / finite) / _expansion_factor(finite))
    return np.where(freedom < FREEDOM_MAX, np.copysign(magnitude, statistic), statistic)


def _expansion_factor(freedom: Floats) -> Floats:
    """Return the factor of the approximation that depends only on the degrees of freedom."""
    return (freedom - 1.5) / ((freedom - 1) * (freedom - 1))

"""Quantiles of Student's t distribution for whole degrees of freedom, without SciPy."""

import functools
import math

# Halvings of an interval of doubles that leave it a single one.
HALVINGS = 200
# Beyond it two-sided levels of 1e-12 and above lie, from 2 degrees of freedom on.
FARTHEST = 1e7


def beyond(t: float, freedom: int) -> float:
    """Give the probability that |T| > t >= 0.

    The finite sums of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    What is left of 1 is exact to about 1e-15.
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term, terms = 1.0, []
    if freedom % 2:
        if freedom > 1:
            term = cosine
            terms.append(term)
        for k in range(3, freedom - 1, 2):
            term *= (k - 1) / k * cosine * cosine
            terms.append(term)
        inside = 2 / math.pi * (angle + sine * math.fsum(terms))
    else:
        terms.append(term)
        for k in range(2, freedom - 1, 2):
            term *= (k - 1) / k * cosine * cosine
            terms.append(term)
        inside = sine * math.fsum(terms)
    return max(0.0, 1 - inside)


@functools.cache
def quantile(level: float, freedom: int) -> float:
    """Give t with P(|T| > t) = level.

    Raises ValueError for a level outside 1e-12 to 1, or fewer than 2 degrees of freedom.
    """
    if not 1e-12 <= level < 1 or freedom < 2:  # noqa: PLR2004 (see FARTHEST)
        msg = f"no t for level {level} and {freedom} degrees of freedom"
        raise ValueError(msg)
    low, high = 0.0, FARTHEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if beyond(middle, freedom) > level:
            low = middle
        else:
            high = middle
    return high

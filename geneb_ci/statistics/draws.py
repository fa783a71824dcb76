"""Random numbers that are the same on every machine and under every version of NumPy and SciPy.

NumPy promises the stream of integers of a bit generator for good, but not what a `Generator` makes
of it: `Generator.binomial` gives other numbers in 2.5 than in 2.4, and what is published may not
depend on that. So draws are inverted here from the stream. The tables of the binomial need no more
than the four operations of IEEE 754, which are exact everywhere; quantiles of the normal come from
SciPy and may differ by some 1e-16, far below what is published.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

BITS = 52
"""Of a uniform number: with a half added, each is still a float of its own."""
REACH = 9.0
"""Standard deviations from the mean to either end of a table: 1e-18 of a normal lies outside."""
REACH_MORE = 40
"""Counts more, for small means: a Poisson number of mean 1 is above 40 once in 1e48 times."""


def uniform(bits: np.random.PCG64, shape: tuple[int, ...]) -> Floats:
    """Return the next numbers in (0, 1) of a stream: middles of 2^52 equal parts, never 0 or 1."""
    raw = bits.random_raw(math.prod(shape)) >> np.uint64(64 - BITS)
    return ((raw.astype(np.float64) + 0.5) * 2.0**-BITS).reshape(shape)


def binomial(total: int, rate: float, at: Floats) -> Counts:
    """Return quantiles of the number of hits in `total` trials of chance `rate`, 0 < rate < 1.

    `at` holds probabilities of any shape; the result has that shape.
    """
    mean = total * rate
    reach = REACH * math.sqrt(mean * (1 - rate)) + REACH_MORE
    first, last = max(0, math.floor(mean - reach)), min(total, math.ceil(mean + reach))
    counts = np.arange(first, last, dtype=np.float64)
    # p(k + 1) / p(k), multiplied up from the likeliest count and down from it: nothing underflows.
    ratios = (total - counts) / (counts + 1) * (rate / (1 - rate))
    mode = min(max(math.floor((total + 1) * rate), first), last) - first
    up = np.cumprod(ratios[mode:])
    down = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    cumulative = np.cumsum(np.concatenate([down, [1.0], up]))
    return first + np.searchsorted(cumulative, at * cumulative[-1])


def normal(bits: np.random.PCG64, shape: tuple[int, ...]) -> Floats:
    """Return the next numbers of a stream, normally distributed with mean 0 and variance 1."""
    return np.asarray(ndtri(uniform(bits, shape)))

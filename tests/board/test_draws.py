"""Draws: the law of the binomial, and the same numbers on every machine."""

import hashlib
import math
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, kstest, norm

from geneb_ci.board.noise import binomial, normal, uniform


@example(total=1, rate=0.5, at=[0.5])
@example(total=30_000, rate=1 - 1e-9, at=[1e-15, 1 - 1e-15])
@example(total=30_000, rate=1e-12, at=[0.5])
@given(
    total=st.integers(1, 50_000),
    rate=st.floats(1e-6, 1 - 1e-6),
    at=st.lists(st.floats(1e-15, 1 - 1e-15), min_size=1, max_size=20),
)
def test_a_quantile_of_the_binomial(total, rate, at):
    """It is the least count that is reached with that chance, up to rounding."""
    probabilities = np.array(at)
    found = binomial(total, rate, probabilities)
    slack = 1e-9  # of SciPy's own cumulative distribution
    assert ((found >= 0) & (found <= total)).all()
    assert (binom.cdf(found, total, rate) >= probabilities - slack).all()
    below = np.where(found > 0, binom.cdf(found - 1, total, rate), 0.0)
    assert (below <= probabilities + slack).all()


def test_the_ends_of_a_stream_stay_inside_of_it():
    ends = Mock(random_raw=lambda _count: np.array([0, 2**64 - 1], dtype=np.uint64))
    low, high = uniform(ends, (2,))
    assert (low, high) == (2.0**-53, 1 - 2.0**-53)


def test_draws_have_their_distribution():
    bits = np.random.PCG64(3)
    assert kstest(uniform(bits, (20_000,)), "uniform").pvalue > 0.01
    assert kstest(normal(bits, (20_000,)), "norm").pvalue > 0.01
    counts = binomial(400, 0.3, uniform(bits, (20_000,)))
    error = math.sqrt(400 * 0.3 * 0.7 / 20_000)
    assert counts.mean() == pytest.approx(120, abs=4 * error)
    assert counts.var() == pytest.approx(84, rel=0.05)


def test_the_same_numbers_everywhere():
    """NumPy's own binomial drew others at 1,237 and 0.692 in version 2.5 than in 2.4."""
    bits = np.random.PCG64(1)
    counts = [
        binomial(total, rate, uniform(bits, (2, 500)))
        for total, rate in ((1237, 0.6919967663702506), (2960, 0.9584459459459459), (20, 0.02))
    ]
    digest = hashlib.sha256(np.stack(counts).astype("<i8").tobytes()).hexdigest()
    assert digest == "ed843723937ac48a5906471a08334a0c97b32b4c59d3fd0b05a97c6119082516"
    assert normal(bits, (3,)) == pytest.approx(norm.ppf(uniform(_after(), (3,))), abs=1e-14)


def _after() -> np.random.PCG64:
    """Return the stream behind the counts above."""
    bits = np.random.PCG64(1)
    bits.random_raw(3000)
    return bits

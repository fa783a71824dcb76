"""The precision that embeddings show, whatever dtype was declared."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.rerun.honesty import (
    FLOAT32_DIFFERENCE_MAX,
    Precision,
    Repeatability,
    precision_of,
    precision_text,
    repeatability_of,
)


@pytest.mark.parametrize(
    ("declared", "difference", "pairs", "noise"),
    [
        ("bfloat16", 0.0, 64, "float32"),
        ("float16", FLOAT32_DIFFERENCE_MAX, 64, "float32"),
        ("bfloat16", 2 * FLOAT32_DIFFERENCE_MAX, 64, "bfloat16"),
        ("bfloat16", 0.0, 15, "bfloat16"),
        ("float32", 0.0, 64, "float32"),
        ("float32", 1e-3, 64, "float32"),
        ("float64", 0.0, 64, "float64"),
    ],
)
def test_the_noise_is_never_coarser_than_declared(declared, difference, pairs, noise):
    precision = Precision(declared=declared, pairs=pairs, difference=difference, bits=24)
    assert precision.noise == noise


def test_the_precision_is_that_of_all_tasks():
    parts = [
        Repeatability(pairs=64, difference=0.0, bits=8),
        Repeatability(pairs=0, difference=0.0, bits=0),
        Repeatability(pairs=2, difference=1e-3, bits=7),
    ]
    precision = precision_of("bfloat16", parts)
    assert precision == Precision(declared="bfloat16", pairs=66, difference=1e-3, bits=8)
    assert precision_of("bfloat16", parts[1:2]) is None
    fine = precision_of("bfloat16", parts[:1])
    assert fine is not None
    assert precision_text(fine) == (
        "precision: bfloat16 declared; 64 pairs of embeddings in other batches differ by up to "
        "0.0e+00 of their length, with 8 significant bits; the tolerance has the noise of float32"
    )


@given(st.integers(1, 24), st.integers(0, 2**32 - 1))
def test_the_bits_are_those_that_the_numbers_use(bits, seed):
    """One number of exactly so many bits, others of fewer."""
    rng = np.random.RandomState(seed)
    most = (1 << bits) - 1  # all ones
    row = np.array([most, 0, *(1 << rng.randint(0, bits, 5))], dtype=np.float32) / 2**7
    assert repeatability_of([(row, row)]) == Repeatability(pairs=1, difference=0.0, bits=bits)


def test_rows_that_cannot_be_compared_differ_without_limit():
    ones = np.ones(4, dtype=np.float32)
    most = float(np.finfo(np.float64).max)
    assert repeatability_of([(ones, ones[:2])]).difference == most
    large = np.full(4, 1e308)
    assert math.isfinite(repeatability_of([(large, -large)]).difference)
    assert repeatability_of([(ones, ones * 1.5)]).difference == pytest.approx(0.5)
    assert repeatability_of([]) == Repeatability(pairs=0, difference=0.0, bits=0)

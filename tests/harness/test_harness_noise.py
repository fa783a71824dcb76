"""The noise of jittered copies: its size, its type, and that it is always the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.embedding import noise
from reference_harness.formats.submission_terms import DTYPES, Dtype

ROWS = np.random.RandomState(4).standard_normal((300, 64)).astype(np.float32) * 0.6
PLAIN = noise.Noise("float32", 11, 0)


def moved(noise_used: noise.Noise, rows: np.ndarray = ROWS) -> np.ndarray:
    noise_added: np.ndarray = noise.jitter(rows, noise_used, "task").astype(np.float64) - rows
    return noise_added


@given(st.integers(1, 300), st.integers(0, 5))
def test_noise_of_the_first_rows_does_not_hang_on_the_others(count: int, copy: int) -> None:
    noise_used = noise.Noise("bfloat16", 11, copy)
    whole = noise.jitter(ROWS, noise_used, "task")
    assert (noise.jitter(ROWS[:count], noise_used, "task") == whole[:count]).all()


@pytest.mark.parametrize("cells", [7 * 64, 64 - 1])
def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Rows that are wider than a piece included."""
    whole = noise.jitter(ROWS, PLAIN, "task")
    monkeypatch.setattr(noise, "VALUES_AT_ONCE", cells)
    assert (noise.jitter(ROWS, PLAIN, "task") == whole).all()


def test_each_seed_task_copy_and_multiple_has_noise_of_its_own() -> None:
    made = [
        noise.jitter(ROWS, noise_used, task).tobytes()
        for noise_used, task in (
            (PLAIN, "task"),
            (PLAIN, "other"),
            (noise.Noise("float32", 12, 0), "task"),
            (noise.Noise("float32", 11, 1), "task"),
            (noise.Noise("float32", 11, 0, noise.STRESS_FACTOR), "task"),
        )
    ]
    assert len(set(made)) == len(made)
    assert noise.jitter(ROWS, PLAIN, "task").tobytes() == made[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_deviation_is_what_the_formula_says(dtype: Dtype) -> None:
    rows = ROWS.astype(np.float64)
    rows[:, 0] = 40.0  # a column that stands out, as language models have
    noise_added = moved(noise.Noise(dtype, 11, 0), rows)
    mean_square = np.mean(rows * rows, axis=1, keepdims=True)
    expected = (
        noise.DEVIATION_IN_ROUNDOFFS[dtype]
        * noise.UNIT_ROUNDOFF[dtype]
        * np.sqrt(rows * rows + mean_square)
    )
    if dtype == "float64":  # the sum is rounded to float64, which adds a little
        assert np.std(noise_added / expected) == pytest.approx(1, rel=0.1)
    else:
        assert np.std(noise_added / expected) == pytest.approx(1, rel=0.03)
        assert abs(np.mean(noise_added / expected)) < 0.03


def test_float32_covers_what_another_batch_does() -> None:
    """Measured on random BERTs at a root mean square of 0.6: 8e-8 in the mean, 1.2e-6 at most."""
    noise_difference = np.abs(moved(PLAIN) - moved(noise.Noise("float32", 11, 1)))
    assert noise_difference.mean() == pytest.approx(8e-8, rel=0.1)
    assert np.abs(moved(noise.Noise("float32", 11, 0, noise.STRESS_FACTOR))).max() > 1.2e-6


def test_bfloat16_covers_what_float32_instead_does() -> None:
    """Measured: up to 4e-3 in the mean."""
    first, other = (moved(noise.Noise("bfloat16", 11, copy)) for copy in (0, 1))
    assert np.abs(first - other).mean() == pytest.approx(4e-3, rel=0.1)


def test_the_type_of_the_features_is_kept_and_none_becomes_infinite() -> None:
    largest = np.full((4, 8), np.finfo(np.float16).max, dtype=np.float16)
    noisy = noise.jitter(largest, noise.Noise("float16", 11, 0, noise.STRESS_FACTOR), "task")
    assert noisy.dtype == np.float16
    assert np.isfinite(noisy).all()
    assert (noisy != largest).any()


def test_a_row_of_zeros_stays() -> None:
    zeros = np.zeros((2, 8), dtype=np.float32)
    assert (noise.jitter(zeros, PLAIN, "task") == 0).all()


@pytest.mark.parametrize(
    ("dtype", "moves"),
    [
        ("float32", [-2.37676e-06, 8.4455e-07, -3.95123e-07, 3.31731e-06, -8.62229e-07]),
        ("float16", [-0.0146028, 0.00518891, -0.00242764, 0.0203815, -0.00529754]),
        ("bfloat16", [-0.116823, 0.0415113, -0.0194211, 0.163052, -0.0423803]),
    ],
)
def test_the_noise_of_an_audit_is_the_same_in_every_version(
    dtype: Dtype, moves: list[float]
) -> None:
    """Numbers of a record are compared with those of a rerun: each has the same copies."""
    rows = np.array([[1.0, -2.0, 0.5], [0.25, 8.0, -0.125]])
    noise_added = noise.jitter(rows, noise.Noise(dtype, 11, 3, 8.0), "task") - rows
    assert noise_added.ravel()[:5] == pytest.approx(moves, rel=1e-4)


def test_the_units_of_noise_are_those_of_the_tolerance() -> None:
    from geneb_ci.audit.compare.tolerance import STRESS, UNITS

    assert (noise.DEVIATION_IN_ROUNDOFFS, noise.STRESS_FACTOR) == (UNITS, STRESS)
    assert noise.UNIT_ROUNDOFF["float64"] == np.finfo(np.float64).eps / 2
    assert noise.UNIT_ROUNDOFF["bfloat16"] == 2.0**-8

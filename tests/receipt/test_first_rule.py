"""What a receipt holds of a rerun, the rule of records of version 1.0, and decisions of a probe."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.receipt.direction import Probe
from geneb_ci.receipt.embeddings import TAU
from geneb_ci.receipt.first_rule import compare_by_first_rule
from geneb_ci.receipt.rounding import receipt_values, rounded_for_record
from reference_harness.probe.optimum import SolvedProbe


def test_records_of_version_1_measure_by_the_size_of_the_row() -> None:
    """A column of 3e6 excuses a deviation of 7 in a column of 1: why they count no more."""
    rerun = np.ones((1, 400), np.float32)
    rerun[0, 0] = 3e6
    committed = receipt_values(rerun, 7)
    moved = committed.copy()
    moved[0, 1] += np.float16(1 / 128)
    size = np.sqrt(np.mean(np.square(rerun / 128.0)))
    judgement = compare_by_first_rule(moved, rerun, 7)
    assert judgement.mismatch.tolist() == [1]
    assert 0 < judgement.deviation[0] < TAU
    assert judgement.deviation[0] == rounded_for_record((1 - 2**-11) / 128 / np.array([size]))[0]


def test_a_rerun_that_float16_cannot_hold_is_infinite() -> None:
    huge = np.full((1, 8), 1e30, np.float32)
    assert np.isinf(receipt_values(huge, 0)).all()
    assert compare_by_first_rule(np.ones((1, 8), np.float16), huge, 0).mismatch.tolist() == [8]
    assert (receipt_values(-np.zeros((1, 8), np.float32), 0).view(np.uint16) == 0).all()


@given(st.floats(0, 1e300))
def test_a_shown_deviation_is_a_fixed_point(value: float) -> None:
    once = rounded_for_record(np.array([value]))
    assert rounded_for_record(once).tolist() == once.tolist()


@given(st.integers(2, 5), st.integers(0, 1000))
def test_a_probe_decides_as_in_the_harness_ties_too(classes: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    labels = np.arange(classes, dtype=np.int64) * 3
    weights = draw.integers(-2, 3, size=(8, classes)) / 3
    features = draw.integers(0, 3, size=(40, 8)) / 7
    predictions = Probe(weights, np.zeros(classes), labels).predict(features)
    due = SolvedProbe(weights, np.zeros(classes), labels, "", 0).predict(features)
    assert predictions.tolist() == due.tolist()

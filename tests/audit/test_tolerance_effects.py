"""The effect of one changed prediction, against trying every change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.statistics.metrics import largest_effect
from reference_harness.probe.metrics import scores_of

matrices = st.integers(2, 5).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 12), min_size=size, max_size=size), min_size=size, max_size=size
    )
)


def tried(rows: list[list[int]]) -> list[float]:
    matrix = np.array(rows)
    base, most = scores_of(matrix), [0.0, 0.0, 0.0]
    for row, old in zip(*np.nonzero(matrix), strict=True):
        for new in range(len(matrix)):
            if new != old:
                now = matrix.copy()
                now[row, old] -= 1
                now[row, new] += 1
                score_values = scores_of(now)
                most = [
                    max(m, abs(a - b)) for m, a, b in zip(most, score_values, base, strict=True)
                ]
    return most


@given(matrices.filter(lambda rows: sum(map(sum, rows)) > 0))
def test_effects_are_those_of_every_change_tried(rows):
    most = tried(rows)
    effect = largest_effect(rows)
    # Accuracy moves by one n-th or, between wrong classes, not at all.
    assert effect.acc == pytest.approx(1 / sum(map(sum, rows)))
    assert effect.mcc == pytest.approx(most[0], abs=1e-12)
    assert effect.f1 == pytest.approx(most[2], abs=1e-12)


def test_a_balanced_matrix():
    """One of 200 predictions moves MCC by about 2 / n."""
    effect = largest_effect([[80, 20], [20, 80]])
    assert effect.mcc == pytest.approx(0.01, rel=0.02)
    assert effect.acc == 1 / 200

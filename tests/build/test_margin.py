"""The analytic error of MCC against draws of whole test sets, and on the public rows."""

import math
import random

import pytest

from geneb_ci.benchmark import shipped_benchmark
from geneb_ci.build.margin import interval_of, standard_error
from geneb_ci.build.rows import leaderboards
from tests.build.test_board import entries

DRAWS = 1500


def mcc(small: int, large: int, small_right: int, large_right: int) -> float:
    said = small_right + large - large_right
    total = small + large
    top = small_right * large_right - (small - small_right) * (large - large_right)
    spread = small * large * said * (total - said)
    return top / math.sqrt(spread) if spread else 0.0


@pytest.mark.parametrize(
    ("small", "large", "rates"),
    [
        (500, 500, (0.9, 0.9)),
        (500, 500, (0.7, 0.75)),
        (1000, 1000, (0.55, 0.6)),
        (300, 700, (0.8, 0.91)),
    ],
)
def test_it_is_the_spread_of_test_sets_that_were_drawn_anew(small, large, rates):
    generator = random.Random(20261120)
    drawn = []
    for _ in range(DRAWS):
        right = [
            sum(generator.random() < rate for _ in range(size))
            for size, rate in zip((small, large), rates, strict=True)
        ]
        drawn.append(mcc(small, large, *right))
    middle = math.fsum(drawn) / DRAWS
    spread = math.sqrt(math.fsum((value - middle) ** 2 for value in drawn) / (DRAWS - 1))
    accuracy = (small * rates[0] + large * rates[1]) / (small + large)
    assert standard_error(middle, accuracy, small + large) == pytest.approx(spread, rel=0.12)


@pytest.mark.parametrize(("value", "accuracy"), [(1.0, 1.0), (0.0, 0.0), (-1.0, 0.0), (0.0, 1.0)])
def test_no_score_is_quite_sure(value, accuracy):
    error = standard_error(value, accuracy, 1000)
    assert 0 < error < 0.1


def test_a_larger_test_set_is_surer():
    assert standard_error(0.5, 0.75, 4000) == pytest.approx(standard_error(0.5, 0.75, 1000) / 2)


def test_intervals_of_the_public_rows():
    _, tasks = leaderboards(entries(), shipped_benchmark())
    interval = interval_of(tasks, shipped_benchmark())
    widths = {
        regime: [interval(row["model"], regime).half_width for row in rows]
        for regime, rows in tasks["data"].items()
    }
    assert {name: (round(min(w), 3), round(max(w), 3)) for name, w in widths.items()} == {
        "full": (0.008, 0.013),
        "10shot": (0.009, 0.01),
        "1shot": (0.009, 0.012),
    }

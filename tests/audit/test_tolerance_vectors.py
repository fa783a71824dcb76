"""Tolerances of cells of every kind, held to a file: nobody's claim gains room unseen.

The laws are in test_tolerance.py. A change of these numbers is a change of the rule, which asks for
another digest in `test_limits.py`. `pytest --update-golden` writes the file anew.
"""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.compare import tolerance as rule
from geneb_ci.statistics.metrics import Triple
from reference_harness.formats.base import Scores
from tests.audit.rescoring import SEEDS, measured

VECTORS = Path(__file__).with_name("tolerance_vectors.json")
WIDTH = Triple(5e-5, 5e-7, 5e-3)
BASE = [np.array([[150 - 7 * s, 50 + 7 * s], [60 - s, 140 + s]]) for s in range(SEEDS)]
FULL = [BASE[1]] * SEEDS


def drawn(seed: int, number: int, most: int, least: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randint(least, most) for _ in range(SEEDS)] for _ in range(number)]


def one_unstable(seed: int, number: int) -> list[list[int]]:
    """Four calm seeds, and one whose fit ends elsewhere each time."""
    rng = random.Random(seed)
    return [[rng.randint(3, 14), 0, rng.randint(0, 1), 0, 0] for _ in range(number)]


def stops(seed: int) -> list[list[Scores]]:
    """Several places to stop for each fit; the first has none, the second other ones than ours."""
    rng = random.Random(seed)
    base = measured(BASE).scores_by_seed
    score_lists: list[list[Scores]] = [[]]
    for k in range(1, SEEDS):
        moves = [0.0 if k != 1 else 0.003, *(rng.uniform(-0.03, 0.03) for _ in range(3))]
        score_lists.append(
            [Scores(MCC=base.MCC[k] + m, Acc=base.Acc[k] + m / 2, F1=base.F1[k] - m) for m in moves]
        )
    return score_lists


CASES: dict[str, dict[str, Any]] = {
    "nothing moves": {},
    "few stressed copies": {"stressed": drawn(1, 31, 9)},
    "just many stressed copies": {"stressed": drawn(1, 32, 9)},
    "flips in proportion": {"plain": drawn(2, 16, 1), "stressed": drawn(3, 40, 9)},
    "flips in proportion, widely": {"plain": drawn(4, 40, 2), "stressed": drawn(5, 32, 30, 20)},
    "just twice as many flips": {
        "plain": [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]] * 10,
        "stressed": [[2, 0, 0, 0, 0], [0, 0, 0, 1, 1]] * 16,
    },
    "half of the copies move": {
        "plain": [[1, 0, 0, 0, 0], [0] * 5] * 8,
        "stressed": drawn(6, 32, 5),
    },
    "unstable seed": {"plain": one_unstable(7, 16), "stressed": one_unstable(8, 32)},
    "an unstable seed, stops": {
        "plain": one_unstable(9, 20),
        "stressed": one_unstable(10, 33),
        "stops": stops(11),
    },
    "stops of fits that rest": {"stops": stops(12)},
    "stops of fits that move": {
        "plain": drawn(13, 16, 2),
        "stressed": drawn(14, 16, 8),
        "stops": stops(15),
    },
    "one fit": {"one_fit": True},
    "one changing fit": {"one_fit": True, "plain": [[k] * 5 for k in range(3, 23)], "stressed": []},
    "one fit with both": {
        "one_fit": True,
        "plain": [[k % 2] * 5 for k in range(16)],
        "stressed": [[k % 9] * 5 for k in range(35)],
    },
}  # fmt: skip


def tolerances_of(case: str) -> dict[str, Any]:
    """Return the tolerances of a cell at two levels."""
    options = CASES[case]
    cell = measured(FULL if options.get("one_fit") else BASE, **options, seed=len(case))
    values = {
        "of record": rule.tolerance(cell, rule.alarm_rate_per_comparison(702), WIDTH),
        "at another level": rule.tolerance(cell, 0.04, Triple(0.0, 0.0, 0.0)),
    }
    return {name: flat(value.model_dump()) for name, value in values.items()}


def flat(value: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a tolerance, those of an honest claim by their path."""
    honest = value.pop("honest")
    inner = {f"{part} {metric}": n for part, each in honest.items() for metric, n in each.items()}
    return value | inner


def test_the_file_has_these_cells(update_golden):
    if update_golden:
        values = {case: tolerances_of(case) for case in CASES}
        VECTORS.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    assert list(json.loads(VECTORS.read_bytes())) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_tolerance(case):
    expected = json.loads(VECTORS.read_bytes())[case]
    values = tolerances_of(case)
    assert list(values) == list(expected)
    for name, value in values.items():
        assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-12)

"""The 41 public rows have no arithmetic finding, however they are printed; forged ones have."""

import itertools
import json
import random
import struct

import pytest

from benchmarks.bench_forgery import context_of, reporting_families
from benchmarks.forge import (
    FEW_SHOT,
    FULL,
    Board,
    Forgery,
    Results,
    attacks,
    change_one_metric,
    rounded_results,
)
from geneb_ci.check.rule import Context
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.finding import Severity
from geneb_ci.statistics.binary import correct_count_limits, fitting_table_count
from geneb_ci.statistics.metrics import UNROUNDED_HALF_WIDTH
from geneb_ci.submission.peers import peers_of
from tests.each import each
from tests.paths import SUBMISSIONS

BENCHMARK = shipped_benchmark()
ROWS = [json.loads(path.read_bytes()) for path in sorted(SUBMISSIONS.glob("*.json"))]
BOARD = Board(ROWS, BENCHMARK)
NOBODY = peers_of(())  # arithmetic looks at one row alone
FAMILY = ("arithmetic",)
ERROR = ("arithmetic", Severity.ERROR)


def single(results: Results) -> Results:
    return {
        regime: {
            task: {m: struct.unpack("f", struct.pack("f", v))[0] for m, v in cell.items()}
            for task, cell in cells.items()
        }
        for regime, cells in results.items()
    }


def context(results: Results) -> Context:
    return context_of(Forgery("a-model", results), BENCHMARK, NOBODY)


def pieced(results: Results) -> Results:
    """Every other cell rounded to four decimals."""
    short = rounded_results(results, 4)
    return {
        regime: {task: (short if k % 2 else results)[regime][task] for k, task in enumerate(cells)}
        for regime, cells in results.items()
    }


def test_every_cell_of_the_public_rows_is_read_and_fits_one_matrix():
    triples = points = 0
    for row in ROWS:
        for claim in context(row["results"]).claims:
            low, high = correct_count_limits(
                claim.task.n_test or 0, claim.reported, claim.fit_count
            )
            assert low == high
            points += 1
            assert set(claim.reported.width) == {UNROUNDED_HALF_WIDTH}
            if claim.fit_count == 1 and claim.classes is not None:
                assert fitting_table_count(claim.classes, claim.reported, 10) == 1
                triples += 1
    assert (triples, points) == (3731, 12_300)


DECIMALS = range(2, 13)
NIGHT = pytest.mark.nightly
STRIDE = 6
"""In the gate, as many rows share the decimals they are printed with; by night each has all."""
EVERY = 4
"""Each row of so many is in the gate."""


@pytest.mark.parametrize(
    ("row", "decimals"),
    [
        pytest.param(row, decimals, id=f"{row['model_id']}-{len(decimals)}", marks=marks)
        for number, row in enumerate(ROWS)
        for decimals, marks in (
            (DECIMALS[number // EVERY % STRIDE :: STRIDE], () if number % EVERY == 0 else NIGHT),
            (DECIMALS, NIGHT),
        )
    ],
)
def test_a_public_row_has_no_finding_however_it_is_printed(row, decimals):
    results = row["results"]
    assert reporting_families(context(results), FAMILY) == set()
    for version in (
        single(results),
        pieced(results),
        *(rounded_results(results, d) for d in decimals),
    ):
        assert ERROR not in reporting_families(context(version), FAMILY)


@each("attack", attacks().items(), ids=lambda item: " ".join(item[0]))
def test_every_attack_changes_a_row(attack):
    _, make = attack
    rng = random.Random(1)
    originals = [row["results"] for row in ROWS]
    assert any(make(BOARD, rng).results not in originals for _ in range(5))
    assert originals == [row["results"] for row in ROWS]


@pytest.mark.parametrize("by", [0.001, 0.01, 0.05])
def test_one_metric_of_a_full_cell_cannot_be_edited(by):
    rng, attack = random.Random(2), change_one_metric(FULL, by)
    assert all(
        ERROR in reporting_families(context(attack(BOARD, rng).results), FAMILY) for _ in range(20)
    )


@pytest.mark.parametrize("metric", ["MCC", "F1"])
def test_a_mean_far_from_its_neighbours_is_heard(metric):
    cells = random.Random(3).sample(FEW_SHOT.cells(BENCHMARK), 10)
    for (regime, task), row in zip(cells, itertools.cycle(ROWS), strict=False):
        results = rounded_results(row["results"], 15)
        results[regime][task][metric] = 0.99
        assert ERROR in reporting_families(context(results), FAMILY)

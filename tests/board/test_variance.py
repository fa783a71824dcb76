"""Variances of cells: known cases by hand, laws, and 20,000 draws of every cell beside them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from benchmarks.simulate import correct_counts, matrix_scores, mcc_of
from geneb_ci.board.confusion import recovered_cells
from geneb_ci.board.variance import (
    FIT_CORRELATION,
    cell_variances,
    correct_share,
    near_correct_counts,
    recovered_table,
    two_class_variance,
)
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.statistics.binary import BinaryTable, Classes, metrics_of_table
from geneb_ci.statistics.metrics import ReportedTriple, Triple
from reference_harness.formats.submission import SubmissionV10
from tests.board.board import entries
from tests.paths import SUBMISSIONS

BENCHMARK = shipped_benchmark()
SPACE = SubmissionV10.model_validate_json((SUBMISSIONS / "space.json").read_bytes())
PLACE = {task: k for k, task in enumerate(BENCHMARK.task_ids)}
EVEN = "InstaDeepAI_nucleotide_transformer_downstream_tasks_revised_H3K27ac"
MORE = "leannmlindsey_GUE_virus_covid"
DRAWS = 20_000
PREDICTED_MIN = 20
"""Predictions of each class from which the closed form is within 3 % of draws."""


def test_the_variance_follows_from_the_recovered_matrices():
    cells = cell_variances(SPACE, "full", BENCHMARK)
    tables = list(recovered_cells(Checker(()).context(SUBMISSIONS / "space.json"), "full"))
    assert len(tables) == 91
    for cell in tables:
        assert cell.table is not None
        small, small_wrong, large, large_wrong = map(np.float64, cell.table)
        n1, n0 = small + small_wrong, large + large_wrong
        expected = two_class_variance(n1, n0, small, large)
        assert cells.variance[PLACE[cell.task]] == pytest.approx(float(expected), rel=1e-12)


def test_the_error_of_one_task_is_that_of_the_formula_for_even_classes():
    # For classes of one size predicted evenly, MCC = 2 A - 1: its error is 2 sqrt(A (1 - A) / n).
    printed = SPACE.results["full"][EVEN]
    error = math.sqrt(cell_variances(SPACE, "full", BENCHMARK).variance[PLACE[EVEN]])
    assert error == pytest.approx(2 * math.sqrt(printed.Acc * (1 - printed.Acc) / 1616), rel=0.02)


def test_a_task_of_more_classes_has_the_error_of_its_accuracy():
    printed, n = SPACE.results["full"][MORE], BENCHMARK.by_id[MORE].n_test or 0
    slope = (1 - printed.MCC) / (1 - printed.Acc)
    right = round(printed.Acc * n) / n
    expected = slope * slope * right * (1 - right) / n
    assert cell_variances(SPACE, "full", BENCHMARK).variance[PLACE[MORE]] == pytest.approx(expected)


@pytest.mark.nightly  # a simulation
def test_the_closed_form_is_near_twenty_thousand_draws():
    """Within 3 % where each class is predicted often enough; nowhere more than 5 % smaller."""
    rng = np.random.Generator(np.random.PCG64(20261122))
    few: list[float] = []
    often: list[float] = []
    for entry in entries()[::6]:
        cells = cell_variances(entry.submission, "full", BENCHMARK)
        for k, task in enumerate(BENCHMARK.tasks):
            if not task.test_class_counts or len(task.test_class_counts) != 2:
                continue
            classes = Classes(*task.test_class_counts)
            printed = entry.submission.results["full"][task.id]
            right = correct_counts(classes, Triple(printed.MCC, printed.Acc, printed.F1))
            sizes = np.array(classes, dtype=float)
            a, b = correct_share(np.rint(np.array(right)), sizes)
            shares = zip(classes, (float(a), float(b)), strict=True)
            drawn = [np.asarray(rng.binomial(n, p, DRAWS), dtype=float) for n, p in shares]
            error = float(np.std(mcc_of(sizes[0], sizes[1], *drawn)))
            as_small = float(a) * classes.small + (1 - float(b)) * classes.large
            predicted = min(as_small, classes.total - as_small)
            ratio = math.sqrt(cells.variance[k]) / error
            (often if predicted >= PREDICTED_MIN else few).append(ratio)
    assert len(often) > 600
    assert max(abs(ratio - 1) for ratio in often) < 0.03
    assert min([*often, *few]) > 0.95


def test_few_shot_variance_is_that_of_five_fits_that_err_alike():
    whole = cell_variances(SPACE, "10shot", BENCHMARK)
    assert not whole.seed_variance.any()
    assert not whole.has_seeds
    benchmark_of_one_seed = replace(BENCHMARK, protocol=replace(BENCHMARK.protocol, seeds=[13]))
    more = [k for k, task in enumerate(BENCHMARK.tasks) if not task.test_class_counts]
    shares = (
        whole.variance[more] / cell_variances(SPACE, "10shot", benchmark_of_one_seed).variance[more]
    )
    assert shares == pytest.approx((1 + 4 * FIT_CORRELATION) / 5)


@given(st.integers(1, 300), st.integers(0, 300), st.data())
def test_a_matrix_that_exists_is_found_from_its_triple(small, more, data):
    classes = Classes(small, small + more)
    right = [data.draw(st.integers(0, n)) for n in classes]
    made = BinaryTable(right[0], classes.small - right[0], right[1], classes.large - right[1])
    counts = correct_counts(classes, metrics_of_table(made))
    near = (counts[0], classes.small - counts[0], counts[1], classes.large - counts[1])
    again = metrics_of_table(BinaryTable(*near))  # type: ignore[arg-type]
    assert again[1:] == pytest.approx(metrics_of_table(made)[1:], abs=1e-6)


@given(st.integers(1, 400), st.integers(1, 400), st.data())
def test_a_variance_is_positive_and_shrinks_with_the_test_set(n1, n0, data):
    right = [np.float64(data.draw(st.integers(0, n))) for n in (n1, n0)]
    variance = float(two_class_variance(np.float64(n1), np.float64(n0), *right))
    tenfold = two_class_variance(np.float64(10 * n1), np.float64(10 * n0), *(10 * k for k in right))
    assert 0 < float(tenfold) < variance


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_mcc_is_that_of_scikit_learn(pairs):
    true, message = zip(*pairs, strict=True)
    if len(set(true)) < 2:
        return
    counts = [sum(t == c for t in true) for c in (False, True)]
    right = [sum(t == c == s for t, s in pairs) for c in (False, True)]
    arrays = [np.array([x]) for x in (*counts, *right)]
    assert mcc_of(*arrays)[0] == pytest.approx(matthews_corrcoef(true, message), abs=1e-12)


def test_a_task_of_unknown_size_is_refused():
    tasks = [replace(t, n_test=None, test_class_counts=None) for t in BENCHMARK.tasks]
    unknown = replace(BENCHMARK, tasks=tasks)
    with pytest.raises(BadConfiguration) as refusal:
        cell_variances(SPACE, "full", unknown)
    assert refusal.value.message == (
        "the benchmark lacks the number of test sequences of "
        "InstaDeepAI_nucleotide_transformer_downstream_tasks_H3"
    )


def test_the_made_up_matrices_of_the_simulation_have_scikit_learns_metrics():
    counts = np.array([[5, 2, 0], [1, 7, 3], [2, 2, 9]])
    true = np.repeat([0, 1, 2], counts.sum(axis=1))
    predicted_classes = np.concatenate([np.repeat([0, 1, 2], row) for row in counts])
    assert matrix_scores(counts) == pytest.approx(
        {
            "MCC": matthews_corrcoef(true, predicted_classes),
            "Acc": accuracy_score(true, predicted_classes),
            "F1": f1_score(true, predicted_classes, average="macro"),
        }
    )


@pytest.mark.parametrize(
    ("classes", "mean", "right"),
    [
        (Classes(10, 10), Triple(0.0, 0.5, 1 / 3), (0, 10)),  # one class is always predicted
        (Classes(4, 16), Triple(0.0, 0.8, 4 / 9), (0, 16)),
        (Classes(4, 16), Triple(0.0, 0.2, 1 / 6), (4, 0)),
        (Classes(5, 15), Triple(1.0, 1.0, 1.0), (5, 15)),
        (Classes(5, 15), Triple(-1.0, 0.0, 0.0), (0, 0)),
    ],
)
def test_the_table_near_a_mean_at_the_ends(classes, mean, right):
    assert correct_counts(classes, mean) == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize(
    ("classes", "triple", "expected"),
    [
        (Classes(4, 16), Triple(0.05, 0.8, 4 / 9), BinaryTable(0, 4, 16, 0)),
        (Classes(4, 16), Triple(0.05, 0.2, 1 / 6), BinaryTable(4, 0, 0, 16)),
        (Classes(4, 16), Triple(0.3, 0.76, 0.6), BinaryTable(1, 3, 14, 2)),
    ],
)
def test_a_triple_that_no_table_has_gets_a_whole_table_near_it(classes, triple, expected):
    table = recovered_table(classes, ReportedTriple(triple, Triple(1e-13, 1e-13, 1e-13)))
    assert table == expected


def test_arrays_and_single_tables_agree():
    small, large = np.array([4.0, 10.0]), np.array([16.0, 10.0])
    means = Triple(np.array([0.0, 0.2]), np.array([0.8, 0.6]), np.array([4 / 9, 0.6]))  # type: ignore[arg-type]
    rates = np.array(near_correct_counts(small, large, means)).T
    fit_counts = [
        correct_counts(Classes(4, 16), Triple(0.0, 0.8, 4 / 9)),
        correct_counts(Classes(10, 10), Triple(0.2, 0.6, 0.6)),
    ]
    assert rates.tolist() == [list(pair) for pair in fit_counts]

"""Intervals: known cases by hand, laws, and what changes them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from geneb_ci.board.diagnostics.frame import rounded
from geneb_ci.board.matrices import recovered
from geneb_ci.board.noise import (
    DRAWS,
    OVERLAP,
    Noise,
    Spread,
    mcc_of,
    near_mean,
    noise_of,
    recovered_table,
)
from geneb_ci.board.uncertainty import (
    Estimate,
    critical,
    estimate,
    intervals,
    standings,
    tie_groups,
)
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.statistics.binary import BinaryTable, Classes, scores_of
from geneb_ci.statistics.printed import Reading, Triple
from tests.board.board import DRAWS as FEW
from tests.board.board import entries, entry, found_intervals
from tests.paths import SUBMISSIONS

BENCHMARK = shipped_benchmark()
SPACE = next(e.submission for e in entries() if e.submission.model_id == "space")
TIGHT = Triple(1e-13, 1e-13, 1e-13)


def test_noise_is_drawn_from_the_recovered_matrices():
    cells = {c.task: c for c in recovered(Checker(()).context(SUBMISSIONS / "space.json"), "full")}
    assert len(cells) == 91
    for task, cell in cells.items():
        printed = SPACE.results["full"][task]
        reading = Reading(Triple(printed.MCC, printed.Acc, printed.F1), TIGHT)
        assert recovered_table(cell.classes, reading) == cell.table


@given(st.integers(1, 300), st.integers(0, 300), st.data())
def test_a_matrix_that_exists_is_found_from_its_triple(small, more, data):
    classes = Classes(small, small + more)
    right = [data.draw(st.integers(0, n)) for n in classes]
    made = BinaryTable(right[0], classes.small - right[0], right[1], classes.large - right[1])
    found = near_mean(classes, scores_of(made))
    near = (found[0], classes.small - found[0], found[1], classes.large - found[1])
    again = scores_of(BinaryTable(*near))  # type: ignore[arg-type]
    assert again[1:] == pytest.approx(scores_of(made)[1:], abs=1e-6)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_mcc_is_that_of_scikit_learn(pairs):
    true, said = zip(*pairs, strict=True)
    if len(set(true)) < 2:
        return
    counts = [sum(t == c for t in true) for c in (False, True)]
    right = [sum(t == c == s for t, s in pairs) for c in (False, True)]
    arrays = [np.array([x]) for x in (*counts, *right)]
    assert mcc_of(*arrays)[0] == pytest.approx(matthews_corrcoef(true, said), abs=1e-12)


def test_the_error_of_one_task_is_that_of_the_formula_for_even_classes():
    # For classes of one size predicted evenly, MCC = 2 A - 1: its error is 2 sqrt(A (1 - A) / n).
    task = "InstaDeepAI_nucleotide_transformer_downstream_tasks_revised_H3K27ac"
    place = BENCHMARK.task_ids.index(task)
    noise = noise_of(SPACE, "full", BENCHMARK, 20_000)
    printed = SPACE.results["full"][task]
    error = 2 * math.sqrt(printed.Acc * (1 - printed.Acc) / 1616)
    assert np.std(noise.test[place]) == pytest.approx(error, rel=0.02)


def test_a_task_of_more_classes_has_the_error_of_its_accuracy():
    task = BENCHMARK.by_id["leannmlindsey_GUE_virus_covid"]
    printed = SPACE.results["full"][task.id]
    noise = noise_of(SPACE, "full", BENCHMARK, 20_000)
    slope = (1 - printed.MCC) / (1 - printed.Acc)
    error = slope * math.sqrt(printed.Acc * (1 - printed.Acc) / (task.n_test or 0))
    assert np.std(noise.test[BENCHMARK.task_ids.index(task.id)]) == pytest.approx(error, rel=0.02)


def test_few_shot_noise_is_that_of_five_fits_that_err_alike():
    whole = noise_of(SPACE, "10shot", BENCHMARK, 5000)
    assert whole.spreads == (None,) * 100
    assert not whole.seeds.any()
    one = BENCHMARK.model_copy(
        update={"protocol": BENCHMARK.protocol.model_copy(update={"seeds": [13]})}
    )
    alone = noise_of(SPACE, "10shot", one, 5000)
    more = [k for k, task in enumerate(BENCHMARK.tasks) if not task.test_class_counts]
    shares = np.std(whole.test[more], axis=1) / np.std(alone.test[more], axis=1)
    assert shares == pytest.approx(math.sqrt((1 + 4 * OVERLAP) / 5), rel=0.05)


def test_what_is_all_right_may_be_wrong_elsewhere(submission_v11):
    def perfect(document):
        cell = {"MCC": 1.0, "Acc": 1.0, "F1": 1.0}
        document["results"]["full"] = dict.fromkeys(document["results"]["full"], cell)

    row = submission_v11(perfect)
    found = intervals([entry(row)], BENCHMARK, regimes=["full"], draws=FEW)
    limits = found.regimes["full"].tasks
    assert {high for models in limits.values() for _, high in models.values()} == {1.0}
    assert all(0.9 < low < 1.0 for models in limits.values() for low, _ in models.values())


def seeds(document):
    """Spread the seeds of each few-shot cell by 0.1 about their mean."""
    for regime in ("10shot", "1shot"):
        for cell in document["evidence"][regime].values():
            cell["per_seed"]["MCC"] = [
                min(1.0, max(-1.0, value + step))
                for value, step in zip(
                    cell["per_seed"]["MCC"], (-0.1, -0.05, 0, 0.05, 0.1), strict=True
                )
            ]


def test_seeds_widen_few_shot_intervals_only(submission_v11):
    plain = submission_v11(
        lambda document: document.pop("evidence") and document.update(evidence={})
    )
    spread = submission_v11(seeds)
    one, other = (intervals([entry(row)], BENCHMARK, draws=2000) for row in (plain, spread))
    assert one.regimes["full"].tasks == other.regimes["full"].tasks
    assert other.regimes["full"].draws_covered == ()
    for regime in ("10shot", "1shot"):
        assert (one.regimes[regime].draws_covered, other.regimes[regime].draws_covered) == (
            (),
            ("splicebert-1024nt",),
        )
        old, new = (x.estimates[regime]["macro"]["splicebert-1024nt"] for x in (one, other))
        assert 1.2 < new.error / old.error < 3


def test_five_seeds_alone_give_students_interval():
    # One task that nothing moves but its seeds: four degrees of freedom, t = 2.776.
    drawn = np.random.Generator(np.random.PCG64(1)).standard_normal((1, 200_000)) * 0.1
    noise = Noise(np.zeros((1, 200_000)), drawn, (Spread(0.1, 4),))
    found = estimate(0.5, np.ones(1), noise)
    assert (found.high - found.low) / 2 == pytest.approx(0.2776, rel=0.02)


def test_a_seed_gives_the_same_bytes_and_another_row_changes_no_interval():
    some = entries()[:6]
    whole = intervals(some, BENCHMARK, regimes=["full"], draws=FEW)
    assert intervals(reversed(some), BENCHMARK, regimes=["full"], draws=FEW) == whole
    less = intervals(some[:3], BENCHMARK, regimes=["full"], draws=FEW)
    for name, models in less.estimates["full"].items():
        assert models == {m: whole.estimates["full"][name][m] for m in models}


def test_more_draws_than_a_few_hardly_move_an_error():
    row = entries()[:1]
    few, many = (
        intervals(row, BENCHMARK, regimes=["full"], draws=draws).estimates["full"]["macro"]
        for draws in (DRAWS, 10 * DRAWS)
    )
    (one,), (other,) = few.values(), many.values()
    assert one.error == pytest.approx(other.error, rel=0.05)
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=0.001)


def test_a_task_of_unknown_size_is_refused():
    tasks = [
        t.model_copy(update={"n_test": None, "test_class_counts": None}) for t in BENCHMARK.tasks
    ]
    unknown = Benchmark.model_validate(
        BENCHMARK.model_copy(update={"tasks": tasks}).model_dump(by_alias=True)
    )
    with pytest.raises(BadConfiguration) as refusal:
        intervals(entries()[:1], unknown)
    assert refusal.value.message == (
        "the benchmark does not know how many test sequences "
        "InstaDeepAI_nucleotide_transformer_downstream_tasks_H3 has"
    )


def exact(score: float, error: float) -> Estimate:
    return Estimate(score, error, score - 2 * error, score + 2 * error)


def test_ranks_and_groups_by_hand():
    # With four models the limit is 2.39 standard errors of a difference: 0.0338 here.
    assert critical(4) == pytest.approx(norm.ppf((1 + 0.95 ** (1 / 3)) / 2))
    stood = standings(
        {
            "d": exact(0.40, 0.01),
            "a": exact(0.50, 0.01),
            "c": exact(0.46, 0.01),
            "b": exact(0.48, 0.01),
        }
    )
    assert {m: (s.rank, s.rank_low, s.rank_high, s.group) for m, s in stood.items()} == {
        "a": (1, 1, 2, 1),
        "b": (2, 1, 3, 1),
        "c": (3, 2, 3, 2),
        "d": (4, 4, 4, 3),
    }
    assert list(stood) == ["a", "b", "c", "d"]


def test_equal_scores_share_the_better_rank():
    stood = standings({"b": exact(0.5, 0.01), "a": exact(0.5, 0.01), "c": exact(0.1, 0.01)})
    assert [(m, s.rank, s.group) for m, s in stood.items()] == [
        ("a", 1, 1),
        ("b", 1, 1),
        ("c", 3, 2),
    ]


def test_one_model_and_none():
    assert standings({}) == {}
    (only,) = standings({"a": exact(0.5, 0.01)}).values()
    assert only[3:] == (1, 1, 1, 1)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-4, 0.2)), min_size=1, max_size=12))
def test_laws_of_ranks(values):
    stood = list(standings({f"m{k:02}": exact(*v) for k, v in enumerate(values)}).values())
    assert all(s.rank_low <= s.rank <= s.rank_high for s in stood)
    assert [s.rank for s in stood] == sorted(s.rank for s in stood)
    assert sorted({s.group for s in stood}) == list(range(1, max(s.group for s in stood) + 1))
    assert stood[0].group == 1


def test_groups_need_not_be_runs():
    # The third is so unsure that it ties with the first; the second is significantly worse.
    above = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    assert tie_groups(above) == [1, 2, 1]


def test_intervals_hold_their_scores():
    for regime, found in found_intervals().regimes.items():
        for models in (found.macro, found.micro, *found.categories.values()):
            assert len(models) == 41
            assert all(s.low < s.score < s.high for s in models.values())
        assert regime != "full" or found.macro["space"].rank_low <= found.macro["space"].rank


def test_the_made_up_matrices_of_the_simulation_have_scikit_learns_metrics():
    from tests.bench.simulate import of_matrix

    counts = np.array([[5, 2, 0], [1, 7, 3], [2, 2, 9]])
    true = np.repeat([0, 1, 2], counts.sum(axis=1))
    said = np.concatenate([np.repeat([0, 1, 2], row) for row in counts])
    assert of_matrix(counts) == pytest.approx(
        {
            "MCC": matthews_corrcoef(true, said),
            "Acc": accuracy_score(true, said),
            "F1": f1_score(true, said, average="macro"),
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
    assert near_mean(classes, mean) == pytest.approx(right, abs=1e-9)


def test_a_published_zero_has_no_sign():
    assert [str(rounded(value)) for value in (-0.0, -1e-9, 1e-9)] == ["0.0"] * 3
    stood = standings({"a": Estimate(-0.0, 0.0, -0.0, 0.0)})["a"]
    assert [str(value) for value in stood[:3]] == ["0.0"] * 3

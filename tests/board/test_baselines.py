"""Baselines beside the rows of a board: no rank, and no mean of tasks that they lack."""

import json

import pytest

from geneb_ci.board.baselines import baseline_comparison, baseline_scores, baseline_scores_by_column
from geneb_ci.board.columns import Row
from geneb_ci.board.site.model import baseline_facts
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from tests.board.board import entries
from tests.paths import ROOT

GENEB, MINI = shipped_benchmark(), shipped_benchmark(PRACTICE_BENCHMARK)
NAMES = ["kmer-4", "kmer-6", "random-init"]
REAL = {
    *("leannmlindsey_GUE_human_tf_0", "leannmlindsey_GUE_human_tf_1"),
    *("leannmlindsey_GUE_mouse_0", "leannmlindsey_GUE_mouse_3"),
    *("leannmlindsey_GUE_prom_300_tata", "leannmlindsey_GUE_prom_core_tata"),
}


def entry_of(model_id: str) -> Row:
    return next(entry for entry in entries() if entry.submission.model_id == model_id)


def test_the_practice_board_has_every_task_and_geneb_the_six_real_ones():
    for benchmark, tasks in ((MINI, set(MINI.task_ids)), (GENEB, REAL)):
        scores = baseline_scores(benchmark)
        assert list(scores) == NAMES
        for regimes in scores.values():
            assert list(regimes) == list(benchmark.regimes)
            assert all(set(own) == tasks for own in regimes.values())


def test_a_line_is_drawn_where_every_task_of_a_mean_has_a_score():
    lines = baseline_scores_by_column(MINI)
    scores = baseline_scores(MINI)["kmer-4"]["full"]
    assert set(lines["full"]["kmer-4"]) == {
        "macro",
        "micro",
        *(f"category:{name}" for name in MINI.categories),
        *(f"task:{task}" for task in MINI.task_ids),
    }
    assert lines["full"]["kmer-4"]["micro"] == pytest.approx(sum(scores.values()) / 13)
    assert set(baseline_scores_by_column(GENEB)["full"]["kmer-4"]) == {
        f"task:{task}" for task in REAL
    }


def test_a_row_stands_beside_the_baselines_on_the_same_tasks():
    own = entry_of("GROVER")
    beside = baseline_comparison(own.submission.results, GENEB)
    assert beside is not None
    cells = own.submission.results["full"]
    assert beside.tasks == 6
    assert beside.row_mean == pytest.approx(sum(cells[task].MCC for task in REAL) / 6)
    (fact,) = baseline_facts(own, GENEB)
    assert fact.label == "Beside baselines"
    assert (
        f"mean MCC of 6 tasks in full: {beside.row_mean:.3f}; kmer-4 0.475, kmer-6 " in fact.value
    )
    assert list(baseline_facts(own, MINI)) == []


def test_no_baseline_is_a_row():
    assert not {entry.submission.model_id for entry in entries()} & set(NAMES)
    raw = json.loads((ROOT / "schemas/baselines.json").read_bytes())
    assert set(raw) == {GENEB.sha256, MINI.sha256}

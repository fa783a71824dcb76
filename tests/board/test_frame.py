"""The long table of scores: what is in it, in which order, and that it agrees with the board."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import geneb_ci
from geneb_ci.board.frame import COLUMNS, KEYS, score_frame
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.uncertainty import row_scores
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.submission import MODELS
from tests import small
from tests.board.board import entries, entry
from tests.paths import SUBMISSIONS

BENCHMARK = shipped_benchmark()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return geneb_ci.board(SUBMISSIONS, cache=False)


def test_every_score_of_the_public_rows_is_there_once_and_in_the_boards_order(table):
    assert tuple(table.columns) == COLUMNS
    assert len(table) == 41 * 100 * 3 * 3
    assert table["value"].notna().all()
    _, tasks = leaderboards(entries(), BENCHMARK)
    category = {task.id: task.category for task in BENCHMARK.tasks}
    published = [
        (row["model"], task, category[task], regime, metric, row[f"task_{metric}"][task])
        for model in [row["model"] for row in tasks["data"]["full"]]
        for regime, rows in tasks["data"].items()
        for row in rows
        if row["model"] == model
        for task in BENCHMARK.task_ids
        for metric in BENCHMARK.metrics
    ]
    assert list(table[[*KEYS, "value"]].itertuples(index=False, name=None)) == published
    assert [table[name].dtype.ordered for name in KEYS] == [True] * 5


def test_standard_errors_are_those_of_the_intervals(table):
    known = table[table["standard_error"].notna()]
    assert set(known["metric"]) == {"MCC"}
    assert len(known) == 41 * 100 * 3
    for one_frame in entries():
        for regime in BENCHMARK.regimes:
            scores = row_scores(one_frame.submission, regime, BENCHMARK)
            own = known[
                (known["model"] == one_frame.submission.model_id) & (known["regime"] == regime)
            ]
            assert own["standard_error"].tolist() == np.sqrt(scores.tasks.variance).tolist()


def test_means_of_groups_are_those_of_the_board_to_the_last_digits_in_its_order(table):
    mcc = table[table["metric"] == "MCC"]
    means = mcc.groupby(["regime", "model", "category"], observed=True)["value"].mean()
    assert list(means.index.levels[2]) == list(BENCHMARK.category_order)
    categories, _ = leaderboards(entries(), BENCHMARK)
    for regime, rows in categories["data"].items():
        for row in rows:
            own = means[regime, row["model"]]
            assert own.to_dict() == pytest.approx(row["cat_MCC"], abs=1e-15)


def test_missing_cells_have_no_line_and_their_regime_no_standard_error():
    document = small.small_v11("b")
    document["gaps"] = {"1shot": {"splice_sites": "out of memory"}}
    for part in ("results", "evidence"):
        del document[part]["1shot"]["splice_sites"]
    document["results"]["full"]["splice_sites"]["MCC"] = -0.0
    rows = [
        entry(MODELS[row_document["schema_version"]].model_validate(row_document), registry={})
        for row_document in (document, small.small("A"))
    ]
    assert any(task.n_test is None for task in small.BENCHMARK.tasks)
    unsized = score_frame(rows, small.BENCHMARK)
    assert unsized["standard_error"].isna().all()
    tasks = [replace(task, n_test=task.n_test or 100) for task in small.BENCHMARK.tasks]
    table = score_frame(rows, replace(small.BENCHMARK, tasks=tasks))
    assert table["value"].equals(unsized["value"])
    assert list(table["model"].unique()) == ["A", "b"]
    cells = table[(table["model"] == "b") & (table["metric"] == "MCC")]
    assert "splice_sites" not in set(cells[cells["regime"] == "1shot"]["task"])
    sized = cells.groupby("regime", observed=True)["standard_error"].count()
    assert sized.to_dict() == {"full": 3, "10shot": 3, "1shot": 0}
    (zero,) = cells[(cells["regime"] == "full") & (cells["task"] == "splice_sites")]["value"]
    assert math.copysign(1, zero) == 1

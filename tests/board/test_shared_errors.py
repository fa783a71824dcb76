"""Where predictions are published, decisions use the errors of pairs; files decide as rows do."""

import dataclasses
import hashlib
import itertools
import math
from typing import Any

import numpy as np
import pytest

from geneb_ci.board.board import CheckedFolder, analyses_of
from geneb_ci.board.columns import Row
from geneb_ci.board.decisions import compare_pair, difference_errors, significantly_better
from geneb_ci.board.diagnostics.whole import error_covariances
from geneb_ci.board.diff import macro_scores_of
from geneb_ci.board.page_data import page_scripts
from geneb_ci.board.rows import LEADERBOARD, leaderboards
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import benchmark_of, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.models.tasks import NO_NOTES
from geneb_ci.publish.comparison import _board_side
from geneb_ci.receipt.predicted import ROWS_MAX, paired_regimes, shared_errors_of
from geneb_ci.receipt.predictions import OF_RECORD, Predictions, TaskPredictions
from geneb_ci.receipt.seen import SharedErrors, read_shared_errors, write_notes
from geneb_ci.statistics.metrics import scores_of_matrix
from reference_harness.formats.benchmark import Task
from reference_harness.formats.submission import SubmissionV12
from tests.audit.recorded import repository
from tests.board.board import entry, intervals
from tests.page.boards import name_of, value_in
from tests.small import DIGEST, small_v12

MINI = shipped_benchmark("benchmark-mini.json")
FITS = {"full": 1, "10shot": 5, "1shot": 5}
MODELS = {"alpha": 0.95, "beta": 0.88, "gamma": 0.88}
"""The share that each has right of what is easy; a sequence is easy for all of them or none."""


def predicted(task: Task, model: str) -> TaskPredictions:
    counts = task.test_class_counts or ()
    truth = np.repeat(np.arange(len(counts)), counts).astype(np.uint16)
    rng = np.random.default_rng([*task.id.encode()])
    easy, wrong = rng.random(len(truth)) < 0.6, (truth + 1) % len(counts)
    own = np.random.default_rng([*task.id.encode(), *model.encode()])
    fits = {}
    for regime, count in FITS.items():
        right = easy & (own.random((count, len(truth))) < MODELS[model])
        fits[regime] = np.where(right, truth, wrong).astype(np.uint16)
    return TaskPredictions(tuple(range(len(counts))), truth, {OF_RECORD: fits})


@pytest.fixture(scope="module")
def predictions() -> dict[str, Predictions]:
    return {
        model: Predictions(
            hashlib.sha256(model.encode()).hexdigest(),
            {task.id: predicted(task, model) for task in MINI.tasks},
        )
        for model in MODELS
    }


def submitted(model: str, predictions: Predictions) -> SubmissionV12:
    """Return the submission whose scores follow from predictions, and whose receipt names them."""
    document: dict[str, Any] = small_v12(model, MINI) | {"evidence": {}}
    for regime in FITS:
        for task, member in predictions.tasks.items():
            classes = len(member.labels)
            cells = (member.truth * classes + fit for fit in member.fits[OF_RECORD][regime])
            counted = [np.bincount(each, minlength=classes**2) for each in cells]
            each = [scores_of_matrix(c.reshape(classes, classes).tolist()) for c in counted]
            document["results"][regime][task] = {
                name: math.fsum(getattr(scores, name.lower()) for scores in each) / len(each)
                for name in ("MCC", "Acc", "F1")
            }
    predictions_by_name = {
        "train": 1,
        "test": 1,
        "scale_log2": 0,
        "bytes": 32,
        "sha256": DIGEST,
        "root": DIGEST,
    }
    document["receipt"] = {
        "version": "1", "location": None, "dtype": "float16", "compute_dtype": "float32",
        "tf32": False, "dim": 8, "rows": 2, "root": DIGEST,
        "tasks": {"mini_tf": predictions_by_name},
        "predictions": {"bytes": 10, "sha256": predictions.sha256},
    }  # fmt: skip
    return SubmissionV12.model_validate(document)


@pytest.fixture(scope="module")
def noted(predictions: dict[str, Predictions]) -> SharedErrors:
    return SharedErrors.model_validate_json(shared_errors_of(predictions, MINI).model_dump_json())


@pytest.fixture(scope="module")
def plain(predictions: dict[str, Predictions]) -> list[Row]:
    return [entry(submitted(model, prediction)) for model, prediction in predictions.items()]


@pytest.fixture(scope="module")
def paired(plain: list[Row], noted: SharedErrors) -> list[Row]:
    return [dataclasses.replace(plain_entry, shared_errors=noted) for plain_entry in plain]


def test_the_error_of_a_pair_is_that_of_the_predictions(predictions, noted, paired):
    """In the full regime the board's variances are those of the predictions."""
    macro = paired_regimes(predictions["alpha"], predictions["beta"], MINI, OF_RECORD)["full"].macro
    own, (shared, other) = noted.regimes["full"]["macro"][0][0], noted.regimes["full"]["macro"][1]
    assert math.sqrt(own + other - 2 * shared) == pytest.approx(macro.se, rel=1e-5)
    scores = intervals(paired, MINI)["full"].board.scores["macro"]
    errors, _ = difference_errors(scores, np.array([0]), np.array([1]))
    assert errors[0, 0] == pytest.approx(macro.se, rel=0.01)
    assert macro.se < 0.8 * macro.unpaired_se


@pytest.mark.parametrize("regime", FITS)
def test_a_pair_is_never_less_sure_and_often_decided(regime, plain, paired):
    before = intervals(plain, MINI)[regime].board
    after = intervals(paired, MINI)[regime].board
    gained = 0
    for name, alone in before.scores.items():
        pairs = after.scores[name]
        assert pairs.shared is not None
        assert np.array_equal(alone.variance, pairs.variance)
        assert np.linalg.eigvalsh(np.diag(pairs.variance) + pairs.shared).min() > -1e-9
        won = significantly_better(pairs, after.critical)
        assert not (significantly_better(alone, before.critical) & ~won).any()
        gained += int(won.sum() - significantly_better(alone, before.critical).sum())
    assert gained > 0


def test_other_predictions_than_those_noted_leave_a_row_unpaired(plain, noted):
    changed = noted.model_copy(update={"rows": noted.rows | {"beta": DIGEST}})
    some = [dataclasses.replace(plain_entry, shared_errors=changed) for plain_entry in plain]
    shared = intervals(some, MINI)["full"].board.scores["macro"].shared
    assert shared is not None
    assert not shared[1].any()
    assert shared[0, 2] > 0


def test_files_and_page_decide_as_the_rows_do(paired):
    leaderboard, tasks = leaderboards(paired, MINI)
    values = {
        LEADERBOARD: leaderboard,
        "leaderboard_tasks.json": tasks,
        "diagnostics.json": analyses_of(paired, MINI, NO_NOTES).diagnostics,
    }
    assert values["diagnostics.json"]["method"]["dependence"] == "predictions"
    board = intervals(paired, MINI)["full"].board
    published = values["diagnostics.json"]["ranks"]["full"]["shared"]
    places = [board.models.index(model) for model in published["models"]]
    for name, scores in board.scores.items():
        assert scores.shared is not None
        again = np.zeros_like(scores.shared)
        for n, row in enumerate(published["scores"][name]):
            again[places[n], places[:n]] = again[places[:n], places[n]] = row
        assert np.array_equal(again, scores.shared)
    scripts = page_scripts(values, paired, MINI)
    part = value_in(scripts[name_of("scores-0", scripts)])["shared"]
    assert part["models"] == [0, 1, 2]
    macro = board.scores["macro"].shared
    assert macro is not None
    assert part["columns"][0][2] == macro[2, :2].tolist()


def test_a_diff_of_boards_decides_by_pairs_too(plain, paired):
    data = leaderboards(paired, MINI)[0]["data"]
    boards_built = [_board_side(CheckedFolder(tuple(rows), ()), MINI) for rows in (plain, paired)]
    alone, pairs = (macro_scores_of(data, item.columns)["full"] for item in boards_built)
    board = intervals(paired, MINI, regimes=["full"])["full"].board
    scores, index_by_model = (
        board.scores["macro"],
        {model: k for k, model in enumerate(board.models)},
    )
    for first, other in itertools.combinations(MODELS, 2):
        expected = compare_pair(
            scores, index_by_model[first], index_by_model[other], board.critical
        ).is_significant
        assert pairs.is_significant(first, other) == expected >= alone.is_significant(first, other)


def test_without_predictions_nothing_is_shared(plain):
    board = intervals(plain, MINI, regimes=["full"])["full"].board
    assert error_covariances(board) is None
    assert all(score_value.shared is None for score_value in board.scores.values())


def test_notes_are_kept_and_broken_ones_refused(tmp_path, noted):
    layout = find_layout(repository(tmp_path))
    path = tmp_path / "leaderboard/policy/pairs.json"
    assert read_shared_errors(layout) is None
    write_notes(path, noted)
    assert read_shared_errors(layout) is None, "they are of another benchmark"
    own = noted.model_copy(update={"benchmark": benchmark_of(layout).sha256})
    write_notes(path, own)
    assert read_shared_errors(layout) == own
    path.write_text(own.model_dump_json().replace('"macro":[[', '"macro":[[1.0],['))
    with pytest.raises(
        BadConfiguration,
        match=r"pairs\.json: .*a triangle of full does not have a line for each row",
    ):
        read_shared_errors(layout)


def test_more_rows_than_are_noted_are_refused(predictions):
    many = {f"row-{n}": predictions["alpha"] for n in range(ROWS_MAX + 1)}
    with pytest.raises(NothingChecked, match="101 rows have predictions"):
        shared_errors_of(many, MINI)

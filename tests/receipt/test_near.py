"""Near receipts: which changes of the embeddings are seen through, and that other models are not
near."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import NothingChecked
from geneb_ci.receipt.near import (
    CLOSE_DISTANCE,
    EMBEDDINGS_MIN,
    NEAR_PREDICTION_SHARE,
    Nearness,
    ReceiptSample,
    compared_positions,
    nearness_of,
)
from geneb_ci.receipt.predictions import CANONICAL, Predictions, TaskPredictions
from reference_harness.formats.submission import EmbeddingReceipt, ReceiptTask

MINI = shipped_benchmark("benchmark-mini.json")
COUNT, WIDTH = 120, 30
RNG = np.random.default_rng(11)
PLACES = tuple(("task", row) for row in range(COUNT))
# Few strong directions, an offset, and columns of different sizes, as embeddings have them.
ROWS = RNG.normal(size=(COUNT, 6)) @ RNG.normal(size=(6, WIDTH)) + RNG.normal(size=(COUNT, WIDTH))
ROWS = ROWS * np.geomspace(0.1, 3, WIDTH) + RNG.normal(size=WIDTH)
ROTATION = np.linalg.qr(RNG.normal(size=(WIDTH, WIDTH)))[0]
MOVED, COLUMNS = "after moving, scaling and rotating", "after rescaling each column"
LENGTHS = "after rescaling each embedding"


def sample(rows: np.ndarray) -> ReceiptSample:
    return ReceiptSample(PLACES, rows)


def noise(relative: float) -> Any:
    made = RNG.normal(size=ROWS.shape)
    lengths = np.linalg.norm(ROWS, axis=1) / np.linalg.norm(made, axis=1)
    return ROWS + relative * made * lengths[:, None]


def altered(share: float) -> Any:
    rotated_rows = ROWS @ ROTATION
    hit = RNG.random(COUNT) < share
    rotated_rows[hit] = 3 * RNG.normal(size=rotated_rows[hit].shape)
    return rotated_rows


SEEN = {
    "itself": (ROWS, "as they are"),
    "noise of bfloat16": (noise(4e-3), "as they are"),
    "permuted": (ROWS[:, RNG.permutation(WIDTH)], MOVED),
    "rotated, scaled and moved": (-7 * ROWS @ ROTATION + RNG.normal(size=WIDTH), MOVED),
    "zeros appended": (np.hstack([ROWS, np.zeros((COUNT, 9))]), MOVED),
    "40 % of the embeddings altered, others rotated": (altered(0.35), MOVED),
    "columns rescaled and permuted": (
        (ROWS * RNG.uniform(-2, 2, WIDTH) + 1)[:, RNG.permutation(WIDTH)],
        COLUMNS,
    ),
    "embeddings of length 1, rotated": (
        (ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)) @ ROTATION,
        LENGTHS,
    ),
    "wider than there are embeddings": (
        ROWS @ np.linalg.qr(RNG.normal(size=(2 * COUNT, WIDTH)))[0].T,
        MOVED,
    ),
}
NOT_SEEN = {
    "another model": RNG.normal(size=(COUNT, 6)) @ RNG.normal(size=(6, WIDTH)),
    "noise of 3e-2": noise(3e-2),
    "columns of noise appended": np.hstack([ROWS, RNG.normal(size=(COUNT, 9))]),
    "any linear map": ROWS @ RNG.normal(size=(WIDTH, WIDTH)),
    "a nonlinear map": np.maximum(ROWS @ ROTATION, 0),
    "isotropic embeddings": RNG.normal(size=(COUNT, 2 * COUNT)),
}
"""What docs/reader/predictions.md says that embeddings alone do not tell."""


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_through(name: str) -> None:
    rows, how = SEEN[name]
    nearness = nearness_of(sample(ROWS), sample(rows))
    assert nearness.rows == COUNT
    assert nearness.is_near
    assert nearness.close[how] > 0.5
    first = next(key for key, share in nearness.close.items() if share > 0.5)
    assert nearness.reason.endswith(f"of {COUNT} embeddings are within {CLOSE_DISTANCE:g}, {first}")


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_rows_do_not_tell(name: str) -> None:
    nearness = nearness_of(sample(ROWS), sample(NOT_SEEN[name]))
    assert (nearness.is_near, nearness.reason, nearness.same_predictions) == (False, "", None)
    assert max(nearness.close.values()) < 0.05


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.05), st.integers(3, 40))
def test_it_is_the_same_whichever_comes_first(seed: int, size: float, width: int) -> None:
    rng = np.random.default_rng(seed)
    first_rows = rng.normal(size=(EMBEDDINGS_MIN, width))
    two = first_rows @ np.linalg.qr(rng.normal(size=(width, width)))[0] + size * rng.normal(
        size=first_rows.shape
    )
    places = PLACES[:EMBEDDINGS_MIN]
    a, b = ReceiptSample(places, first_rows), ReceiptSample(places, two)
    first, second = nearness_of(a, b), nearness_of(b, a)
    assert first.is_near == second.is_near
    assert first.close == pytest.approx(second.close, abs=0.1)  # an embedding may be at the border


def test_rows_that_are_all_alike_are_not_aligned() -> None:
    nearness = nearness_of(sample(np.ones((COUNT, 3))), sample(np.full((COUNT, 4), 2.0)))
    assert not nearness.is_near


def test_receipts_without_common_rows_are_refused() -> None:
    few = ReceiptSample(PLACES[: EMBEDDINGS_MIN - 1], ROWS[: EMBEDDINGS_MIN - 1])
    with pytest.raises(NothingChecked, match="both receipts have 49 of the embeddings to compare"):
        nearness_of(sample(ROWS), few)


def predictions(share: float) -> Predictions:
    truth = np.zeros(1000, dtype=np.uint16)
    fits = np.tile(truth, (5, 1))
    fits[:, : round(1000 * share)] = 1
    task_predictions = TaskPredictions(
        (0, 1), truth, {CANONICAL: {"10shot": fits, "full": fits[:1]}}
    )
    return Predictions("0" * 64, {"task": task_predictions})


@pytest.mark.parametrize(("share", "is_near"), [(0.0, True), (0.03, True), (0.04, False)])
def test_equal_predictions_are_near_whatever_the_rows_are(share: float, is_near: bool) -> None:
    changed_sample = sample(ROWS)._replace(predictions=predictions(0.0))
    two = sample(NOT_SEEN["any linear map"])._replace(predictions=predictions(share))
    nearness = nearness_of(changed_sample, two)
    assert nearness.same_predictions == pytest.approx(1 - share)
    assert nearness.is_near == is_near == (1 - share >= NEAR_PREDICTION_SHARE)
    assert not is_near or nearness.reason == f"{1 - share:.2%} of the predictions are equal"


def test_predictions_of_other_rows_do_not_count() -> None:
    first, two = predictions(0.0), predictions(0.0)
    other = two.tasks["task"]._replace(truth=np.ones(1000, dtype=np.uint16))
    nearness = nearness_of(
        sample(ROWS)._replace(predictions=first),
        sample(NOT_SEEN["another model"])._replace(predictions=two._replace(tasks={"task": other})),
    )
    assert nearness.same_predictions is None


def receipt(**rows: int) -> EmbeddingReceipt:
    return EmbeddingReceipt(
        version="1", location=None, dtype="float16", compute_dtype="float32", tf32=False, dim=1,
        rows=sum(rows.values()), root="0" * 64,
        tasks={
            name: ReceiptTask(
                train=count - 1, test=1, scale_log2=0, bytes=2 * count, sha256="0" * 64,
                root="0" * 64,
            )
            for name, count in rows.items()
        },
    )  # fmt: skip


def test_the_rows_are_fixed_by_benchmark_and_data_alone() -> None:
    whole = list(compared_positions(receipt(mini_tf=500, mini_histone=40), MINI))
    of_task = [row for task, row in whole if task == "mini_tf"]
    assert whole[:40] == [("mini_histone", row) for _, row in whole[:40]]
    assert sorted(row for _, row in whole[:40]) == list(range(40))
    assert len(set(of_task)) == len(of_task) == 77  # 1,000 / 13, rounded up
    assert of_task == [row for _, row in compared_positions(receipt(mini_tf=500), MINI)]
    other = replace(MINI, sha256="0" * 64)
    assert of_task != [row for _, row in compared_positions(receipt(mini_tf=500), other)]
    drawn = [
        hashlib.sha256(bytes.fromhex(MINI.sha256) + b"mini_tf\x00" + j.to_bytes(8, "big")).digest()
        for j in range(3)
    ]
    assert of_task[:3] == [int.from_bytes(digest, "big") % 500 for digest in drawn]


def test_nearness_is_plain_data() -> None:
    nearness = Nearness(60, {"as they are": 0.75}, None)
    assert nearness.reason == "75.0% of 60 embeddings are within 0.01, as they are"
    assert json.loads(json.dumps(nearness._asdict()))["rows"] == 60

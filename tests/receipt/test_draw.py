"""Draws of embeddings: by SHA-256, the same everywhere, and only more where more are drawn."""

import dataclasses
import hashlib
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.receipt.draw import (
    SMALL_TASK_EMBEDDINGS,
    STANDARD_COUNTS,
    TaskShare,
    TaskStrata,
    draw_shares,
    drawn_embeddings,
    drawn_number,
)
from tests.receipt.audited import SEED, strata_example

SHARE = TaskShare(position=0, test=20, training=7, support=9, whole=False)


def by_the_text(seed: bytes, stratum: str, draw: int, size: int) -> int:
    """Return a draw as the documentation has it, written anew."""
    for attempt in range(1000):
        text = seed + b"\0" + stratum.encode() + b"\0" + struct.pack(">Q", draw) + b"\0"
        number = int(hashlib.sha256(text + struct.pack(">Q", attempt)).hexdigest(), 16)
        if number < (2**256 // size) * size:
            return number % size
    raise AssertionError


@given(st.integers(0, 1000), st.integers(1, 10**6))
def test_a_draw_is_what_the_text_says(draw: int, size: int) -> None:
    seed = bytes.fromhex(SEED)
    number = drawn_number(seed, "a stratum", draw, size)
    assert number == by_the_text(seed, "a stratum", draw, size)
    assert 0 <= number < size


def test_a_known_draw() -> None:
    drawn = [drawn_number(bytes(32), "mini_tf training", j, 1000) for j in range(4)]
    assert drawn == [by_the_text(bytes(32), "mini_tf training", j, 1000) for j in range(4)]


def test_a_size_close_to_all_numbers_is_drawn_again() -> None:
    """Of numbers up to three quarters of 2^256, every fourth digest is rejected."""
    size = 3 << 254
    rejected = [
        drawn_number(bytes(32), "x", j, size)
        != int(
            hashlib.sha256(
                bytes(32) + b"\0x\0" + struct.pack(">Q", j) + b"\0" + bytes(8)
            ).hexdigest(),
            16,
        )
        for j in range(200)
    ]
    assert 30 < sum(rejected) < 70


def test_test_rows_are_right_ones_and_half_are_by_class() -> None:
    strata = strata_example(test=400, seed=3)
    draw = drawn_embeddings([SEED], strata, SHARE._replace(test=3000))
    for regime in ("full", "10shot", "1shot"):
        rows = [row - strata.train for row in draw.rows[f"test {regime}"]]
        assert len(rows) == 3000
        right = (strata.predicted[regime] == strata.labels).any(axis=0)
        assert right[rows].all()
    sizes = {name: size for name, size in draw.sizes.items() if name.startswith("test full")}
    right = strata.right_rows("full", 0)
    assert sizes == {
        "test full 0 right": len(right),
        "test full 0 right, class": 2,
        "test full 0 right, class 0": int((strata.labels[right] == 0).sum()),
        "test full 0 right, class 1": int((strata.labels[right] == 1).sum()),
    }


def test_a_rare_class_is_drawn_far_more_often_than_its_share() -> None:
    labels = np.r_[np.zeros(990, np.int64), np.ones(10, np.int64)]
    strata = TaskStrata("task", 10, labels, {"full": labels[None, :]}, {})
    rows = drawn_embeddings([SEED], strata, SHARE._replace(test=1000)).rows["test full"]
    rare = sum(row - 10 >= 990 for row in rows)
    assert 220 < rare < 290  # half of the draws by class, and 1 % of the other half


def test_support_rows_of_one_shot_are_all_drawn() -> None:
    strata = strata_example()
    draw = drawn_embeddings([SEED], strata, SHARE)
    one_row, ten = (strata.support[name].tolist() for name in ("1shot", "10shot"))
    assert draw.rows["support 1shot"] == one_row
    assert len(draw.rows["support 10shot"]) == SHARE.support
    assert set(draw.rows["support 10shot"]) <= set(ten) - set(one_row)


def test_a_full_draw_has_every_row_of_a_small_task_and_every_support_row() -> None:
    strata = strata_example()
    draw = drawn_embeddings([SEED], strata, SHARE._replace(whole=True))
    assert draw.rows["training"] == list(range(strata.train))
    assert set(draw.rows["support 10shot"]) | set(draw.rows["support 1shot"]) == set(
        strata.support["10shot"].tolist()
    )
    large = strata_example(train=SMALL_TASK_EMBEDDINGS)
    assert len(drawn_embeddings([SEED], large, SHARE._replace(whole=True)).rows["training"]) == 7


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(1, 60))
def test_a_larger_sample_only_adds_rows(few: int, more: int) -> None:
    strata = strata_example()
    small = SHARE._replace(test=few, training=few, support=few)
    large = SHARE._replace(test=few + more, training=few + more, support=few + more)
    first, other = drawn_embeddings([SEED], strata, small), drawn_embeddings([SEED], strata, large)
    for part, rows in first.rows.items():
        taken = other.rows[part]
        assert taken[: len(rows)] == rows or set(rows) <= set(taken)


def test_rows_of_earlier_draws_are_drawn_too() -> None:
    strata = strata_example()
    before = drawn_embeddings(["11" * 32], strata, SHARE)
    draw = drawn_embeddings([SEED, "11" * 32], strata, SHARE)
    own = drawn_embeddings([SEED], strata, SHARE)
    assert set(draw.rows["earlier"]) == set(before.distinct_rows)
    assert draw.distinct_rows == sorted({*own.distinct_rows, *before.distinct_rows})
    assert {part: rows for part, rows in draw.rows.items() if part != "earlier"} == own.rows


def test_a_task_without_right_predictions_has_no_test_rows() -> None:
    labels = np.zeros(5, np.int64)
    strata = TaskStrata("task", 10, labels, {"full": labels[None, :] + 1}, {})
    assert drawn_embeddings([SEED], strata, SHARE).rows["test full"] == []


def test_shares_are_by_the_macro_for_test_rows_and_by_classes_for_support_rows() -> None:
    classes = {f"t{i}": 2 for i in range(6)} | {"many": 25}
    categories = [["t0"], ["t1", "t2", "many", "elsewhere"], ["t3", "t4", "t5"], ["elsewhere"]]
    shares = draw_shares(STANDARD_COUNTS, classes, categories)
    assert [share.test for share in shares.values()] == [500, *[167] * 6]
    assert Counter(share.training for share in shares.values()) == {30: 7}
    assert shares["many"].support == 1014
    assert shares["t0"].support == 82


@pytest.mark.parametrize("classes", [2, 5])
def test_probes_take_turns(classes: int) -> None:
    strata = strata_example(test=200, classes=classes, seed=5)
    draw = drawn_embeddings([SEED], strata, SHARE._replace(test=30))
    probes = {name.split()[2] for name in draw.sizes if name.startswith("test 10shot")}
    assert probes == set("01234")


def test_rows_that_the_probe_of_record_alone_gets_right_are_drawn() -> None:
    """An embedding altered for its sake may leave the canonical decision, which no board shows."""
    strata = strata_example()
    wrong = 1 - strata.labels
    canonical = dataclasses.replace(strata, predicted={"full": wrong[None]}, support={})
    share = TaskShare(0, 400, 1, 1, whole=False)
    assert drawn_embeddings([SEED], canonical, share).rows["test full"] == []
    some = np.where(np.arange(len(wrong)) < 5, strata.labels, wrong)
    both = dataclasses.replace(canonical, of_record={"full": some[None]})
    drawn = drawn_embeddings([SEED], both, share)
    assert set(drawn.rows["test full"]) == {strata.train + row for row in range(5)}
    assert drawn.sizes["test full 0 right"] == 5

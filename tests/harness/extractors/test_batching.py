"""Batches hold every row once, and no more tokens than allowed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_harness.embedding import batching
from tests.harness.support import padded_tokens

FIVE = (batching.RowLimit(batching.EXACT_TOKENS_MIN, 5),)
LENGTHS = st.lists(st.integers(0, 300), max_size=60)


@given(LENGTHS, st.integers(1, 500))
def test_every_row_is_in_one_batch(lengths, budget):
    for batches in (
        batching.batches_within_budget(lengths, budget),
        batching.batches_of_equal_length(lengths, budget, FIVE),
        batching.batches_in_file_order(len(lengths), budget),
    ):
        rows = np.concatenate([np.empty(0, dtype=np.int64), *batches])
        assert sorted(rows) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 500))
def test_a_batch_of_several_rows_keeps_to_the_budget(lengths, budget):
    for batches in (
        batching.batches_within_budget(lengths, budget),
        batching.batches_of_equal_length(lengths, budget, FIVE),
    ):
        for batch in batches:
            assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


@given(LENGTHS)
def test_exact_batches_hold_one_length(lengths):
    for batch in batching.batches_of_equal_length(lengths, limits=FIVE):
        assert len({lengths[i] for i in batch}) == 1
        assert len(batch) <= (1 if lengths[batch[0]] < batching.EXACT_TOKENS_MIN else 5)


@pytest.mark.parametrize(
    ("tokens", "rows"), [(1, 1), (15, 1), (16, 4), (17, 2), (32, 2), (40, 2), (64, 8), (999, 8)]
)
def test_between_two_measured_lengths_both_limits_hold(tokens, rows):
    limits = [batching.RowLimit(16, 4), batching.RowLimit(32, 2), batching.RowLimit(64, 8)]
    assert batching.rows_max_at(limits, tokens) == rows
    assert batching.rows_max_at([], tokens) == 1


def test_the_longest_come_first_and_ties_keep_their_order():
    batches = batching.batches_within_budget([3, 9, 3, 9, 1], budget=18)
    assert [list(b) for b in batches] == [[1, 3], [0, 2, 4]]
    assert padded_tokens([3, 9, 3, 9, 1], batches) == 27


@pytest.mark.parametrize(
    "call",
    [
        lambda: batching.batches_within_budget([1], 0),
        lambda: batching.batches_of_equal_length([1], 5, [batching.RowLimit(1, 0)]),
        lambda: batching.batches_in_file_order(3, 0),
    ],
)
def test_a_batch_that_may_hold_nothing_is_refused(call):
    with pytest.raises(ValueError, match="expected at least 1"):
        call()

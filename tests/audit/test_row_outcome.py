"""What a record of an audit by receipt holds: compact, read back, and of bounded size."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geneb_ci.audit.compare.embedding_outcome import FailedRow, RowRepeat, RowTask, is_altered
from geneb_ci.audit.record.envelope import STATEMENT, strict_json
from geneb_ci.receipt.embeddings import TAU


def task(rows: list[int], deviation: list[float], mismatch: list[int]) -> RowTask:
    return RowTask(
        task="task",
        train=1000,
        test=1000,
        strata={"training": 1000},
        rows={"training": rows},
        deviation=deviation,
        mismatch=mismatch,
        failed=[],
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 1999), st.floats(0, 1e300), st.integers(0, 5000)), max_size=50
    )
)
def test_numbers_are_one_text_and_read_back(rows: list[tuple[int, float, int]]) -> None:
    deviation = [float(f"{value:.2e}") for _, value, _ in rows]
    made = task([row for row, _, _ in rows], deviation, [count for *_, count in rows])
    text = made.model_dump_json()
    assert RowTask.model_validate_json(text) == made
    assert all(isinstance(json.loads(text)[name], str) for name in ("deviation", "mismatch"))
    assert isinstance(json.loads(text)["rows"]["training"], str)


@pytest.mark.parametrize("text", ["1 -2", "1  2", "nan", "1e5 inf", "0x10", "1,2", " 1", "1_0"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    value = task([1], [0.0], [0]).model_dump() | {"deviation": text}
    with pytest.raises(ValidationError, match="expected numbers with a space between them"):
        RowTask.model_validate_json(json.dumps(value))


def test_a_full_audit_of_a_hundred_tasks_is_small_enough_to_be_signed() -> None:
    """A record may have 25,000 values."""
    names = [f"test {regime} {seed} right, class {k}" for regime in ("full", "10shot", "1shot")
             for seed in range(5) for k in range(3)]  # fmt: skip
    one = task(list(range(400)), [0.0] * 400, [0] * 400).model_dump()
    one["strata"] = dict.fromkeys(names, 1000)
    found = strict_json(json.dumps({"tasks": [one] * 100}).encode(), STATEMENT)
    assert isinstance(found, dict)


def test_a_row_is_altered_only_if_it_failed_again() -> None:
    def failed(deviation: float | None, mismatch: int = 0) -> FailedRow:
        again = None
        if deviation is not None:
            again = RowRepeat(dtype="float64", deviation=deviation, mismatch=mismatch)
        return FailedRow(row=3, again=again)

    assert not is_altered(failed(None), 256)
    assert not is_altered(failed(TAU), 256)
    assert is_altered(failed(2 * TAU), 256)
    assert is_altered(failed(0.0, 6), 256)

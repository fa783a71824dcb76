"""What a record of an audit by receipt holds: compact, read back, and of bounded size."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geneb_ci.audit.compare.embedding_outcome import (
    WITH_ROW_TOLERANCES,
    ComparedTask,
    EmbeddingRepeat,
    FailedEmbedding,
    passes_when_repeated,
    reasons_of,
    room_reason,
)
from geneb_ci.audit.record.envelope import STATEMENT_STEP, strict_json
from geneb_ci.receipt.embeddings import NEAR, ROOM, TAU, pooled_mismatch_limit, rescued_limit
from tests.audit.test_embedding_verify import sound


def task(rows: list[int], deviation: list[float], mismatch: list[int]) -> ComparedTask:
    return ComparedTask(
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
    assert ComparedTask.model_validate_json(text) == made
    assert all(isinstance(json.loads(text)[name], str) for name in ("deviation", "mismatch"))
    assert isinstance(json.loads(text)["rows"]["training"], str)


@pytest.mark.parametrize("text", ["1 -2", "1  2", "nan", "1e5 inf", "0x10", "1,2", " 1", "1_0"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    value = task([1], [0.0], [0]).model_dump() | {"deviation": text}
    with pytest.raises(ValidationError, match="expected numbers with a space between them"):
        ComparedTask.model_validate_json(json.dumps(value))


def test_a_full_audit_of_a_hundred_tasks_is_small_enough_to_be_signed() -> None:
    """A record may have 25,000 values."""
    names = [f"test {regime} {seed} right, class {k}" for regime in ("full", "10shot", "1shot")
             for seed in range(5) for k in range(3)]  # fmt: skip
    document = task(list(range(400)), [0.0] * 400, [0] * 400).model_dump()
    document["strata"] = dict.fromkeys(names, 1000)
    statement = strict_json(json.dumps({"tasks": [document] * 100}).encode(), STATEMENT_STEP)
    assert isinstance(statement, dict)


def test_a_row_that_passes_when_it_is_embedded_again_is_rescued() -> None:
    def repeat(
        deviation: float, mismatch: int = 0, distance: float | None = None
    ) -> EmbeddingRepeat:
        return EmbeddingRepeat(
            dtype="float64", deviation=deviation, mismatch=mismatch, distance=distance
        )

    assert passes_when_repeated(repeat(1.0), 256)
    assert passes_when_repeated(repeat(1.0, 5, NEAR), 256)
    assert not passes_when_repeated(repeat(1.0, distance=NEAR + 1), 256)
    assert not passes_when_repeated(repeat(1.1), 256)
    assert not passes_when_repeated(repeat(0.0, 6), 256)
    assert passes_when_repeated(repeat(TAU), 256, WITH_ROW_TOLERANCES)
    assert not passes_when_repeated(repeat(2 * TAU), 256, WITH_ROW_TOLERANCES)


def rescuing(rescued: int, rows: int = 250) -> list[str]:
    """Return why an audit differs of which so many embeddings pass in float64 alone."""
    repeat = EmbeddingRepeat(dtype="float64", deviation=0.5, mismatch=0)
    deviation = [3.0] * rescued + [0.0] * (rows - rescued)
    drawn = task(list(range(rows)), deviation, [0] * rows)
    failed = [FailedEmbedding(row=row, again=repeat) for row in range(rescued)]
    tasks = [drawn.model_copy(update={"failed": failed})]
    return reasons_of(sound().model_copy(update={"tasks": tasks}))


def test_few_rows_may_pass_in_float64_alone() -> None:
    """Whoever writes the extractor writes what it gives in float64."""
    assert rescuing(1, rows=3) == rescuing(2) == []
    assert rescuing(3) == ["3 rows of 250 pass only when they are embedded again, alone; 2 may"]
    assert [rescued_limit(rows) for rows in (1, 199, 200, 10_000)] == [1, 1, 2, 100]


def test_few_coordinates_of_all_rows_may_round_otherwise() -> None:
    def reasons(mismatch: int) -> list[str]:
        """Each of the embeddings may have four."""
        spread = [4] * (mismatch // 4) + [mismatch % 4]
        drawn = task([*range(100)], [0.0] * 100, spread + [0] * (100 - len(spread)))
        return reasons_of(sound().model_copy(update={"tasks": [drawn]}))

    assert reasons(32) == []
    assert reasons(33) == [
        "33 of 6,400 drawn coordinates round otherwise in rows that pass, 32 may: 0.5%"
    ]
    assert pooled_mismatch_limit(3, 64) == 4
    version = {"schema_version": WITH_ROW_TOLERANCES, "tasks": [task([1], [0.0], [4])]}
    assert reasons_of(sound().model_copy(update=version)) == []


def test_tolerances_that_leave_room_for_altered_rows_make_an_audit_weak() -> None:
    """Such as those of features that lie on borders of float16."""
    outcome = sound()
    assert outcome.room == 0
    assert "room" not in json.loads(outcome.model_dump_json())["tasks"][0]
    (drawn,) = outcome.tasks
    for room, weak in (
        (ROOM, ""),
        (0.012, "by 0.012 nats in the mean over tasks, the limit is 0.01"),
    ):
        wide = outcome.model_copy(update={"tasks": [drawn.model_copy(update={"room": room})]})
        assert reasons_of(wide) == []
        assert room_reason(wide).endswith(weak)
        assert bool(room_reason(wide)) == bool(weak)
    # A mean over many tasks hides none that a forger chose.
    chosen = drawn.model_copy(update={"task": "chosen", "room": 0.06})
    many = outcome.model_copy(update={"tasks": [chosen, *[drawn] * 9]})
    assert many.room < ROOM
    assert room_reason(many) == (
        "deviations within the tolerances of chosen can lower the loss of its test embeddings by "
        "0.06 nats, the limit is 0.05"
    )

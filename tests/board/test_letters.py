"""The letters that a run read and the properties that it saw, as the board says them."""

from typing import Any

import pytest

from geneb_ci.board.board import row_maker
from geneb_ci.board.columns import COLUMNS, facts_of
from geneb_ci.board.marks import PROPERTY_WORDS, letters_read, property_outcomes
from geneb_ci.board.parts import BoardSubmission
from geneb_ci.board.site.model import facts_of_model
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.statistics.metrics import RowStatistics
from reference_harness.formats.submission import SubmissionV10, SubmissionV12
from reference_harness.loading import properties
from tests.paths import ROOT
from tests.rules.fixtures.measured import EMBEDDINGS, LETTERS
from tests.small import BENCHMARK, small, small_v12


def letters_text(*read: int, tasks: tuple[str, ...] = BENCHMARK.task_ids) -> str | None:
    """Return the text of a row whose tasks were read so far, of 1,000 letters each."""
    document: dict[str, Any] = small_v12("model")
    document["measured"] = {
        task: {"letters": LETTERS | {"given": 1000, "read": letters}, "embeddings": EMBEDDINGS}
        for task, letters in zip(tasks, read, strict=False)
    }
    return letters_read(SubmissionV12.model_validate(document), BENCHMARK)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        ((1000, 1000), "reads all letters of 2 tasks"),
        ((1000, 995), "reads at least 99.5 % of the letters of 2 tasks"),
        ((1000, 610, 990), "reads 61 % of the letters of {1}"),
        ((610, 5, 989), "reads 0.5 % of the letters of {1}, 61 % of {0}, 99 % of {2}"),
        ((), None),
    ],
)
def test_the_least_read_tasks_are_named(read, text):
    labels = [task.label for task in BENCHMARK.tasks]
    assert letters_text(*read) == (text and text.format(*labels))


def test_an_older_format_says_nothing():
    old = SubmissionV10.model_validate(small("model"))
    assert letters_read(old, BENCHMARK) is None
    assert property_outcomes(old) is None


def test_what_was_verified_stands_apart_from_what_was_not_contradicted():
    outcomes = dict.fromkeys(PROPERTY_WORDS, "verified") | {
        "strands": "not verified", "computed-dtype": "contradicted", "<b>": "verified",
    }  # fmt: skip
    document: dict[str, Any] = small_v12("model")
    document["properties"] = {
        name: {"outcome": outcome, "sentence": ""} for name, outcome in outcomes.items()
    }
    assert property_outcomes(SubmissionV12.model_validate(document)) == (
        "verified: layer and pooling, letters read, no drift; "
        "not contradicted, not verified: both strands; contradicted: number format"
    )
    document["properties"] = {}
    assert property_outcomes(SubmissionV12.model_validate(document)) is None


def test_the_board_has_words_for_each_property_that_a_run_sees():
    seen = {*properties.EXTRACTOR_PROPERTIES, properties.LETTERS_READ, properties.NO_DRIFT}
    assert seen == {*PROPERTY_WORDS}


def test_the_page_of_a_row_and_the_downloads_say_what_was_read():
    benchmark = shipped_benchmark()
    splice = next(task for task in benchmark.tasks if "splice sites" in task.label)
    document: dict[str, Any] = small_v12("model")
    letters = LETTERS | {"given": 1000, "read": 610}
    document["measured"] = {splice.id: {"letters": letters, "embeddings": EMBEDDINGS}}
    submission = SubmissionV12.model_validate(document)
    row = BoardSubmission("0" * 64, "submissions/model.json", "", submission, RowStatistics({}, {}))
    made = row_maker(find_layout(ROOT))(row, [])
    text = f"reads 61 % of the letters of {splice.label}"
    assert facts_of(made, COLUMNS)["letters_read"] == text
    assert {column.download for column in COLUMNS if column.key == "letters_read"} == {
        "letters_read"
    }
    assert ("Letters", text) in {(fact.label, fact.value) for fact in facts_of_model(made, None)}

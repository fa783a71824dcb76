"""Every file that the page offers: it is there, and its columns are those of the codebook."""

import csv
import io
import json
import re

import pytest

from geneb_ci.board.tables import PAGE_TABLES
from geneb_ci.common.benchmark import shipped_benchmark
from tests.page.boards import advice, values
from tests.page.rows import display
from tests.page.tab import Tab

SAVED = {
    "choose": "#/overview?species=plants&examples=hundreds&memory=16&loss=0.1",
    "scores": "#/table?columns=tasks%3ASplice+Sites",
    "compare": "#/compare?m=space&m=GROVER",
    "model": "#/model/space",
    "findings": "#/findings?scope=board",
}
"""A view to the place where it has something to save."""
WITH = {"scores": "COLUMN", "compare": "MODEL"}


def saved(tab: Tab, path: str) -> tuple[str, list[list[str]]]:
    page = tab.go(path)
    with page.expect_download() as waiting:
        page.click("#csv")
    name = waiting.value.suggested_filename
    return name, [*csv.reader(io.StringIO(waiting.value.path().read_text("utf-8"), newline=""))]


@pytest.mark.parametrize("table", PAGE_TABLES, ids=lambda table: table.name)
def test_the_codebook_has_every_column_that_a_view_saves(tab, table):
    name, [head, *rows] = saved(tab, SAVED[table.name])
    assert name.startswith(table.name)
    assert rows
    mark = WITH.get(table.name, "-")
    known = [re.compile(re.escape(column.name).replace(mark, ".+")) for column in table.columns]
    own = head[head.index("rank by Macro") :] if table.name == "scores" else head
    assert [address for address in own if not any(form.fullmatch(address) for form in known)] == []
    assert [form for form in known if not any(form.fullmatch(address) for address in own)] == []


def test_the_first_page_saves_the_three_questions_with_their_answer(tab):
    _, [head, *rows] = saved(tab, SAVED["choose"])
    row_advice = advice("hundreds", "plants", memory=16, margin=0.1)
    lines = [dict(zip(head, row, strict=True)) for row in rows]
    requests = {"plants", "hundreds", "16", "0.1"}
    assert all(requests <= set(line.values()) for line in lines)
    for own in row_advice.regimes:
        part = [line for line in lines if line["regime"] == own.regime]
        assert [line["model"] for line in part] == [choice.model for choice in own.choices]
        for line, choice in zip(part, own.choices, strict=True):
            assert line["display"] == display(choice.model)
            error = float(line["standard_error"])
            assert abs(float(line["mean"]) - choice.score) <= error / 18
            assert (line["loses_at_most"] == "") is (choice.loss_bound is None)
            assert (line["qualifies"] == "true") is (choice.model in row_advice.smaller)


def test_a_model_is_saved_in_every_regime_task_by_task(tab):
    _, [head, *rows] = saved(tab, SAVED["model"])
    lines = [dict(zip(head, row, strict=True)) for row in rows]
    regimes = values()["leaderboard_tasks.json"]["data"]
    assert len(lines) == len(regimes) * (2 + 13 + 100)
    for regime, models in regimes.items():
        exact = next(model for model in models if model["model"] == "space")["task_MCC"]
        own = {line["name"]: line for line in lines if line["regime"] == regime}
        for task, score in exact.items():
            line = own[task]
            assert abs(float(line["value"]) - score) <= float(line["standard_error"]) / 18


def test_every_file_that_the_page_names_is_there(tab, board):
    page = tab.go("#/downloads")
    names = page.locator(".files a[download]").evaluate_all("(all) => all.map((a) => a.download)")
    assert names[:3] == ["values.csv", "values.parquet", "codebook.json"]
    assert {*names[3:]} == set(values())
    assert [name for name in names if not (board / name).exists()] == []
    lines = (board / "values.csv").read_text("utf-8").count("\n") - 1
    assert lines == 41 * 3 * 3 * len(shipped_benchmark().tasks)
    assert set(json.loads((board / "codebook.json").read_bytes())) == {"values", *SAVED}

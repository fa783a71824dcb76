"""`--tasks quick`: ten tasks of the definition whose mean predicts that of all categories."""

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.choose_quick import chosen_tasks, held_out_error, line_of, scores
from reference_harness import benchmark
from reference_harness.command import quick_line
from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import UnusableBenchmarkError, parse
from reference_harness.settings import task_names
from tests.paths import ROOT

GENEB = benchmark.geneb()
assert GENEB.quick is not None
QUICK = GENEB.quick


def record(tasks: list[str], mcc: float, limit: int | None = None) -> Any:
    cell = SimpleNamespace(scores=SimpleNamespace(MCC=mcc))
    runs = {task: SimpleNamespace(regimes={"full": cell}) for task in tasks}
    return SimpleNamespace(tasks=runs, limit=limit)


def test_the_word_stands_for_the_ten_tasks() -> None:
    assert task_names(["QUICK"], GENEB) == tuple(QUICK.tasks)
    assert len(QUICK.tasks) == 10
    sizes = [GENEB.by_id[task].n_test or 0 for task in QUICK.tasks]
    assert sum(sizes) < 0.1 * sum(task.n_test or 0 for task in GENEB.tasks)
    with pytest.raises(OptionError, match="no such task"):
        task_names(["quick"], benchmark.mini())


def test_a_quick_run_says_what_it_predicts_with_its_error() -> None:
    line = quick_line(record(QUICK.tasks, 0.5), GENEB)
    assert f"the mean over all categories is {QUICK.slope * 0.5 + QUICK.intercept:.3f}" in line
    assert f"leave-one-out error {QUICK.error:.3f}" in line
    others = (record(QUICK.tasks[1:], 0.5), record([*GENEB.task_ids], 0.5))
    assert [quick_line(other, GENEB) for other in others] == ["", ""]
    assert quick_line(record(QUICK.tasks, 0.5, limit=100), GENEB) == ""
    assert quick_line(record(QUICK.tasks, 0.5), dataclasses.replace(GENEB, quick=None)) == ""


def test_quick_tasks_are_tasks_of_the_definition() -> None:
    members = json.loads((ROOT / "schemas/benchmark.json").read_bytes())
    members["quick"]["tasks"][0] = "another"
    with pytest.raises(UnusableBenchmarkError) as refused:
        parse(json.dumps(members).encode())
    assert refused.value.faults == [
        'quick/tasks: found ["another"]; expected ids of tasks of this definition'
    ]


def test_the_definition_has_what_the_public_rows_choose() -> None:
    values, whole = scores()
    chosen = chosen_tasks(values, whole)
    assert [GENEB.task_ids[place] for place in chosen] == QUICK.tasks
    assert line_of(values, whole, chosen) == pytest.approx((QUICK.slope, QUICK.intercept), abs=1e-4)
    assert len(whole) == QUICK.rows


@pytest.mark.nightly  # chooses 41 times
def test_the_stated_error_is_of_rows_that_chose_nothing() -> None:
    assert held_out_error(*scores()) == pytest.approx(QUICK.error, abs=1e-4)
    assert QUICK.error < 0.015

"""`--tasks quick`: ten tasks of GENEB whose mean predicts that of all categories."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.choose_quick import chosen_tasks, held_out_error, line_of, scores
from reference_harness.data import benchmark
from reference_harness.data.quick_tasks import expand_quick, quick_prediction_line, quick_tasks
from reference_harness.errors import OptionError

GENEB = benchmark.geneb()
QUICK = quick_tasks()


def record(tasks: list[str], **changes: Any) -> Any:
    cell = SimpleNamespace(scores=SimpleNamespace(MCC=0.5))
    runs = {task: SimpleNamespace(regimes={"full": cell}) for task in tasks}
    members = {"tasks": runs, "limit": None, "benchmark": SimpleNamespace(sha256=GENEB.sha256)}
    return SimpleNamespace(**members | changes)


def test_the_word_stands_for_ten_small_tasks_of_the_definition() -> None:
    assert QUICK.benchmark == GENEB.sha256
    assert expand_quick(["a", "QUICK"], GENEB) == ["a", *QUICK.tasks]
    assert len({GENEB.by_id[task].category for task in QUICK.tasks}) == 10
    sizes = [GENEB.by_id[task].n_test or 0 for task in QUICK.tasks]
    assert sum(sizes) < 0.04 * sum(task.n_test or 0 for task in GENEB.tasks)
    with pytest.raises(OptionError, match="the benchmark is GENEB-mini"):
        expand_quick(["quick"], benchmark.mini())


def test_a_quick_run_says_what_it_predicts_with_its_error() -> None:
    line = quick_prediction_line(record(QUICK.tasks))
    assert f"rows: {QUICK.slope * 0.5 + QUICK.intercept:.3f}" in line
    assert f"leave-one-out error {QUICK.error:.3f}" in line
    other = SimpleNamespace(sha256="0" * 64)
    others = (record(QUICK.tasks[1:]), record([*GENEB.task_ids]), record(QUICK.tasks, limit=100))
    assert {
        quick_prediction_line(own) for own in (*others, record(QUICK.tasks, benchmark=other))
    } == {""}


def test_the_list_is_what_the_public_rows_choose() -> None:
    values, whole = scores()
    chosen = chosen_tasks(values, whole)
    assert [GENEB.task_ids[chosen_task] for chosen_task in chosen] == QUICK.tasks
    line = line_of(values, whole, chosen)
    assert line == pytest.approx((QUICK.slope, QUICK.intercept), abs=1e-4)
    assert len(whole) == QUICK.rows


@pytest.mark.nightly  # chooses 41 times
def test_the_stated_error_is_of_rows_that_chose_nothing() -> None:
    assert held_out_error(*scores()) == pytest.approx(QUICK.error, abs=1e-4)
    assert QUICK.error < 0.015

"""When few-shot probes are said to live on the sequences that they are fitted on."""

import dataclasses
import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from geneb_ci.audit.rerun.few_shot import (
    MARGIN,
    OTHERS,
    TESTS,
    VARIANTS,
    FewShotResult,
    FewShotTask,
    few_shot_contradiction,
    few_shot_result,
    few_shot_text,
    flagged_gains,
    gains_over_other_fits,
)
from geneb_ci.audit.rerun.honesty import TASK_MARGIN, task_alarm_quantile
from geneb_ci.statistics.student import student_quantile
from reference_harness.formats.benchmark import Benchmark, Task
from reference_harness.formats.rescored import OTHER_DRAWS, TEST_TIMES, FewShotScores
from tests.small import BENCHMARK

FITS = 5
BESIDE = {OTHERS, VARIANTS, TESTS}
SPREAD, PAIRED = 0.1, 0.03
"""Standard deviation of MCC over draws, and of its change by variants."""


def scores(
    rng: random.Random,
    tasks: int,
    *,
    known: float = 0.0,
    moved: float = 0.0,
    all_moved: float = 0.0,
    few: int | None = None,
) -> FewShotResult:
    """Return scores of 1shot: published fits gain `known`, those on variants lose `moved`, and
    those on test sequences lose `all_moved`.

    In the first `few` tasks, or all.
    """
    task_by_name = {}
    for task in range(tasks):
        is_one = few is None or task < few
        published = [rng.gauss(0.0, SPREAD) + known * is_one for _ in range(FITS)]
        task_by_name[f"t{task}"] = FewShotTask(
            published=published,
            others=[rng.gauss(0.0, SPREAD) for _ in range(OTHER_DRAWS)],
            varied=[score + rng.gauss(0, PAIRED) - moved * is_one for score in published],
            tests=[rng.gauss(0.0, SPREAD) - all_moved * is_one for _ in range(OTHER_DRAWS)],
        )
    return FewShotResult(regimes={"1shot": task_by_name})


@pytest.mark.parametrize("tasks", [1, 2, 6, 13, 100])
def test_honest_scores_are_not_flagged(tasks: int) -> None:
    rng = random.Random(tasks)
    for _ in range(1_000 // tasks):
        result = scores(rng, tasks)
        assert not [gain for beside in BESIDE for gain in flagged_gains(result, beside)]


@pytest.mark.parametrize(
    ("change", "beside", "tasks"),
    [
        ({"known": 0.25}, OTHERS, {""}),
        ({"known": 0.5, "few": 1}, OTHERS, {"t0"}),
        ({"moved": 0.1}, VARIANTS, {""}),
        ({"moved": 0.25, "few": 1}, VARIANTS, {"t0"}),
        ({"all_moved": 0.25}, TESTS, {""}),
        ({"all_moved": 0.5, "few": 1}, TESTS, {"t0"}),
    ],
)
def test_a_gain_of_all_tasks_and_one_of_a_single_task_are_flagged(
    change: dict[str, Any], beside: str, tasks: set[str]
) -> None:
    rng = random.Random(7)
    for _ in range(50):
        result = scores(rng, 13, **change)
        assert tasks <= {gain.task for gain in flagged_gains(result, beside)}
        assert not [gain for other in BESIDE - {beside} for gain in flagged_gains(result, other)]


def test_the_limits_follow_from_the_variances() -> None:
    rng = random.Random(1)
    result = scores(rng, 2)
    mean, *tasks = [gain for gain in gains_over_other_fits(result) if gain.other_fits == OTHERS]
    own = [_variance(task.others) * (1 / FITS + 1 / OTHER_DRAWS) for task in fits(result)]
    freedom = 2 * (OTHER_DRAWS - 1)
    assert mean.limit == pytest.approx(
        MARGIN + student_quantile(4, freedom) * math.sqrt(sum(own)) / 2
    )
    quantile = student_quantile(task_alarm_quantile(2), freedom)
    for gain, variance in zip(tasks, own, strict=True):
        largest = max(variance, sum(own) / 2)
        assert gain.limit == pytest.approx(MARGIN + TASK_MARGIN + quantile * math.sqrt(largest))
    mean, *_ = [gain for gain in gains_over_other_fits(result) if gain.other_fits == VARIANTS]
    paired = [
        _variance([a - b for a, b in zip(task.published, task.varied or (), strict=True)])
        for task in fits(result)
    ]
    assert mean.limit == pytest.approx(
        MARGIN + student_quantile(4, 2 * (FITS - 1)) * math.sqrt(sum(paired) / FITS) / 2
    )


def fits(result: FewShotResult) -> list[FewShotTask]:
    return list(result.regimes["1shot"].values())


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def test_scores_have_four_digits_in_a_record_and_are_judged_with_these() -> None:
    few_shot_task = FewShotTask(published=[0.123456, -0.00001], others=[1.0, -1.0])
    assert few_shot_task.published == [0.1235, 0.0]
    text = FewShotResult(regimes={"1shot": {"t": few_shot_task}}).model_dump_json()
    assert json.loads(text) == {
        "regimes": {"1shot": {"t": {"published": "0.1235 0.0000", "others": "1.0000 -1.0000"}}}
    }
    assert FewShotResult.model_validate_json(text).regimes["1shot"]["t"] == few_shot_task
    for wrong in ("0.12345", "2.0000", "0.1000  0.2000", "nan", ""):
        with pytest.raises(ValidationError):
            FewShotTask.model_validate({"published": wrong, "others": "0.1000"})


def test_a_single_fit_has_no_variance_and_flags_nothing() -> None:
    few_shot_task = FewShotTask(published=[0.9], others=[0.1], varied=[0.1])
    assert not list(gains_over_other_fits(FewShotResult(regimes={"1shot": {"t": few_shot_task}})))


def test_the_result_of_a_benchmark_without_few_shot_regimes_is_none() -> None:
    assert few_shot_result({"t": {}}, {}) is None
    few_shot_scores = FewShotScores(published=[0.1] * FITS, others=[0.1] * OTHER_DRAWS)
    result = few_shot_result(
        {"a": {"1shot": few_shot_scores}, "b": {"1shot": few_shot_scores}},
        {"b": {"1shot": [0.0] * FITS}},
    )
    assert result is not None
    assert [task.varied for task in fits(result)] == [None, [0.0] * FITS]
    assert few_shot_text(result) == (
        "few-shot probes: 1shot in the mean of 2 tasks MCC +0.000 of at most 0.020 beside others; "
        "1shot in the mean of 1 task MCC +0.100 of at most 0.020 beside variants"
    )


def benchmark_of(regimes: Sequence[str], smallest_class: int | None) -> Benchmark:
    """Return a benchmark of two tasks whose smaller class has so many test sequences."""
    counts = None if smallest_class is None else [smallest_class, 500]
    protocol = dataclasses.replace(
        BENCHMARK.protocol, few_shot_k={name: int(name.removesuffix("shot")) for name in regimes}
    )
    tasks = [
        Task(id=name, label=name, category="c", test_class_counts=counts) for name in ("t0", "t1")
    ]
    return dataclasses.replace(BENCHMARK, protocol=protocol, tasks=tasks)


@pytest.mark.parametrize(
    ("change", "expected", "message"),
    [
        ({}, {}, ""),
        ({}, {"smallest_class": TEST_TIMES}, ""),
        (
            {},
            {"smallest_class": TEST_TIMES - 1},
            "1shot: t0 has fits on test sequences",
        ),
        ({"tests": None}, {}, ""),
        (
            {"tests": None},
            {"smallest_class": TEST_TIMES},
            "1shot: t1 lacks fits on test sequences",
        ),
        ({}, {"regimes": ["1shot", "10shot"]}, "probes of 1shot were fitted, expected 1shot, 10"),
        ({}, {"tasks": ["t0"]}, "1shot: its tasks are not those of the audit"),
        ({"varied": None}, {}, "1shot: t1 lacks fits on variants, unlike the draw"),
        ({}, {"varied": ["t0"]}, "1shot: t1 has fits on variants, unlike the draw"),
        ({"others": [0.1] * 19}, {}, "1shot: t1 has other numbers of fits than 5 and 20"),
        ({"varied": [0.1] * 4}, {}, "1shot: t1 has other numbers of fits"),
        ({"published": [0.1] * 6}, {}, "1shot: t1 has other numbers of fits"),
    ],
)
def test_a_result_of_other_tasks_or_fits_contradicts_the_audit(
    change: dict[str, Any], expected: dict[str, Any], message: str
) -> None:
    result = scores(random.Random(3), 2)
    changed = result.regimes["1shot"]["t1"].model_copy(update=change)
    result = FewShotResult(regimes={"1shot": result.regimes["1shot"] | {"t1": changed}})
    names = ["t0", "t1"]
    arguments: dict[str, Any] = {
        "regimes": ["1shot"],
        "tasks": names,
        "varied": names,
        "smallest_class": None,
    }
    arguments |= expected
    benchmark = benchmark_of(arguments["regimes"], arguments["smallest_class"])
    contradiction = few_shot_contradiction(
        result, benchmark, arguments["tasks"], arguments["varied"], requires_tests=True
    )
    assert contradiction.startswith(message)
    assert bool(contradiction) == bool(message)
    if not expected.keys() <= {"regimes", "tasks", "varied"}:
        assert not few_shot_contradiction(
            result, benchmark, arguments["tasks"], arguments["varied"], requires_tests=False
        )


def test_a_result_of_tasks_that_the_benchmark_lacks_is_counted_all_the_same() -> None:
    """A board may have replaced the benchmark of an earlier record."""
    benchmark = dataclasses.replace(benchmark_of(["1shot"], None), tasks=list(BENCHMARK.tasks))
    names = ["t0", "t1"]
    result = scores(random.Random(3), 2)
    assert not few_shot_contradiction(result, benchmark, names, names, requires_tests=False)

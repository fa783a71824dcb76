"""Estimates: the chance of each task to be drawn, and how the cost of a task adds up."""

import json
import random
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from geneb_ci.audit import cost
from geneb_ci.audit.cost import Measurements, TaskSize, draw_probabilities
from geneb_ci.audit.rerun import task_embedding
from geneb_ci.audit.rerun.embedder import embedding_speed
from geneb_ci.audit.sampling.design import sampled_tasks
from reference_harness.formats.measurements import EmbeddingFacts
from reference_harness.formats.submission import SubmissionV12
from tests.audit.recorded import commitment, submission_bytes
from tests.small import small_v12

DRAWS = 4000
SIZES = {"a": TaskSize(sequences=1000, letters=100_000), "b": TaskSize(sequences=10, letters=500)}


@pytest.mark.parametrize(("drawn", "strata"), [(1, []), (2, []), (2, [[0]]), (2, [[0, 1]])])
def test_the_chance_of_a_task_is_its_share_of_simulated_draws(
    drawn: int, strata: list[list[int]]
) -> None:
    made = commitment(submission_bytes())
    named = [[made.tasks[index] for index in part] for part in strata]
    made = commitment(
        submission_bytes(),
        policy=made.policy.model_dump()
        | {"drawn": drawn, "stratified": bool(strata), "strata": named},
    )
    chances = draw_probabilities(made)
    assert list(chances) == made.tasks or set(chances) == set(made.tasks)
    assert sum(chances.values()) == pytest.approx(drawn)
    draw, counts = random.Random(5), dict.fromkeys(made.tasks, 0)
    for _ in range(DRAWS):
        for task in sampled_tasks(draw.sample(made.tasks, len(made.tasks)), drawn, named):
            counts[task] += 1
    assert {task: count / DRAWS for task, count in counts.items()} == pytest.approx(
        chances, abs=0.04
    )


def test_a_task_costs_two_starts_and_its_letters_with_those_of_decoys_and_variants() -> None:
    sampled = Measurements(
        sizes=SIZES, start_seconds=3.0, seconds_per_letter=0.001, embedding_bytes=64, peak_bytes=1,
        listing_seconds=1.0, scored_sequences=10, scoring_seconds=2.0,
    )  # fmt: skip
    decoys = cost.DECOYS_PER_TASK
    seconds = cost._embedding_seconds(sampled, "a", 13)
    assert seconds == pytest.approx(6 + 0.1 * (1000 + decoys + 1232))
    assert cost._embedding_seconds(sampled, "b", 13) == pytest.approx(6 + 0.05 * (10 + decoys + 30))
    # Three of each of 40 test rows, one of each of 100 sequences at most: 308 rows would be varied.
    assert cost.variant_count(TaskSize(sequences=100, letters=1, test=40), 13) == 220
    assert cost.variant_count(TaskSize(sequences=9000, letters=1, test=5000), 13) == 1232
    assert cost.variant_count(TaskSize(sequences=9000, letters=1, test=5000, support=110), 13) == (
        1232 + 110
    )
    assert Measurements.model_validate_json(json.dumps(sampled.model_dump())) == sampled


PER_LETTER, START = 2e-4, 4.0
WORDS = ["ACGT" * 25] * cost.SAMPLE_SEQUENCES


class _Runs:
    """An extractor whose runs are delayed: number of the run to the factor on its time."""

    def __init__(self, delays: Callable[[int], float], seconds: float) -> None:
        self.delays = delays
        self.seconds = seconds
        self.number = 0

    def __call__(self, arguments: list[str]) -> cost.TimedRun:
        took = (START + self.seconds * sum(map(len, arguments))) * self.delays(self.number)
        self.number += 1
        return cost.TimedRun(took, np.zeros((len(arguments), 2)), len(arguments))


LARGE = cost.ExpectedWork(runs=26, letters=1e9)


def _timing(delays: Callable[[int], float]) -> cost.SampleTiming:
    return cost.timing_of(_Runs(delays, PER_LETTER), WORDS, LARGE, 1800)


@pytest.mark.parametrize("delayed", range(8))
def test_one_run_that_is_delayed_does_not_change_the_estimate(delayed: int) -> None:
    quiet = _timing(lambda _: 1.0)
    assert (quiet.start_seconds, quiet.seconds_per_letter) == pytest.approx((START, PER_LETTER))
    timing = _timing(lambda number: 1.8 if number == delayed else 1.0)
    for tasks in (1000, 100_000):  # of 100 letters
        ratio = (timing.start_seconds + timing.seconds_per_letter * 100 * tasks) / (
            START + PER_LETTER * 100 * tasks
        )
        assert ratio == pytest.approx(1, abs=0.25)


def test_a_load_that_lasts_is_in_the_estimate() -> None:
    timing = _timing(lambda _: 3.0)
    assert (timing.start_seconds, timing.seconds_per_letter) == pytest.approx(
        (3 * START, 3 * PER_LETTER)
    )


def test_a_slow_model_is_timed_once() -> None:
    """A sample of minutes has the load of minutes in its mean; two more would cost as many."""
    runs = _Runs(lambda _: 1.0, 0.01)
    assert cost.timing_of(runs, WORDS, LARGE, 1800).seconds_per_letter == pytest.approx(0.01)
    assert runs.number == 3


def test_a_model_that_costs_nothing_is_not_repeated_for_ever() -> None:
    runs = _Runs(lambda _: 1.0, 0.0)
    timing = cost.timing_of(runs, WORDS, LARGE, 1800)
    assert (timing.seconds_per_letter, timing.peak_bytes) == (
        0.0,
        cost.REPEATS_MAX * cost.SAMPLE_SEQUENCES,
    )
    assert runs.number <= 3 + 4 + 2 * cost.FURTHER_PAIRS


def test_a_small_audit_is_not_timed_for_longer_than_it_takes() -> None:
    """One task of a few thousand letters: its two starts are most of it."""
    runs = _Runs(lambda _: 1.0, PER_LETTER / 100)
    letters = 2 * cost.SAMPLE_SEQUENCES * len(WORDS[0])
    timing = cost.timing_of(runs, WORDS, cost.ExpectedWork(runs=2, letters=letters), 1800)
    assert (timing.start_seconds, timing.seconds_per_letter) == pytest.approx(
        (START, PER_LETTER / 100)
    )
    assert runs.number == 4  # two starts, the sample, and four times the sample


def test_nothing_is_repeated_where_all_letters_were_timed() -> None:
    runs = _Runs(lambda _: 1.0, PER_LETTER / 100)
    cost.timing_of(runs, WORDS, cost.ExpectedWork(runs=2, letters=len(WORDS[0])), 1800)
    assert runs.number == 3


def test_embedding_takes_as_long_as_in_the_contributors_run_or_as_parameters_say() -> None:
    """SpliceAI: its convolutions read 1,900 letters a second, where parameters said 21,000."""
    document = small_v12("convolutions")
    document["meta"]["params"] = 3_483_200
    document["run"]["hardware"] = {"device": "cpu", "name": "AMD EPYC"}
    document["run"]["embedding_cost"] = {
        "letters": 1_333_370, "seconds": 696.95, "peak_memory_bytes": None,
    }  # fmt: skip
    letters = {"method": "tokens", "sequences": 10, "given": 900, "read": 900, "cut": 0}
    names = EmbeddingFacts.model_fields
    document["measured"] = {"a": {"letters": letters, "embeddings": dict.fromkeys(names, 1)}}
    submission = SubmissionV12.model_validate(document)
    pace = embedding_speed(submission)
    assert pace.seconds_per_sequence == pytest.approx(90 * 696.95 / 1_333_370)
    run = "at the 1,913 letters a second of the contributor's run (cpu, AMD EPYC)"
    assert pace.basis == f"{run} and 90 letters a sequence"
    gpu = embedding_speed(submission, "cuda:1")
    assert gpu.seconds_per_sequence == pytest.approx(pace.seconds_per_sequence / 50)
    assert gpu.basis == f"{pace.basis}, with a GPU counted as 50 CPUs"
    del document["run"]["embedding_cost"], document["measured"]
    by_parameters = embedding_speed(SubmissionV12.model_validate(document))
    assert by_parameters.seconds_per_sequence == pytest.approx(2 * 3_483_200 * 300 / 150e9)
    assert "2 operations per parameter and letter, 300 letters a sequence" in by_parameters.basis


def test_what_is_left_of_a_run_is_said_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[str] = []
    runs = task_embedding.SandboxRuns(cast("Any", None), 0.0, notices.append, "part 1 of 2")
    runs._progress(["ACGT"] * 10)(10)
    assert notices == [], "a minute has not passed"
    monkeypatch.setattr(task_embedding, "PROGRESS_SECONDS", 0.0)
    report = runs._progress(["ACGT"] * 10)
    report(10)
    report(41)  # more than there are: a forged line
    assert notices == ["part 1 of 2: 10 of 40 letters embedded, about 1 s left"]

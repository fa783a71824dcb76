"""A comparison on a rescoring made by hand: its level, its notes, and what it has nothing to do."""

from typing import Any

import pytest

from geneb_ci.audit.compare import tolerance as rule
from geneb_ci.audit.compare.outcome import AuditedTask, CellComparison, Tolerance, Verdict
from geneb_ci.audit.compare.tasks import AuditedClaims, compare_claims, tolerance_notes
from geneb_ci.audit.sampling.plan import ChosenTask
from geneb_ci.common.errors import NothingChecked
from geneb_ci.statistics.metrics import ReportedTriple, Triple
from reference_harness.formats.base import Scores
from reference_harness.formats.rescored import Rescored
from tests.small import BENCHMARK, DIGEST

TASK = BENCHMARK.task_ids[0]
FLIPPED = (1, 2, 3)
"""Right predictions of the first class that the copies lose, in turn."""
NONE = Triple(0.0, 0.0, 0.0)


def triple(right: int) -> dict[str, float]:
    """Return the scores of 100 predictions in two even classes: so many right, and then 40."""
    claimed = right + 10
    mcc = (right * 40 - (50 - right) * 10) / (50 * 50 * claimed * (100 - claimed)) ** 0.5
    f1 = right / (50 + claimed) + 40 / (50 + 100 - claimed)
    return {"MCC": mcc, "Acc": (right + 40) / 100, "F1": f1}


def seeds(right: int) -> dict[str, list[float]]:
    return {metric: [value] for metric, value in triple(right).items()}


def regime() -> dict[str, Any]:
    """Return one fit, and copies of it that flip one to three predictions."""
    copies = [
        {"per_seed": seeds(45 - FLIPPED[k % 3]), "flips": [FLIPPED[k % 3]]} for k in range(32)
    ]
    fit = {
        "scores": triple(45),
        "per_seed": seeds(45),
        "confusion": [[[45, 5], [10, 40]]],
        "predictions_sha256": DIGEST,
        "seconds": 1.0,
    }
    base = fit | {
        "classes": [0, 1],
        "rows": [100],
        "iterations": [10],
        "warnings": [],
    }
    return {"base": base, "plain": copies, "stressed": copies, "halts": []}


RESCORED = Rescored.model_validate(
    {
        "schema_version": "1.0",
        "benchmark": {"name": BENCHMARK.name, "sha256": BENCHMARK.sha256},
        "dataset": {"repo_id": "org/tasks", "revision": "0" * 40, "verified": True},
        "harness": {"version": "GENEB-0.1.0", "commit": None, "dirty": False},
        "embeddings_sha256": DIGEST,
        "sequences_sha256": DIGEST,
        "dim": 8,
        "feature_dtype": "float32",
        "noise": {"dtype": "float32", "units": 1.4, "stress": 8.0, "seed": 1, "copies": 32},
        "seeds": [42],
        "few_shot_k": {"10shot": 10, "1shot": 1},
        "libraries": [],
        "packages": {},
        "seconds": 1.0,
        "tasks": {
            TASK: {
                "data_sha256": DIGEST,
                "train": {"0": 50, "1": 50},
                "test": {"0": 50, "1": 50},
                "distinct_sequences": 200,
                "regimes": {name: regime() for name in BENCHMARK.regimes},
                "decisions": None,
            }
        },
    }
)
CHOSEN = [ChosenTask(task=TASK, reason="drawn")]


def claims(*regimes: str) -> AuditedClaims:
    """Claim what the rerun gives in some regimes."""
    reading = ReportedTriple(
        Triple(**dict(zip(Triple._fields, triple(45).values(), strict=True))), NONE
    )
    return AuditedClaims({(name, TASK): reading for name in regimes}, {})


@pytest.mark.parametrize(
    ("regimes", "comparisons"),
    [(("full",), 3), (("full", "10shot"), 6), (tuple(BENCHMARK.regimes), 9)],
)
def test_the_false_alarm_is_shared_by_all_metrics_that_are_compared(regimes, comparisons):
    (audited_task,) = compare_claims(claims(*regimes), RESCORED, CHOSEN, BENCHMARK)
    cell = RESCORED.tasks[TASK].regimes["full"]
    measured = rule.CellWithCopies(
        cell.base.per_seed,
        cell.base.confusion,
        cell.plain,
        cell.stressed,
        cell.halts,
        is_one_fit=True,
    )
    alarm_rate = rule.alarm_rate_per_comparison(comparisons)
    assert audited_task.regimes["full"].tolerance == rule.tolerance(measured, alarm_rate, NONE)
    assert (audited_task.verdict, audited_task.reason, list(audited_task.regimes)) == (
        "agrees",
        "drawn",
        list(regimes),
    )


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [([], "the plan has no task"), (CHOSEN, f"the submission claims no score on task {TASK}")],
)
def test_nothing_to_compare(chosen, reason):
    with pytest.raises(NothingChecked) as refusal:
        compare_claims(AuditedClaims({}, {}), RESCORED, chosen, BENCHMARK)
    assert (refusal.value.message, refusal.value.fix) == (
        f"nothing to compare: {reason}",
        "commit and draw again, for this submission",
    )


def audited(task: str, tolerance: float, **gains: float) -> AuditedTask:
    """Return a task whose claims of MCC differ so much from the rerun."""
    regimes = {}
    for name, gain in gains.items():
        verdict: Verdict = "differs" if abs(gain) > tolerance else "agrees"
        regimes[name] = CellComparison(
            claimed=Scores(MCC=0.5 + gain, Acc=0.5, F1=0.5),
            rescored=Scores(MCC=0.5, Acc=0.5, F1=0.5),
            tolerance=Tolerance(MCC=tolerance, Acc=1, F1=1, copies=16, flips=0, spread=0),
            predictions_equal=None,
            canonical=None,
            verdict=verdict,
        )
    return AuditedTask(task=task, reason="drawn", verdict="agrees", regimes=regimes)


SETTING = (
    "tolerances: 32 copies or more at the noise of float32, as many at 8 times it, false alarm "
    "0.1% for the whole audit"
)
FULL = (
    "the probe on all training sequences stops before its optimum, and the last bit decides "
    "where: that alone changed MCC by up to 0.015 in measurements. Tolerances of MCC there: "
    "0.0500 to 0.1250; the few-shot regimes are the stronger evidence"
)


def informative(counts: str) -> str:
    return (
        f"informative cells (tolerance of MCC at most 0.1): {counts}; the others are not evidence"
    )


def test_notes_on_a_regime_with_all_rows_and_on_claims_that_are_too_low():
    other_digest = audited("c", 0.05, **{"1shot": 0.0})
    cell = other_digest.regimes["1shot"]
    other_digest.regimes["1shot"] = cell.model_copy(update={"verdict": "differs"})
    tasks = [
        audited("a", 0.05, full=0.2, **{"1shot": 0.0}),
        audited("b", 0.125, full=-0.2),
        other_digest,
    ]
    assert tolerance_notes(tasks, RESCORED) == [
        SETTING,
        informative("full 1 of 2, 1shot 2 of 2"),
        FULL,
        "claimed lower than rescored: b (full)",
    ]


def test_notes_on_a_few_shot_regime_whose_claims_are_all_a_little_too_high():
    tasks = [audited(f"task-{k}", 0.1, **{"10shot": 0.095}) for k in range(9)]
    assert tolerance_notes(tasks, RESCORED) == [
        SETTING,
        informative("10shot 9 of 9"),
        (
            "10shot, MCC: claims differ from rerun and copies by +0.0950 in the mean of 9 cells, "
            "chance explains 0.0667"
        ),
    ]

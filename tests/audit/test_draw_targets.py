"""Targeted tasks: by the findings of the checks, then by the largest gain over the neighbours."""

import json
import math
import shutil
from hashlib import sha256

import pytest

from geneb_ci.audit.commit import checked_submission, committed_submission_file, read_submission
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.sampling.task_draw import (
    largest_gains,
    suspicion_scores,
    suspicious_tasks,
    targeted_tasks_of,
)
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.statistics.reference import ScoreTable
from geneb_ci.statistics.view import RowView
from tests.audit.examples import TASKS as EXAMPLE_TASKS
from tests.audit.examples import commitment, plan
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK

TASKS = shipped_benchmark().task_ids


def finding(pointer: str, score: float, rule: str = "implausible-cell") -> Finding:
    return Finding(rule, Severity.WARNING, "m", "f", pointer, 1, 1, "x", "y", "z", score)


def test_scores_of_a_task_add_up_over_regimes_and_rules():
    suspicion_by_task = suspicion_scores(
        [
            finding("/results/full/a/MCC", 1.2),
            finding("/results/10shot/a", 3.4, "few-shot-above-full"),
            finding("/results/full/b/MCC", 2.0),
            finding("/results/full", 9.0, "uniform-gain"),
            finding("/evidence/full/b", 9.0),
            finding("/results/full/c", 9.0, "rounded-scores"),
            finding("/results/full/d", 0.0),
            finding("", 5.0),
        ]
    )
    assert suspicion_by_task == {"a": pytest.approx(4.6), "b": 2.0}


def context_of(name: str):
    return checked_submission(read_submission(SUBMISSIONS / f"{name}.json"))


def test_a_public_row_with_warnings_is_aimed_at_where_they_point():
    """The four promoters of BioFM-265M have six warnings, HUVEC and Hela-S3 two each."""
    context, findings = context_of("BioFM-265M")
    scores = suspicion_scores(findings)
    named = [f"iPro-WAEL_Promoter_{cell}" for cell in ("HUVEC", "Hela-S3", "GM12878", "NHEK")]
    assert sorted(scores) == sorted(named)
    target_tasks = suspicious_tasks(context, findings, TASKS)
    assert target_tasks[:4] == sorted(named, key=lambda task: -scores[task])
    gain = largest_gains(context.view)
    rest = sorted((task for task in TASKS if task not in named), key=lambda task: -gain[task])
    assert target_tasks[4:] == [task for task in rest if gain[task] > 0]


def test_a_raised_task_is_aimed_at(tmp_path):
    """Where no rule speaks, the cell raised most above its prediction comes first."""
    for folder in ("submissions", "schemas"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", tmp_path / "schemas")
    for path in SUBMISSIONS.glob("*.json"):
        shutil.copy(path, tmp_path / "submissions")
    path = tmp_path / "submissions/splicebert-1024nt.json"
    document = json.loads(path.read_bytes())
    document["results"]["10shot"]["deep4mc_C.elegans_4mC"]["MCC"] += 0.2
    path.write_text(json.dumps(document))
    context, findings = checked_submission(read_submission(path))
    assert suspicious_tasks(context, [], TASKS)[0] == "deep4mc_C.elegans_4mC"
    assert "deep4mc_C.elegans_4mC" in suspicious_tasks(context, findings, TASKS)[:5]


def test_only_candidates_are_named_in_the_order_of_all():
    context, findings = context_of("space")
    few = TASKS[10:20]
    target_tasks = suspicious_tasks(context, findings, few)
    assert len(target_tasks) >= 3
    assert target_tasks == [
        task for task in suspicious_tasks(context, findings, TASKS) if task in few
    ]
    assert suspicious_tasks(context, findings, []) == []


def test_no_more_targeted_tasks_are_added_than_were_asked_for():
    expected = [*reversed(EXAMPLE_TASKS), EXAMPLE_TASKS[0]]
    made = plan(targeted=expected, targeted_max=3)
    left = [task for task in reversed(EXAMPLE_TASKS) if task not in made.drawn]
    assert [
        chosen_task.task for chosen_task in made.chosen if chosen_task.reason == "targeted"
    ] == left[:3]
    assert plan(targeted=expected, targeted_max=0).chosen == plan().chosen


def view(own: list[float], *others: list[float]) -> RowView:
    """Return a row of nine cells beside others, too few for a prediction."""
    size = len(BENCHMARK.task_ids)
    regimes = tuple(slice(k * size, (k + 1) * size) for k in range(3))
    names = tuple(f"row-{k}" for k in range(len(others)))
    return RowView(
        BENCHMARK, ScoreTable(names, tuple(map(tuple, others)), {}, regimes), tuple(own), None
    )


def test_with_few_rows_the_gain_is_that_over_their_median():
    flat = [0.5] * 9
    raised = [0.5, 0.7, 0.5, 0.5, 0.6, 0.5, 0.9, 0.5, math.nan]
    assert largest_gains(view(raised, flat, flat, [0.1] * 9)) == pytest.approx(
        {"promoter_tata": 0.4, "promoter_notata": 0.2, "splice_sites": 0.0}
    )


def test_with_no_other_row_nothing_stands_out():
    assert set(largest_gains(view([0.9] * 9)).values()) == {0.0}


def test_no_submission_is_read_unless_tasks_are_to_be_aimed_at():
    assert targeted_tasks_of(commitment(), 0, None) == []
    with pytest.raises(UsageProblem) as refusal:
        targeted_tasks_of(commitment(), 1, None)
    assert (refusal.value.message, refusal.value.fix) == (
        "--targeted needs the committed submission, which is missing",
        "name the file of the submission: --submission FILE",
    )


def test_the_submission_that_was_committed_to_is_aimed_at():
    """It is that of the repository, unless another place is named."""
    name = "BioFM-265M"
    path = SUBMISSIONS / f"{name}.json"
    of = commitment(
        model_id=name, submission_sha256=sha256(path.read_bytes()).hexdigest(), tasks=list(TASKS)
    )
    layout = Layout(LayoutKind.ALONE, ROOT, submissions=SUBMISSIONS)
    context, findings = context_of(name)
    expected = suspicious_tasks(context, findings, TASKS)
    assert len(expected) > 4
    alone = Layout(LayoutKind.ALONE, ROOT)
    assert targeted_tasks_of(of, 1, committed_submission_file(of, None, layout)) == expected
    assert targeted_tasks_of(of, 1, committed_submission_file(of, path, alone)) == expected
    assert committed_submission_file(of, None, alone) is None
    with pytest.raises(AuditRefused, match="this is not the committed submission"):
        committed_submission_file(of, SUBMISSIONS / "space.json", layout)

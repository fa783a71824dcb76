"""Claims against a real rescoring of word counts on two small tasks."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from benchmarks import bench_tolerance
from benchmarks.bench_tolerance import (
    Audits,
    Document,
    audited_tasks,
    document,
    false_alarms,
    gathered_audits,
)
from benchmarks.bench_tolerance import forgery_trials as forgeries
from benchmarks.tolerance_sets import Group, GroupFolder
from geneb_ci.audit.compare import tasks as stage
from geneb_ci.audit.compare.outcome import METRICS, AuditedTask
from geneb_ci.audit.rerun import scoring as reader
from geneb_ci.audit.rerun.scoring import read_rescored
from geneb_ci.audit.sampling.plan import ChosenTask
from geneb_ci.audit.trust.attestation import Confirmation
from geneb_ci.common.errors import NothingChecked
from reference_harness.formats.rescored import Rescored
from reference_harness.rescore import scoring
from tests.audit.unboxed import Queue
from tests.board.attested import group_of

TASKS = ("mini_splice", "mini_chromatin")
GROUP = Group("4-mers on two tasks", TASKS, "float32", ("counts",), 1, 1)
OTHER = "noise-0"


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Audits:
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        for module in (bench_tolerance, scoring):
            patch.setattr(module, "Pool", Queue)
        return gathered_audits(GroupFolder(tmp_path_factory.mktemp("work"), GROUP))


@pytest.fixture
def rescored(audits: Audits) -> Rescored:
    return audits.rescored["counts"]


def judged(made: Document, audits: Audits) -> list[AuditedTask]:
    return audited_tasks(made, audits.rescored["counts"], GROUP, audits.benchmark)


def verdicts(tasks: list[AuditedTask]) -> dict[str, dict[str, str]]:
    return {tasks.task: {name: c.verdict for name, c in tasks.regimes.items()} for tasks in tasks}


AGREED = {task: dict.fromkeys(("full", "10shot", "1shot"), "agrees") for task in TASKS}


def test_the_same_embeddings_agree_to_the_last_digit(audits: Audits) -> None:
    tasks = judged(document(audits.claimed["counts"], "1.1"), audits)
    assert verdicts(tasks) == AGREED
    assert [task.task for task in tasks] == list(TASKS)
    for task in tasks:
        assert (task.reason, task.verdict) == ("drawn", "agrees")
        for compared in task.regimes.values():
            assert compared.claimed == compared.rescored
            assert compared.predictions_equal is True


def test_format_1_0_has_no_digests(audits: Audits) -> None:
    tasks = judged(document(audits.claimed[OTHER], "1.0"), audits)
    assert verdicts(tasks) == AGREED
    for task in tasks:
        for compared in task.regimes.values():
            assert compared.predictions_equal is None


def test_honest_claims_agree_and_forged_ones_do_not(
    audits: Audits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bench in small: one contributor, one auditor."""
    monkeypatch.setattr(bench_tolerance, "RAISES", (0.05,))
    count, wrong, _ = false_alarms(audits)
    assert (count, wrong) == (1, [])
    large = [forgery for forgery in forgeries(audits) if forgery.regime != "full"]
    assert len(large) > 3
    assert all(trial.is_detected for trial in large)


@pytest.mark.parametrize("by", [0.05, -0.05])
def test_what_is_too_high_or_too_low_differs_in_its_cell_alone(audits: Audits, by: float) -> None:
    made = document(audits.claimed[OTHER], "1.0")
    for metric in METRICS:
        made["results"]["10shot"]["mini_splice"][metric] += by
    tasks = judged(made, audits)
    expected = copy.deepcopy(AGREED)
    expected["mini_splice"]["10shot"] = "differs"
    assert verdicts(tasks) == expected
    assert [task_outcome.verdict for task_outcome in tasks] == ["differs", "agrees"]
    notes = stage.tolerance_notes(tasks, audits.rescored["counts"])
    assert notes[0] == (
        "tolerances: 16 copies or more at the noise of float32, as many at 8 times it, false alarm "
        "0.1% for the whole audit"
    )
    # A tolerance near the limit lies on either side of it, by the kernel of the linear algebra.
    narrow = {
        regime: sum(task.regimes[regime].tolerance.MCC <= 0.1 for task in tasks)
        for regime in ("full", "10shot", "1shot")
    }
    assert all(narrow.values())
    assert notes[1] == (
        "informative cells (tolerance of MCC at most 0.1): "
        + ", ".join(f"{regime} {count} of 2" for regime, count in narrow.items())
        + "; the others are not evidence"
    )
    biased = [note for note in notes[2:] if "claims differ from rerun and copies by" in note]
    assert {note.partition(":")[0] for note in biased} == {
        f"10shot, {metric}" for metric in METRICS
    }
    other_notes = [note for note in notes if note not in biased]
    assert other_notes[2].startswith("the probe on all training sequences stops before its optimum")
    assert "changed MCC by up to 0.015" in other_notes[2]
    assert other_notes[3:] == (
        ["claimed lower than rescored: mini_splice (10shot)"] if by < 0 else []
    )


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("submission/results/*/*/MCC", ("results", "MCC")),
        ("submission/evidence/*/*/per_seed/MCC/*", ("evidence", "per_seed", "MCC", 0)),
        ("submission/evidence/*/*/predictions_sha256", ("evidence", "predictions_sha256")),
    ],
)
def test_a_rerun_compares_what_the_table_of_attestation_says(
    audits: Audits, field: str, path: tuple[str | int, ...]
) -> None:
    made = document(audits.claimed[OTHER], "1.1")
    own: Any = made[str(path[0])]["1shot"][TASKS[0]]
    for name in path[1:-1]:
        own = own.setdefault(name, {"MCC": [0.0]})
    own[path[-1]] = "f" * 64 if path[-1] == "predictions_sha256" else own[path[-1]] + 0.5
    group = group_of(field)
    assert group is not None
    differs = any(task.verdict == "differs" for task in judged(made, audits))
    assert differs == (Confirmation.RERUN in group.confirmations)


def test_rounded_claims_get_half_a_digit(audits: Audits) -> None:
    made = document(audits.claimed["counts"], "1.0")
    for tasks in made["results"].values():
        for cell in tasks.values():
            cell.update({metric: round(value, 4) for metric, value in cell.items()})
    exact = judged(document(audits.claimed["counts"], "1.0"), audits)
    for first, other in zip(judged(made, audits), exact, strict=True):
        assert first.verdict == "agrees"
        for name, compared in first.regimes.items():
            gained = compared.tolerance.MCC - other.regimes[name].tolerance.MCC
            assert gained == pytest.approx(0.00005, abs=1e-9)


def test_a_regime_left_out_is_not_compared(audits: Audits) -> None:
    made = document(audits.claimed[OTHER], "1.0")
    del made["results"]["full"]
    tasks = judged(made, audits)
    assert all(list(task.regimes) == ["10shot", "1shot"] for task in tasks)
    assert len(stage.tolerance_notes(tasks, audits.rescored["counts"])) == 2


def refused(made: Document, rescored: Rescored, audits: Audits, chosen: tuple[str, ...]) -> str:
    drawn = [ChosenTask(task=task, reason="drawn") for task in chosen]
    bench = audits.benchmark
    claimed = stage.audited_claims(made, bench, bench.regimes)
    with pytest.raises(NothingChecked) as error:
        stage.compare_claims(claimed, rescored, drawn, bench)
    assert error.value.fix
    return error.value.message


def test_nothing_agrees_by_being_absent(audits: Audits, rescored: Rescored) -> None:
    made = document(audits.claimed[OTHER], "1.1")
    fewer = rescored.model_copy(update={"tasks": {TASKS[1]: rescored.tasks[TASKS[1]]}})
    assert refused(made, fewer, audits, TASKS[:1]) == (
        "the rescoring has no score on task mini_splice in regime full"
    )
    other = rescored.benchmark.model_copy(update={"sha256": "0" * 64})
    assert "expected GENEB-mini" in refused(
        made, rescored.model_copy(update={"benchmark": other}), audits, TASKS
    )
    loud = rescored.noise.model_copy(update={"stress": 80.0})
    assert refused(made, rescored.model_copy(update={"noise": loud}), audits, TASKS) == (
        "the rescoring has noise of 1.4 units, stressed 80 times; "
        "expected 1.4 units, stressed 8 times"
    )


def test_the_reader_takes_what_the_harness_writes(rescored: Rescored, tmp_path: Path) -> None:
    path = tmp_path / "rescored.json"
    path.write_text(rescored.model_dump_json())
    assert read_rescored(path) == rescored


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
        ({"tasks": {}}, "tasks: Dictionary should have at least 1 item"),
        ({"dim": "256"}, "dim: Input should be a valid integer"),
        ({"schema_version": "2.0"}, "schema_version: Input should be '1.0'"),
        ({"seconds": -1.0}, "seconds: Input should be greater than or equal to 0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_the_reader_refuses_anything_else(
    rescored: Rescored, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    path = tmp_path / "rescored.json"
    path.write_text(json.dumps(rescored.model_dump() | change))
    with pytest.raises(NothingChecked) as refusal:
        read_rescored(path)
    assert refusal.value.message.startswith(f"{path}: {says}")


def test_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rescored.json"
    with pytest.raises(NothingChecked, match="cannot be read: No such file"):
        read_rescored(path)
    path.write_text('{"dim": NaN')
    with pytest.raises(NothingChecked, match="the document: Invalid JSON"):
        read_rescored(path)
    monkeypatch.setattr(reader, "RESCORED_BYTES_MAX", 5)
    with pytest.raises(NothingChecked, match="bytes; the limit is"):
        read_rescored(path)


def test_a_regime_that_the_policy_does_not_audit_is_not_compared(audits: Audits) -> None:
    """Else no verifier would take the record: its commitment does not name that regime."""
    made, bench = document(audits.claimed[OTHER], "1.1"), audits.benchmark
    drawn = [ChosenTask(task=task, reason="drawn") for task in TASKS]
    claimed = stage.audited_claims(made, bench, ["10shot"])
    comparison = stage.compare_claims(claimed, audits.rescored["counts"], drawn, bench)
    assert all(list(item.regimes) == ["10shot"] for item in comparison)

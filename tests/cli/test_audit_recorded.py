"""`geneb-ci audit plan` finds by itself what the records of the repository have drawn."""

import json
from pathlib import Path

import pytest

from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.sampling.plan import EarlierDraw, TaskPlan, commitment_text
from geneb_ci.audit.sampling.task_draw import check_task_plan
from geneb_ci.cli.main import main
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    committed_at,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)

BEFORE = plan_for(submission_bytes(" before"))


@pytest.fixture
def repository_folder(tmp_path: Path, monkeypatch) -> Path:
    """A repository with the record of an earlier version, and a commitment to the one of now."""
    repository(tmp_path)
    put(tmp_path, outcome_of(BEFORE, submission_bytes(" before")))
    (tmp_path / "c.json").write_text(commitment_text(commitment(submission_bytes())))
    (tmp_path / "round.json").write_text(json.dumps({"round": SECOND, "signature": ROUNDS[SECOND]}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(at: int = SECOND) -> int:
    options = ["--committed-at", committed_at(at), "--beacon-file", "round.json"]
    return main(["audit", "plan", "c.json", *options, "--output", "plan.json"])


def test_a_recorded_draw_is_audited_again(repository_folder):
    assert planned() == 0
    plan = task_plan(repository_folder / "plan.json")
    assert [draw.model_dump() for draw in plan.earlier] == [
        {"commitment": BEFORE.commitment_sha256, "drawn": BEFORE.drawn}
    ]
    assert {chosen_task.task for chosen_task in plan.chosen} >= {*plan.drawn, *BEFORE.drawn}


def test_a_commitment_with_a_record_is_not_drawn_for_at_another_time(repository_folder, capsys):
    put(repository_folder, outcome_of(plan_for(submission_bytes(), FIRST), submission_bytes()))
    assert planned() == 11
    message = f"this commitment already has a draw, as of {committed_at(FIRST)}"
    assert message in capsys.readouterr().err


def test_a_record_that_cannot_be_read_stops_the_draw(repository_folder, capsys):
    (path,) = (repository_folder / "leaderboard/audits" / MODEL).glob("*.json")
    path.write_bytes(path.read_bytes()[:-10])
    assert planned() == 11
    assert (
        f"{MODEL}/{path.name} cannot be read, so its draw is not known" in capsys.readouterr().err
    )


def test_records_of_other_models_have_no_part(repository_folder):
    (path,) = (repository_folder / "leaderboard/audits" / MODEL).glob("*.json")
    other = repository_folder / "leaderboard/audits/other"
    other.mkdir()
    path.rename(other / path.name)
    assert planned() == 0
    assert task_plan(repository_folder / "plan.json").earlier == []


def test_strata_of_a_maintainers_own_are_no_strata(repository_folder, capsys):
    """Whoever could name them could keep tasks out of the sample."""
    policy = {
        "drawn": 2,
        "stratified": True,
        "strata": [["splice_sites"]],
        "tolerance": limits_digest(),
    }
    raw = submission_bytes()
    plan = plan_for(raw, SECOND, earlier_of(BEFORE), policy=policy)
    check_task_plan(plan)
    assert main(["audit", "verify", str(put(repository_folder, outcome_of(plan, raw)))]) != 0
    assert (
        "the sample has other strata than the 0 categories that have at least 5 of its tasks"
        in capsys.readouterr().out
    )


def earlier_of(plan: TaskPlan) -> tuple[EarlierDraw, ...]:
    return (EarlierDraw(commitment=plan.commitment_sha256, drawn=plan.drawn),)

"""`audit plan` draws on the union with what the records of the repository drew."""

import json
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.recorded import (
    SECOND,
    committed_at,
    outcome_of,
    plan_for,
    put,
    record_bytes,
    repository,
    submission_bytes,
)

BEFORE = submission_bytes(" of before")
FIRST_PLAN = plan_for(BEFORE)


@pytest.fixture
def repository_folder(tmp_path, monkeypatch) -> Path:
    root = repository(tmp_path)
    module = root / "submissions/extractors/model.py"
    module.parent.mkdir()
    module.write_bytes(b"an example")
    monkeypatch.chdir(root)
    beacon = {"round": SECOND, "signature": ROUNDS[SECOND]}
    (root / "round.json").write_text(json.dumps(beacon))
    assert main(["audit", "commit", "submissions/model.json", "--output", "c.json"]) == 0
    return root


def planned() -> int:
    arguments = ("--committed-at", committed_at(SECOND), "--beacon-file", "round.json")
    return main(["audit", "plan", "c.json", *arguments, "--output", "plan.json"])


def test_a_model_without_records_has_no_earlier_draw(repository_folder):
    assert planned() == 0
    assert task_plan(repository_folder / "plan.json").earlier == []


def test_what_a_record_drew_is_rerun(repository_folder):
    put(repository_folder, outcome_of(FIRST_PLAN, BEFORE))
    assert planned() == 0
    plan = task_plan(repository_folder / "plan.json")
    assert [(earlier_draw.commitment, earlier_draw.drawn) for earlier_draw in plan.earlier] == [
        (FIRST_PLAN.commitment_sha256, FIRST_PLAN.drawn)
    ]
    assert {chosen_task.task for chosen_task in plan.chosen} >= {*FIRST_PLAN.drawn, *plan.drawn}
    # What came out can be recorded, and verifies.
    raw = (repository_folder / "submissions/model.json").read_bytes()
    (repository_folder / "x.json").write_bytes(record_bytes(outcome_of(plan, raw)))
    assert main(["audit", "verify", "x.json"]) == 0


def test_a_record_that_cannot_be_read_stops_the_plan(repository_folder, capsys):
    path = put(repository_folder, outcome_of(FIRST_PLAN, BEFORE))
    path.write_bytes(b"{}")
    assert planned() == 11
    assert f"model/{path.name} cannot be read, so its draw is not known" in (
        capsys.readouterr().err
    )
    assert not (repository_folder / "plan.json").exists()

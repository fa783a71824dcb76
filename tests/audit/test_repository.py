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
def place(tmp_path, monkeypatch) -> Path:
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
    given = ("--committed-at", committed_at(SECOND), "--beacon-file", "round.json")
    return main(["audit", "plan", "c.json", *given, "--output", "plan.json"])


def test_a_model_without_records_has_no_earlier_draw(place):
    assert planned() == 0
    assert task_plan(place / "plan.json").earlier == []


def test_what_a_record_drew_is_rerun(place):
    put(place, outcome_of(FIRST_PLAN, BEFORE))
    assert planned() == 0
    plan = task_plan(place / "plan.json")
    assert [(one.commitment, one.drawn) for one in plan.earlier] == [
        (FIRST_PLAN.commitment_sha256, FIRST_PLAN.drawn)
    ]
    assert {one.task for one in plan.chosen} >= {*FIRST_PLAN.drawn, *plan.drawn}
    # What came out can be recorded, and verifies.
    raw = (place / "submissions/model.json").read_bytes()
    (place / "x.json").write_bytes(record_bytes(outcome_of(plan, raw)))
    assert main(["audit", "verify", "x.json"]) == 0


def test_a_record_that_cannot_be_read_stops_the_plan(place, capsys):
    path = put(place, outcome_of(FIRST_PLAN, BEFORE))
    path.write_bytes(b"{}")
    assert planned() == 11
    assert f"model/{path.name} cannot be read, so its draw is not known" in (
        capsys.readouterr().err
    )
    assert not (place / "plan.json").exists()

"""`trust`, `build` and `explain` over a repository with records."""

import hashlib
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from geneb_ci.audit.sampling.plan import EarlierDraw
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from tests.audit.recorded import (
    MODEL,
    SECOND,
    key,
    mutated,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    withdraw,
)
from tests.paths import ROOT
from tests.small import small

RAW = submission_bytes()
GOOD = outcome_of(plan_for(RAW), RAW)
BAD = outcome_of(plan_for(RAW), RAW, shift=0.05)


@pytest.fixture
def repository_folder(tmp_path, monkeypatch) -> Path:
    root = repository(tmp_path)
    monkeypatch.chdir(root)
    return root


def row(folder: Path) -> dict[str, object]:
    assert main(["build", "--output", "board"]) == 0
    board = json.loads((folder / "board/leaderboard.json").read_bytes())
    schema = json.loads((ROOT / "schemas/leaderboard.schema.json").read_bytes())
    Draft202012Validator(schema).validate(board)
    assert len(board["data"]) == 3
    (result,) = board["data"]["full"]
    return {key: result[key] for key in ("official", "submitted", "audit") if key in result}


AUDIT = {"tasks": 2, "of": 3, "date": "2023-08-23", "sandbox": 2}


def test_a_row_without_audit_has_no_such_field(repository_folder):
    assert row(repository_folder) == {"official": False, "submitted": "self-reported"}


def test_an_honest_row_is_verified(repository_folder):
    put(repository_folder, GOOD)
    assert row(repository_folder) == {
        "official": False,
        "submitted": "verified",
        "audit": AUDIT | {"verdict": "agrees"},
    }


def test_a_forged_row_is_disputed_until_the_audit_is_withdrawn(repository_folder):
    path = put(repository_folder, BAD)
    disputed = {"submitted": "disputed", "audit": AUDIT | {"verdict": "differs"}}
    assert row(repository_folder) == {"official": False} | disputed
    policy = repository_folder / "leaderboard/policy/official.json"
    policy.write_text(json.dumps({"files": {MODEL: hashlib.sha256(RAW).hexdigest()}}))
    assert row(repository_folder) == {"official": True} | disputed
    withdraw(path)
    assert row(repository_folder) == {"official": True, "submitted": "official"}


def test_an_audit_outside_of_a_sandbox_changes_nothing(repository_folder):
    put(repository_folder, outcome_of(plan_for(RAW), RAW, level=0))
    assert row(repository_folder) == {"official": False, "submitted": "self-reported"}


def test_tolerances_that_allow_anything_verify_nothing(repository_folder, capsys):
    wide = GOOD.model_copy(deep=True)
    for task in wide.tasks:
        task.regimes["full"] = task.regimes["full"].model_copy(
            update={"tolerance": task.regimes["full"].tolerance.model_copy(update={"MCC": 0.3})}
        )
    put(repository_folder, wide)
    assert row(repository_folder)["submitted"] == "self-reported"
    capsys.readouterr()
    assert main(["explain", MODEL]) == 0
    output = capsys.readouterr().out
    assert "2 rerun, informative cells 10shot 2 of 2, 1shot 2 of 2, full 0 of 2, " in output
    assert "does not count: fewer than half of the cells are informative in full" in output


def test_an_audit_of_other_bytes_changes_nothing(repository_folder):
    before = submission_bytes(" of before")
    put(repository_folder, outcome_of(plan_for(before), before, shift=0.05))
    assert row(repository_folder) == {"official": False, "submitted": "self-reported"}


def test_a_new_harness_makes_the_evidence_stale(repository_folder):
    put(repository_folder, GOOD)
    benchmark = repository_folder / "schemas/benchmark.json"
    benchmark.write_text(benchmark.read_text().replace("GENEB-0.1.0", "GENEB-0.2.0"))
    evidence = gather_evidence(find_layout(repository_folder))
    assert evidence.decide(hashlib.sha256(RAW).hexdigest()).level == "stale"


def test_a_broken_record_stops_the_build_and_names_its_step(repository_folder, capsys):
    path = put(repository_folder, BAD)
    path.write_bytes(mutated(BAD, _forge))
    for command in (["build", "--output", "board"], ["trust"], ["explain", MODEL]):
        assert main(command) == 11
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"geneb-ci: audit record {MODEL}/{path.name} is broken, step ")
        assert "audit verify` shows every step" in err
    assert not (repository_folder / "board").exists()


def _forge(value):
    value["predicate"]["verdict"] = "agrees"


def test_a_record_of_a_stranger_stops_the_build(repository_folder, capsys):
    put(repository_folder, GOOD, key("a stranger"))
    assert main(["build", "--output", "board"]) == 11
    assert "is broken, step 'signer': the key " in capsys.readouterr().err


def test_label_lists_every_row_and_writes_nothing(repository_folder, capsys):
    path = put(repository_folder, GOOD)
    (repository_folder / "submissions/other.json").write_text(json.dumps(small("other")))
    broken = small("broken")
    del broken["results"]["full"]
    (repository_folder / "submissions/broken.json").write_text(json.dumps(broken))
    before = sorted(repository_folder.rglob("*"))
    assert main(["trust"]) == 11
    assert capsys.readouterr().out == (
        "none     broken: 1 error: run `geneb-ci check`\n"
        f"audited  contributed  model: audit {path.stem} agrees on at least 2 drawn tasks; "
        "memory is not excluded, since no audit had a fresh set "
        "(audited 2/3, sandbox level 2, 2023-08-23)\n"
        f"           audit {path.stem} of 2023-08-23: 2 tasks drawn, 2 rerun, informative "
        "cells 10shot 2 of 2, 1shot 2 of 2, full 2 of 2, sandbox level 2, agrees; counts\n"
        "checked  contributed  other: no audit counts\n"
        "\n"
        "3 rows: 1 none, 1 checked, 1 audited\n"
    )
    assert sorted(repository_folder.rglob("*")) == before
    (repository_folder / "submissions/broken.json").unlink()
    assert main(["trust", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(trust_row["model_id"], trust_row["level"]) for trust_row in rows] == [
        ("model", "verified"),
        ("other", "self-reported"),
    ]
    assert rows[0]["audit"] == AUDIT | {"agrees": True, "cells": "", "rows": 0}


def test_label_without_a_folder_is_a_slip(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["trust"]) == 2
    assert "the current folder has no submissions" in capsys.readouterr().err


def test_explain_says_why_a_row_has_its_level(repository_folder, capsys):
    put(repository_folder, outcome_of(plan_for(RAW), RAW, level=1))
    path = put(repository_folder, BAD)
    withdraw(path, reason="the wrong weights were fetched")
    # Two records of one draw are one draw.
    assert main(["explain", MODEL]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "model  checked: no audit counts"
    assert "does not count: the audit had sandbox level 1, but the policy requires 2" in out
    assert "differs; does not count: withdrawn: the wrong weights were fetched" in out


def test_explain_shows_audits_of_earlier_versions(repository_folder, capsys):
    before = submission_bytes(" of before")
    first = plan_for(before)
    put(repository_folder, outcome_of(first, before))
    listed = (EarlierDraw(commitment=first.commitment_sha256, drawn=first.drawn),)
    put(repository_folder, outcome_of(plan_for(RAW, SECOND, listed), RAW))
    assert main(["explain", MODEL]) == 0
    first_line, older, newer = capsys.readouterr().out.splitlines()
    assert first_line.startswith("model  ")
    assert older.endswith("does not count: the file was changed after the audit")
    assert newer.endswith("agrees; counts")


@pytest.mark.usefixtures("repository_folder")
def test_explain_knows_a_rule_before_a_model_and_says_when_it_is_neither(capsys):
    assert main(["explain", "missing-task"]) == 0
    assert capsys.readouterr().out.startswith("missing-task  error")
    assert main(["explain", "modell"]) == 2
    err = capsys.readouterr().err
    assert (
        "'modell' is neither a rule nor a model of this repository; did you mean \"model\"?" in err
    )
    assert main(["explain", "../submissions/model"]) == 2

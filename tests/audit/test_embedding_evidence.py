"""An audit by receipt that agrees: what is shown of it everywhere, and that it confirms nothing."""

import csv
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome
from geneb_ci.audit.rerun.honesty import MEMORISED_OBJECTION
from geneb_ci.audit.trust.evidence import gather_evidence
from geneb_ci.audit.trust.level import RECOMPUTED_TEXT
from geneb_ci.board.site.model import facts_of_model
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from reference_harness.formats.submission import SubmissionV11
from tests.audit.linked_place import abort_of, signed
from tests.audit.recorded import (
    MODEL,
    SECOND,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)
from tests.audit.test_embedding_verify import varied
from tests.board.board import entry
from tests.paths import ROOT
from tests.small import BENCHMARK

RAW = submission_bytes()
SAID = (
    f"{RECOMPUTED_TEXT}: 3/3, 9 embeddings computed again, 2023-08-23; the scores shown were not "
    "compared"
)


def whole(**other: Any) -> EmbeddingOutcome:
    """Return an outcome that has every task of the small benchmark, and draws in every regime."""
    value = json.loads(varied(**other).model_dump_json())
    (task,) = value["tasks"]
    task["rows"] = {
        "training": "1 4 1", "test full": "12 4", "test 10shot": "12", "test 1shot": "12"
    }  # fmt: skip
    value["tasks"] = [task | {"task": name} for name in BENCHMARK.task_ids]
    value["receipt"]["tasks"] = len(BENCHMARK.task_ids)
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


@pytest.fixture
def repository_folder(tmp_path, monkeypatch) -> Path:
    root = repository(tmp_path)
    monkeypatch.chdir(root)
    return root


def level(root: Path) -> tuple[str, str]:
    find_layout.cache_clear()
    decision = gather_evidence(find_layout(root)).decide(hashlib.sha256(RAW).hexdigest())
    return str(decision.level), str(decision.evidence)


def test_label_says_why_it_adds_no_level(repository_folder, capsys):
    path = put(repository_folder, whole())
    assert main(["trust"]) == 0
    out = capsys.readouterr().out
    assert f"checked  contributed  {MODEL}: no audit of tasks counts; {SAID}" in out
    assert (
        f"audit {path.stem} of 2023-08-23: 3/3 cells, 9 embeddings, sandbox level 2, agrees; does "
        f"not count: {RECOMPUTED_TEXT}; the scores shown were not compared"
    ) in out
    assert main(["trust", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["evidence"], row["level"], row["audit"]) == ("checked", "self-reported", None)
    assert row["recomputed"] == SAID


def test_a_request_for_audited_rows_leaves_it_out(repository_folder, capsys):
    put(repository_folder, whole())
    assert main(["audit", "verify", "--evidence", "audited"]) == 11
    out = capsys.readouterr().out
    assert "the receipt agrees, the scores on the board were not compared" in out
    assert f"{MODEL} (sha256 " in out
    assert f": checked, expected audited: no audit of tasks counts; {SAID}" in out
    assert "      signers: nobody\n" in out


def test_files_and_pages_of_the_board_say_it_beside_the_row(repository_folder):
    put(repository_folder, whole())
    assert main(["build", "--output", "board"]) == 0
    board = json.loads((repository_folder / "board/leaderboard.json").read_bytes())
    schema = json.loads((ROOT / "schemas/leaderboard.schema.json").read_bytes())
    Draft202012Validator(schema).validate(board)
    for rows in board["data"].values():
        (row,) = rows
        assert (row["submitted"], row["evidence"]) == ("self-reported", "checked")
        assert row["recomputed"] == SAID
        assert "audit" not in row


def test_the_page_of_a_model_says_it_below_the_evidence():
    own = dataclasses.replace(entry(SubmissionV11.model_validate_json(RAW)), recomputed=SAID)
    facts = [(fact.label, fact.value) for fact in facts_of_model(own, None)][:2]
    assert facts == [
        ("Evidence", "checked, not rerun: passes every check; no audit confirms its scores"),
        ("Recomputed", SAID),
    ]


def test_exports_give_it_no_evidence(repository_folder):
    put(repository_folder, whole())
    time = ("--time", "2026-11-20T08:30:00Z")
    assert main(["export", "--format", "csv", "--output", "tables", *time]) == 0
    with (repository_folder / "tables/models.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["evidence"], row["level"]) == ("checked", "self-reported")
    assert (row["recomputed"], row["audit"], row["records"]) == (SAID, "", "")
    assert main(["export", "--format", "every-eval-ever", "--output", "entries", *time]) == 0
    (path,) = (repository_folder / "entries").rglob("*.json")
    details = json.loads(path.read_bytes())["source_metadata"]["additional_details"]
    assert (details["evidence"], details["trust_level"]) == ("checked", "self-reported")
    assert "audit_records" not in details


def test_one_that_differs_disputes_the_row(repository_folder):
    put(repository_folder, outcome_of(plan_for(RAW), RAW))
    assert level(repository_folder) == ("verified", "audited")
    known = whole(worse=40, memorised=True)
    put(
        repository_folder,
        known.model_copy(update={"reasons": [MEMORISED_OBJECTION], "verdict": "differs"}),
    )
    assert level(repository_folder) == ("disputed", "disputed")


def test_it_keeps_nobody_from_an_audit_of_tasks_at_another_time(repository_folder):
    put(repository_folder, whole())
    put(repository_folder, outcome_of(plan_for(RAW, SECOND), RAW))
    assert level(repository_folder) == ("verified", "audited")


def test_one_between_aborts_does_not_end_their_row(repository_folder):
    """An extractor that fails where tasks are drawn would else be audited by receipt in between."""
    put(repository_folder, whole())
    plan = plan_for(RAW)
    for number in range(2):
        signed(repository_folder, abort_of(plan, at=number - 10**9), None)
    signed(repository_folder, abort_of(plan, at=10), None)
    assert level(repository_folder)[0] == "disputed"

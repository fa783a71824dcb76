"""`geneb-ci audit verify` as its user runs it: every step, text and JSON, exit codes."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import geneb_ci
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.recompute_embeddings import EMBEDDING_STEPS
from geneb_ci.audit.record.statement import record_of
from geneb_ci.audit.record.verify import VERIFICATION_STEPS
from geneb_ci.audit.record.verify_embeddings import CELLS_STEP
from geneb_ci.cli.main import main
from geneb_ci.render.audits import _PASSED_TEXTS
from tests.audit.recorded import (
    entry,
    key,
    mutated,
    outcome_of,
    plan_for,
    put,
    record_bytes,
    repository,
    statement_of,
    submission_bytes,
)
from tests.paths import ROOT

RAW = submission_bytes()
OUTCOME = outcome_of(plan_for(RAW), RAW)


@pytest.fixture
def repository_folder(tmp_path, monkeypatch) -> Path:
    root = repository(tmp_path)
    monkeypatch.chdir(root)
    return root


GOOD = """\
leaderboard/audits/model/{id}.json: verified; 2 tasks drawn of 3, 2 rerun in sandbox level 2; the \
claim agrees
  ✓ envelope    one DSSE envelope with one signature, in canonical form
  ✓ signer      signed by a trusted key that was valid at that time
  ✓ statement   a consistent audit record
  ✓ commitment  its digest is the published one
  ✓ round       the beacon round that follows from the time of the commitment
  ✓ signature   the beacon signed this round
  ✓ seed        follows from commitment and beacon value
  ✓ tickets     follow from seed and tasks
  ✓ sample      the tasks with the smallest tickets, and those of earlier draws
  ✓ links       the record names no earlier statement: if one were deleted, nothing would show it
  ✓ earlier     includes every earlier draw in the repository
  ✓ comparison  every verdict follows from its numbers
  ✓ submission  the file is the audited one
  ✓ benchmark   the current benchmark definition
  ✓ policy      at least as many tasks, embeddings and regimes as required
  ✓ harness     the current version, unmodified
  ✓ sandbox     an accepted level, and every escape attempt blocked

1 record: 1 verified
"""


def test_a_record_that_holds(repository_folder, capsys):
    path = put(repository_folder, OUTCOME)
    assert main(["audit", "verify"]) == 0
    assert capsys.readouterr().out == GOOD.format(id=path.stem)
    assert main(["audit", "verify", str(path.relative_to(repository_folder))]) == 0
    assert capsys.readouterr().out == GOOD.format(id=path.stem)
    assert main(["audit", "verify", "leaderboard/audits"]) == 0
    assert capsys.readouterr().out == GOOD.format(id=path.stem)
    verification = geneb_ci.verify("leaderboard/audits")
    assert (verification.text(), verification.hold) == (GOOD.format(id=path.stem), True)
    assert "<td>verified</td>" in verification._repr_html_()
    assert main(["audit", "verify", "--format", "json"]) == 0
    assert capsys.readouterr().out == geneb_ci.verify().to_json()


def test_a_record_that_says_the_claim_differs_is_verified_all_the_same(repository_folder, capsys):
    put(repository_folder, outcome_of(plan_for(RAW), RAW, shift=0.05))
    assert main(["audit", "verify"]) == 0
    assert "; the claim differs\n" in capsys.readouterr().out


def test_a_mismatch_names_its_step_and_exits_11(repository_folder, capsys):
    def change(value):
        value["predicate"]["plan"]["beacon"]["round"] += 1

    (repository_folder / "x.json").write_bytes(mutated(OUTCOME, change))
    assert main(["audit", "verify", "x.json"]) == 11
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "x.json: rejected: round"
    assert out[1:7] == [
        "  ✓ envelope    one DSSE envelope with one signature, in canonical form",
        "  ✓ signer      signed by a trusted key that was valid at that time",
        "  ✓ statement   a consistent audit record",
        "  ✓ commitment  its digest is the published one",
        (
            "  ✗ round       the plan has round 124, expected 123 for a commitment at "
            "2023-08-23T15:14:33Z"
        ),
        "      fix: do not trust this file: download it again from where it was published",
    ]
    assert out[7] == "  ? signature   not checked, because the step above failed"
    assert out[-1] == "1 record: 0 verified"


def test_json_has_every_step(repository_folder, capsys):
    (repository_folder / "x.json").write_bytes(record_bytes(OUTCOME, key("a stranger")))
    assert main(["audit", "verify", "x.json", "--format", "json"]) == 11
    (record,) = json.loads(capsys.readouterr().out)["records"]
    assert [step["step"] for step in record["steps"]] == list(VERIFICATION_STEPS)
    assert [step["state"] for step in record["steps"][:3]] == ["holds", "differs", "unknown"]
    assert record["refused_at"] == ["signer"]
    assert (record["verified"], record["model_id"], record["audit_id"]) == (False, None, None)


def test_nothing_to_verify_is_exit_3(repository_folder, capsys):
    assert main(["audit", "verify"]) == 3
    assert "there is no record to verify" in capsys.readouterr().err
    assert main(["audit", "verify", "none.json"]) == 3
    (repository_folder / "leaderboard/audits").mkdir()
    assert main(["audit", "verify", "leaderboard/audits"]) == 3
    assert "the folder contains no <model_id>/<audit_id>.json" in capsys.readouterr().err


def test_a_submission_that_is_elsewhere_is_named(repository_folder, tmp_path_factory, capsys):
    path = put(repository_folder, OUTCOME)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (repository_folder / "submissions/model.json").rename(elsewhere / "model.json")
    assert main(["audit", "verify", str(path)]) == 3
    assert (
        "? submission  model.json, with which the record is compared, is missing"
        in capsys.readouterr().out
    )
    assert main(["audit", "verify", str(path), "--submissions", str(elsewhere)]) == 0


@pytest.mark.usefixtures("repository_folder")
def test_keys_are_those_of_the_place_and_not_of_the_records(tmp_path_factory, monkeypatch):
    stranger = repository(tmp_path_factory.mktemp("strange"), keys=[entry(key("a stranger"))])
    path = put(stranger, OUTCOME, key("a stranger"))
    assert main(["audit", "verify", str(path)]) == 11
    monkeypatch.chdir(stranger)
    assert main(["audit", "verify", str(path)]) == 0


def test_text_of_a_record_cannot_speak_to_the_terminal_or_the_runner(repository_folder, capsys):
    name = "::error::x\x1b[2J.json"
    (repository_folder / name).write_bytes(record_bytes(OUTCOME))
    main(["audit", "verify", name])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())


def test_the_same_outcome_gives_the_same_record():
    first, two = record_of(OUTCOME, key()), record_of(OUTCOME, key())
    assert first == two
    assert first.path == Path("model") / f"{first.audit_id}.json"


@pytest.mark.parametrize("name", ["audit", "envelope", "keys", "withdrawal"])
def test_the_schemas_are_schemas(name):
    schema = json.loads((ROOT / f"schemas/{name}.schema.json").read_bytes())
    Draft202012Validator.check_schema(schema)


def test_records_and_keys_fit_their_schemas(repository_folder):
    def validator(name: str) -> Draft202012Validator:
        return Draft202012Validator(json.loads((ROOT / f"schemas/{name}.schema.json").read_bytes()))

    validator("audit").validate(statement_of(OUTCOME))
    validator("envelope").validate(json.loads(record_bytes(OUTCOME)))
    validator("keys").validate(
        json.loads((repository_folder / "leaderboard/policy/keys.json").read_bytes())
    )
    validator("keys").validate(json.loads((ROOT / "leaderboard/policy/keys.json").read_bytes()))
    assert parse_envelope(record_bytes(OUTCOME)).payload


def test_each_step_says_what_it_means_that_it_holds():
    # The steps of rows stand where an audit of rows shows them: after the comparison.
    of_rows = [*EMBEDDING_STEPS, CELLS_STEP]
    assert [step for step in _PASSED_TEXTS if step not in of_rows] == list(VERIFICATION_STEPS)
    assert [step for step in _PASSED_TEXTS if step in of_rows] == of_rows

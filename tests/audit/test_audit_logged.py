"""The commands of an audit where a log is kept: no typed time; commitment and start are signed."""

import json
from pathlib import Path

import pytest

from geneb_ci.audit.record.events import RunFacts
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.signing import sign_abort
from geneb_ci.audit.record.statement import ABORTED, COMMITTED, STARTED
from geneb_ci.cli.main import main
from geneb_ci.common.errors import ExtractorFailed, LimitExceeded, ResultRefused
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.log_place import BEFORE, extend, kept, log_of, read, set_keys
from tests.audit.recorded import (
    FIRST,
    MODEL,
    committed_at,
    outcome_of,
    plan_for,
    submission_bytes,
)

FILE = f"submissions/{MODEL}.json"


@pytest.fixture
def place(tmp_path, monkeypatch, capsys) -> Path:
    root = kept(tmp_path)
    module = root / "submissions/extractors/model.py"
    module.parent.mkdir()
    module.write_bytes(b"an example")
    monkeypatch.chdir(root)
    (root / "round.json").write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}))
    assert main(["audit", "keygen", "--output", "key.pem", "--owner", "an auditor"]) == 0
    set_keys(root, [json.loads(capsys.readouterr().out) | {"valid_from": "2023-01-01T00:00:00Z"}])
    return root


def files(root: Path, suffix: str) -> list[Path]:
    return sorted((root / "leaderboard/audits" / MODEL).glob(f"*{suffix}"))


def test_from_a_file_to_a_plan_without_a_typed_time(place, capsys):
    plan = ["audit", "plan", "c.json", "--beacon-file", "round.json", "--output", "plan.json"]
    assert main(["audit", "commit", FILE, "--output", "c.json"]) == 0
    assert "sign it, for the log: run this again with --key KEY" in capsys.readouterr().out
    assert main(["audit", "commit", FILE, "--output", "c.json", "--key", "key.pem"]) == 0
    (committed,) = files(place, COMMITTED)
    assert f"next: commit leaderboard/audits/{MODEL}/{committed.name}" in capsys.readouterr().out
    assert main(["audit", "commit", FILE, "--output", "c.json", "--key", "key.pem"]) == 0
    second = capsys.readouterr().out
    assert "signed before, and the log that is here does not have it yet" in second
    assert "next: commit" not in second
    assert main([*plan, "--committed-at", committed_at(FIRST)]) == 2
    assert "--committed-at is typed, and the log" in capsys.readouterr().err
    assert main(plan) == 11
    assert "is not in the log, which gives its time" in capsys.readouterr().err
    extend(place, FIRST - BEFORE)
    plan[2] = str(committed)  # the signed commitment is as good as the file
    assert main([*plan, "--key", "key.pem"]) == 0
    assert task_plan(place / "plan.json").committed_at == committed_at(FIRST)
    assert len(files(place, STARTED)) == 1
    extend(place, FIRST)
    assert [one.kind for one in log_of(place).entries] == ["commitment", "start"]


def test_a_plan_that_the_log_would_not_take_is_refused_before_the_rerun(place, capsys):
    plan = plan_for(submission_bytes())
    (place / "plan.json").write_text(plan.model_dump_json(), encoding="utf-8")
    assert main(["audit", "run", "plan.json", "--key", "key.pem"]) == 11
    assert "its commitment is not in the log" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ExtractorFailed("CUDA out of memory"), "failed"),
        (LimitExceeded("seconds", "it ran too long"), "limit"),
        (ResultRefused("not a matrix"), "result"),
    ],
)
def test_an_abort_says_what_ended_the_run(place, error, kind):
    plan = plan_for(submission_bytes())
    outcome = outcome_of(plan, submission_bytes())
    audits, key = place / "leaderboard/audits", private_key(place / "key.pem")
    sign_abort(error, plan, key, audits, print)
    assert files(place, ABORTED) == []  # outside of a run there is nothing to record
    error.at = RunFacts(
        "scoring", "promoter_tata", outcome.sandbox, outcome.started_at, outcome.finished_at
    )
    full = LimitExceeded("host_floor_mib", "the machine has no memory left")
    full.at = error.at
    sign_abort(full, plan, key, audits, print)
    assert files(place, ABORTED) == []  # the machine ended it
    sign_abort(error, plan, key, audits, print)
    (file,) = files(place, ABORTED)
    assert file.name in error.fix
    (event,) = read(place).events.values()
    found = event.aborted  # type: ignore[union-attr]
    assert found is not None
    assert (found.kind, found.stage, found.task, found.message) == (
        kind,
        "scoring",
        "promoter_tata",
        error.message,
    )


def test_a_key_of_a_log_is_printed_as_the_policy_has_it(place, capsys):
    assert main(["audit", "keygen", "--output", "log.pem", "--log", "example.org/x"]) == 0
    log = json.loads(capsys.readouterr().out)["log"]
    set_keys(place, [], log)
    assert main(["audit", "log", "show"]) == 0
    assert capsys.readouterr().out == "example.org/x: 0 entries\n"
    assert main(["audit", "keygen", "--output", "y.pem", "--log", "with a space"]) == 2

"""The commands of an audit and what they sign: commitment, start, abort and record, each linked."""

import hashlib
import http.server
import json
import time
from collections.abc import Iterator
from pathlib import Path

import py_arkworks_bls12381 as curve
import pytest

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.record import statement as record
from geneb_ci.audit.record.events import AbortedRun, AuditEvent
from geneb_ci.audit.record.keys import private_key
from geneb_ci.audit.record.statement import ABORTED_SUFFIX, COMMITTED_SUFFIX, STARTED_SUFFIX
from geneb_ci.audit.sampling import beacon
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import ExtractorFailed, LimitExceeded, ResultRefused
from tests.audit import unboxed
from tests.audit.examples import ROUNDS, task_plan
from tests.audit.file_place import MODEL as AUDITED
from tests.audit.file_place import made
from tests.audit.linked_place import (
    committed,
    files_of,
    heads_of,
    layout_of,
    name_of,
    read,
    signing_of,
    step,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    commitment,
    committed_at,
    outcome_of,
    plan_for,
    repository,
    submission_bytes,
    write_keys,
)
from tests.audit.relay import relay
from tests.git import git

FILE = f"submissions/{MODEL}.json"
COMMIT = "0123456789abcdef" * 2 + "01234567"
SECRET = curve.Scalar(20_261_122)
"""Private key of the chain of this test."""
PUBLIC = (curve.G2Point() * SECRET).to_compressed_bytes().hex()
HASTE = 1
"""Seconds between commitment and round, here; the real ones are waited for nowhere."""


def round_of(number: int) -> str:
    message = hashlib.sha256(number.to_bytes(beacon.ROUND_BYTES, "big")).digest()
    signed = curve.G1Point.hash_to_curve(message, beacon.DOMAIN_SEPARATION_TAG) * SECRET
    return json.dumps({"round": number, "signature": signed.to_compressed_bytes().hex()})


def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
    raw = round_of(int(handler.path.rpartition("/")[2])).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a relay whose rounds are those of the real chain, signed by a key of our own."""
    check = beacon.verify_round.__wrapped__
    monkeypatch.setattr(check, "__defaults__", (PUBLIC,))
    for module in (beacon, record):
        monkeypatch.setattr(module, "DELAY_SECONDS", HASTE)
    beacon.verify_round.cache_clear()
    with relay(answer) as (address, _):
        yield address
    beacon.verify_round.cache_clear()


def keyed(root: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Make a key, and have the policy trust it."""
    (root / "key.pem").unlink(missing_ok=True)
    assert main(["audit", "keygen", "--output", "key.pem", "--owner", "an auditor"]) == 0
    entry = json.loads(capsys.readouterr().out)
    write_keys(root, [entry | {"valid_from": "2023-01-01T00:00:00Z"}])
    layout_of(root)
    return root


@pytest.fixture
def whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    installed = made(tmp_path / "audit", tmp_path)
    monkeypatch.chdir(installed.root)
    unboxed.install(monkeypatch.setattr)
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, installed.environment[name])
    return keyed(installed.root, capsys)


@pytest.fixture
def repository_folder(tmp_path, monkeypatch, capsys) -> Path:
    root = repository(tmp_path)
    module = root / "submissions/extractors/model.py"
    module.parent.mkdir()
    module.write_bytes(b"an example")
    monkeypatch.chdir(root)
    (root / "round.json").write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}))
    return keyed(root, capsys)


def audit(*options: str) -> int:
    find_layout.cache_clear()
    return main(["audit", f"submissions/{AUDITED}.json", "--key", "key.pem", *options])


def test_two_calls_lead_from_a_file_to_a_record_that_is_linked(whole, chain, capsys):
    git(whole, "init", "--quiet")
    git(whole, "remote", "add", "origin", "https://github.com/org/board")
    assert audit() == 0
    shown = capsys.readouterr().out
    assert "merge leaderboard/audits/" in shown
    assert "publish this digest" in shown
    assert " --committed-at 2026-11-20T08:30:00Z --shown-on COMMIT\n" in shown
    assert shown.splitlines()[-1].startswith("next: geneb-ci audit publish ")
    folder = whole / "leaderboard/audits" / AUDITED
    (commitment_file,) = folder.iterdir()
    published = moment_of(int(time.time()))
    words = ["--committed-at", published, "--shown-on", COMMIT, "--relay", chain]
    assert audit(*words) == 0, capsys.readouterr().err
    commit = f"git add leaderboard/audits/{AUDITED} && git commit -m 'Audit {AUDITED}' "
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"next: {commit}")
    (verification,) = read(whole).verifications()
    assert verification.record is not None
    assert verification.record.outcome.started_at >= published
    assert step(verification)[1].startswith("GitHub dates the commitment: ")
    names = [name_of(path) for path in sorted(folder.iterdir())]
    assert len(names) == 3
    assert name_of(commitment_file) in names
    assert heads_of(whole) == [f"{AUDITED}/{verification.record.audit_id}.json"]
    # Nothing is signed twice.
    assert audit(*words) == 0, capsys.readouterr().err
    assert [name_of(path) for path in sorted(folder.iterdir())] == names
    assert main(["audit", "verify"]) == 0, capsys.readouterr().err


def test_five_commands_sign_commitment_start_and_record(repository_folder, capsys):
    plan = ["audit", "plan", "c.json", "--beacon-file", "round.json", "--output", "plan.json"]
    assert main(["audit", "commit", FILE, "--output", "c.json", "--key", "key.pem"]) == 0
    (committed_file,) = files_of(repository_folder, COMMITTED_SUFFIX)
    assert f"commit leaderboard/audits/{name_of(committed_file)}" in capsys.readouterr().out
    assert main(plan) == 2
    assert "--committed-at is missing" in capsys.readouterr().err
    plan[2] = str(committed_file)  # the signed commitment is as good as the file
    words = ["--committed-at", committed_at(FIRST), "--shown-on", COMMIT, "--key", "key.pem"]
    assert main([*plan, *words]) == 0
    assert task_plan(repository_folder / "plan.json").committed_at == committed_at(FIRST)
    (start,) = files_of(repository_folder, STARTED_SUFFIX)
    event = read(repository_folder).events[start]
    assert isinstance(event, AuditEvent)
    assert event.shown_on == COMMIT
    assert list(event.heads or {}) == [name_of(committed_file)]


def test_a_commit_that_is_none_or_has_no_time_is_refused(repository_folder, capsys):
    assert repository_folder.is_dir()
    words = ["audit", "plan", "c.json", "--committed-at", committed_at(FIRST), "--shown-on"]
    assert main(["audit", "commit", FILE, "--output", "c.json"]) == 0
    assert main([*words, "main"]) == 2
    assert "--shown-on 'main' is not a commit" in capsys.readouterr().err
    assert main(["audit", FILE, "--unsigned", "--shown-on", COMMIT]) == 2
    assert "--shown-on is given without the time of the commit's status" in capsys.readouterr().err


def test_a_draw_that_passes_over_a_commitment_is_refused_before_it_is_made(
    repository_folder, capsys
):
    skipped = committed(
        repository_folder,
        commitment(submission_bytes(" before")),
        private_key(repository_folder / "key.pem"),
    )
    layout_of(repository_folder)
    assert main(["audit", "commit", FILE, "--output", "c.json"]) == 0
    words = ["audit", "plan", "c.json", "--beacon-file", "round.json"]
    assert main([*words, "--committed-at", committed_at(FIRST)]) == 11
    shown = capsys.readouterr().err
    assert f"{name_of(skipped)} is a commitment of the same model id" in shown
    assert f"geneb-ci audit plan leaderboard/audits/{name_of(skipped)}" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ExtractorFailed("CUDA out of memory"), "failed"),
        (LimitExceeded("seconds", "it ran too long"), "limit"),
        (ResultRefused("not a matrix"), "result"),
    ],
)
def test_an_abort_says_what_ended_the_run(repository_folder, error, kind):
    plan = plan_for(submission_bytes())
    outcome = outcome_of(plan, submission_bytes())
    signing = signing_of(repository_folder, private_key(repository_folder / "key.pem"))
    signing.sign_abort(error, plan)
    assert (
        files_of(repository_folder, ABORTED_SUFFIX) == []
    )  # outside of a run there is nothing to record
    error.aborted_run = AbortedRun(
        "scoring", "promoter_tata", outcome.sandbox, outcome.started_at, outcome.finished_at
    )
    full = LimitExceeded("host_floor_mib", "the machine has no memory left")
    full.aborted_run = error.aborted_run
    signing.sign_abort(full, plan)
    assert files_of(repository_folder, ABORTED_SUFFIX) == []  # the machine ended it
    signing.sign_abort(error, plan)
    (file,) = files_of(repository_folder, ABORTED_SUFFIX)
    assert file.name in error.fix
    (event,) = read(repository_folder).events.values()
    assert isinstance(event, AuditEvent)
    aborted = event.abort
    assert aborted is not None
    assert (aborted.kind, aborted.stage, aborted.task, aborted.message) == (
        kind,
        "scoring",
        "promoter_tata",
        error.message,
    )

"""Faults around the rerun of an audit: records lost, or accepted by nobody."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from geneb_ci.audit.events import parse_event
from geneb_ci.audit.keys import trusted_keys
from geneb_ci.audit.plan import read_plan
from geneb_ci.audit.record import event_files, record_files
from geneb_ci.common.config import find_layout
from tests.audit.installed import Installed
from tests.sandbox.conftest import sandbox_of
from tools.demo_audit import COMMITTED_AT, HONEST, HONEST_K


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    for _ in sandbox_of(2, tmp_path_factory.mktemp("trial") / "scratch"):
        pass  # fails or skips where there is none
    made = Installed(tmp_path_factory.mktemp("audit"), drawn=2)
    made.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    policy = made.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace('["full", "10shot", "1shot"]', '["10shot"]'), encoding="utf-8")
    made.harness(HONEST, HONEST_K)
    made.run("geneb_ci", "audit", "commit", f"submissions/{HONEST}.json", "--output", "c.json")
    beacon = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
    made.run("geneb_ci", "audit", "plan", "c.json", *beacon, "--output", "plan.json")
    return made


def started(place: Installed, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "geneb_ci", "audit", "run", "plan.json", *arguments],
        cwd=place.root, env=place.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_record_outlives_the_reader_of_the_outcome_and_holds_under_a_narrow_policy(
    place: Installed,
) -> None:
    """Regimes that the policy leaves out are not compared: else no verifier takes the record."""
    kept = place.environment["PYTHONPATH"]
    place.unbox_processes()
    with started(place, "--key", "key.pem") as process:
        place.environment["PYTHONPATH"] = kept
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.read()
    (record,) = record_files(place.root / "leaderboard" / "audits")
    done = place.run("geneb_ci", "audit", "verify", str(record), check=False)
    assert done.returncode == 0, done.stdout


def test_a_record_that_nobody_would_accept_is_refused_before_the_rerun(place: Installed) -> None:
    place.run("geneb_ci", "audit", "keygen", "--output", "other.pem")
    run = ("geneb_ci", "audit", "run", "plan.json")
    done = place.run(*run, "--key", "other.pem", check=False)
    assert (done.returncode, "is not among the trusted ones" in done.stderr) == (2, True)
    assert "recomputes" not in done.stderr
    (place.root / "file").write_text("", encoding="utf-8")
    done = place.run(*run, "--key", "key.pem", "--output", "file", check=False)
    assert (done.returncode, "no record can be written here" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("option", "mib", "stage"),
    [("--limit-memory", 16, "embedding"), ("--limit-scoring-memory", 64, "scoring")],
)
def test_a_run_that_the_extractor_ends_is_signed_as_aborted(
    place: Installed, option: str, mib: int, stage: str
) -> None:
    run = ("geneb_ci", "audit", "run", "plan.json", "--key", "key.pem", option, str(mib))
    done = place.run(*run, check=False)
    assert done.returncode == 3
    assert "this run is recorded as aborted: commit " in done.stderr, done.stderr
    (file,) = event_files(place.root / "leaderboard/audits")
    keys = trusted_keys(find_layout(place.root))
    found = parse_event(file.read_bytes(), f"{HONEST}/{file.name}", keys).aborted
    assert found is not None
    plan = read_plan(place.root / "plan.json")
    file.unlink()
    assert (found.plan, found.stage, found.task) == (plan, stage, plan.chosen[0].task)
    assert found.kind == "limit"


def test_an_unknown_noise_is_refused_at_once(place: Installed) -> None:
    run = ("geneb_ci", "audit", "run", "plan.json", "--unsigned", "--noise", "int8")
    done = place.run(*run, check=False)
    assert (done.returncode, "bfloat16" in done.stderr) == (2, True)


def test_the_end_of_a_service_leaves_nothing_behind(place: Installed) -> None:
    process = place.start("geneb_ci", "audit", "run", "plan.json", "--unsigned")
    for line in process.lines():
        if ": embedding " in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 130
    assert not (Path(place.environment["TMPDIR"]) / f"geneb-ci-audit-{os.getuid()}").exists()

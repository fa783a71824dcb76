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
    with started(place, "--key", "key.pem") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.read()
    (record,) = record_files(place.root / "leaderboard" / "audits")
    done = place.run("geneb_ci", "audit", "verify", str(record), check=False)
    assert done.returncode == 0, done.stdout


def test_a_record_that_nobody_would_accept_is_refused_before_the_rerun(place: Installed) -> None:
    place.run("geneb_ci", "audit", "keygen", "--output", "other.pem")
    process = started(place, "--key", "other.pem")
    _, said = process.communicate()
    assert (process.returncode, "is not among the trusted ones" in said) == (2, True)
    assert "recomputes" not in said
    (place.root / "file").write_text("", encoding="utf-8")
    process = started(place, "--key", "key.pem", "--output", "file")
    _, said = process.communicate()
    assert (process.returncode, "no record can be written here" in said) == (2, True)


@pytest.mark.parametrize(
    ("option", "mib", "stage"),
    [("--limit-memory", 16, "embedding"), ("--limit-scoring-memory", 64, "scoring")],
)
def test_a_run_that_the_extractor_ends_is_signed_as_aborted(
    place: Installed, option: str, mib: int, stage: str
) -> None:
    process = started(place, "--key", "key.pem", option, str(mib))
    _, said = process.communicate()
    assert process.returncode == 3
    assert "this run is recorded as aborted: commit " in said, said
    (file,) = event_files(place.root / "leaderboard/audits")
    keys = trusted_keys(find_layout(place.root))
    found = parse_event(file.read_bytes(), f"{HONEST}/{file.name}", keys).aborted
    assert found is not None
    plan = read_plan(place.root / "plan.json")
    file.unlink()
    assert (found.plan, found.stage, found.task) == (plan, stage, plan.chosen[0].task)
    assert found.kind == "limit"


def test_an_unknown_noise_is_refused_at_once(place: Installed) -> None:
    process = started(place, "--unsigned", "--noise", "int8")
    _, said = process.communicate()
    assert (process.returncode, "bfloat16" in said) == (2, True)


def test_the_end_of_a_service_leaves_nothing_behind(place: Installed) -> None:
    process = started(place, "--unsigned")
    assert process.stderr is not None
    for line in process.stderr:
        if ": embedding " in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 130
    assert not (Path(place.environment["TMPDIR"]) / f"geneb-ci-audit-{os.getuid()}").exists()

"""Faults around the rerun of an audit: records lost, or accepted by nobody."""

import os
import signal
from pathlib import Path

import pytest

from geneb_ci.audit.record.events import parse_event
from geneb_ci.audit.record.keys import trusted_keys
from geneb_ci.audit.record.statement import ABORTED_SUFFIX, event_files, record_files
from geneb_ci.common.config import find_layout
from tests import forked
from tests.audit import unboxed
from tests.audit.examples import task_plan
from tests.audit.file_place import GO, MODEL, made
from tests.audit.installed import Installed
from tests.gate import gated
from tests.sandbox.conftest import sandbox_of


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    for _ in sandbox_of(2, tmp_path_factory.mktemp("trial") / "scratch"):
        pass  # fails or skips where there is none
    folder, scratch = (tmp_path_factory.mktemp(name) for name in ("audit", "scratch"))
    installation = made(folder, scratch, boxed=True)
    installation.run(
        "geneb_ci", "audit", "commit", f"submissions/{MODEL}.json", "--output", "c.json"
    )
    installation.run("geneb_ci", "audit", "plan", "c.json", *GO, "--output", "plan.json")
    return installation


NOBODY_READS = """
import os, runpy
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
runpy.run_module("geneb_ci", run_name="__main__", alter_sys=True)
"""


def test_a_record_outlives_the_reader_of_the_outcome_and_holds_under_a_narrow_policy(
    installed: Installed,
) -> None:
    """Regimes that the policy leaves out are not compared: else no verifier takes the record."""
    forked.start(
        *("geneb_ci", "audit", "run", "plan.json", "--key", "key.pem"),
        cwd=installed.root, env=installed.environment, before=Path(unboxed.__file__),
        code=NOBODY_READS,
    ).communicate()  # fmt: skip
    (record,) = record_files(installed.root / "leaderboard" / "audits")
    done = installed.run("geneb_ci", "audit", "verify", str(record), check=False)
    assert done.returncode == 0, done.stdout


def test_a_record_that_nobody_would_accept_is_refused_before_the_rerun(
    installed: Installed,
) -> None:
    installed.run("geneb_ci", "audit", "keygen", "--output", "other.pem")
    run = ("geneb_ci", "audit", "run", "plan.json")
    done = installed.run(*run, "--key", "other.pem", check=False)
    assert (done.returncode, "is not trusted" in done.stderr) == (2, True)
    assert "recomputes" not in done.stderr
    (installed.root / "file").write_text("", encoding="utf-8")
    done = installed.run(*run, "--key", "key.pem", "--output", "file", check=False)
    assert (done.returncode, "no record can be written to this folder" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("option", "mib", "stage"),
    gated(
        [("--limit-memory", 16, "embedding"), ("--limit-scoring-memory", 64, "scoring")],
        ("--limit-memory", 16, "embedding"),
    ),
)
def test_a_run_that_the_extractor_ends_is_signed_as_aborted(
    installed: Installed, option: str, mib: int, stage: str
) -> None:
    run = ("geneb_ci", "audit", "run", "plan.json", "--key", "key.pem", option, str(mib))
    done = installed.run(*run, check=False)
    assert done.returncode == 3
    assert "this run is recorded as aborted: commit " in done.stderr, done.stderr
    files = event_files(installed.root / "leaderboard/audits")
    (file,) = (path for path in files if path.name.endswith(ABORTED_SUFFIX))
    keys = trusted_keys(find_layout(installed.root))
    aborted = parse_event(file.read_bytes(), f"{MODEL}/{file.name}", keys).abort
    assert aborted is not None
    plan = task_plan(installed.root / "plan.json")
    file.unlink()
    assert (aborted.plan, aborted.stage, aborted.task) == (plan, stage, plan.chosen[0].task)
    assert aborted.kind == "limit"


def test_an_unknown_noise_is_refused_at_once(installed: Installed) -> None:
    run = ("geneb_ci", "audit", "run", "plan.json", "--unsigned", "--noise", "int8")
    done = installed.run(*run, check=False)
    assert (done.returncode, "bfloat16" in done.stderr) == (2, True)


@pytest.mark.nightly  # in the gate, SIGKILL of a queue
def test_the_end_of_a_service_leaves_nothing_behind(installed: Installed) -> None:
    process = installed.start("geneb_ci", "audit", "run", "plan.json", "--unsigned")
    for line in process.lines():
        if ": embedding " in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 130
    assert not (Path(installed.environment["TMPDIR"]) / f"geneb-ci-audit-{os.getuid()}").exists()

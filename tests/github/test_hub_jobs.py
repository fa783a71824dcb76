"""A Job of the Hub costs money until it ends: it is canceled on every way out but its own end."""

import re
from collections.abc import Iterator

import pytest

from geneb_ci.cli import doctor
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.github import hub_jobs
from geneb_ci.github.hub_jobs import (
    EndedJob,
    JobRequest,
    MachineOffer,
    levels_in,
    require_time_limit,
    run_job,
)
from geneb_ci.sandbox import levels
from tests.house.workflow_file import FOLDER
from tests.publish.hub import WRITER, Hub
from tests.publish.hub_jobs import Jobs

SHORT, LONG = "echo done", "exec sleep 60"
POLL = 0.02


@pytest.fixture
def jobs(monkeypatch) -> Iterator[Jobs]:
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    yield hub.shelf.jobs
    hub.close()


def ended(script: str, seconds: int = 60) -> EndedJob:
    """Run a Job, and return how it ended; what is said is printed."""
    machine = MachineOffer("cpu-basic", "", seconds, 0.0)
    request = JobRequest("geneb-test", script, {})
    return run_job(hub_jobs.hub_client(WRITER), request, machine, "x", "geneb", print, bool, POLL)


def test_a_stage_that_nobody_knows_is_waited_out(jobs):
    jobs.stages = ["", "SCHEDULING", "PREEMPTED", "RUNNING", "RUNNING"]
    job = ended(SHORT)
    assert (job.stage, job.lines, jobs.canceled) == ("COMPLETED", ["done"], [])


def test_a_job_that_does_not_end_in_time_is_canceled(jobs, monkeypatch):
    monkeypatch.setattr(hub_jobs, "QUEUE_S", 0.1)
    job = ended(LONG, seconds=0)
    assert job.stage == "RUNNING, canceled at its time limit,"
    assert jobs.canceled == [job.id]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError], ids=["signal", "bug"])
def test_whatever_ends_the_wait_cancels_the_job(jobs, monkeypatch, error):
    def interrupt(_seconds: float) -> None:
        raise error

    monkeypatch.setattr("geneb_ci.github.hub_jobs.time.sleep", interrupt)
    with pytest.raises(error):
        ended(LONG)
    assert len(jobs.canceled) == 1


def test_a_job_that_cannot_be_canceled_is_named_with_the_command(jobs, monkeypatch, capsys):
    monkeypatch.setattr(hub_jobs, "QUEUE_S", 0.1)
    monkeypatch.setattr("geneb_ci.github.hub_jobs.time.sleep", lambda _seconds: jobs.specs.clear())
    with pytest.raises(NothingChecked, match="404"):  # of its log
        ended(LONG, seconds=0)
    assert re.search(
        r"until its time limit; cancel the Job: hf jobs cancel geneb/0{24}\n",
        capsys.readouterr().out,
    )


def test_a_job_ends_before_the_job_of_github_that_waits_for_it(monkeypatch):
    ready = (FOLDER / "audit.yml").read_text("utf-8").partition("\n  ready:")[2]
    minutes = re.search(r"timeout-minutes: (\d+)", ready)
    assert minutes is not None
    assert int(minutes[1]) * 60 >= hub_jobs.GITHUB_JOB_S + 10 * 60
    monkeypatch.delenv("GITHUB_RUN_ID", raising=False)
    require_time_limit(8 * 3600)  # elsewhere nothing cuts it off
    monkeypatch.setenv("GITHUB_RUN_ID", "1")
    require_time_limit(4 * 3600)
    with pytest.raises(UsageProblem, match=r"takes 5\.00 h may run longer than the job") as refused:
        require_time_limit(5 * 3600)
    assert "AUDIT_TIMEOUT to at most 280m" in refused.value.fix


def test_levels_are_read_as_doctor_prints_them(monkeypatch, capsys):
    monkeypatch.setattr(
        levels, "level_failure", lambda level, _folder: None if level < 3 else "no runsc"
    )
    doctor.show_machine(network=False)
    assert levels_in(capsys.readouterr().out.splitlines()) == [1, 2]

"""Run an audit as a Job of the Hub: show machine and price, start the Job, and read its log.

The Job gets no secret: it runs a public commit, and writes the outcome to its log. If this program
ends before the Job, the Job is canceled; it also has a time limit.
"""

import contextlib
import math
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from geneb_ci.common.actions import run_address
from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.github.audits import RETRY_FIX, AuditOrder
from geneb_ci.github.one_line import encode, joined_parts, numbered_parts
from geneb_ci.render.plain import visible
from reference_harness.formats.text import Say

JOB_IMAGE = "python:3.13"
"""Container image of a Job: Debian with git, into which bubblewrap is installed."""
PASSED_VARIABLES = ("AUDIT_PYTHON", "AUDIT_OPTIONS")
"""Environment variables that a Job gets from this program's environment, if they are set."""
POLL_S = 20.0
"""Seconds between two requests for the stage of a Job, which takes minutes at least."""
QUEUE_S = 3600.0
"""Seconds that a Job may take to start: it waits for a GPU, and loads an image of 10 GB."""
GITHUB_JOB_S = 340 * 60
"""Seconds that a job of GitHub Actions can wait for a Job of the Hub.

This is `timeout-minutes` of the job `ready`, less ten minutes for its other steps.
"""
LOG_READS_MAX = 3
"""Number of times that the log of an ended Job is read, because the log may lag behind."""
LOG_LINE_MAX = 4000
"""Maximum characters of a line of the log, because the Hub cuts longer lines."""
UNITS_S = {"second": 1, "minute": 60, "hour": 3600}
"""Seconds in each unit of time by which the Hub prices machines."""
JOB_SCRIPT = """\
set -eu
command -v bwrap >/dev/null || { apt-get -qq update && apt-get -qq install -y bubblewrap; } >&2
mkdir board && cd board
git init -q .
git fetch -q --depth=1 --no-tags "$AUDIT_SERVER/$AUDIT_REPOSITORY" "$AUDIT_MAIN"
git checkout -q --detach FETCH_HEAD
exec tools/audit-job requirements/dev.txt
"""
"""The script of the Job, and of a self-hosted runner: code of main, fetched without a token."""
PROBE_SCRIPT = f"{JOB_SCRIPT.rstrip()} doctor\n"
"""The script of a Job that shows which levels of the sandbox work in it."""
PROBE_SECONDS = 1800
"""Time limit of the Job that tests the sandbox."""
_LEVEL_LINE = re.compile(r"\s*(\d)  [^:]+: yes")
"""Line in which `geneb-ci doctor` prints a sandbox level that works."""
_LOG_TAIL_LINES = 20  # lines of a failed Job's log that are shown


class MachineOffer(NamedTuple):
    """A machine of the Hub with the time limit of a Job and its maximum cost."""

    flavor: str
    """Name of the machine on the Hub, such as l4x1."""
    description: str
    """Processor, memory and GPU of the machine."""
    seconds: int
    """Time limit of the Job."""
    dollars: float
    """Maximum cost of the Job."""

    @property
    def text(self) -> str:
        """The machine, the time limit and the maximum cost in one line."""
        hours = self.seconds / 3600
        return (
            f"{self.flavor} ({self.description}), at most {hours:.2f} h, at most "
            f"${self.dollars:.2f}: only the time that it runs is charged"
        )


class JobFailed(GenebError):  # noqa: N818 (named after what is wrong)
    """A Job of the Hub ended without an outcome."""

    exit_code = Exit.NOT_CHECKED


def hub_client(token: str) -> Any:  # the client is imported late
    """Return the client of the Hub. Raises UsageProblem without a token."""
    if not token:
        raise UsageProblem(
            "HF_TOKEN is not set: a token of the Hub that may start Jobs is required",
            "export HF_TOKEN=hf_..., with the permission job.write of the namespace; in the "
            "workflow it is the secret HF_JOBS_TOKEN of the environment geneb-audit",
        )
    from huggingface_hub import HfApi  # a second to import

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)


def machine_offer(client: Any, flavor: str, seconds: int) -> MachineOffer:
    """Return a machine with its maximum cost for this time limit; one request.

    Raises UsageProblem, with the names of all machines, if the Hub does not have this one.
    """
    machines = call_hub(client.list_jobs_hardware)
    for machine in machines:
        if machine.name == flavor:
            if machine.unit_label not in UNITS_S:
                raise NothingChecked(
                    f"the Hub prices {flavor} by "
                    f"{visible(str(machine.unit_label))}, an unknown unit",
                    "update geneb-ci",
                )
            units = math.ceil(seconds / UNITS_S[machine.unit_label])
            gpu = machine.accelerator
            chip = f", {gpu.quantity} x {gpu.model} {gpu.vram}" if gpu is not None else ""
            description = visible(f"{machine.cpu}, {machine.ram}{chip}")
            return MachineOffer(flavor, description, seconds, units * machine.unit_cost_usd)
    names = ", ".join(
        f"{machine.name} (${machine.unit_cost_usd:.4f} a {machine.unit_label})"
        for machine in machines
    )
    raise UsageProblem(f"the Hub has no machine {flavor!r}", f"pass --flavor with one of: {names}")


def require_time_limit(seconds: int) -> None:
    """Raise UsageProblem if a Job of `seconds` may outlive the job of GitHub that waits for it."""
    if run_address() and seconds + QUEUE_S > GITHUB_JOB_S:
        seconds_max = GITHUB_JOB_S - QUEUE_S
        raise UsageProblem(
            f"a Job of the Hub that takes {seconds / 3600:.2f} h may run longer than the job of "
            "GitHub that waits for it, and the Job is canceled when that job ends",
            f"set AUDIT_TIMEOUT to at most {seconds_max / 60:.0f}m, or run `audit send` "
            "outside of GitHub",
        )


class JobRequest(NamedTuple):
    """A Job to start: its name, its script, and the environment variables of the script."""

    name: str
    script: str
    """Script that the Job runs in bash."""
    environment: dict[str, str]
    """Environment variables of the script."""


def audit_request(order: AuditOrder) -> JobRequest:
    """Return the request for a Job that reruns an order."""
    passed_variables = {name: os.environ[name] for name in PASSED_VARIABLES if os.environ.get(name)}
    environment = {
        **passed_variables,
        **_checkout_variables(order.repository, order.main_sha),
        "AUDIT_ORDER": encode(order, RETRY_FIX),
    }
    return JobRequest(f"geneb-audit-{order.number}", JOB_SCRIPT, environment)


def _checkout_variables(repository: str, main_sha: str) -> dict[str, str]:
    """Return the environment variables that tell a Job which commit to check out."""
    return {
        "AUDIT_SERVER": os.environ.get("GITHUB_SERVER_URL", "https://github.com"),
        "AUDIT_REPOSITORY": repository,
        "AUDIT_MAIN": main_sha,
    }


class EndedJob(NamedTuple):
    """A Job of the Hub that ended."""

    id: str
    stage: str
    """How the Job ended, in a word of the Hub such as COMPLETED or ERROR."""
    lines: list[str]
    """Lines of the Job's log."""

    def failure(self, expected: str, say: Say) -> JobFailed:
        """Return the error of a Job without the expected outcome, and print the end of its log."""
        for log_line in self.lines[-_LOG_TAIL_LINES:]:
            say(f"  | {visible(log_line, LOG_LINE_MAX)}")
        return JobFailed(
            f"the Job {self.id} ended as {visible(self.stage)} without {expected}",
            "read the log of the Job above, and start the Job again; if the Job was too slow, pass "
            "another --flavor or a longer --timeout",
        )


def run_job(
    client: Any,
    request: JobRequest,
    machine: MachineOffer,
    image: str,
    namespace: str | None,
    say: Say,
    is_complete: Callable[[list[str]], object],
    poll_seconds: float,
) -> EndedJob:
    """Run a Job without secret, volume or open port, and return it with its log.

    The log of a completed Job is read at most three times, until `is_complete` is true of its
    lines. If this function ends before the Job, the Job is canceled. `poll_seconds` is the time
    between two requests.
    """
    job = call_hub(
        client.run_job,
        image=image,
        command=["bash", "-c", request.script],
        env=request.environment,
        flavor=machine.flavor,
        timeout=machine.seconds,
        name=request.name,
        namespace=namespace,
    )
    job_address = {"job_id": job.id, "namespace": namespace or job.owner.name}
    stage = _last_stage(client, job_address, job.url, machine.seconds + QUEUE_S, poll_seconds, say)
    lines: list[str] = []
    for attempt in range(LOG_READS_MAX):
        lines = call_hub(lambda: list(client.fetch_job_logs(**job_address)))
        if is_complete(lines) or stage != "COMPLETED":
            break
        if attempt + 1 < LOG_READS_MAX:
            time.sleep(poll_seconds)
    return EndedJob(job.id, stage, lines)


def _last_stage(
    client: Any,
    job_address: dict[str, str],
    url: str,
    seconds: float,
    poll_seconds: float,
    say: Say,
) -> str:
    """Return the stage in which a Job ended; cancel the Job if this function is interrupted."""
    from huggingface_hub.hf_api import TERMINAL_JOB_STAGES  # a second to import

    deadline = time.monotonic() + seconds
    stage = ""
    try:
        say(f"started {url}")
        while time.monotonic() < deadline:
            with contextlib.suppress(NothingChecked):  # one answer of hours may be lost
                reply = call_hub(client.inspect_job, **job_address).status.stage
                stage = str(getattr(reply, "value", reply))
            if stage in TERMINAL_JOB_STAGES:
                return stage
            time.sleep(poll_seconds)
        return f"{stage or 'an unknown stage'}, canceled at its time limit,"
    finally:
        if stage not in TERMINAL_JOB_STAGES:
            _cancel(client, job_address, say)


def _cancel(client: Any, job_address: dict[str, str], say: Say) -> None:
    """Cancel a Job of the Hub; if that fails, print how to do so by hand."""
    try:
        call_hub(client.cancel_job, **job_address)
    except GenebError as error:
        say(
            f"the Job could not be canceled ({error.message}), and is charged until its time "
            "limit; cancel the Job: hf jobs cancel "
            f"{job_address['namespace']}/{job_address['job_id']}"
        )


def outcome_of_job(ended_job: EndedJob, order: AuditOrder, say: Say) -> str:
    """Return the outcome of an audit, as one line of text, from the log of its Job.

    Raises JobFailed if the log has no outcome, and prints the end of the log.
    """
    line = outcome_in(ended_job.lines, order.nonce)
    if line is None:
        raise ended_job.failure("an outcome", say)
    return line


def probed_levels(
    client: Any, repository: str, main_sha: str, say: Say, poll_seconds: float
) -> list[int]:
    """Return the levels of the sandbox that work in a Job on the cheapest machine of the Hub.

    Raises JobFailed if the Job ends before it tries them.
    """
    machine = machine_offer(client, cheapest_flavor(client), PROBE_SECONDS)
    say(machine.text)
    request = JobRequest(
        "geneb-audit-probe", PROBE_SCRIPT, _checkout_variables(repository, main_sha)
    )
    ended_job = run_job(client, request, machine, JOB_IMAGE, None, say, levels_in, poll_seconds)
    if ended_job.stage != "COMPLETED":
        raise ended_job.failure("the test of the sandbox", say)
    return levels_in(ended_job.lines)


def levels_in(lines: Iterable[str]) -> list[int]:
    """Return the sandbox levels that work, according to lines that `geneb-ci doctor` printed."""
    return sorted(int(match[1]) for match in map(_LEVEL_LINE.fullmatch, lines) if match is not None)


def cheapest_flavor(client: Any) -> str:
    """Return the name of the cheapest machine of the Hub; one request."""
    machines = [m for m in call_hub(client.list_jobs_hardware) if m.unit_label in UNITS_S]
    if not machines:
        raise NothingChecked("the Hub lists no machine for Jobs", "run the command again later")
    cheapest_machine = min(machines, key=lambda m: m.unit_cost_usd / UNITS_S[m.unit_label])
    return str(cheapest_machine.name)


def outcome_lines(line: str, nonce: str) -> list[str]:
    """Return an outcome as lines for the log of a Job, which a nonce marks.

    The extractor does not know the nonce, so it cannot print an outcome.
    """
    return [f"outcome {nonce} {part}" for part in numbered_parts(line, LOG_LINE_MAX)]


def outcome_in(lines: Iterable[str], nonce: str) -> str | None:
    """Return the outcome in the lines of a Job's log; None unless it is complete."""
    start = f"outcome {nonce} "
    texts = (line.strip() for line in lines)
    return joined_parts(text.removeprefix(start) for text in texts if text.startswith(start))


def call_hub(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a call to the Hub.

    Raises NothingChecked if the Hub fails, and UsageProblem if it refuses the token.
    """
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import httpx

    try:
        return call(*args, **kwargs)
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in {401, 403}:
            raise UsageProblem(
                f"the Hub refused the token in HF_TOKEN ({status})",
                "set HF_TOKEN to a token with job.write for the namespace that runs the jobs, and "
                "see that the namespace has credit",
            ) from error
        raise NothingChecked(f"the Hub answered {status}", "run the command again later") from error
    except httpx.HTTPError as error:
        raise NothingChecked(
            f"the Hub did not answer: {type(error).__name__}", "run the command again later"
        ) from error

"""An audit as a Job of the Hub: its hardware and price, its start, its outcome from its log.

The Job gets no secret: what it runs is a public commit, and it answers in its log.
"""

import contextlib
import math
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from geneb_ci.common.errors import Exit, GenebError, NothingChecked, UsageProblem
from geneb_ci.github.audits import AGAIN, AuditOrder
from geneb_ci.github.transport import encode
from geneb_ci.render.plain import visible
from reference_harness.formats.text import Say

IMAGE = "python:3.13"
"""Debian, with git; bubblewrap is installed into it."""
PASSED = ("AUDIT_PYTHON", "AUDIT_OPTIONS")
"""Facts about the machine for `tools/audit-job`, beside the order."""
POLL_S = 20.0  # seconds between two looks at a Job, which takes minutes at least
# Seconds for starting, beside the time limit: an image of 10 GB, a queue for a GPU.
QUEUE_S = 3600.0
LOG_TRIES = 3  # a log may lag behind its Job
CHUNK = 4000
"""Characters of a line of the log; the Hub cuts longer ones."""
UNITS_S = {"second": 1, "minute": 60, "hour": 3600}
SCRIPT = """\
set -eu
command -v bwrap >/dev/null || { apt-get -qq update && apt-get -qq install -y bubblewrap; } >&2
mkdir board && cd board
git init -q .
git fetch -q --depth=1 --no-tags "$AUDIT_SERVER/$AUDIT_REPOSITORY" "$AUDIT_MAIN"
git checkout -q --detach FETCH_HEAD
exec tools/audit-job requirements/dev.txt
"""
"""The script of the Job, and of a self-hosted runner: code of main, fetched without a token."""
_TAIL = 20  # lines of a failed Job's log that are shown


class Offer(NamedTuple):
    """A machine of the Hub, for how long, and what that costs at most."""

    flavor: str
    what: str
    seconds: int
    dollars: float

    @property
    def text(self) -> str:
        """One line for people."""
        hours = self.seconds / 3600
        return (
            f"{self.flavor} ({self.what}), at most {hours:.2f} h, at most ${self.dollars:.2f}: "
            "only the time that it runs is charged"
        )


class JobFailed(GenebError):  # noqa: N818 (named after what is wrong)
    """A Job of the Hub ended without an outcome."""

    exit_code = Exit.NOT_CHECKED


def api(token: str) -> Any:  # the client is imported late
    """Return the client of the Hub. Raises UsageProblem without a token."""
    if not token:
        raise UsageProblem(
            "HF_TOKEN is not set: a token of the Hub that may start Jobs is required",
            "export HF_TOKEN=hf_..., with the permission job.write of the namespace; in the "
            "workflow it is the secret HF_JOBS_TOKEN of the environment geneb-audit",
        )
    from huggingface_hub import HfApi  # a second to import

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)


def offer(client: Any, flavor: str, seconds: int) -> Offer:
    """Return what a machine costs for this long; one request.

    Raises UsageProblem for a machine that the Hub does not have, with those that it has.
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
            what = visible(f"{machine.cpu}, {machine.ram}{chip}")
            return Offer(flavor, what, seconds, units * machine.unit_cost_usd)
    names = ", ".join(
        f"{machine.name} (${machine.unit_cost_usd:.4f} a {machine.unit_label})"
        for machine in machines
    )
    raise UsageProblem(f"the Hub has no machine {flavor!r}", f"pass --flavor with one of: {names}")


def start(client: Any, order: AuditOrder, machine: Offer, image: str, namespace: str | None) -> Any:
    """Start a Job for an order: no secret, no volume, no open port; return what the Hub says."""
    return call_hub(
        client.run_job,
        image=image,
        command=["bash", "-c", SCRIPT],
        env=job_environment(order),
        flavor=machine.flavor,
        timeout=machine.seconds,
        name=f"geneb-audit-{order.number}",
        namespace=namespace,
    )


def job_environment(order: AuditOrder) -> dict[str, str]:
    """Return the environment of the run: addresses and the order."""
    given = {name: os.environ[name] for name in PASSED if os.environ.get(name)}
    return given | {
        "AUDIT_SERVER": os.environ.get("GITHUB_SERVER_URL", "https://github.com"),
        "AUDIT_REPOSITORY": order.repository,
        "AUDIT_MAIN": order.main_sha,
        "AUDIT_ORDER": encode(order, AGAIN),
    }


def collect(
    client: Any,
    job: Any,
    order: AuditOrder,
    machine: Offer,
    namespace: str | None,
    say: Say,
    poll: float = POLL_S,
) -> str:
    """Wait for a Job, and return the line of its outcome.

    Raises JobFailed with the end of its log where it has none; a Job that does not end is canceled.
    """
    where = {"job_id": job.id, "namespace": namespace or job.owner.name}
    deadline = time.monotonic() + machine.seconds + QUEUE_S
    stage = ""
    while time.monotonic() < deadline:
        with contextlib.suppress(NothingChecked):  # one answer of hours may be lost
            reply = call_hub(client.inspect_job, **where).status.stage
            stage = str(getattr(reply, "value", reply))
        if stage not in {"RUNNING", "SCHEDULING", ""}:
            break
        time.sleep(poll)
    else:
        call_hub(client.cancel_job, **where)
        stage = "CANCELED: it did not end in time"
    line, lines = None, []
    for attempt in range(LOG_TRIES):
        lines = call_hub(lambda: list(client.fetch_job_logs(**where)))
        line = outcome_in(lines, order.nonce)
        if line is not None or stage != "COMPLETED":
            break
        if attempt + 1 < LOG_TRIES:
            time.sleep(poll)
    if line is None:
        for text in lines[-_TAIL:]:
            say(f"  | {visible(text, CHUNK)}")
        raise JobFailed(
            f"the Job {job.id} ended as {visible(stage)} without an outcome",
            "read its log above; start the audit again, with another --flavor or --timeout if it "
            "was too slow",
        )
    return line


def outcome_lines(line: str, nonce: str) -> list[str]:
    """Return the lines of a log that pass an outcome on; the nonce is known to nobody inside."""
    parts = [line[start : start + CHUNK] for start in range(0, len(line), CHUNK)]
    return [f"outcome {nonce} {n}/{len(parts)} {part}" for n, part in enumerate(parts, 1)]


def outcome_in(lines: Iterable[str], nonce: str) -> str | None:
    """Return the outcome that lines of a log pass on; None unless it is complete."""
    pattern = re.compile(rf"outcome {nonce} (\d+)/(\d+) ([A-Za-z0-9+/=:]+)")
    matches = (pattern.fullmatch(line.strip()) for line in lines)
    parts = {int(m[1]): (int(m[2]), m[3]) for m in matches if m is not None}
    counts = {count for count, _ in parts.values()}
    if len(counts) != 1 or sorted(parts) != list(range(1, counts.pop() + 1)):
        return None
    return "".join(part for _, (_, part) in sorted(parts.items()))


def call_hub(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Ask the Hub. Raises NothingChecked with what it said, UsageProblem for a refused token."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import httpx

    try:
        return call(*given, **named)
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in {401, 403}:
            raise UsageProblem(
                f"the Hub refused the token in HF_TOKEN ({status})",
                "set HF_TOKEN to a token with job.write for the namespace that runs the jobs, and "
                "see that the namespace has credit",
            ) from error
        raise NothingChecked(f"the Hub answered {status}", "run this again later") from error
    except httpx.HTTPError as error:
        raise NothingChecked(
            f"the Hub did not answer: {type(error).__name__}", "run this again later"
        ) from error

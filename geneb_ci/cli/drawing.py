"""The parts of `geneb-ci audit plan`: the size of the sample, the beacon, what was drawn before."""

import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import click

from geneb_ci.audit import fetch
from geneb_ci.audit.beacon import round_at, time_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.fallback import OUTAGE, fallback, is_open
from geneb_ci.audit.files import read_plan
from geneb_ci.audit.moments import moment_of, seconds_of
from geneb_ci.audit.plan import Beacon, FallbackBeacon, Plan
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.power import design_of, detection, needed, shown
from geneb_ci.audit.recompute import recompute
from geneb_ci.audit.repository import Repository
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.target import targets as targets_of
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.config import find_layout
from geneb_ci.errors import NothingChecked, UsageProblem
from geneb_ci.finding import counted
from geneb_ci.read.bytes import read_bytes
from geneb_ci.read.fault import Fault
from geneb_ci.report.plain import visible

# A maintainer's clock may be wrong by as much without a word.
SKEW = 60  # seconds


def earlier_option(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add the option that names earlier draws."""
    return click.option(
        "--earlier",
        multiple=True,
        metavar="PLAN",
        type=click.Path(path_type=Path),
        help="An earlier draw for this model; its tasks are rerun, too.",
    )(function)


def source_options(function: Any) -> Any:  # noqa: ANN401
    """Add the options that say where the beacon's value comes from, in this order."""
    file = click.Path(path_type=Path)
    options = (
        click.option(
            "--beacon-file", metavar="F", type=file, help="The round, as a relay gives it."
        ),
        click.option(
            "--relay", multiple=True, metavar="URL", help="Ask here, not the public relays."
        ),
        click.option(
            "--fallback-key-file", metavar="F", type=file, help="After an hour without the beacon."
        ),
        click.option("--why", default="", metavar="TEXT", help="For the fallback: what was out."),
        click.option("--reveal", is_flag=True, help="For the fallback: the last use of its key."),
    )
    for option in reversed(options):
        function = option(function)
    return function


class Source(NamedTuple):
    """Where the beacon's value comes from: a file, relays, or the recorded substitute."""

    file: Path | None
    relays: tuple[str, ...]
    key_file: Path | None
    why: str
    reveal: bool


def wanted(
    commitment: Commitment,
    detect: int | None,
    confidence: str | None,
    task_power: str,
    *,
    to_stderr: bool,
) -> int:
    """Find the size of sample that is asked for, and print the table; 0 when none is."""
    if (detect is None) != (confidence is None):
        raise UsageProblem(
            "--detect and --confidence belong together", "write --detect 20 --confidence 0.95"
        )
    if detect is None or confidence is None:
        return 0
    from geneb_ci.report.power import power_table  # noqa: PLC0415 (rich costs 30 ms to import)

    design, power = (
        design_of(commitment.tasks, commitment.policy.strata),
        _share(task_power, "--task-power"),
    )
    size = needed(design, detect, _share(confidence, "--confidence"), power)
    committed = commitment.policy.drawn
    marked = {committed: "committed"}
    marked[size] = "committed, asked for" if size == committed else "asked for"
    click.echo(power_table(design, marked, power), nl=False, err=to_stderr)
    click.echo(
        f"{counted(size, 'drawn task')} of {design.tasks}: one of {detect} fabricated is found "
        f"with probability {shown(detection(design, detect, size, power))}; the committed "
        f"{committed} find it with {shown(detection(design, detect, committed, power))}",
        err=to_stderr,
    )
    return size


def _share(text: str, option: str) -> Fraction:
    """Read a probability exactly as it is written."""
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if not 0 < found <= 1:
        raise UsageProblem(
            f"{option} {text!r} is not a probability", "write a number above 0, at most 1: 0.95"
        )
    return found


def size(commitment: Commitment, drawn: int | None, wanted: int, before: int) -> int:
    """Give k: what is committed, or more where that is asked for or was drawn before."""
    committed = commitment.policy.drawn
    if drawn is not None and drawn < max(committed, before):
        raise UsageProblem(
            f"--drawn {drawn} would lower the sample: {committed} tasks are committed"
            + (f", and {before} were drawn" if before > committed else ""),
            "a sample may be raised, and never lowered; leave out --drawn",
        )
    return max(committed, drawn or 0, wanted, before)


def earlier_plans(commitment: Commitment, files: Sequence[Path]) -> list[Plan]:
    """Read the plans of earlier draws for this model, from its records and from files.

    The records are those of the repository that the command is run in.
    Raises StepMismatch when one of them does not follow from its own commitment and beacon, or
    cannot be read: what it drew would be missing.
    """
    plans = Repository(find_layout(Path.cwd())).plans_of(commitment.model_id)
    for plan in plans:
        recompute(plan)
    for file in files:
        plan = read_plan(file)
        if plan.commitment.model_id != commitment.model_id:
            raise UsageProblem(
                f"{file}: this plan is for another model: {plan.commitment.model_id!r}",
                f"name plans of {commitment.model_id} alone",
            )
        recompute(plan)
        plans.append(plan)
    return plans


def beacon(commitment: Commitment, committed_at: str, source: Source) -> Beacon:
    """Get the value that decides: from a file, from the relays, or by the recorded substitute."""
    at = seconds_of(committed_at)
    if at > time.time() + SKEW:
        raise UsageProblem(
            f"the commitment is from the future: {committed_at}; this machine's clock says "
            f"{moment_of(int(time.time()))}",
            "give the moment at which it became public, in UTC",
        )
    if source.key_file is not None:
        return _fallback(commitment, at, source.key_file, source)
    if source.why or source.reveal:
        raise UsageProblem(
            "--why and --reveal are for the fallback", "name its key as well: --fallback-key-file F"
        )
    number = round_at(at)
    if source.file is not None:
        raw = read_bytes(source.file)
        if isinstance(raw, Fault):
            raise NothingChecked(f"{source.file}: {raw.message}", "name a file with the round")
        return fetch.parse_round(raw, number)
    fetch.wait_for(number, lambda text: click.echo(text, err=True))
    return fetch.fetch_round(number, source.relays or fetch.RELAYS)


def _fallback(commitment: Commitment, at: int, key_file: Path, source: Source) -> FallbackBeacon:
    if source.file is not None or source.relays:
        raise UsageProblem(
            "a beacon and a substitute for it are named", "leave out --fallback-key-file"
        )
    raw = read_bytes(key_file)
    if isinstance(raw, Fault):
        raise NothingChecked(f"{key_file}: {raw.message}", "name a file with 64 hex digits")
    found = fallback(
        commitment.sha256,
        raw.decode("ascii", "replace").strip(),
        audit_policy(find_layout(Path.cwd())).fallback_keys,
        source.why,
        reveal=source.reveal,
    )
    until = time_of(round_at(at)) + OUTAGE
    if time.time() < until:
        raise AuditRefused(
            "the beacon's round has not been missing for an hour",
            f"the fallback counts from {moment_of(until)} on: draw by the beacon, or wait",
        )
    return found


def targets(plan: Plan, count: int, submission: Path | None) -> list[str]:
    """Name tasks beside the sample by the plausibility of the committed submission's scores."""
    if count < 1:
        return []
    model_id = plan.commitment.model_id
    folder = find_layout(Path.cwd()).submissions
    if submission is None and folder is None:
        raise UsageProblem("no submission is at hand", "name it: --submission FILE")
    file = submission or Path(str(folder)) / f"{model_id}.json"
    checker = Checker(RULES)
    result = checker.check(file)
    if result.document.sha256 != plan.commitment.submission_sha256:
        raise AuditRefused(
            f"{file}: this is not the submission that was committed to",
            "name the file with the sha256 of the commitment: --submission FILE",
        )
    taken = {one.task for one in plan.chosen}
    candidates = [task for task in plan.commitment.tasks if task not in taken]
    return targets_of(checker.context(file), result.findings, count, candidates)


def report(plan: Plan, targeted: int, name: str, *, to_stderr: bool) -> None:
    """Say what was drawn, and what to do next."""
    by_reason = {
        reason: [one.task for one in plan.chosen if one.reason == reason]
        for reason in ("drawn", "earlier", "targeted")
    }
    source = plan.beacon
    if isinstance(source, FallbackBeacon):
        what = "the fallback key" + (", to be revealed at its epoch's end" * is_open(source))
    else:
        what = f"round {source.round} of drand quicknet"
    lines = [f"{visible(plan.commitment.model_id)}: seed {plan.seed}, by {what}"]
    for reason, tasks in by_reason.items():
        if tasks:
            lines += [
                f"{counted(len(tasks), 'task')} {reason}:",
                *(f"  {visible(task)}" for task in tasks),
            ]
    if len(by_reason["targeted"]) < targeted:
        lines.append("no more tasks stand out: fewer are targeted than were asked for")
    lines += [
        f"check that commitment {plan.commitment_sha256[:16]}... was public at {plan.committed_at}",
        f"next: geneb-ci audit run {name}",
    ]
    click.echo("\n".join(lines), err=to_stderr)

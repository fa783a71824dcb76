"""`geneb-ci audit FILE`: from a submission to a signed record; `audit queue`: several of them."""

import dataclasses
import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from geneb_ci.audit import cost
from geneb_ci.audit.beacon_source import BeaconSource
from geneb_ci.audit.commit import commit, subject_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.draw import recompute
from geneb_ci.audit.keys import private_key
from geneb_ci.audit.outcome import AuditOutcome
from geneb_ci.audit.plan import Plan, committed_text, encoded, read_commitment, read_plan
from geneb_ci.audit.ready import Machine, Ready, ready
from geneb_ci.audit.record import check_can_record, record_of
from geneb_ci.audit.rerun import outcome_of
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.audit.work import Work, open_work
from geneb_ci.board.files import write_files
from geneb_ci.cli.audit_draw import Wanted, drawn_plan, earlier_option, source_options
from geneb_ci.cli.shared import Output, machine_of, machine_options, write
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import Exit, ExtractorRefused, UsageProblem
from geneb_ci.render.audits import outcome_text

COMMITMENT, PLAN, OUTCOME = "commitment.json", "plan.json", "outcome.json"
DIGITS = 16  # hex digits of a commitment that name its folder
WORDS = "geneb_ci.words"
QUEUED = "GENEB_CI_QUEUED"
"""Variable by which a queue marks its processes."""
Say = Callable[[str], None]


class _Repeatable(click.Command):
    """A command that keeps its words, so that it can print itself with one option more."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then parse as click does."""
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True)
class FileAudit:
    """One audit of a file: what it shall do."""

    file: Path
    machine: Machine
    source: BeaconSource
    commitment: Path | None = None
    """What `audit commit` wrote, where the run has to be declared."""
    committed_at: str | None = None
    earlier: tuple[Path, ...] = ()
    work: Path | None = None
    key: Path | None = None
    unsigned: bool = False
    output: Path | None = None
    dry_run: bool = False
    again: str = ""
    """The command that runs this audit, without --committed-at."""


class Reached(NamedTuple):
    """How far an audit came."""

    exit_code: Exit
    state: str


def default_work(commitment: Commitment) -> Path:
    """Return the folder of an audit below the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "geneb-ci" / "audits" / commitment.model_id / commitment.sha256[:DIGITS]


def audited(asked: FileAudit, layout: Layout, say: Say, show: Say) -> Reached:
    """Carry one audit as far as it goes now; what is finished is kept for the next call.

    `say` gets progress, `show` what is to be read afterwards. Raises what `commit`, `ready`,
    `drawn_plan` and `outcome_of` do, and AuditRefused when something is not what it was when the
    audit began.
    """
    started = time.monotonic()
    commitment = _commitment(asked)
    audits = asked.output or layout.audits or layout.root / "leaderboard" / "audits"
    signer = None if asked.unsigned or asked.dry_run else private_key(asked.key)
    if signer is not None:
        check_can_record(signer, layout, audits / commitment.model_id)
    folder = asked.work or default_work(commitment)
    if asked.work is None and asked.committed_at is not None:
        _refuse_other(commitment, folder)
    with open_work(folder) as work:
        plan = _begun(work, commitment, asked.committed_at)
        outcome = work.read_as(OUTCOME, AuditOutcome)
        if outcome is None:
            with ready(
                commitment, subject_of(commitment, layout), layout, asked.machine, work, say,
                time.time(),
            ) as here:  # fmt: skip
                setup = time.monotonic() - started
                _show_cost(here, plan, setup, say, show)
                if asked.dry_run:
                    return Reached(Exit.CLEAN, "dry run")
                if plan is None and asked.committed_at is None:
                    show(_next(commitment, asked))
                    return Reached(Exit.CLEAN, "to be published")
                if plan is None:
                    plan = _drawn(asked, here, layout, say)
                    _show_cost(here, plan, setup, say, show)
                outcome = _finished(plan, here, say)
        if asked.dry_run:
            show("this audit is finished: nothing is left to run\n")
            return Reached(Exit.CLEAN, "finished")
        if signer is not None:
            record = record_of(outcome, signer)
            place = audits / record.place
            write_files(place.parent, {place.name: record.content})
            say(
                f"wrote {place}\n"
                f"next: commit it to the main branch: {_git(place)}\n"
                f"  once it is there, {work.folder} can be removed"
            )
        show(outcome_text(outcome))
    agrees = outcome.verdict == "agrees"
    return Reached(Exit.CLEAN if agrees else Exit.ERRORS, outcome.verdict)


def _commitment(asked: FileAudit) -> Commitment:
    if asked.commitment is not None:
        return read_commitment(asked.commitment)
    try:
        return commit(asked.file, tolerance_digest())
    except UsageProblem as error:
        raise UsageProblem(
            error.message,
            f"{error.fix}\n  to `geneb-ci audit commit {asked.file} --output C.json`, then run "
            f"`geneb-ci audit {asked.file} --commitment C.json`",
        ) from error


def _begun(work: Work, commitment: Commitment, committed_at: str | None) -> Plan | None:
    """Keep the commitment of a new audit; return the plan of one that was drawn.

    Raises AuditRefused when the folder has another commitment or draw.
    """
    if work.read(COMMITMENT) is None:
        work.keep(COMMITMENT, committed_text(commitment))
    kept = read_commitment(work.folder / COMMITMENT)
    if kept != commitment:
        raise AuditRefused(
            f"{work.folder}: the audit began with another {_difference(kept, commitment)}",
            "check out what it began with, or name another folder: --work DIR; if its tasks are "
            f"drawn, add --earlier {work.folder / PLAN}",
        )
    if work.read(PLAN) is None:
        return None
    plan = read_plan(work.folder / PLAN)
    recompute(plan)
    if plan.commitment != commitment or committed_at not in {None, plan.committed_at}:
        raise AuditRefused(
            f"{work.folder / PLAN}: drawn for commitment {plan.commitment_sha256[:DIGITS]}... as "
            f"of {plan.committed_at}, not for {commitment.sha256[:DIGITS]}... as of {committed_at}",
            "leave out --committed-at: a commitment has one draw",
        )
    return plan


def _refuse_other(commitment: Commitment, folder: Path) -> None:
    """Refuse a time of publication for a commitment other than the one that was shown.

    Raises AuditRefused.
    """
    if folder.exists():
        return
    for place in sorted(folder.parent.glob(f"*/{COMMITMENT}")):
        kept = read_commitment(place)
        raise AuditRefused(
            f"commitment {commitment.sha256} was never shown here; {kept.sha256} was, with another "
            f"{_difference(kept, commitment)}",
            "check out what was committed to, or run the command without --committed-at and "
            "publish the new digest",
        )


def _difference(one: Commitment, other: Commitment) -> str:
    """Name the parts in which two commitments differ."""
    mine, theirs = one.model_dump(), other.model_dump()
    names = {"submission_sha256": "submission", "model_id": "model"}
    return ", ".join(names.get(name, name) for name in mine if mine[name] != theirs.get(name))


def _show_cost(here: Ready, plan: Plan | None, setup: float, say: Say, show: Say) -> None:
    """Measure and show what is left to pay; refuse what this machine cannot carry."""
    commitment = here.commitment
    if plan is None:
        tasks, weights = commitment.tasks, cost.expected(commitment)
        drawn = commitment.policy.drawn
    else:
        weights = cost.left_of(plan, here)
        tasks, drawn = list(weights), len(weights)
    if not weights:
        return  # all is embedded
    sampled = cost.measured(here, tasks, say)
    show(cost.cost_text(cost.cost_of(here, sampled, weights, setup), here, drawn=plan is not None))
    cost.refuse_too_large(here, sampled, tasks, drawn)


def _next(commitment: Commitment, asked: FileAudit) -> str:
    return (
        f"commitment {commitment.sha256}\n"
        f"{commitment.model_id}: {commitment.policy.drawn} of {len(commitment.tasks)} tasks will "
        "be drawn\n"
        "next: publish this digest where a server that you do not control shows it with a time: "
        "as commit\n"
        "  status geneb/audit-commit, or in the ledger. Then continue with that time, in UTC:\n"
        f"  {asked.again} --committed-at 2026-11-20T08:30:00Z\n"
    )


def _drawn(asked: FileAudit, here: Ready, layout: Layout, say: Say) -> Plan:
    begun = {here.work.folder / PLAN}
    # Draws that were begun here and have no record: their tasks are rerun too.
    others = () if asked.work else sorted({*here.work.folder.parent.glob(f"*/{PLAN}")} - begun)
    plan = drawn_plan(
        here.commitment,
        str(asked.committed_at),
        layout,
        asked.source,
        Wanted(earlier=(*asked.earlier, *others)),
        say,
    )
    here.work.keep(PLAN, encoded(plan))
    say(f"drawn: {', '.join(one.task for one in plan.chosen)}")
    return plan


def _finished(plan: Plan, here: Ready, say: Say) -> AuditOutcome:
    try:
        outcome = outcome_of(plan, here, time.time, say)
    except ExtractorRefused as error:
        error.fix += (
            f"\n  this draw has no record: what is finished is kept in {here.work.folder}; run the "
            "same command again,\n  or pass the plan to the next audit: "
            f"--earlier {here.work.folder / PLAN}"
        )
        raise
    here.work.keep(OUTCOME, encoded(outcome))
    return outcome


def _git(place: Path) -> str:
    name = os.path.relpath(place)
    return shlex.join(["git", "add", name]) + " && " + shlex.join(["git", "commit", name])


def record_options(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add the options that say what comes out: a cost, an outcome or a record."""
    for option in reversed(_RECORD):
        function = option(function)
    return function


_RECORD = (
    click.option("--dry-run", is_flag=True, help="Show what it will cost here, and stop."),
    click.option(
        "--key", type=click.Path(path_type=Path), help="Private key to sign the record with."
    ),
    click.option("--unsigned", is_flag=True, help="Print the outcome and write no record."),
    click.option(
        "--output",
        type=click.Path(path_type=Path),
        help="Write the record below this folder; leaderboard/audits unless given.",
    ),
)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _show(text: str) -> None:
    click.echo(text, nl=False)


@click.command(cls=_Repeatable)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--committed-at",
    metavar="TIME",
    help="When the digest became public, in UTC: 2026-11-20T08:30:00Z.",
)
@click.option(
    "--commitment",
    metavar="C.json",
    type=click.Path(path_type=Path),
    help="For format 1.0: what `audit commit` wrote, with the declared run.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps what is finished; default: below the user's cache, by commitment.",
)
@click.option(
    "--report",
    metavar="R.json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write how far the audit came, as JSON with exit_code and state.",
)
@record_options
@earlier_option
@source_options
@click.option("--device", metavar="D", help="cpu, cuda, or cuda:1 for one of several GPUs.")
@machine_options
@click.pass_context
def file_command(
    ctx: click.Context,
    /,
    file: Path,
    committed_at: str | None,
    commitment: Path | None,
    device: str | None,
    report: Path | None,
    **options: Any,  # noqa: ANN401 (click's own types)
) -> int:
    """Audit FILE from its commitment to the signed record; `geneb-ci audit FILE` is the same.

    The first call checks all that can be refused, shows the cost, and stops with the digest to
    publish. With --committed-at it waits for the beacon, draws, reruns task by task, compares and
    signs. What is finished is kept: after any interruption, run the same command again. The exit
    code is 11 when a claim differs.
    """
    source = BeaconSource(**{name: options.pop(name) for name in BeaconSource._fields})
    own = {field.name for field in dataclasses.fields(FileAudit)}
    rest = {name: options.pop(name) for name in list(options) if name in own}
    words = ctx.meta[WORDS]
    asked = FileAudit(
        file=file,
        machine=machine_of(options, device_of(device)),
        source=source,
        commitment=commitment,
        committed_at=committed_at,
        again=shlex.join(["geneb-ci", "audit", *(word for word in words if word != "--dry-run")]),
        **rest,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get(QUEUED):
        _end_with_the_queue()
    reached = audited(asked, find_layout(Path.cwd()), _say, _show)
    if report is not None:
        write(Output("json", str(report)), json.dumps(reached._asdict()) + "\n")
    return reached.exit_code


def _end_with_the_queue() -> None:
    """End this process, as SIGTERM does, when the queue that started it is gone.

    The queue holds the other end of standard input, and never writes to it.
    """

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def device_of(name: str | None) -> str | None:
    """Return a device. Raises UsageProblem for a name that is none."""
    if name is None or name in {"cpu", "cuda"}:
        return name
    kind, colon, number = name.partition(":")
    if (kind, colon) != ("cuda", ":") or not number.isdecimal():
        raise UsageProblem(
            f"--device {name!r} is not a device", "pass cpu, cuda, or cuda:N such as cuda:1"
        )
    return name

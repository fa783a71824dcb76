"""What the commands of an audit sign beside the record, and what they read of the log."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.events import (
    Aborted,
    RunFacts,
    Started,
    bounded,
    parse_event,
    signed_event,
)
from geneb_ci.audit.keys import log_keys, trusted_keys
from geneb_ci.audit.log_check import check_committed, check_kept, committed_index
from geneb_ci.audit.plan import Plan, read_commitment
from geneb_ci.audit.record import COMMITTED, SignedRecord, read_record
from geneb_ci.audit.repository import AuditRepository
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.board.files import write_files
from geneb_ci.cli.audit_log import append_to_log
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import ExtractorRefused, LimitExceeded, ResultRefused, UsageProblem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Say = Callable[[str], None]
OF_THE_MACHINE = "host_floor_mib"
"""The limit that other programs of the machine reach: the submission is not the reason."""


def signing_options(function: Any) -> Any:  # noqa: ANN401 (a decorator of click)
    """Add the options that sign a commitment and append it to the log."""
    options = (
        click.option(
            "--key",
            type=click.Path(path_type=Path),
            help="Private key: sign the commitment, for the log.",
        ),
        log_key_option,
    )
    return functools.reduce(lambda found, option: option(found), reversed(options), function)


def log_key_option(function: Any) -> Any:  # noqa: ANN401
    """Add the option `--log-key`."""
    return click.option(
        "--log-key",
        type=click.Path(path_type=Path),
        help="Private key of the log: append to it here, where this is its only writer.",
    )(function)


def keeps_log(layout: Layout) -> bool:
    """Whether the policy of a place names a log."""
    return log_keys(layout) is not None


def audits_of(layout: Layout) -> Path:
    """Return the folder of audits of a place, whether or not it exists."""
    return layout.audits or layout.root / "leaderboard" / "audits"


def read_committed(path: Path, layout: Layout) -> Commitment:
    """Read a commitment: what `audit commit` wrote, or its signed form among the audits.

    Raises what `read_commitment` and `parse_event` do.
    """
    if not path.name.endswith(COMMITTED):
        return read_commitment(path)
    place = f"{path.resolve().parent.name}/{path.name}"
    found = parse_event(read_record(path), place, trusted_keys(layout))
    return found.commitment


def logged_time(commitment: Commitment, layout: Layout, given: str | None) -> str | None:
    """Return when a commitment was made: by its entry in the log, or as it was given.

    Raises UsageProblem where both would say it, AuditRefused where a log is kept and does not have
    the commitment.
    """
    if not keeps_log(layout):
        return given
    if given is not None:
        raise UsageProblem(
            "--committed-at is typed, and the log of this repository has the time of a commitment",
            "leave out --committed-at",
        )
    found = time_in_log(commitment, layout)
    if found is None:
        raise AuditRefused(
            f"the commitment {commitment.sha256[:16]}... is not in the log, which gives its time",
            "sign it with `geneb-ci audit commit FILE --key KEY`, and have the log extended: "
            "geneb-ci audit log append",
        )
    return found


def known_time(commitment: Commitment, layout: Layout, given: str | None) -> str | None:
    """Return the time of a commitment by the log; None where it has to be added first.

    Raises UsageProblem where a time was typed.
    """
    if given is not None:
        return logged_time(commitment, layout, given)
    return time_in_log(commitment, layout)


def time_in_log(commitment: Commitment, layout: Layout) -> str | None:
    """Return the time of a commitment by its entry in the log; None without one.

    Raises LogBroken.
    """
    logged = AuditRepository(layout).logged
    if logged is None:
        return None
    check_kept(commitment.model_id, logged)
    index = committed_index(commitment.sha256, logged)
    return None if index is None else logged.log.entries[index].not_before


def check_in_log(plan: Plan, layout: Layout) -> None:
    """Refuse, before hours of work, a plan whose record the log would not take.

    Raises StepMismatch, of the step "log".
    """
    logged = AuditRepository(layout).logged
    if logged is not None:
        check_kept(plan.commitment.model_id, logged)
        check_committed(plan, logged)


def commit_in_log(
    commitment: Commitment,
    layout: Layout,
    signer: "Ed25519PrivateKey | None",
    log_key: Path | None,
    say: Say,
    again: str,
) -> str:
    """Sign a commitment and append it, as far as there are keys; return what to do next."""
    digest = f"commitment {commitment.sha256}"
    if signer is None:
        return f"{digest}\nnext: sign it, for the log: run this again with --key KEY"
    place = _written(signed_event(commitment, signer), audits_of(layout), say)
    if log_key is None:
        return (
            f"{digest}\nnext: commit {os.path.relpath(place)} to the main branch, where the log is "
            "extended by\n  geneb-ci audit log append; then draw the tasks:\n"
            f"  geneb-ci audit plan {again} --output PLAN.json"
        )
    _, size = append_to_log(layout, log_key, None, ())
    return f"{digest}: entry {size - 1} of the log or before; next: geneb-ci audit plan {again}"


def sign_start(plan: Plan, signer: "Ed25519PrivateKey", audits: Path, say: Say) -> None:
    """Write the signed start of a plan, unless it is there."""
    _written(signed_event(Started(schema_version="1.0", plan=plan), signer), audits, say)


def sign_abort(
    error: ExtractorRefused, plan: Plan, signer: "Ed25519PrivateKey", audits: Path, say: Say
) -> None:
    """Write the signed abort of a run that the extractor ended, and say so in the advice."""
    at = error.at
    if not isinstance(at, RunFacts) or getattr(error, "limit", "") == OF_THE_MACHINE:
        return
    aborted = Aborted.model_validate(
        {
            "schema_version": "1.0",
            "plan": plan,
            "kind": _kind(error),
            "message": bounded(error.message),
            **at._asdict(),
        }
    )
    place = _written(signed_event(aborted, signer), audits, say)
    error.fix += (
        f"; this run is recorded as aborted: commit {os.path.relpath(place)} to the main branch; "
        "its draw counts for the next audit"
    )


def _kind(error: ExtractorRefused) -> str:
    if isinstance(error, LimitExceeded):
        return "limit"
    return "result" if isinstance(error, ResultRefused) else "failed"


def _written(signed: SignedRecord, audits: Path, say: Say) -> Path:
    place = audits / signed.place
    if not place.exists():
        write_files(place.parent, {place.name: signed.content})
        say(f"wrote {place}")
    return place

"""`geneb-ci`: finds the command, and turns every fault into one clear line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from geneb_ci import __version__
from geneb_ci.cli.group import LazyGroup
from geneb_ci.errors import Exit, GenebError, machine_fault
from geneb_ci.report.plain import visible

# Plugins of other packages have no part in a verdict, and looking for them costs 15 ms.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

DEBUG = "GENEB_CI_DEBUG"
# Each command is imported when it is called: `check` pays for nothing that only `build` needs.
COMMANDS = {
    "check": "check submissions, and say how to mend them",
    "rules": "list every rule",
    "explain": "explain a rule; or why a row has its level, and how it came there",
    "matrices": "recover the confusion matrices behind printed scores",
    "label": "compute the trust level of every row from its evidence",
    "build": "rebuild the board from the submissions",
    "serve": "build the board and show its page on this machine",
    "recommend": "say which model to take, what ties with it, and why",
    "publish": "put the board on the Space, in one commit, once",
    "rollback": "put an earlier generation of the board in the place of the live one",
    "ledger": "list what happened to every row, when, by whom and why",
    "diff": "say what a change does to the board",
    "replay": "say which rows a change of rules would newly fail",
    "pack": "gather upstream's per-task logs into a submission",
    "audit": "rerun a sample that nobody can foresee, and sign what came out",
    "data": "pull, verify, audit and push the task data",
    "reconcile": "read pull requests, and write a verdict",
    "report": "write a verdict to its pull request",
    "triage": "list the open submissions, and what to do next",
    "extractor": "check an extractor before it costs GPU time",
    "doctor": "say what this machine can do for an audit, and why not",
}


class _Commands(LazyGroup):
    table = COMMANDS


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="geneb-ci", message="%(prog)s %(version)s")
def cli() -> None:
    """Check, audit and publish the GENEB leaderboard of DNA foundation models."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code; the README has the table of codes."""
    try:
        result: Any = cli.main(arguments, prog_name="geneb-ci", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is said here, not by Python at its end
    except GenebError as error:
        _say(error.message, error.fix)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted", "")
        return 130
    except BrokenPipeError:
        # The reader went away, as `head` does; Python must not complain of it at exit.
        _drop_output()
        return Exit.CLEAN
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _unforeseen(error)
    return int(result) if isinstance(result, int) else Exit.CLEAN


def _unforeseen(error: Exception) -> Exit:
    """Say whether this machine failed, such as by a full disk, or geneb-ci did."""
    fault = machine_fault(error) if isinstance(error, OSError) else None
    if fault is not None:
        _say(fault.message, fault.fix)
        _drop_output()
        return fault.exit_code
    _say(
        f"geneb-ci failed, and the fault is its own: {type(error).__name__}: {error}",
        f"set {DEBUG}=1 to see where, and report it to the maintainers",
    )
    return Exit.OWN_FAULT


def _drop_output() -> None:
    """Let go of what is still to be written, so that Python does not try it again at its end."""
    output = sys.__stdout__
    if output is not None and sys.stdout is output:  # else somebody else collects it
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def _say(message: str, fix: str) -> None:
    # The message may hold a name that a stranger chose.
    click.echo(f"geneb-ci: {visible(message, len(message) * 10)}", err=True)
    if fix:
        click.echo(f"  fix: {visible(fix, len(fix) * 10)}", err=True)

"""`geneb-ci`: finds the command, and turns every error into one clear line and an exit code."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from geneb_ci import __version__
from geneb_ci.common.errors import Exit, GenebError, machine_fault
from geneb_ci.render.plain import visible


class LazyGroup(click.Group):
    """Commands by name with their module of `geneb_ci.cli` and their line of help.

    The function of a command is called by its name and `_command`.
    """

    table: dict[str, tuple[str, str]]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"geneb_ci.cli.{self.table[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the lines of help without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])


# Plugins of other packages have no part in a verdict, and looking for them costs 15 ms.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

DEBUG = "GENEB_CI_DEBUG"
# Each command is imported when it is called: `check` pays for nothing that only `build` needs.
COMMANDS = {
    "check": ("check", "check submissions, and say how to mend them"),
    "rules": ("explain", "list every rule"),
    "explain": ("explain", "explain a rule; or why a row has its level, and how it came there"),
    "matrices": ("board", "recover the confusion matrices behind printed scores"),
    "label": ("board", "compute the trust level of every row from its evidence"),
    "build": ("build", "rebuild the board from the submissions"),
    "serve": ("build", "build the board and show its page on this machine"),
    "recommend": ("board", "say which model to take, what ties with it, and why"),
    "publish": ("publish", "put the board on the Space, in one commit, once"),
    "rollback": ("publish", "put an earlier generation of the board in the place of the live one"),
    "ledger": ("publish", "list what happened to every row, when, by whom and why"),
    "diff": ("board", "say what a change does to the board"),
    "replay": ("publish", "say which rows a change of rules would newly fail"),
    "pack": ("pack", "gather upstream's per-task logs into a submission"),
    "audit": ("audit", "rerun a sample that nobody can foresee, and sign what came out"),
    "data": ("harness", "pull, verify, audit and push the task data"),
    "reconcile": ("github", "read pull requests, and write a verdict"),
    "report": ("github", "write a verdict to its pull request"),
    "triage": ("github", "list the open submissions, and what to do next"),
    "extractor": ("harness", "check an extractor before it costs GPU time"),
    "doctor": ("doctor", "say what this machine can do for an audit, and why not"),
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

"""`geneb-ci`: runs a command, and turns every error into a message and an exit code."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import click

from geneb_ci import __version__
from geneb_ci.common.errors import Exit, GenebError, machine_fault
from geneb_ci.render.plain import visible


class LazyGroup(click.Group):
    """Commands by name, each with its module of `geneb_ci.cli` and its line of help.

    The function of a command is `<name>_command`.
    """

    table: dict[str, tuple[str, str]]
    aliases: ClassVar[dict[str, str]] = {}
    """Other names of commands, which the help does not list."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Return the command names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None if there is none of this name."""
        cmd_name = self.aliases.get(cmd_name, cmd_name)
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"geneb_ci.cli.{self.table[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; suggest a name for one that does not exist.

        click suggests only commands that are imported, and here none is.
        """
        name = args[0]
        if name not in {*self.table, *self.aliases} and not name.startswith("-"):
            import difflib  # noqa: PLC0415 (most runs need no suggestion)

            close = difflib.get_close_matches(name, self.table, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])


# Plugins of other packages must not influence a verdict; searching for them costs 15 ms.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

DEBUG = "GENEB_CI_DEBUG"
# Each command is imported when it is called, which keeps `check` fast.
COMMANDS = {
    "check": ("check", "check submissions, and show how to fix errors"),
    "rules": ("explain", "list every rule"),
    "explain": ("explain", "explain a rule, or the trust level and history of a row"),
    "matrices": ("board", "recover the confusion matrices from scores"),
    "label": ("board", "compute the trust level of every row from its evidence"),
    "build": ("build", "rebuild the board from the submissions"),
    "serve": ("build", "build the board and serve its page on this machine"),
    "recommend": ("board", "recommend a model, with the models tied with it"),
    "publish": ("publish", "publish the board on its Hugging Face Space"),
    "rollback": ("publish", "publish an earlier generation of the board again"),
    "ledger": ("publish", "list the history of every row: what, when, by whom, why"),
    "diff": ("board", "compare the board with that of another commit"),
    "replay": ("publish", "list the rows that changed rules would newly reject"),
    "pack": ("pack", "collect upstream's per-task logs into a submission"),
    "audit": ("audit", "rerun an unpredictable sample of tasks, and sign the result"),
    "models": ("models", "show how each model is loaded, and where its weights are"),
    "data": ("harness", "pull, verify, audit and push the task data"),
    "reconcile": ("github", "check pull requests, and print a verdict"),
    "report": ("github", "write a verdict to its pull request"),
    "triage": ("github", "list open submissions, and what to do next"),
    "extractor": ("harness", "check an extractor, or list the built-in ones"),
    "doctor": ("doctor", "show what this machine supports: sandbox, GPU, packages"),
}


class _Commands(LazyGroup):
    table = COMMANDS
    aliases: ClassVar[dict[str, str]] = {"extractors": "extractor"}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="geneb-ci", message="%(prog)s %(version)s")
def cli() -> None:
    """Check, audit and publish the GENEB leaderboard of DNA foundation models."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the README lists the codes."""
    config = sys.modules.get("geneb_ci.common.config")
    if config is not None:  # a command before, in this process, may have made folders
        config.find_layout.cache_clear()
    try:
        result: Any = cli.main(arguments, prog_name="geneb-ci", standalone_mode=False)
        sys.stdout.flush()  # report write errors here, not at interpreter exit
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
        # Broken pipe, as with `head`; Python must not report it at exit.
        _drop_output()
        return Exit.CLEAN
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _unforeseen(error)
    return int(result) if isinstance(result, int) else Exit.CLEAN


def _unforeseen(error: Exception) -> Exit:
    """Report an unexpected exception, as a machine failure or as a bug of geneb-ci."""
    fault = machine_fault(error) if isinstance(error, OSError) else None
    if fault is not None:
        _say(fault.message, fault.fix)
        _drop_output()
        return fault.exit_code
    _say(
        f"internal error: {type(error).__name__}: {error}",
        f"this is a bug: report it to the maintainers with the traceback, which {DEBUG}=1 prints",
    )
    return Exit.OWN_FAULT


def _drop_output() -> None:
    """Discard buffered output, so that Python does not try to write it at exit."""
    output = sys.__stdout__
    if output is not None and sys.stdout is output:  # otherwise a test captures it
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def _say(message: str, fix: str) -> None:
    # The message may contain untrusted names.
    click.echo(f"geneb-ci: {visible(message, len(message) * 10)}", err=True)
    if fix:
        click.echo(f"  fix: {visible(fix, len(fix) * 10)}", err=True)

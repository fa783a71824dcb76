"""The program `geneb-ci`: runs a command, and turns errors into messages and exit codes."""

import importlib
import io
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import click
from click.shell_completion import CompletionItem

from geneb_ci import __version__
from geneb_ci.common.errors import Exit, GenebError, machine_fault
from geneb_ci.render.plain import visible
from reference_harness.formats.bytecode import damaged_bytecode, interrupting_error
from reference_harness.formats.layered_help import WHOLE_HELP_KEY, help_all
from reference_harness.formats.text import NEXT_PREFIX, command_lines


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    The function of a command is `<name>_command`. Letter case of a name does not matter.
    """

    table: dict[str, tuple[str, str]]
    """Module of `geneb_ci.cli` and line in the help, by name of the command."""
    sections: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Names of the commands that `--help` lists, by heading; if empty, it lists all."""
    aliases: ClassVar[dict[str, str]] = {}
    """Name of the command by its alias, which the help does not list."""
    old_names: ClassVar[dict[str, str]] = {}
    """Present name of a command by its former name, which works for one release, with a note."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, and `--help-all` where `--help` does not list every command."""
        return [
            *super().get_params(ctx),
            *([click.Option(["--help-all"], **help_all())] if self.sections else []),
        ]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Return the command names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None if no command has this name."""
        cmd_name = self._command_name(cmd_name)
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"geneb_ci.cli.{self.table[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; suggest a name for an unknown command.

        click itself suggests only imported commands, and no command is imported here.
        """
        name = self._command_name(args[0])
        if name not in self.table and not name.startswith("-"):
            import difflib  # most runs need no suggestion

            similar_names = difflib.get_close_matches(
                name.casefold(), [*self.table, *self.aliases], n=1
            )
            hint = f" Did you mean {similar_names[0]!r}?" if similar_names else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        folded = args[0].casefold()
        if folded in self.old_names:
            say(f"{folded!r} is now {name!r}; the next release will not accept the old name")
        word = folded if folded in self.aliases else name  # the usage shows what was typed
        return super().resolve_command(ctx, [word, *args[1:]])

    def _command_name(self, word: str) -> str:
        """Return the name of the command with this name, alias or former name; else `word`."""
        folded = word.casefold()
        command = (self.aliases | self.old_names).get(folded, folded)
        return command if command in self.table else word

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with `incomplete`, without importing them, or options."""
        completions = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*completions, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, or of those in `sections`, without importing any."""
        width = max(map(len, self.table))
        listed_names = {name for names in self.sections.values() for name in names}
        for heading, names in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self.table[name][1]) for name in names])
        unlisted = [name for name in self.table if name not in listed_names]
        if listed_names and not ctx.meta.get(WHOLE_HELP_KEY, False):
            formatter.write_paragraph()
            formatter.write_text(f"{len(unlisted)} more commands: {ctx.command_path} --help-all")
            return
        with formatter.section("More commands" if listed_names else "Commands"):
            formatter.write_dl([(name.ljust(width), self.table[name][1]) for name in unlisted])


# Plugins of other packages must not influence a verdict; searching for them costs 15 ms.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

DEBUG_VARIABLE = "GENEB_CI_DEBUG"
"""Environment variable that makes an internal error print its traceback."""
# Each command is imported when it is called, which keeps `check` fast.
COMMANDS = {
    "next": ("next", "show the state of the work, and the next command"),
    "check": ("check", "check submissions, and show how to fix errors"),
    "rules": ("check", "list every rule"),
    "explain": ("check", "explain a rule, or the trust level and history of a row"),
    "matrices": ("board", "recover the confusion matrices from scores"),
    "trust": ("board", "compute the evidence of every row from checks and audits"),
    "build": ("board", "rebuild the board from the submissions"),
    "serve": ("board", "build the board and serve its page on this machine"),
    "recommend": ("recommend", "recommend a model: the best, or a smaller one with a small loss"),
    "compare": ("compare", "compare two models or checkpoints, with intervals of differences"),
    "figures": ("recommend", "compute the figures of the paper, from its rows or the board's"),
    "publish": ("publish", "publish the board on its Hugging Face Space"),
    "rollback": ("publish", "publish an earlier generation of the board again"),
    "ledger": ("publish", "list the changes of every row: when, by whom, and why"),
    "diff": ("board", "compare the board with that of another commit"),
    "replay": ("publish", "list the rows that changed rules would newly reject"),
    "run": ("harness", "run a model on the tasks; write a run record and a submission"),
    "pack": ("pack", "collect results of GENEB's own code or of MTEB into a submission"),
    "export": ("publish", "write the rows for the Hub, Every Eval Ever, Croissant, CSV, Parquet"),
    "audit": ("audit", "rerun an unpredictable sample, and sign the result"),
    "receipt": ("receipt", "verify, push and pull the embeddings that a row commits to"),
    "new": ("new", "write the first files of a model, from its repository on the Hub"),
    "models": ("models", "show how each model is loaded, and where its weights are"),
    "data": ("harness", "pull, verify, audit and push the task data"),
    "upgrade": ("models", "upgrade a submission: to 1.1 with its entry, to 1.2 with its record"),
    "probe": ("harness", "fit other probes on receipts, and compare the ranks"),
    "reconcile": ("github", "check pull requests, and print a verdict"),
    "report": ("github", "write a verdict to its pull request"),
    "triage": ("github", "list open submissions, and what to do next"),
    "init": ("init", "write the repository of a new board, and set up GitHub and the Hub"),
    "extractor": ("harness", "check an extractor, or list the built-in ones"),
    "doctor": ("doctor", "show what this machine supports, or check the settings on GitHub"),
}
"""Module and line in the help of each command, which is imported when it is called."""


SECTIONS = {
    "Contribute a model": ("next", "check", "new", "run", "pack", "explain"),
    "Read the board": ("serve", "recommend", "compare", "export", "diff"),
    "Maintain a board": ("init", "doctor", "triage", "audit", "build", "publish"),
}
"""Commands by heading of `geneb-ci --help`."""
OLD_NAMES = {"findings": "figures", "import": "pack", "label": "trust"}
"""Present names of commands by their former names."""


class _Commands(LazyGroup):
    """All commands of `geneb-ci`."""

    table = COMMANDS
    sections: ClassVar[dict[str, tuple[str, ...]]] = SECTIONS
    aliases: ClassVar[dict[str, str]] = {"extractors": "extractor"}
    old_names: ClassVar[dict[str, str]] = OLD_NAMES


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="geneb-ci", message="%(prog)s %(version)s")
def cli() -> None:
    """Check, audit and publish the leaderboard of a benchmark of frozen embeddings."""


def is_plain() -> bool:
    """Whether no escape sequence may be printed: NO_COLOR is set, or TERM is `dumb`."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; docs/contributor/check.md lists the codes."""
    config = sys.modules.get("geneb_ci.common.config")
    if config is not None:  # an earlier command in this process may have made folders
        config.find_layout.cache_clear()
    _make_printing_safe()
    try:
        color: dict[str, Any] = {"color": False} if is_plain() else {}
        exit_code: Any = cli.main(arguments, prog_name="geneb-ci", standalone_mode=False, **color)
        sys.stdout.flush()  # report write errors here, not at interpreter exit
    except GenebError as error:
        _print_error(error.message, error.fix)
        return error.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        echo(message.getvalue().removesuffix("\n"), err=True)
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        return _report_interruption(error)
    except BrokenPipeError:
        # Broken pipe, as with `head`; Python must not report it at exit.
        _discard_output()
        return Exit.CLEAN
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _report_unexpected(error)
    return int(exit_code) if isinstance(exit_code, int) else Exit.CLEAN


def _make_printing_safe() -> None:
    """Make printing never fail: replace characters that the encoding lacks, and closed streams.

    Otherwise Python raises an exception for such a character, and a closed stream is None.
    """
    for stream_name in ("stdout", "stderr"):
        stream = getattr(sys, stream_name)
        if stream is None:
            setattr(sys, stream_name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


_EXTRA_BY_MODULE = {
    **dict.fromkeys(("github", "requests", "urllib3"), "github"),
    **dict.fromkeys(("huggingface_hub", "yaml"), "hub"),
    **dict.fromkeys(("cryptography", "numpy", "py_arkworks_bls12381"), "records"),
    **dict.fromkeys(("safetensors", "scipy", "sklearn", "threadpoolctl"), "audit"),
    "pandas": "tables",
}
"""Extra of the package that installs a module, by name of the module."""


def _report_unexpected(error: Exception) -> Exit:
    """Print an unexpected exception as a missing extra, a machine failure or a bug of geneb-ci.

    Returns the exit code.
    """
    module = (getattr(error, "name", "") or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and module in _EXTRA_BY_MODULE:
        fix = f"pip install 'geneb-ci[{_EXTRA_BY_MODULE[module]}]'"
        if _EXTRA_BY_MODULE[module] == "records":
            fix += ", or pip install 'geneb-ci[audit]' to rerun tasks and receipts as well"
        _print_error(f"{module} is not installed, and this command needs it", fix)
        return Exit.USAGE
    fault = machine_fault(error) if isinstance(error, OSError) else None
    if fault is not None:
        _print_error(fault.message, fault.fix)
        _discard_output()
        return fault.exit_code
    damaged_file = damaged_bytecode(error)
    if damaged_file:
        _print_error(
            f"internal error: {damaged_file} is damaged: {error}",
            "remove that file, which Python writes again, and run the command again",
        )
        return Exit.OWN_FAULT
    _print_error(
        f"internal error: {type(error).__name__}: {error}",
        f"report this bug to the maintainers with the traceback, which {DEBUG_VARIABLE}=1 prints",
    )
    return Exit.OWN_FAULT


def _report_interruption(error: BaseException) -> int:
    """Print that the user stopped the command, or an exception that click reports in the same way.

    Returns the exit code.
    """
    unexpected = interrupting_error(error)
    if unexpected is None:
        _print_error("interrupted", "")
        return 130
    if os.environ.get(DEBUG_VARIABLE):
        raise unexpected
    return _report_unexpected(unexpected)


def _discard_output() -> None:
    """Discard buffered output, so that Python does not try to write it at exit."""
    output = sys.__stdout__
    if output is not None and sys.stdout is output:  # otherwise a test captures it
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def _print_error(message: str, fix: str) -> None:
    """Print a message to standard error, and the fix below."""
    # The message may contain untrusted names.
    echo(f"geneb-ci: {visible(message, len(message) * 10)}", err=True)
    if fix:
        echo(f"  fix: {visible(fix, len(fix) * 10)}", err=True)


UNLIMITED_COLUMNS = 10_000
"""Width in columns of a pipe, so that no line is wrapped."""


def echo(text: str, *, err: bool = False) -> None:
    """Print text; each line that is wider than the terminal is wrapped between words.

    The line of the next command is wrapped so that it can be copied.
    """
    columns = max(shutil.get_terminal_size((UNLIMITED_COLUMNS, 24)).columns, WIDTH_MIN)
    if len(text) > columns:
        import textwrap  # most lines are short

        text = "\n".join(
            line
            if len(line) <= columns
            else "\n".join(command_lines(line, columns))
            if line.startswith(NEXT_PREFIX)
            else textwrap.fill(
                line,
                columns,
                subsequent_indent=" " * (len(line) - len(line.lstrip()) + CONTINUATION_INDENT),
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in text.split("\n")
        )
    click.echo(text, err=err)


def say(line: str) -> None:
    """Print a line about progress, or a note, to standard error."""
    echo(line, err=True)


T = TypeVar("T")


def with_counted_progress(items: Iterable[T], earlier: int, total: int, label: str) -> Iterator[T]:
    """Yield the items, and print now and then how many of `total` are done.

    A line is printed every `PROGRESS_PAUSE_SECONDS` seconds. `earlier` is the number of items that
    were done before these.
    """
    start = printed_at = time.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - printed_at > PROGRESS_PAUSE_SECONDS:
            printed_at, seconds_left = now, (now - start) / number * (total - earlier - number)
            echo(
                f"{label}: {earlier + number} of {total}, about {seconds_left:.0f} s left", err=True
            )


def print_expected_time(label: str, seconds: float) -> None:
    """Print on a terminal how long work without countable steps takes, unless it is short."""
    if sys.stderr.isatty() and seconds > SILENT_SECONDS:
        say(f"{label}: about {seconds:.0f} s")


SILENT_SECONDS = 2.0
"""Seconds of work without progress on the terminal."""
PROGRESS_PAUSE_SECONDS = 5.0
"""Seconds between two lines of progress."""
CONTINUATION_INDENT = 4
"""Spaces before the continuation of a wrapped line."""
WIDTH_MIN = 40
"""Minimum width in columns to which a message is wrapped."""

HELP_ARGUMENTS = ((), ("-h",), ("--help",))
"""Arguments with which a command of the harness prints its help."""


def harness_command_line() -> list[str]:
    """Return the command line that starts the harness; its help shows `geneb-ci` as program."""
    from reference_harness.formats.processes import module_command  # typing, for `check`

    return [*module_command("reference_harness"), "--program", "geneb-ci"]


def run_harness(subcommand: str, *arguments: str) -> int:
    """Run a command of the harness in place of this process (exec).

    For help, and where exec does not exist, run it in a child process and return its exit code.
    """
    import subprocess  # 5 ms that `check` does not need

    command = [*harness_command_line(), subcommand, *arguments]
    if os.name == "posix" and arguments not in HELP_ARGUMENTS:
        sys.stdout.flush()
        os.execv(sys.executable, command)  # noqa: S606 (our own module)
    return subprocess.run(command, check=False).returncode  # noqa: S603 (our own module)

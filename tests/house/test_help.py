"""Every command and every option of both programs has a help text, which fits 80 columns."""

from collections.abc import Iterator

import click
import pytest
from rich.cells import cell_len

from geneb_ci.cli.main import COMMANDS as TABLE
from geneb_ci.cli.main import OLD_NAMES, SECTIONS, main
from geneb_ci.cli.main import cli as toolkit
from reference_harness.cli.main import cli as harness
from reference_harness.formats.layered_help import WHOLE_HELP_KEY
from tests.each import each


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command with its subcommands; those of the toolkit are imported when asked for."""
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None, f"{path} {name}"
            yield from commands(child, f"{path} {name}")


COMMANDS = dict([*commands(toolkit, "geneb-ci"), *commands(harness, "geneb-harness")])


def help_of(command: click.Command, path: str, *, whole: bool = False) -> list[str]:
    """Return the lines of a command's help, as `--help-all` writes them if `whole`."""
    context = click.Context(command, info_name=path, terminal_width=80)
    context.meta[WHOLE_HELP_KEY] = whole
    return command.get_help(context).splitlines()


def test_the_commands_of_both_programs_are_found():
    assert {"geneb-ci audit plan", "geneb-ci data push", "geneb-harness data pull"} <= set(COMMANDS)


@each("path", COMMANDS)
def test_every_option_has_a_help_text(path):
    command = COMMANDS[path]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    lacking = [option.opts[0] for option in options if not option.help]
    assert (bool(command.help), lacking) == (True, [])


@each("path", COMMANDS)
def test_every_help_fits_eighty_columns(path):
    shown = help_of(COMMANDS[path], path, whole=True)
    assert [line for line in shown if cell_len(line) > 80] == []


MOST = {"geneb-ci audit file": 8}
"""Options that the help of a command lists at most; 12 where nothing else is said."""


LISTED = [*(path for path in COMMANDS if path.startswith("geneb-ci")), "geneb-harness run"]
"""`geneb-ci run` is a command of the harness."""


@each("path", LISTED)
def test_help_lists_few_options_and_help_all_the_rest(path):
    """Beside `--help` itself, and `--help-all`, which a command has that leaves some out."""
    command = COMMANDS[path]
    listed = [line for line in help_of(command, path) if line.startswith(("  -", "  --"))]
    assert len(listed) - sum("--help" in line for line in listed) <= MOST.get(path, 12)
    hidden = [line for line in help_of(command, path, whole=True) if line.startswith("  --")]
    named = {word.rstrip(",") for line in hidden for word in line.split() if word[:2] == "--"}
    assert {
        parameter.opts[-1] for parameter in command.params if not getattr(parameter, "hidden", True)
    } <= named


def test_commands_are_listed_by_who_uses_them():
    shown = "\n".join(help_of(toolkit, "geneb-ci"))
    for heading, names in SECTIONS.items():
        section = shown.partition(f"{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line[2] != " "] == [*names]
    listed = {name for names in SECTIONS.values() for name in names}
    assert shown.endswith(f"{len(TABLE) - len(listed)} more commands: geneb-ci --help-all")
    whole = help_of(toolkit, "geneb-ci", whole=True)
    assert {*TABLE} <= {line.split()[0] for line in whole if line.startswith("  ")}


@pytest.mark.parametrize(("old", "name"), OLD_NAMES.items())
def test_an_old_name_works_and_says_the_present_one(old, name, capsys):
    assert main([old, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.err == f"'{old}' is now '{name}'; the next release will not accept the old name\n"
    assert main([name, "--help"]) == 0
    assert capsys.readouterr() == (shown.out, "")

"""Every command and every option of both programs has a help text, which fits 80 columns."""

from collections.abc import Iterator

import click
import pytest
from rich.cells import cell_len

from geneb_ci.cli.main import cli as toolkit
from reference_harness.cli import cli as harness


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


def test_the_commands_of_both_programs_are_found():
    assert {"geneb-ci audit plan", "geneb-ci data push", "geneb-harness data pull"} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_has_a_help_text(path):
    command = COMMANDS[path]
    options = [one for one in command.params if isinstance(one, click.Option)]
    lacking = [one.opts[0] for one in options if not one.help]
    assert (bool(command.help), lacking) == (True, [])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_fits_eighty_columns(path):
    command = COMMANDS[path]
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=80))
    assert [line for line in shown.splitlines() if cell_len(line) > 80] == []

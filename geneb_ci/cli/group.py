"""A group of commands, each imported when it is called."""

import importlib

import click


class LazyGroup(click.Group):
    """Commands by name with their line of help, each the `command` of a module of `geneb_ci.cli`.

    The module of a command is called `prefix` and its name.
    """

    table: dict[str, str]
    prefix: str = ""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's own signature)
        """Give the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(f"geneb_ci.cli.{self.prefix}{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the lines of help without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))

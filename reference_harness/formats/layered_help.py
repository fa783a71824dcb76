"""A short help of a command that has many options, and a whole one, in both programs."""

from collections.abc import Collection
from typing import Any

import click

WHOLE_HELP = "geneb_ci.whole_help"


def help_all_option() -> click.Option:
    """Return the option `--help-all`, which shows what `--help` leaves out, and ends."""

    def show(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            context.meta[WHOLE_HELP] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show everything, and exit.",
    )  # fmt: skip


class LayeredCommand(click.Command):
    """A command whose `--help` lists its common options, and whose `--help-all` lists every one."""

    def __init__(self, *args: Any, common: Collection[str], **attributes: Any) -> None:
        """Take the names of the common options, such as "--key", beside what a command takes."""
        super().__init__(*args, **attributes)
        self.common = frozenset({*common, "--help"})
        self._help_all = help_all_option()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters and `--help-all`, which is none of `params`, as `--help` is not."""
        return [*super().get_params(ctx), self._help_all]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options, or every option, then how many are left out."""
        options = [
            option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and not option.hidden
        ]
        is_whole = ctx.meta.get(WHOLE_HELP, False)
        shown = [option for option in options if is_whole or self.common & {*option.opts}]
        records = [record for option in shown if (record := option.get_help_record(ctx))]
        with formatter.section("Options" if is_whole else "Common options"):
            formatter.write_dl(records)
        if not is_whole:
            more = len(options) - len(shown) - 1  # --help-all is no option of the work
            formatter.write_paragraph()
            formatter.write_text(f"{more} more options: {ctx.command_path} --help-all")

"""A short help of a command with many options, and a complete one, in both programs."""

import sys
from collections.abc import Collection
from typing import Any, ClassVar

WHOLE_HELP_KEY = "geneb_ci.whole_help"
"""Key of click's `meta` that is true if `--help-all` was given."""


def help_all() -> dict[str, Any]:
    """Return the keyword arguments of click for the option `--help-all`, which prints all help."""

    def show(context: Any, _: Any, value: bool) -> None:
        if value and not context.resilient_parsing:
            context.meta[WHOLE_HELP_KEY] = True
            sys.stdout.write(f"{context.get_help()}\n")
            context.exit()

    return {
        "is_flag": True,
        "is_eager": True,
        "expose_value": False,
        "callback": show,
        "help": "Show everything, and exit.",
    }


class LayeredHelp:
    """A mixin of commands: `--help` lists the common options, and `--help-all` every one."""

    OPTION_CLASS: ClassVar[Any]
    """The class of the command's options, click's own or a subclass."""

    def __init__(self, *args: Any, common: Collection[str], **attributes: Any) -> None:
        """Store the names of the common options, such as "--key"; the command gets the rest."""
        super().__init__(*args, **attributes)
        self.common = frozenset({*common, "--help"})
        self._help_all = self.OPTION_CLASS(["--help-all"], **help_all())

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters and `--help-all`, which like `--help` is not in `params`."""
        return [*super().get_params(ctx), self._help_all]  # type: ignore[misc]  # of the command

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the common options, or every option, then the number of options left out."""
        options = [
            option
            for option in self.get_params(ctx)
            if isinstance(option, self.OPTION_CLASS) and not option.hidden
        ]
        is_complete = ctx.meta.get(WHOLE_HELP_KEY, False)
        listed_options = [
            option for option in options if is_complete or self.common & {*option.opts}
        ]
        records = [record for option in listed_options if (record := option.get_help_record(ctx))]
        with formatter.section("Options" if is_complete else "Common options"):
            formatter.write_dl(records)
        if not is_complete:
            hidden_count = len(options) - len(listed_options) - 1  # --help-all is not counted
            formatter.write_paragraph()
            formatter.write_text(f"{hidden_count} more options: {ctx.command_path} --help-all")

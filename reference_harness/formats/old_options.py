"""Earlier names of options in both programs, which work for one release with a notice."""

import sys
from typing import Any


def print_new_name(old: str, option: str) -> None:
    """Print to standard error that an option has a new name."""
    sys.stderr.write(f"{old} is now {option}; the next release will not accept the old name\n")


def earlier_name(old: str, option: str, parameter: str) -> dict[str, Any]:
    """Return the keyword arguments of click for a hidden option, the earlier name of another one.

    `old` is the hidden option's name, `option` is what to write instead, and `parameter` is the
    parameter of that option.
    """

    def apply_earlier(ctx: Any, _: Any, value: str | None) -> None:
        if value is not None:
            print_new_name(old, option)
            ctx.default_map = {**(ctx.default_map or {}), parameter: value}

    return {
        "hidden": True,
        "is_eager": True,
        "expose_value": False,
        "callback": apply_earlier,
        "help": f"Earlier name of {option}.",
    }

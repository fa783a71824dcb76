"""Earlier names of options, which work for one release and say the new one, in both programs."""

import sys
from typing import Any


def say_new_name(old: str, option: str) -> None:
    """Print the new name of an option to standard error."""
    sys.stderr.write(f"{old} is now {option}; the old name ends with the next release\n")


def earlier_name(old: str, option: str, name: str) -> dict[str, Any]:
    """Return the attributes, as click names them, of a hidden option that stands for another one.

    `old` is its name, `option` what to write now, and `name` the parameter of that.
    """

    def apply_earlier(ctx: Any, _: Any, value: str | None) -> None:
        if value is not None:
            say_new_name(old, option)
            ctx.default_map = {**(ctx.default_map or {}), name: value}

    return {
        "hidden": True,
        "is_eager": True,
        "expose_value": False,
        "callback": apply_earlier,
        "help": f"Earlier name of {option}.",
    }

"""The answers that a board was made from, as its repository has them."""

import tomllib
from pathlib import Path

from geneb_ci.common.errors import UsageProblem

ANSWERS_FILE = ".github/geneb-ci.toml"


def earlier_answers(root: Path) -> dict[str, str]:
    """Return what an earlier call wrote; empty without one. Raises UsageProblem."""
    path = root / ANSWERS_FILE
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageProblem(f"{path}: {error}", "delete it, and pass the options again") from error
    return {key: value for key, value in values.items() if isinstance(value, str)}

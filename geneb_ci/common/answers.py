"""The answers that a board was made from, as its repository has them."""

import tomllib
from pathlib import Path

from geneb_ci.common.errors import UsageProblem

ANSWERS_FILE, ALONE = ".github/geneb-ci.toml", "is_alone"
"""Answers to the questions of `geneb-ci init`, and its switch for a board of one maintainer."""


def earlier_answers(root: Path) -> dict[str, str]:
    """Return what an earlier call wrote; empty without one. Raises UsageProblem."""
    path = root / ANSWERS_FILE
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageProblem(f"{path}: {error}", "delete it, and pass the options again") from error
    as_words = {key: "true" if value is True else value for key, value in values.items()}
    return {key: value for key, value in as_words.items() if isinstance(value, str)}

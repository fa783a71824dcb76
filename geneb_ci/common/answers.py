"""Read the answers to `geneb-ci init`, which are saved in the repository of a board."""

import tomllib
from pathlib import Path

from geneb_ci.common.errors import UsageProblem

ANSWERS_FILE, ALONE = ".github/geneb-ci.toml", "is_alone"
"""The file of the answers, and its key for a board with a single maintainer."""


def saved_answers(root: Path) -> dict[str, str]:
    """Return key -> saved answer as text, such as "true"; {} if there is no file.

    Raises UsageProblem for invalid TOML.
    """
    path = root / ANSWERS_FILE
    if not path.is_file():
        return {}
    try:
        answers = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UsageProblem(
            f"{path} is not valid TOML: {error}",
            "delete the file, and run `geneb-ci init` with its options again",
        ) from error
    answer_texts = {
        option: "true" if answer is True else answer for option, answer in answers.items()
    }
    return {option: answer for option, answer in answer_texts.items() if isinstance(answer, str)}

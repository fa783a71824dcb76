"""What a rule needs besides the file itself; if it is unavailable, the rule is skipped."""

import enum

from geneb_ci.statistics.reference import ROWS_MIN


class Need(enum.StrEnum):
    """One requirement of a rule."""

    OTHER_ROWS = "other-rows"
    MANY_ROWS = "many-rows"
    COMPLETE_ROWS = "complete-rows"
    FOLDER = "submissions-folder"
    CARD = "model-card"
    EXTRACTOR = "extractor"
    TEST_SIZES = "test-sizes"
    CLASS_SIZES = "class-sizes"

    @property
    def text(self) -> str:
        """What is needed, as the object of "the rule needs"."""
        return _TEXTS[self][0]

    @property
    def fix(self) -> str:
        """How to provide it."""
        return _TEXTS[self][1]

    @property
    def in_practice(self) -> str:
        """Why a file of the practice benchmark is checked without it; "" if it can be provided."""
        return _IN_PRACTICE.get(self, "")


_ROWS = "run inside the repository or pass --against DIR"
_INSIDE = "put the file in a repository of submissions"
_IN_FOLDER = (
    f"{_INSIDE}: in submissions/ beside schemas/benchmark.json, or in the folder of the setting "
    "[tool.geneb-ci] submissions"
)
_TEXTS = {
    Need.OTHER_ROWS: ("the other rows", _ROWS),
    Need.MANY_ROWS: (f"at least {ROWS_MIN} other rows", _ROWS),
    Need.COMPLETE_ROWS: (f"at least {ROWS_MIN} other rows without missing cells", _ROWS),
    Need.FOLDER: ("the folder of submissions", _IN_FOLDER),
    Need.CARD: ("the model card", f"{_INSIDE}, and its card in submissions/cards/"),
    Need.EXTRACTOR: (
        "the extractor that the run names",
        f"{_INSIDE}, and its extractor in submissions/extractors/",
    ),
    Need.TEST_SIZES: (
        "the sizes of test splits",
        "the maintainers of the benchmark add n_test to its tasks",
    ),
    Need.CLASS_SIZES: (
        "the class sizes of test splits",
        "the maintainers of the benchmark add test_class_counts to its tasks",
    ),
}
_NO_ROWS = "has no rows to compare with"
_NEVER = "is for practice: its files are in no repository"
_IN_PRACTICE = {
    Need.OTHER_ROWS: _NO_ROWS,
    Need.MANY_ROWS: _NO_ROWS,
    Need.COMPLETE_ROWS: _NO_ROWS,
    Need.FOLDER: _NEVER,
    Need.CARD: _NEVER,
    Need.EXTRACTOR: _NEVER,
}
"""Predicate of a sentence about the practice benchmark."""

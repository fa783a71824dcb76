"""What a rule needs beside the file itself: where that is not at hand, the rule is not run."""

import enum

from geneb_ci.statistics.reference import ROWS_MIN


class Need(enum.StrEnum):
    """One thing that a rule cannot do without."""

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
        """Complete "a rule needs"."""
        return _TEXTS[self][0]

    @property
    def fix(self) -> str:
        """Say how to have it."""
        return _TEXTS[self][1]


_ROWS = "run inside the repository or pass --against DIR"
_INSIDE = "check it among the submissions of a repository"
_TEXTS = {
    Need.OTHER_ROWS: ("the other rows", _ROWS),
    Need.MANY_ROWS: (f"at least {ROWS_MIN} other rows", _ROWS),
    Need.COMPLETE_ROWS: (f"at least {ROWS_MIN} other rows without gaps", _ROWS),
    Need.FOLDER: ("the folder of submissions", _INSIDE),
    Need.CARD: ("the model card", f"{_INSIDE}, where cards are known"),
    Need.EXTRACTOR: ("the extractor that the run names", f"{_INSIDE}, with its extractor"),
    Need.TEST_SIZES: ("the sizes of test splits", "add n_test to the tasks of the benchmark"),
    Need.CLASS_SIZES: (
        "the class sizes of test splits",
        "add test_class_counts to the tasks of the benchmark",
    ),
}

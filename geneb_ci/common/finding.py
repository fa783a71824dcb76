"""Faults that rules find, findings that reports show, and data that rules need.

A finding adds position, severity and fix to a fault.
"""

import enum
import math
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from geneb_ci.common.errors import UsageProblem
from reference_harness.formats.text import quoted

KeyPath = tuple[str | int, ...]
"""Path of a value in a document: keys of objects and indices of arrays, from the root."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem that a rule found in the document."""

    rule: str
    """Id of the rule."""
    path: KeyPath
    """Member that has the problem; () for the document as a whole."""
    message: str
    found: str = ""
    """The value in the document, in a few words."""
    expected: str = ""
    """The expected value, in a few words."""
    at: int | None = None
    """Offset of the problem in code points; None if the position follows from `path`."""
    on_key: bool = False
    """Whether the problem is shown at the key of the member, not at its value."""
    fix: str = ""
    """Advice for this fault, if it is more specific than that of the rule."""
    card: bool = False
    """Whether the fault is in the model card rather than in the submission."""
    file: str = ""
    """Another file that has the fault, such as the extractor; `at` is then a line, from 1."""
    score: float = 0.0
    """Points for triage, which sorts files by the sum: from 1 at the rule's threshold to 10 for the
    most unusual value; 0 if the rule has no scale."""
    unlisted: int = 0
    """Number of other faults of the rule, which are not listed."""


def pointer(path: KeyPath) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


class Severity(enum.StrEnum):
    """Severity of a finding; only errors fail a submission."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Position(NamedTuple):
    """Position in a text: line and column, both from 1; the column counts code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a submission, as reports show it.

    `pointer` is a JSON Pointer (RFC 6901), "" for the whole document. `found` and `expected` are
    short texts, safe to print: contributor text in them is JSON-escaped ASCII.
    """

    rule: str
    """Id of the rule."""
    severity: Severity
    message: str
    file: str
    pointer: str
    line: int
    column: int
    found: str
    expected: str
    fix: str
    score: float = 0.0
    """Points from 1 at the rule's threshold to 10 for the most unusual value; 0 if the rule has no
    scale."""
    unlisted: int = 0
    """Number of other findings of the rule in this file, which are not listed."""

    def sort_key(self) -> tuple[str, int, int, str, str, str]:
        """Return the sort key of reports: by position, then by rule."""
        return (self.file, self.line, self.column, self.pointer, self.rule, self.message)


HIDING_CHARACTERS = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u2028\u2029"  # line ends that only some programs recognise
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder what is shown
    "\u00ad\u034f\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"  # are not shown
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # neither are marks and tags
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters that are blank
    "]"
)
"""Characters that hide or reorder text: refused in a submission, escaped in output."""


def first_and_more(items: list[str], limit: int = 5) -> str:
    """Return the first items and the number of the others: "a, b and 3 more"."""
    if len(items) <= limit:
        return ", ".join(items)
    return f"{', '.join(items[:limit])} and {len(items) - limit} more"


def percent(share: float) -> str:
    """Return a share as "12 %"; only 1 is "100 %", and only 0 is "0 %"."""
    rounded = f"{100 * share:.0f}"
    if rounded == "100" and share < 1:
        return f"{math.floor(1000 * share) / 10} %"
    if rounded == "0" and share > 0:
        return f"{math.ceil(1000 * share) / 10} %"
    return f"{rounded} %"


NAME_SIMILARITY_MIN = 0.6
"""Minimum similarity (ratio of difflib) of a name that is suggested for an unknown name."""


def name_hint(unknown: str, known_names: list[str]) -> str:
    """Return "; did you mean ...?" with the most similar known name; "" if none is similar."""
    nearest_name = most_similar_name(unknown, known_names)
    return "" if nearest_name is None else f'; did you mean "{nearest_name}"?'


def most_similar_name(unknown: str, known_names: list[str]) -> str | None:
    """Return the most similar known name; None if no similarity reaches `NAME_SIMILARITY_MIN`."""
    folded = {original.casefold(): original for original in known_names}
    similar = [unknown.casefold()] if unknown.casefold() in folded else []
    if not similar:
        import difflib  # most runs need no suggestion

        similar = difflib.get_close_matches(
            unknown.casefold(), folded, n=1, cutoff=NAME_SIMILARITY_MIN
        )
    return folded[similar[0]] if similar else None


def member_hint(unknown: str, known_names: Iterable[str], present: Container[str]) -> str:
    """Return a hint for an unknown member: a similar name that is missing, else that exists.

    Return "" if no known member has a similar name.
    """
    members = [*known_names]
    missing = name_hint(unknown, [member for member in members if member not in present])
    if missing:
        return missing
    nearest_member = most_similar_name(unknown, members)
    return "" if nearest_member is None else f'; "{nearest_member}" exists already'


NAMES_IN_FIX_MAX = 3
"""Maximum number of names that one fix renames."""
NAME_SEARCHES_MAX = 20
"""Maximum number of searches for a similar name in one file; each takes up to a millisecond."""


def renaming_fix(unknown: Iterable[str], missing: Iterable[str], fix: str) -> str:
    """Return the fix that renames unknown names to similar missing names; "" if none is similar.

    It ends with `fix` if more names are missing.
    """
    unmatched_names, pairs = [*missing], []
    for unknown_name in [*unknown][:NAME_SEARCHES_MAX] if unmatched_names else ():
        nearest_name = most_similar_name(unknown_name, unmatched_names)
        if nearest_name is not None:
            unmatched_names.remove(nearest_name)
            pairs.append(f"{quoted(unknown_name)} to {quoted(nearest_name)}")
    if not pairs:
        return ""
    remaining_fix = f" {fix}" if unmatched_names and fix else ""
    return f"Rename {first_and_more(pairs, NAMES_IN_FIX_MAX)}, if that is meant.{remaining_fix}"


def known_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that equals `name`, or differs from it only in letter case.

    Return None if there are none or several.
    """
    candidates = {*known_names}
    folded = [candidate for candidate in candidates if candidate.casefold() == name.casefold()]
    return name if name in candidates else folded[0] if len(folded) == 1 else None


def exact_name(name: str, known_names: Sequence[str], noun: str, fix: str = "") -> str:
    """Return the known name that equals `name`, or differs from it only in letter case.

    Raises UsageProblem if there is none. Its message says that `name` is not a `noun`, and suggests
    a similar name; its fix is `fix`, by default the list of the known names.
    """
    match = known_name(name, known_names)
    if match is None:
        raise UsageProblem(
            f"{quoted(name)} is not a {noun}{name_hint(name, list(known_names))}",
            fix or f"name one of {', '.join(known_names)}",
        )
    return match


ROWS_MIN = 8
"""Minimum number of other rows for rules that compare a row with the usual differences."""


class Need(enum.StrEnum):
    """Inputs of a rule besides the submission, such as other rows or the model card."""

    OTHER_ROWS = "other-rows"
    MANY_ROWS = "many-rows"
    """At least `ROWS_MIN` other rows."""
    COMPLETE_ROWS = "complete-rows"
    """At least `ROWS_MIN` other rows without missing cells."""
    FOLDER = "submissions-folder"
    """That the file is in the folder of submissions of a repository."""
    CARD = "model-card"
    EXTRACTOR = "extractor"
    TEST_SIZES = "test-sizes"
    """The number of test sequences of at least one task."""
    CLASS_SIZES = "class-sizes"
    """The number of test sequences of each class of at least one task."""

    @property
    def text(self) -> str:
        """The need, in words that follow "the rule needs"."""
        return _TEXT_AND_FIX[self][0]

    @property
    def fix(self) -> str:
        """Instruction for providing what is missing."""
        return _TEXT_AND_FIX[self][1]

    @property
    def pull_request_fix(self) -> str:
        """Advice in a report on a pull request, if it is not `fix`; else ""."""
        return _FEW_ROWS_ON_MAIN if _TEXT_AND_FIX[self][1] == _ROWS_FIX else ""

    @property
    def practice_reason(self) -> str:
        """Reason why the practice benchmark never meets the need, as a predicate after its name.

        It is "" if the need can be met.
        """
        return _PRACTICE_REASONS.get(self, "")


_ROWS_FIX = "run inside the repository or pass --against DIR"
_FEW_ROWS_ON_MAIN = "main has fewer rows: these rules run as soon as main has enough"
_INSIDE_FIX = "put the file in a repository of submissions"
_IN_FOLDER_FIX = (
    f"{_INSIDE_FIX}: in submissions/ beside schemas/benchmark.json, or in the folder of the "
    "setting [tool.geneb-ci] submissions"
)
_TEXT_AND_FIX = {
    Need.OTHER_ROWS: ("the other rows", _ROWS_FIX),
    Need.MANY_ROWS: (f"at least {ROWS_MIN} other rows", _ROWS_FIX),
    Need.COMPLETE_ROWS: (f"at least {ROWS_MIN} other rows without missing cells", _ROWS_FIX),
    Need.FOLDER: ("the folder of submissions", _IN_FOLDER_FIX),
    Need.CARD: ("the model card", f"{_INSIDE_FIX}, and its card in submissions/cards/"),
    Need.EXTRACTOR: (
        "the extractor that the run names",
        f"{_INSIDE_FIX}, and its extractor in submissions/extractors/",
    ),
    Need.TEST_SIZES: (
        "the sizes of test splits",
        "ask the maintainers of the benchmark to add n_test to each task",
    ),
    Need.CLASS_SIZES: (
        "the class sizes of test splits",
        "ask the maintainers of the benchmark to add test_class_counts to each task",
    ),
}
"""Text and fix of each need."""
_PRACTICE_WITHOUT_ROWS = "has no rows to compare with"
_PRACTICE_OUTSIDE_REPOSITORY = "is for practice, and its files are not in a repository"
_PRACTICE_REASONS = {
    Need.OTHER_ROWS: _PRACTICE_WITHOUT_ROWS,
    Need.MANY_ROWS: _PRACTICE_WITHOUT_ROWS,
    Need.COMPLETE_ROWS: _PRACTICE_WITHOUT_ROWS,
    Need.FOLDER: _PRACTICE_OUTSIDE_REPOSITORY,
    Need.CARD: _PRACTICE_OUTSIDE_REPOSITORY,
    Need.EXTRACTOR: _PRACTICE_OUTSIDE_REPOSITORY,
}
"""Need -> reason why the practice benchmark never meets it, as a predicate after its name."""

"""display-name-form: the display name is more than one line, or stacks combining marks."""

from collections.abc import Iterator

from geneb_ci.check.context import Context
from geneb_ci.check.rule import Rule
from geneb_ci.common.finding import Severity, quoted
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.skeleton import MARKS_MAX, has_stacked_marks

ID = "display-name-form"


def check(context: Context) -> Iterator[Fault]:
    """Report a display name with line ends or tabs, or with many marks on one letter."""
    name = context.text("meta", "display")
    if not name:
        return
    # Other line ends hide text: forbidden-character reports them.
    if name != name.strip(" \n\r\t") or any(blank in name for blank in "\n\r\t"):
        yield _fault(name, "has a line end, a tab or blanks at an end", "one line of text")
    if has_stacked_marks(name):
        what = f"has more than {MARKS_MAX} combining marks in a row"
        yield _fault(name, what, f"at most {MARKS_MAX} marks on a letter")


def _fault(name: str, what: str, expected: str) -> Fault:
    message = f"display {quoted(name)} {what}"
    return Fault(ID, ("meta", "display"), message, quoted(name), expected)


RULE = Rule(
    id=ID,
    severity=Severity.ERROR,
    what="The display name is not one line of readable text.",
    why="It would break the table, or cover the rows above and below it.",
    fix="Write the name on one line, without blanks at its ends and with the usual letters.",
    check=check,
)

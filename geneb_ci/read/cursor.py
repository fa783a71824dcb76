"""A place in a text, what to say of it, and the faults noted on the way."""

import re
from collections.abc import Callable
from typing import Final, cast

from geneb_ci.finding import shown
from geneb_ci.read.fault import Fault, Path

# Three regimes of 100 tasks with three metrics over five seeds are 4,500 numbers: a file in which
# each is NaN is still read to its end. More is not the work of a slip, and costs memory.
FAULTS_MAX = 5_000


class _Unusable:
    """Stands where a value was refused, so that no later rule reports it again."""

    def __repr__(self) -> str:
        return "<refused>"


UNUSABLE: Final = _Unusable()


class Stop(Exception):  # noqa: N818 (not an error: the end of what can be read)
    """The rest of the text cannot be read."""


Matcher = Callable[[str, int], re.Match[str]]


def always(pattern: str) -> Matcher:
    """Compile a pattern that matches the empty text, so that it always matches."""
    return cast("Matcher", re.compile(pattern).match)


_blank = always(r"[ \t\n\r]*")


class Cursor:
    """What every part of the scanner shares."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.faults: list[Fault] = []

    def fault(
        self, rule: str, path: Path, message: str, found: str, expected: str, at: int
    ) -> None:
        """Note a fault and go on; stop when there are too many."""
        self.faults.append(Fault(rule, path, message, found, expected, at=at))
        if len(self.faults) >= FAULTS_MAX:
            raise Stop

    def stop(self, fault: Fault) -> Stop:
        """Note a fault after which the rest cannot be read; the caller raises what this gives."""
        self.faults.append(fault)
        return Stop()

    def syntax(self, message: str, found: str, expected: str, at: int | None = None) -> Stop:
        """Note a fault of the grammar; the caller raises what this gives."""
        place = self.at if at is None else at
        return self.stop(Fault("invalid-json", (), message, found, expected, at=place))

    def skip_blank(self) -> None:
        """Go to the next character that is not blank."""
        self.at = _blank(self.text, self.at).end()

    def peek(self) -> str:
        """Name what stands at the present place."""
        if self.at >= len(self.text):
            return "the end of the file"
        return shown(self.text[self.at])

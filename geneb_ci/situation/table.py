"""Tables of situations: the first one that applies to a state returns its lines and command."""

import json
import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.render.plain import visible
from reference_harness.formats.text import command_lines, next_line

STEP_LINES_MAX = 10
"""Maximum number of lines that `geneb-ci next` prints in a terminal of 80 columns."""
STEP_COLUMNS = 80
"""Width of a terminal, in characters, for which steps are written."""
LINE_CHARACTERS_MAX = 400
"""Maximum characters of a line, which may contain names chosen by contributors."""
COMMAND_CHARACTERS_MAX = 10_000
"""Maximum characters of a command, which names at most the files of one submission."""


def is_board(layout: Layout) -> bool:
    """Whether a folder with this layout is in the repository of a board."""
    return layout.kind is not LayoutKind.ALONE and layout.submissions is not None


def board_address(repository: str) -> str:
    """Return the address of a board's repository; for the name "", an address with OWNER/NAME."""
    return f"https://github.com/{repository or 'OWNER/NAME'}"


def repository_name(answers: Mapping[str, str] | None = None) -> str:
    """Return OWNER/NAME from the answers of `geneb-ci init`, else GITHUB_REPOSITORY, else ""."""
    return (answers or {}).get("repository") or os.environ.get("GITHUB_REPOSITORY", "")


BOARD_ADDRESS = board_address("")
"""Address of a board with placeholders, for a board whose repository is unknown."""
NO_COMMAND = "nothing"
"""Text in place of a command if nothing is left to do."""


class TitledState(Protocol):
    """The state of a branch or a board, with the first line to print about it."""

    @property
    def title(self) -> str:
        """The line printed above the lines of the situation; "" for none."""


State = TypeVar("State", bound=TitledState)


class Role(StrEnum):
    """Role of the person who takes the next step."""

    CONTRIBUTOR = "contributor"
    MAINTAINER = "maintainer"


class Situation(NamedTuple, Generic[State]):
    """A situation of a user: the states that it applies to, and the lines and command to print."""

    name: str
    about: str
    """A description, for the list in docs/reference/next.md."""
    applies: Callable[[State], object]
    """A function that returns a true value for a state in this situation."""
    lines: Callable[[State], Iterable[str]]
    """A function that returns the lines that describe the state, below its title."""
    command: Callable[[State], str]
    """A function that returns the next command; "" if nothing is left to do."""


@dataclass(frozen=True)
class NextStep:
    """The situation of a contributor or a maintainer in words, and the next command."""

    role: Role
    situation: str
    """Name of the situation, as docs/reference/next.md lists them."""
    lines: tuple[str, ...]
    """Lines that describe the state, the most important first."""
    command: str
    """The command, with its arguments; "" if nothing is left to do."""

    def text(self, width: int = STEP_COLUMNS) -> str:
        """Return the text that `geneb-ci next` prints: at most ten lines in 80 columns."""
        command_text = list(command_lines(next_line(self.command or NO_COMMAND), width))
        fitting_lines: list[str] = []
        for line in self.lines:
            wrapped = textwrap.wrap(
                line,
                width,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            if len(fitting_lines) + len(wrapped) + len(command_text) > STEP_LINES_MAX:
                break
            fitting_lines += wrapped
        return "".join(f"{line}\n" for line in [*fitting_lines, *command_text])

    def to_json(self) -> str:
        """Return the JSON that `geneb-ci next --format json` prints."""
        document = {
            "role": self.role,
            "situation": self.situation,
            "lines": self.lines,
            "next": self.command,
        }
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    def _repr_html_(self) -> str:
        """Return the step as a table, for a notebook."""
        from geneb_ci.render.table import Table

        rows = [*((line,) for line in self.lines), (next_line(self.command or NO_COMMAND),)]
        return Table((self.role,), rows).html(self.situation)


def step_of(role: Role, state: State, table: Sequence[Situation[State]]) -> NextStep:
    """Return the step of the first situation of a table that applies; the last one always does.

    The result depends only on the arguments: no file, clock or network is read.
    """
    situation = next(row for row in table if row.applies(state))
    lines = (state.title, *situation.lines(state))
    command = visible(situation.command(state), COMMAND_CHARACTERS_MAX)
    visible_lines = tuple(visible(line, LINE_CHARACTERS_MAX) for line in lines if line)
    return NextStep(role, situation.name, visible_lines, command)


def at_root(command: str, root: Path, folder: Path) -> str:
    """Return a command that changes from `folder` to the root of its repository and runs there."""
    if not command or root == folder:
        return command
    return f"{shlex.join(['cd', os.path.relpath(root, folder)])} && {command}"

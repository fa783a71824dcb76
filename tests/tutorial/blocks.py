"""The fenced blocks of a page as a session: commands that are typed, files that are saved.

What to do with a block stands in a comment above it, which readers of the page do not see:
`<!-- file: PATH -->` saves it, `<!-- exit code N -->` is what its last command exits with,
`<!-- run by FILE -->` names a test of its own, or a tool, that runs it, and
`<!-- not run: REASON -->` leaves it out. A block of shell commands that has no comment is run.

`tools/tutorials.py` reads this module with nothing but the standard library.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PROGRAMS = {"geneb-ci": "geneb_ci", "geneb-harness": "reference_harness"}
SHELL = "console"
ANYTHING = "..."
"""A line of it stands for any lines, and at the end of a line for the rest of that line."""
COLUMNS = 80
Done = subprocess.CompletedProcess[str]
Run = Callable[[list[str], Path, Mapping[str, str]], Done]


class DiffersError(AssertionError):
    """A command does not do what the page shows."""


class Block(NamedTuple):
    """A block of a page."""

    kind: str
    text: str
    note: str
    """The comment above it."""
    line: int

    @property
    def reason(self) -> str | None:
        """Return why it is not run, or None."""
        return self._after("not run: ")

    @property
    def test(self) -> str | None:
        """Return the test of its own, or the tool, that runs it, or None."""
        return self._after("run by ")

    @property
    def file(self) -> str | None:
        """Return the path that it is saved as, or None."""
        return self._after("file: ")

    def _after(self, word: str) -> str | None:
        return self.note.removeprefix(word) if self.note.startswith(word) else None

    def typed(self) -> list[tuple[str, str]]:
        """Return each command with the output that the page shows for it."""
        text = self.text.replace("\\\n", "")
        parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
        if parts[0]:
            message = f"line {self.line}: a block of commands begins with `$ `"
            raise ValueError(message)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in order."""
    return [
        Block(
            result["kind"],
            result["text"],
            result["note"] or "",
            page.count("\n", 0, result.start()),
        )
        for result in BLOCK.finditer(page)
    ]


def is_shown(shown: str, printed: str) -> bool:
    """Return whether output is what a page shows, but for white space at the ends of lines."""
    lines = [line.rstrip() for line in shown.splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else _line(line) + r"\n" for line in lines)
    text = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, text) is not None


def _line(shown: str) -> str:
    return ".*".join(re.escape(part) for part in shown.split(ANYTHING))


def in_shell(words: list[str], folder: Path, environment: Mapping[str, str]) -> Done:
    """Run a program as a shell does: the first of its name on the PATH of the environment."""
    program = shutil.which(words[0], path=environment["PATH"])
    if program is None:
        return subprocess.CompletedProcess(words, 127, "", f"{words[0]}: command not found\n")
    return subprocess.run(
        [program, *words[1:]],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def in_fork(words: list[str], folder: Path, environment: Mapping[str, str]) -> Done:
    """Run one of our programs, in a fork of a process that has its libraries loaded."""
    from tests import forked  # it needs what the harness needs

    return forked.run(PROGRAMS[words[0]], *words[1:], cwd=folder, env=environment)


class Session:
    """A shell in a folder, that types what a page says.

    `run` runs our own programs, `own` is the file whose blocks (`run by FILE`) are typed as well.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], run: Run = in_fork, own: str = ""
    ) -> None:
        self.folder = folder
        self.environment = environment
        self.run = run
        self.own = own
        self.typed = 0
        self.wide: list[str] = []
        """Lines of our programs that are wider than the terminal, but for one word."""

    def play(self, block: Block) -> None:
        """Save or type a block. Fails unless each command prints what the page shows."""
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            return
        if block.kind != SHELL or block.reason is not None or block.test not in {None, self.own}:
            return
        commands = block.typed()
        for number, (command, shown) in enumerate(commands, 1):
            code = re.fullmatch(r"exit code (\d+)", block.note) if number == len(commands) else None
            self.type(command, shown, int(code[1]) if code else 0)

    def type(self, command: str, shown: str, code: int) -> None:
        """Run a command and compare its exit code and output."""
        self.typed += 1
        words = shlex.split(command)
        if words[0] == "cd":
            self.folder /= words[1]
            return
        run = self.run if words[0] in PROGRAMS else in_shell
        done = run(words, self.folder, self.environment)
        printed = f"{done.stdout}{done.stderr}"  # as on a screen, where the verdict comes last
        if words[0] in PROGRAMS:
            lines = printed.splitlines()
            self.wide += [line for line in lines if len(line) > COLUMNS and " " in line.strip()]
        if done.returncode != code:
            raise DiffersError(
                f"$ {command}\nexit code {done.returncode}, expected {code}\n{printed}"
            )
        if shown and not is_shown(shown, printed):
            raise DiffersError(f"$ {command}\n{printed}")

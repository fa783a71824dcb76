"""Runs the command that `geneb-ci next` prints, as its reader would type it."""

import datetime as dt
import os
import shlex
import subprocess
from pathlib import Path

from geneb_ci import next_step
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.situation.table import STEP_LINES_MAX, NextStep
from tests.git import git

NOW = dt.datetime(2026, 11, 23, 12, 0, tzinfo=dt.UTC)
EDITOR = "${EDITOR:-vi}"
Words = list[str]


def step(now: dt.datetime = NOW, **options: str) -> NextStep:
    """Return the next step in the current folder; it fits ten lines of 80 columns."""
    find_layout.cache_clear()
    before = contents(Path.cwd())
    advised_step = next_step(now=now, **options)
    assert contents(Path.cwd()) == before, "it wrote something"
    lines = advised_step.text().splitlines()
    assert len(lines) <= STEP_LINES_MAX, advised_step.text()
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
    return advised_step


def contents(root: Path) -> dict[str, tuple[int, int]]:
    """Return time and size of each file below a folder, git's own included."""
    stats = {
        f"{folder}/{name}": Path(folder, name).lstat()
        for folder, _, names in os.walk(root)
        for name in names
    }
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()}


def carry_out(command: str, edit: str = "") -> list[int]:
    """Run a command with `&&`; an editor writes `edit`. Return the exit codes of what was run."""
    codes: list[int] = []
    for words in split(command):
        codes.append(run(words, edit))
        if codes[-1]:
            break
    find_layout.cache_clear()
    return codes


def split(command: str) -> list[Words]:
    """Return the commands of a chain, as words."""
    chain: list[Words] = [[]]
    for word in shlex.split(command):
        if word == "&&":
            chain.append([])
        else:
            chain[-1].append(word)
    return chain


def run(words: Words, edit: str) -> int:
    if words[0] == "geneb-ci":
        return main(words[1:])
    if words[0] == "git":
        try:
            git(Path.cwd(), *words[1:])
        except subprocess.CalledProcessError as error:
            return int(error.returncode)
        return 0
    if words[0] == EDITOR:
        Path(words[1]).write_text(edit, encoding="utf-8")
        return 0
    if words[0] == "geneb-harness":
        return 0  # it runs the contributor's own code
    assert words[0] in {"mkdir", "mv"}, words
    return subprocess.run(words, check=False, env={"PATH": os.environ["PATH"]}).returncode

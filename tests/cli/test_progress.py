"""What may take more than two seconds shows on a terminal how much time it takes or is left."""

import re
import sys

import click
import pytest

from geneb_ci.cli import main as program
from geneb_ci.cli import shared
from tests.cli.test_check import Terminal
from tests.gate import gated
from tests.git import board_of_rows
from tests.house.test_help import COMMANDS
from tests.paths import outside_rows

ROWS = ("GROVER", "space", "gena-lm-bert-base")
SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "geneb-ci check": ("submissions", ("checking",)),
    "geneb-ci trust": ("", ("checking",)),
    "geneb-ci build": ("--output {out}", ("checking", "building the board")),
    "geneb-ci recommend": ("--category Promoters", ("checking",)),
    "geneb-ci figures": ("", ("checking",)),
    "geneb-ci export": ("--format csv --output {out}", ("checking",)),
    "geneb-ci publish": (
        "--space a/b --dry-run --expect other",
        ("reading the history", "checking", "building the board"),
    ),
    "geneb-ci ledger": ("", ("reading the history",)),
    "geneb-ci explain": ("GROVER", ("reading the history",)),
    "geneb-ci diff": ("--base HEAD", ("comparing the boards",)),
}  # fmt: skip
"""Command to the words that follow it, and to the phases that show what is left."""
ELSEWHERE = {
    "tests/cli/test_replay.py": ("geneb-ci replay",),
    "tests/cli/test_check.py": ("geneb-ci serve", "geneb-ci rollback"),
    "tests/receipt/test_remaining.py": (
        *("geneb-ci receipt verify", "geneb-ci receipt push", "geneb-ci receipt pull"),
        *("geneb-ci receipt predictions", "geneb-ci compare", "geneb-ci receipt near"),
    ),
    "tests/harness/test_harness_cli.py": (
        *(
            "geneb-ci data",
            "geneb-ci probe",
            "geneb-ci run",
            "geneb-ci extractor",
            "geneb-ci data push",
        ),
        *(path for path in COMMANDS if path.startswith("geneb-harness")),
    ),
    "tests/audit/test_journey.py": tuple(p for p in COMMANDS if p.startswith("geneb-ci audit")),
}
"""Test to the commands that do the same work, watched by the same function, or have it run by
another program that says how far it is."""
QUICK = (
    *("geneb-ci rules", "geneb-ci next", "geneb-ci matrices", "geneb-ci pack", "geneb-ci new"),
    *("geneb-ci models list", "geneb-ci models show", "geneb-ci models verify"),
    *("geneb-ci upgrade", "geneb-ci doctor", "geneb-ci init"),
    *("geneb-ci receipt pairs", "geneb-ci receipt seen"),
    *("geneb-ci reconcile", "geneb-ci report", "geneb-ci triage"),
)
"""One file, one model or one machine; `init` prints a line as it goes; the last three run in jobs,
where nobody waits before a terminal."""


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory):
    """Make a board of a few public rows, of which one came in a later commit."""
    root = tmp_path_factory.mktemp("slow")
    board_of_rows(root, *ROWS)
    return root


def test_each_command_is_slow_and_shows_it_or_quick():
    elsewhere = {command_path for value in ELSEWHERE.values() for command_path in value}
    leaves = {
        path
        for path, command in COMMANDS.items()
        if not isinstance(command, click.Group) or command.invoke_without_command
    }
    assert leaves - {*SHOWN, *elsewhere, *QUICK} == set()
    assert {*SHOWN, *QUICK} <= leaves
    assert {*SHOWN} & {*QUICK, *elsewhere} == set()
    assert [
        folder_name for folder_name in ELSEWHERE if not outside_rows(folder_name).exists()
    ] == []


@pytest.mark.parametrize("path", gated(SHOWN, *list(SHOWN)[::3]))
def test_a_slow_command_shows_what_is_left(repository_folder, tmp_path, monkeypatch, path):
    words, phases = SHOWN[path]
    terminal = Terminal()
    monkeypatch.chdir(repository_folder)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shared, "SILENT_SECONDS", 0.0)
    for name in ("SILENT_SECONDS", "PROGRESS_PAUSE_SECONDS"):
        monkeypatch.setattr(program, name, 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    arguments = [path.split()[1], *words.format(out=tmp_path / "out").split()]
    program.main(arguments)
    for phase in phases:
        lines = [line for line in terminal.text.splitlines() if line.startswith(f"{phase}: ")]
        assert any(re.search(r"about \d+ s", line) for line in lines), terminal.text

"""Each command, with real input and with what it refuses: no line is wider than the terminal."""

import os
import sys

import click
import pytest
from rich.cells import cell_len

from geneb_ci.audit.sampling.plan import commitment_text
from geneb_ci.cli.main import main
from reference_harness.cli import main as harness
from tests.audit.recorded import (
    commitment,
    mutated,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)
from tests.git import git
from tests.house.test_help import COMMANDS

COLUMNS = 80
TERMINAL = {
    "COLUMNS": str(COLUMNS),
    "NO_COLOR": "1",
    "TERM": "dumb",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
"""A narrow terminal of somebody who commits, on machines too whose git knows nobody."""
ROW = "submissions/model.json"
CASES: dict[str, tuple[tuple[str, int], ...]] = {
    "geneb-ci check": (("submissions", 0), ("nowhere.json", 3), ("--base main", 3), ("--pr 0", 2)),
    "geneb-ci rules": (("", 0), ("x", 2)),
    "geneb-ci explain": (
        ("model-id-collision", 0), ("plausibility", 0), ("model", 0), ("nothing", 2),
    ),
    "geneb-ci next": (("", 0), ("--as maintainer", 0), ("--as nobody", 2)),
    "geneb-ci matrices": ((ROW, 3), ("x.json", 3)),
    "geneb-ci trust": (("", 0), ("nowhere", 2)),
    "geneb-ci build": (("--output out --no-diagnostics", 0), ("nowhere --output out", 2)),
    "geneb-ci serve": (("--port 99999", 2),),
    "geneb-ci recommend": (("--category Promoters", 1), ("--category promotor", 2)),
    "geneb-ci figures": (("--scope board", 0), ("--figure nothing", 2)),
    "geneb-ci publish": (("--space a/b", 1), ("--space ab", 2)),
    "geneb-ci rollback": (("abc --space a/b", 2), ("", 2)),
    "geneb-ci ledger": (("", 0), ("--at nothing", 2)),
    "geneb-ci diff": (("--base main", 0), ("--base nothing", 2)),
    "geneb-ci replay": (("--rules main", 2), ("--rules nothing", 2)),
    "geneb-ci pack": ((". --model-id x --display x --params 5", 3), ("nowhere --model-id x", 2)),
    "geneb-ci export": (("--format csv --output tables", 0), ("--format nothing --output out", 2)),
    "geneb-ci audit file": ((f"{ROW} --unsigned", 11), ("nowhere.json --unsigned", 3)),
    "geneb-ci audit queue": (("nowhere.json", 3), ("", 3), ("--from nowhere.toml", 3)),
    "geneb-ci audit commit": ((ROW, 11), ("nowhere.json", 3)),
    "geneb-ci audit plan": (
        ("c.json --committed-at yesterday", 2),
        ("c.json --detect 1 --confidence 0.9", 0),
        ("nowhere.json", 3),
    ),
    "geneb-ci audit run": (("c.json --data . --unsigned", 3), ("nowhere.json", 3)),
    "geneb-ci audit verify": (("", 0), ("x.json", 11), ("nowhere.json", 3)),
    "geneb-ci audit fresh commit": (("x.json", 2), ("nowhere.csv", 2)),
    "geneb-ci audit fresh release": (("x.json x.json", 3), ("nowhere.csv f.json", 3)),
    "geneb-ci audit fresh check": (("x.json x.json", 3), ("nowhere.json f.json", 3)),
    "geneb-ci audit open": (("", 2), ("--pr 0", 2)),
    "geneb-ci audit job": (("", 2),),
    "geneb-ci audit send": (("--flavor nothing", 2), ("", 2)),
    "geneb-ci audit deliver": (("--key nowhere.pem", 2), ("", 2)),
    "geneb-ci audit propose": (("", 2), ("0", 2)),
    "geneb-ci audit publish": (("nowhere.json", 3), ("", 2)),
    "geneb-ci audit ready": (("--help", 0), ("x", 2)),
    "geneb-ci audit withdraw": (("nowhere.json --reason x", 3), ("", 2)),
    "geneb-ci audit keygen": (("--output key.pem", 0), ("--output nowhere/key.pem", 2)),
    "geneb-ci audit statement": (("x.json", 3), ("nowhere.json", 3)),
    "geneb-ci receipt verify": ((ROW, 3), ("nowhere.json", 3)),
    "geneb-ci receipt push": ((f"{ROW} --receipt . --repo a/b", 3), (ROW, 2)),
    "geneb-ci receipt pull": ((f"{ROW} --output out", 3), (ROW, 2)),
    "geneb-ci receipt predictions": ((ROW, 3), ("nowhere", 3)),
    "geneb-ci compare": ((f"{ROW} {ROW}", 2), (ROW, 2), ("", 2)),
    "geneb-ci receipt near": ((f"{ROW} {ROW}", 3), ("nowhere nowhere", 3)),
    "geneb-ci receipt pairs": (("", 0), ("nowhere.json", 3)),
    "geneb-ci receipt seen": (("", 0), ("nowhere.json", 3)),
    "geneb-ci new": (("", 2), ("a/b --pooling nothing", 2)),
    "geneb-ci models list": (("", 0), ("x", 2)),
    "geneb-ci models show": (("nothing", 2), ("", 2)),
    "geneb-ci models verify": (("", 3), ("nothing", 2)),
    "geneb-ci data push": ((".", 3), ("nowhere", 2), (". --repo ab", 2)),
    "geneb-ci upgrade": ((f"{ROW} --undo --output old.json", 2), ("nowhere.json --output x", 3)),
    "geneb-ci reconcile": (("--repo nothing", 2), ("", 2)),
    "geneb-ci report": (("--repo nothing", 2), ("--author-id x", 2)),
    "geneb-ci triage": (("--repo nothing", 2), ("", 2)),
    "geneb-ci init": (
        ("other --repo a/b --maintainers @a --alone --dry-run", 0), ("other --repo nothing", 2),
    ),
    "geneb-ci doctor": (("", 0), ("--github nothing", 2)),
    "geneb-harness batch": (("x", 2),),
    "geneb-harness data audit": (("nowhere", 3), ("", 0)),
    "geneb-harness data define": ((".", 3), ("nowhere", 3)),
    "geneb-harness data manifest": ((".", 3), ("nowhere", 3)),
    "geneb-harness data pull": (("out --tasks nothing", 2), ("", 2)),
    "geneb-harness data stage": ((". out", 3), ("nowhere out", 3)),
    "geneb-harness data verify": ((".", 3), ("nowhere", 3)),
    "geneb-harness elsewhere": (("", 2),),
    "geneb-harness extractors check": (("nothing", 2), ("nowhere.py:Model", 2)),
    "geneb-harness extractors digest": (("kmer", 0), ("nothing", 2)),
    "geneb-harness extractors list": (("", 0), ("x", 2)),
    "geneb-harness fresh": (("--seed 1 --tasks nothing --output out", 2), ("", 2)),
    "geneb-harness probe": ((ROW, 2), ("nowhere", 2)),
    "geneb-harness receipt-cells": (("", 2),),
    "geneb-harness receipt-equal": (("", 2),),
    "geneb-harness receipt-refit": (("", 2),),
    "geneb-harness receipt-rescore": (("", 2),),
    "geneb-harness rescore": (("", 2),),
    "geneb-harness run": (
        ("--tasks nothing --output x", 2),
        ("--extractor nothing --output x", 2),
        ("--extractor huggingface --output x", 2),
    ),
    "geneb-harness scorer": (("x", 2),),
    "geneb-harness sequences": (("--tasks nothing --output out", 2), ("", 2)),
    "geneb-harness tasks": (("", 0), ("--mini", 0)),
    "geneb-harness upgrade": ((f"{ROW} --record x.json --output up.json", 2),),
    "geneb-harness variants": (("", 2),),
}  # fmt: skip
"""What follows the command, and its exit code. What needs a server, a GPU or minutes is refused
here; the tests of its own folder run it."""
HANDED_OVER = {"geneb-ci data", "geneb-ci run", "geneb-ci probe", "geneb-ci extractor"}
"""Commands in the place of which the harness runs one of its own."""


def test_each_command_has_a_case():
    leaves = {
        path
        for path, command in COMMANDS.items()
        if not isinstance(command, click.Group) or command.invoke_without_command
    }
    assert set(CASES) == leaves - HANDED_OVER


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory):
    """Make a repository with an audit that holds, and a record that was changed."""
    root = repository(tmp_path_factory.mktemp("wide"))
    raw = submission_bytes()
    outcome = outcome_of(plan_for(raw), raw)
    put(root, outcome)
    (root / "c.json").write_bytes(commitment_text(commitment(raw)).encode())
    (root / "x.json").write_bytes(mutated(outcome, lambda value: value.pop("predicate")))
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "rows")
    return root


def is_data(line: str) -> bool:
    """Whether a line is JSON, or one word such as a path, which no terminal may break."""
    return line.lstrip().startswith(("{", "[", '"')) or " " not in line.strip()


def run(path: str, words: str) -> int | str | None:
    program, *command = path.split()
    words_of = [*command, *words.split()]
    if program == "geneb-ci":
        return main(words_of)
    sys.argv = [program, *words_of]
    try:
        harness.main()
    except SystemExit as end:
        return end.code or 0
    return 0


NIGHTLY = {("geneb-ci doctor", "", 0)}
"""In the gate, without the width of its lines: tests/sandbox/test_levels.py."""


@pytest.mark.parametrize(
    ("path", "words", "code"),
    [
        pytest.param(path, *case, marks=pytest.mark.nightly if (path, *case) in NIGHTLY else ())
        for path, cases in CASES.items()
        for case in cases
    ],
)
def test_output_fits_the_terminal_without_escape_sequences(
    repository_folder, path, words, code, monkeypatch, capfd
):
    monkeypatch.chdir(repository_folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "GH_", "HF_"))]:
        monkeypatch.delenv(name)
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    output = run(path, words)
    shown = capfd.readouterr()
    lines = (shown.out + shown.err).splitlines()
    assert [line for line in lines if cell_len(line) > COLUMNS and not is_data(line)] == []
    assert lines
    assert "\x1b" not in shown.out + shown.err
    assert "Traceback" not in shown.err
    assert output == code, shown.err

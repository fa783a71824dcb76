"""Writes a fixture to a folder, checks it, and returns all findings.

A fixture with files under `submissions/` is a repository for the benchmark of three tasks, unless
it brings its own; with the file `board` it is a row among the twelve others of `board.py`; with
files under `alone/` it is a folder without a repository, checked against the shipped benchmark. A
`Change` is what a pull request changes.
"""

import dataclasses
import functools
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.check.change import Change
from geneb_ci.check.registry import RULES
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.finding import Finding
from geneb_ci.github.verdict.checker import change_findings
from tests.rules.board import ON_BOARD, board_files
from tests.rules.deltas import Files, Fixture
from tests.small import BENCHMARK_FILE

DIGITS = 16
"""Of a digest, for people to compare: it guards against accidents, not against forgery."""
Row = dict[str, Any]


class Tree(NamedTuple):
    """All files of a fixture by path, and the path that is checked."""

    files: tuple[tuple[str, bytes], ...]
    checked: str = ""


def tree(fixture: Files) -> Tree:
    """Return the files of a fixture and those that all of its kind share."""
    if not any(name.startswith("submissions/") for name in fixture):
        return Tree(tuple(sorted(fixture.items())), "alone")
    if ON_BOARD in fixture:
        files = board_files() | fixture
        del files[ON_BOARD]
        return Tree(tuple(sorted(files.items())), "submissions/model.json")
    benchmark = {"schemas/benchmark.json": BENCHMARK_FILE.read_bytes()}
    return Tree(tuple(sorted((benchmark | fixture).items())))


def digest(fixture: Fixture) -> str:
    """Return the first digits of the SHA-256 of all that is checked, names and bytes."""
    if isinstance(fixture, Change):
        raw = json.dumps(dataclasses.asdict(fixture), sort_keys=True)
    else:
        files, checked = tree(fixture)
        raw = json.dumps([checked, [(name, data.hex()) for name, data in files]])
    return hashlib.sha256(raw.encode()).hexdigest()[:DIGITS]


def built(fixture: Files, root: Path) -> Path:
    """Write a fixture to an empty folder, and return the path to check."""
    return _write(tree(fixture), root)


def _write(files: Tree, root: Path) -> Path:
    for name, data in files.files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root / files.checked


def rows_found(fixture: Fixture, rules: tuple[Rule, ...] = RULES) -> list[Row]:
    """Return all findings of a fixture."""
    if isinstance(fixture, Change):
        return [shown(finding, "") for finding in change_findings(fixture)]
    return [row.copy() for row in _found(tree(fixture), rules)]


# Many rules share one passing fixture, which is checked once.
@functools.cache
def _found(files: Tree, rules: tuple[Rule, ...]) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for result in Checker(rules).run(files_of([_write(files, root)])):
            assert isinstance(result, FileResult)
            rows.extend(shown(finding, f"{root}/") for finding in result.findings)
    return rows


def shown(finding: Finding, root: str) -> Row:
    """Return what an expectation holds of a finding."""
    return {
        "rule": finding.rule,
        "file": finding.file.removeprefix(root),
        "pointer": finding.pointer,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
    }

"""Builds the place that a fixture describes, and says what is found there.

A fixture with `submissions/` is a repository for the benchmark of three tasks, unless it brings
its own; one with `alone/` is files in an empty folder, held against the shipped benchmark; one with
the file `board` is a row among the twelve others of `board.py`; one with `change.json` is what a
pull request changes. A name that ends in `.padded-N` is
filled up with blanks to N bytes, so that a large file need not be kept; code is kept as `.py.txt`,
so that no tool takes it for ours.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from geneb_ci.check.change import Blob, Change, FileChange
from geneb_ci.check.change_runner import change_findings
from geneb_ci.check.registry import RULES
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.finding import Finding
from tests.rules.board import MARK, write_board
from tests.small import BENCHMARK_FILE

HERE = Path(__file__).resolve().parent
EXPECTED = "expected.json"
CHANGE = "change.json"
_PADDED = re.compile(r"(?P<name>.+)\.padded-(?P<size>[0-9]+)")


def built(fixture: Path, root: Path) -> Path:
    """Copy a fixture to an empty folder, and give the folder to check."""
    shutil.copytree(fixture, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(EXPECTED))
    for path in list(root.rglob("*.padded-*")):
        match = _PADDED.fullmatch(path.name)
        assert match is not None, path
        path.with_name(match["name"]).write_bytes(path.read_bytes().ljust(int(match["size"])))
        path.unlink()
    for path in list(root.rglob("*.py.txt")):
        path.rename(path.with_suffix(""))
    if not (root / "submissions").is_dir():
        return root / "alone"
    if (root / MARK).exists():
        write_board(root)
        return root / "submissions/model.json"
    if not (root / "schemas").is_dir():
        (root / "schemas").mkdir()
        shutil.copy(BENCHMARK_FILE, root / "schemas/benchmark.json")
    return root


def found(fixture: Path, root: Path, rules: tuple[Rule, ...] = RULES) -> list[dict[str, Any]]:
    """Give all findings of a fixture that is built in `root`."""
    if (fixture / CHANGE).is_file():
        return [shown_row(finding, "") for finding in change_findings(change_of(fixture))]
    rows: list[dict[str, Any]] = []
    for result in Checker(rules).run(files_of([built(fixture, root)])):
        assert isinstance(result, FileResult)
        rows.extend(shown_row(finding, f"{root}/") for finding in result.findings)
    return rows


def shown_row(finding: Finding, root: str) -> dict[str, Any]:
    """Give what a fixture says of a finding."""
    return {
        "rule": finding.rule,
        "file": finding.file.removeprefix(root),
        "pointer": finding.pointer,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
    }


def change_of(fixture: Path) -> Change:
    """Read a change: path to the modes before and after, and what else it says."""
    said = json.loads((fixture / CHANGE).read_bytes())
    files = tuple(
        FileChange(path, *(None if mode is None else Blob(mode, "0" * 40, 1) for mode in modes))
        for path, modes in sorted(said.pop("files").items())
    )
    return Change(files, **said)

"""No file of the folder that somebody stands in is run in place of a module of the programs."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_harness.formats.processes import module_command
from tests.paths import ROOT

PROGRAMS = ("geneb_ci", "reference_harness")
SAFE = ("-P", "-I")
PLANTED = (
    "reference_harness/__init__.py",
    "geneb_ci/__init__.py",
    "numpy.py",
    "click.py",
    "json.py",
)
"""A file of each kind: our own packages, libraries, the standard library."""
COMMANDS = (
    ("run", "--no-such-option"),
    ("data", "verify", "nowhere"),
    ("extractor", "list"),
    ("probe", "--help"),
    ("check", "nowhere.json"),
    ("audit", "queue", "nowhere.json", "--dry-run"),
)


def started(tree: ast.AST) -> Iterator[ast.List | ast.Tuple]:
    """Yield the commands of a module that begin with the interpreter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            first = ast.unparse(node.elts[0])
            if first == "sys.executable":
                yield node


def test_python_is_started_by_one_function_or_by_a_safe_path() -> None:
    unsafe = []
    for path in (path for name in PROGRAMS for path in (ROOT / name).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in started(ast.parse(text)) if "sys.executable" in text else ():
            first = ast.unparse(node.elts[1]) if len(node.elts) > 1 else ""
            if first.strip("'") not in {*SAFE, "*options"}:
                unsafe.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert unsafe == []


IN_THE_GATE = ("run", "check")
"""Commands of both programs; the rest start what these start, or what the test above reads."""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=() if words[0] in IN_THE_GATE else pytest.mark.nightly)
        for words in COMMANDS
    ],
    ids=lambda words: words[0],
)
def test_files_of_the_folder_are_not_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in PLANTED:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n", "utf-8")
    program = Path(sys.executable).with_name("geneb-ci")
    done = subprocess.run(
        [program, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text("utf-8")
    assert "Traceback" not in done.stderr, done.stderr


def test_a_program_that_is_run_from_its_folder_starts_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a clone that is not installed, `python -m geneb_ci` is the harness beside it as well."""
    monkeypatch.chdir(ROOT)
    assert module_command("geneb_ci") == [sys.executable, "-m", "geneb_ci"]
    monkeypatch.chdir(tmp_path)
    assert module_command("geneb_ci") == [sys.executable, "-P", "-m", "geneb_ci"]

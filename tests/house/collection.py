"""Which tests a checkout has, and which of them pytest collects as `make test-all` calls it."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

LIST_ONLY = ("-n", "0", "--collect-only", "-q", "-p", "no:cacheprovider")
DEFINED = re.compile(r"\bdef\s+(test_\w*)")
SPREADS = {"-n", "--dist"}
"""Options that choose no tests; each takes a value."""
FOLDER = "$(AREA:%=tests/%)"
"""Empty unless who types `make test` names a folder."""


def written(root: Path, files: Iterable[Path]) -> set[str]:
    """Return `file::name` of each test that stands in the source, and `file` where none does."""
    tests_found: set[str] = set()
    for path in files:
        names = {
            f"{path.as_posix()}::{node.name}"
            for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
        }
        tests_found |= names or {path.as_posix()}
    return tests_found


def options(root: Path, target: str) -> list[str]:
    """Return what a target of make passes to pytest. Raises AssertionError where it calls none."""
    text = (root / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(rf"^{target}:.*\n\t.*-m pytest\b(.*)$", text, re.MULTILINE)
    assert recipe is not None, f"the Makefile's `{target}` does not call `-m pytest`"
    return shlex.split(recipe[1].replace(FOLDER, ""))


def chooses_nothing(root: Path) -> bool:
    """Whether `make test` passes nothing but how tests are spread over processes."""
    words = options(root, "test")
    return all(
        word in SPREADS or (number > 0 and words[number - 1] in SPREADS)
        for number, word in enumerate(words)
    )


def collected(root: Path) -> list[str]:
    """Return the id of each test that `make test-all` would run in a checkout.

    Raises AssertionError when the Makefile has no such recipe, or pytest cannot collect.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options(root, "test-all"), *LIST_ONLY],
        cwd=root,
        env=clean | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def missing(root: Path, files: Iterable[Path], ids: Iterable[str]) -> list[str]:
    """Return the tests that stand in test files of a checkout and are not among collected ids.

    Only files with a line of a test that was not collected are parsed, for it may be quoted.
    """
    bare = (name.partition("[")[0].split("::") for name in ids)  # file, perhaps classes, function
    names_collected = {f"{file}::{path[-1]}" for file, *path in bare}
    doubtful_files = []
    for path in files:
        names = DEFINED.findall((root / path).read_text(encoding="utf-8"))
        if not names or not {f"{path.as_posix()}::{name}" for name in names} <= names_collected:
            doubtful_files.append(path)
    return sorted(written(root, doubtful_files) - names_collected)

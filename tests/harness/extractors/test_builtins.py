"""The table of built-in extractors against the modules of the package, and their tests."""

import functools
from pathlib import Path

import pytest

from reference_harness.extractors import BUILTINS, DEFAULT
from tests.house.test_direction import imported
from tests.paths import ROOT

FOLDER = ROOT / "reference_harness/extractors"
INTERFACE = {"__init__.py", "base.py"}
NOT_COUNTED = {
    "../embedding/extractor_calls.py",
    "../errors.py",
    *(f"../formats/{name}.py" for name in ("files", "processes", "recognition")),
}
"""What decides no embedding: types, errors, how a file is read and what it is, where code runs."""


@functools.cache
def imports(name: str) -> frozenset[str]:
    """Return the harness's modules that a module of the folder imports, itself or by others."""
    files: set[str] = set()
    for dotted in imported(Path("reference_harness/extractors") / name):
        parts = dotted.split(".")
        for end in range(len(parts), 1, -1):
            path = ROOT.joinpath(*parts[:end]).with_suffix(".py")
            if parts[0] == "reference_harness" and path.is_file():
                inside = path.parent == FOLDER
                outside_name = f"../{path.relative_to(FOLDER.parent).as_posix()}"
                files |= {path.name, *imports(path.name)} if inside else {outside_name}
                break
    return frozenset(files - INTERFACE - NOT_COUNTED)


def test_every_module_of_the_folder_is_a_built_in_or_helps_one():
    listed = {f"{builtin.module_name}.py" for builtin in BUILTINS.values()}
    helping = {name for builtin in BUILTINS.values() for name in builtin.helpers if "/" not in name}
    assert {path.name for path in FOLDER.glob("*.py")} == listed | helping | INTERFACE
    assert DEFAULT in BUILTINS


@pytest.mark.parametrize("name", BUILTINS)
def test_its_digest_covers_every_module_that_it_is_made_of(name):
    assert imports(f"{BUILTINS[name].module_name}.py") == set(BUILTINS[name].helpers)


@pytest.mark.parametrize("name", BUILTINS)
def test_it_has_tests_of_its_own(name):
    tests = ROOT / f"tests/harness/extractors/test_{BUILTINS[name].module_name}.py"
    assert tests.is_file(), f"write {tests.relative_to(ROOT)}"

"""ARCHITECTURE.md against the code: each place it names exists, and its layers are those held."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.house.test_direction import LAYERS
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PLACES = sorted(
    set(re.findall(r"`((?:geneb_ci|reference_harness|tests|schemas|docs)/[^`<>]*)`", TEXT))
)


def names(path: Path) -> set[str]:
    """Return the functions, classes and constants at the top of a module."""
    names_defined = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names_defined.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names_defined.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names_defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names_defined


@pytest.mark.parametrize("module_path", PLACES)
def test_each_place_it_names_exists(module_path):
    file, _, name = module_path.partition(":")
    path = ROOT / file
    assert path.exists()
    assert not name or name in names(path)


def test_it_names_many_places():
    assert len(PLACES) > 40


def test_its_layers_are_those_that_the_direction_test_holds():
    table = TEXT.split("<!-- layers -->")[1].split("<!-- /layers -->")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(reversed(LAYERS))


def test_what_mutants_are_made_of_and_judged_by_is_there():
    parts = tomllib.loads((ROOT / "tools/mutants.toml").read_text(encoding="utf-8"))["part"]
    modules = [f"{part['folder']}/{name}.py" for part in parts for name in part["modules"]]
    tests = [test for part in parts for test in part["tests"]]
    assert [path for path in modules + tests if not (ROOT / path).exists()] == []
    assert len(modules) == len(set(modules)) > 20

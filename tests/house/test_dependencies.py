"""What a package imports is declared: nothing is there only because something else needs it."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.house.tracked import python_files
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

OURS = {"geneb_ci", "reference_harness"}


def imported(folder: str) -> set[str]:
    """Name the top modules that a package imports, wherever in its files."""
    names: set[str] = set()
    for path in python_files(folder):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module or "")
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - OURS


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {k: v for k, v in project["optional-dependencies"].items() if k not in {"dev", "all"}}
    expected = [
        *project["dependencies"],
        *(requirement for extra in extras.values() for requirement in extra),
    ]
    return {normal(re.split(r"[<>=!\[; ]", requirement)[0]) for requirement in expected}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("folder", sorted(OURS))
def test_every_import_is_of_a_declared_dependency(folder):
    packages_by_module = packages_distributions()
    missing = {
        name
        for name in imported(folder)
        if not {normal(package) for package in packages_by_module.get(name, [name])} & declared()
    }
    assert missing == set()

"""One name, one thing: classes and modules are named once, and the files are few enough to know."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.house.test_direction import imported
from tests.house.tracked import python_files
from tests.paths import ROOT

MODULES_MAX = 251
"""What a newcomer can hold in view: fifteen packages, and about seventeen files in each."""
SINGLE_MAX = 20
"""Modules outside the rules that one other module imports: most readers open both."""
SAME_NAME_MAX = 2
TOOLKIT = python_files("geneb_ci")


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def classes(path: Path) -> list[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("package", ["geneb_ci", "reference_harness"])
def test_no_class_name_stands_in_two_modules(package):
    """The toolkit and the harness meet in files alone, so each counts for itself."""
    places = defaultdict(set)
    for path in python_files(package):
        for name in classes(path):
            places[name].add(str(path))
    assert {name: sorted(found) for name, found in places.items() if len(found) > 1} == {}


def test_no_module_name_stands_in_three_packages():
    names = Counter(path.stem for path in TOOLKIT if path.name != "__init__.py")
    assert {name: count for name, count in names.items() if count > SAME_NAME_MAX} == {}


def test_the_toolkit_has_a_readable_number_of_modules():
    assert len(TOOLKIT) <= MODULES_MAX


def test_few_modules_have_a_single_importer():
    modules = {dotted(path) for path in TOOLKIT}
    importers = defaultdict(set)
    for path in TOOLKIT:
        for name in imported(path):
            wanted = name if name in modules else name.rpartition(".")[0]
            if wanted in modules - {dotted(path)}:
                importers[wanted].add(dotted(path))
    single = sorted(
        name for name, found in importers.items() if len(found) == 1 and ".rules." not in name
    )
    assert len(single) <= SINGLE_MAX, single


def test_no_module_imports_itself_by_way_of_others():
    modules = {dotted(path): path for path in TOOLKIT}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        wanted = {w if w in modules else w.rpartition(".")[0] for w in imported(path)}
        graph[name] = (wanted & modules.keys()) - {name, name.rpartition(".")[0]}
    left = dict(graph)
    while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
        for name in free:
            del left[name]
    assert sorted(left) == []

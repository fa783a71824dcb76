"""No module of the toolkit imports itself by way of others."""

from pathlib import Path

from tests.house.test_direction import imported
from tests.house.tracked import python_files

TOOLKIT = python_files("geneb_ci")


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


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

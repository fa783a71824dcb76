"""Imports go one way, from cli down to common."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.house.tracked import python_files
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

LAYERS = (
    "common",
    "submission",
    "models",
    "statistics",
    "check",
    "sandbox",
    "harness",
    "receipt",
    "audit",
    "board",
    "publish",
    "render",
    "github",
    "init",
    "situation",
    "api",
    "cli",
)
"""Lowest first: a package imports those before it in this order, and nobody imports cli."""
DOORS = ("__init__", "__main__")
FILES = python_files("geneb_ci", "reference_harness")
RULES = [path for path in FILES if path.parts[1:3] == ("check", "rules")]


def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Yield each module that a file imports, wherever in the file, with what it takes from it."""
    yield from imports_of(path, ast.walk(tree(path)))


def imports_of(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what some statements of a file import, as `imported` does."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import begins in the package that the file lies in.
            base = path.parts[: len(path.parts) - node.level] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else ())))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def part(module: str) -> str:
    """Name the part of geneb_ci that a module belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def known(name: str) -> bool:
    return name in (*LAYERS, *DOORS)


def may_import(importer: str, expected: str) -> bool:
    """Say whether one part may import another."""
    if expected == "__init__" or importer in {expected, "__main__"}:
        return True
    return LAYERS.index(expected) < LAYERS.index(importer)


def test_every_file_belongs_to_a_part_that_is_known():
    parts = {
        part(".".join(path.with_suffix("").parts)) for path in FILES if path.parts[0] == "geneb_ci"
    }
    assert [name for name in sorted(parts) if not known(name)] == []
    assert len(RULES) > 10


def test_imports_go_one_way():
    wrong = [
        f"{path} imports {module}"
        for path in FILES
        if path.parts[0] == "geneb_ci"
        for module in imported(path)
        if module.startswith("geneb_ci.") and known(part(module))
        if not may_import(part(".".join(path.with_suffix("").parts)), part(module))
    ]
    assert wrong == []


FORMATS = "reference_harness.formats"
"""The one package of the harness that the toolkit imports: the files that both read."""


def test_the_harness_never_imports_the_toolkit_which_imports_its_formats_alone():
    wrong = [
        f"{path} imports {module}"
        for path in FILES
        for module in imported(path)
        if module.split(".")[0] in {"geneb_ci", "reference_harness"} - {path.parts[0]}
        if path.parts[0] == "reference_harness" or not f"{module}.".startswith(f"{FORMATS}.")
    ]
    assert wrong == []


def test_formats_need_pydantic_and_what_it_needs():
    allowed = (
        *sys.stdlib_module_names,
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "reference_harness",
    )
    wrong = [
        f"{path} imports {module}"
        for path in FILES
        if path.parts[:2] == ("reference_harness", "formats")
        for module in imported(path)
        if module.split(".")[0] not in allowed
        or (module.startswith("reference_harness.") and not f"{module}.".startswith(f"{FORMATS}."))
    ]
    assert wrong == []


FORBIDDEN = ("os", "io", "pathlib", "time", "random", "secrets", "socket", "subprocess", "shutil")
FORBIDDEN_INNER = (
    "urllib.request",
    "http.client",
    "geneb_ci.submission.reading",
)
CALLS = {"print", "open", "input", "exec", "eval", "__import__"}
CLOCKS_AND_FILES = {
    *("now", "utcnow", "today", "read_text", "read_bytes", "write_text", "write_bytes"),
    *("exists", "is_file", "is_dir", "iterdir", "glob", "stat", "resolve", "unlink"),
}


def impure(path: Path) -> Iterator[str]:
    for module in imported(path):
        if module.split(".")[0] in FORBIDDEN or module.startswith(FORBIDDEN_INNER):
            yield f"{path} imports {module}"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and node.id in CALLS:
            yield f"{path}:{node.lineno} uses {node.id}"
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS_AND_FILES:
            yield f"{path}:{node.lineno} uses .{node.attr}"


def test_a_rule_reads_no_file_no_clock_no_network_and_never_prints():
    assert [result for path in RULES for result in impure(path)] == []


@pytest.mark.parametrize(
    ("importer", "expected", "allowed"),
    [
        ("submission", "check", False),
        ("check", "submission", True),
        ("check", "statistics", True),
        ("statistics", "check", False),
        ("sandbox", "audit", False),
        ("audit", "sandbox", True),
        ("board", "audit", True),
        ("audit", "board", False),
        ("common", "submission", False),
        ("check", "render", False),
        ("render", "publish", True),
        ("render", "cli", False),
        ("publish", "cli", False),
        ("cli", "render", True),
        ("cli", "api", True),
        ("render", "api", False),
        ("__main__", "cli", True),
    ],
)
def test_the_directions_themselves(importer, expected, allowed):
    assert may_import(importer, expected) == allowed

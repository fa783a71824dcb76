"""Names of modules: none imports itself, or a thing twice; what texts name exists."""

import ast
import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.glossary import members
from tests.house.test_direction import imported, imports_of, tree
from tests.house.tracked import python_files
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

PRODUCT = python_files("geneb_ci", "reference_harness")
NAME = re.compile(r"`(?:[\w.]+\.)?(\w+)\.([A-Z]\w*)(?:\(\))?`")
"""A constant or class of a module, or of a class, as docstrings and comments name it."""
FILE = re.compile(r"(?<![\w/.-])(?:geneb_ci|reference_harness|tools)/[\w/-]+\.(?:py|md|json)\b")
OWN_PREFIXES = ("geneb_ci.", "reference_harness.")
OWN_IMPORT = re.compile(r"\b(?:from|import) (?:geneb_ci|reference_harness)\b")
MADE_UP = "tests"
"""Its files name modules that only a test writes."""


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_no_module_imports_itself_by_way_of_others():
    modules = {dotted(path): path for path in PRODUCT}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        expected = {w if w in modules else w.rpartition(".")[0] for w in imported(path)}
        graph[name] = (expected & modules.keys()) - {name, name.rpartition(".")[0]}
    left = dict(graph)
    while free := [name for name, member in left.items() if not member & left.keys()]:
        for name in free:
            del left[name]
    assert sorted(left) == []


def test_no_module_imports_a_thing_twice():
    """What stands at the top has no second name, and no function imports it again."""
    twice = [
        f"{path}: {name}"
        for path in python_files()
        for name, count in Counter(imported(path)).items()
        if count > 1 and name in imports_of(path, tree(path).body)
    ]
    assert twice == []


@functools.cache
def known() -> dict[str, set[str]]:
    """Return the names in each module and class, by its last name."""
    names_by_owner: dict[str, set[str]] = {}
    for path in python_files():
        for name in members(ROOT / path):
            owner, _, inner = name.rpartition(".")
            names_by_owner.setdefault(owner or dotted(path).rpartition(".")[2], set()).add(inner)
    return names_by_owner


def wrong_names(path: Path, text: str) -> Iterator[str]:
    """Yield what the text of a module names and nothing here has."""
    for match in NAME.finditer(text):
        if match[2] not in known().get(match[1], ()):
            yield f"{path}: {match[0]}: no module or class has it"
    for named_file in FILE.findall(text) if path.parts[0] != MADE_UP else ():
        if not (ROOT / named_file).exists():
            yield f"{path}: {named_file}: there is no such file"


def test_docstrings_and_comments_name_what_exists():
    named = 0
    wrong: list[str] = []
    for path in python_files():
        text = (ROOT / path).read_text(encoding="utf-8")
        named += len(NAME.findall(text)) + len(FILE.findall(text))
        wrong += wrong_names(path, text)
    assert wrong == []
    assert named > 20


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Raises StepMismatch, whose `step` is one of `steps" + ".STEPS`.", 1),
        ("It is one of `canonical.DRAW_STEPS`, or `verify" + ".Nowhere()`.", 1),
        ("# geneb_ci/board/" + "noise.py rests on it", 1),
        ("`geneb_ci.audit.canonical.DRAW_STEPS` and geneb_ci/board/variance.py", 0),
    ],
)
def test_a_name_of_nothing_is_found(text, count):
    assert len(list(wrong_names(Path("tools/x.py"), text))) == count


def programs(path: Path) -> Iterator[ast.Module]:
    """Yield the programs in the strings of a module, which other processes run."""
    for node in ast.walk(tree(path)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and OWN_IMPORT.search(text):
            with contextlib.suppress(SyntaxError, ValueError):
                yield ast.parse(text)


@functools.cache
def names_by_module() -> dict[str, frozenset[str]]:
    """Return the names at the top of each module, and the modules of each package."""
    paths = {dotted(path): path for path in python_files()}
    names = {name: set(members(ROOT / path)) for name, path in paths.items()}
    for name in paths:
        package, _, module = name.rpartition(".")
        if package in names:
            names[package].add(module)
    return {name: frozenset(inner) for name, inner in names.items()}


def unknown_in_program(program: ast.Module) -> Iterator[str]:
    """Yield what a program takes from modules of ours that do not have it."""
    module_by_alias: dict[str, str] = {}
    for node in ast.walk(program):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            source = str(node.module) if isinstance(node, ast.ImportFrom) else ""
            full_name = f"{source}.{alias.name}".removeprefix(".")
            if full_name in names_by_module():
                module_by_alias[alias.asname or alias.name] = full_name
            elif full_name.startswith(OWN_PREFIXES) and (
                alias.name not in {"*", *names_by_module().get(source, ())}
            ):
                yield full_name
    for node in ast.walk(program):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = module_by_alias.get(node.value.id, "")
            if module.startswith(OWN_PREFIXES) and node.attr not in names_by_module()[module]:
                yield f"{module}.{node.attr}"


def test_programs_in_strings_take_what_exists():
    """Many run at night only, and no other tool reads them when a name changes."""
    count = 0
    wrong: list[str] = []
    for path in set(python_files()) - {Path(__file__).relative_to(ROOT)}:
        for program in programs(path):
            count += 1
            wrong += (f"{path}: {name}" for name in unknown_in_program(program))
    assert wrong == []
    assert count > 20


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("from reference_harness.engine import no" + "where", ["reference_harness.engine.nowhere"]),
        ("import reference_harness.no" + "where", ["reference_harness.nowhere"]),
        (
            "from reference_harness.probe import metrics\nmetrics.no" + "where()",
            ["reference_harness.probe.metrics.nowhere"],
        ),
        ("from reference_harness.probe import metrics\nmetrics.scores_of()", []),
    ],
    ids=["import", "module", "attribute", "known"],
)
def test_a_program_that_takes_nothing_known_is_found(program, expected):
    assert list(unknown_in_program(ast.parse(program))) == expected

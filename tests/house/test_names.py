"""Names of modules: none imports itself, or a thing twice; what docstrings name exists."""

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

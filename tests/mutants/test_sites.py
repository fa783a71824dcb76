"""Known code has known mutants, each one change of the text; a draw is the same every time."""

import ast

import pytest

from tests.paths import ROOT
from tools.mutants.draw import drawn, every
from tools.mutants.hits import marked, marks
from tools.mutants.sites import Mutant, applied, mutants
from tools.mutants.targets import FILES, TARGETS

CODE = b'''"""Words that carry no truth: 1 + 2."""

import math
from typing import TYPE_CHECKING, Annotated, TypeVar

if TYPE_CHECKING:
    LIMIT = 3

__all__ = ["clamp"]
T = TypeVar("T")
Pair = tuple[int | None, int]
Odd = Annotated[int, Field(ge=7, description="words 8")]
HALF = 0.5


def clamp(value: float, low: float = -1.0) -> float:
    """Return 2 + 2."""
    if value < low and not math.isnan(value):
        raise ValueError(f"{value + 1} is below {low}", "nor", 9)
    note("some prose", "word")
    total = 0
    for part in [value][low:]:
        total += part % 3
    return max(total, 10) if value else math.floor(total)
'''


TEST = "value < low and not math.isnan(value)"


def lines(source: bytes) -> list[str]:
    """Return the changed line of every mutant, with the change alone."""
    found = []
    for one in mutants("code.py", source):
        old = source[one.start : one.end].decode()
        found.append(f"{one.line} {one.scope or '-'}: {old} -> {one.new}")
    return found


def test_every_mutant_of_known_code():
    assert lines(CODE) == [
        "12 -: 7 -> 8",
        "13 -: 0.5 -> 1.0",
        "16 -: -1.0 -> +1.0",
        "16 -: 1.0 -> 2.0",
        f"18 clamp: {TEST} -> not ({TEST})",
        "18 clamp: and -> or",
        "18 clamp: < -> <=",
        "18 clamp: not math.isnan(value) -> math.isnan(value)",
        '19 clamp: raise ValueError(f"{value + 1} is below {low}", "nor", 9) -> pass',
        '20 clamp: note("some prose", "word") -> pass',
        '20 clamp: "word" -> ""',
        "21 clamp: 0 -> 1",
        "22 clamp: low -> (low) + 1",
        "23 clamp: total += part % 3 -> pass",
        "23 clamp: + -> -",
        "23 clamp: % -> *",
        "23 clamp: 3 -> 4",
        "24 clamp: max(total, 10) if value else math.floor(total) -> None",
        "24 clamp: value -> not (value)",
        "24 clamp: max -> min",
        "24 clamp: 10 -> 11",
        "24 clamp: math.floor -> math.ceil",
    ]


@pytest.mark.parametrize(
    ("code", "news"),
    [
        ("a <= b", ["<"]),
        ("a > b", [">="]),
        ("a >= b != c", [">", "=="]),
        ("a in b", ["not in"]),
        ("a not in b", ["in"]),
        ("a is not None", ["is"]),
        ("a == 'x y'", ["!="]),
        ("a or b and c", ["and", "or"]),
        ("a // b - c * d ** e", ["+", "*", "/", "*"]),
        ("'%s' % a", ['""']),
        ("[x for x in y if x]", ["not (x)"]),
        ("any(a)", ["all"]),
        ("a[1:-1]", ["0", "+1", "0"]),
        ("é + 1", ["-", "0"]),
        ("zip(a, strict=True)", []),
        ("True", ["False"]),
    ],
)
def test_mutants_of_an_expression(code, news):
    source = f"x = {code}\n".encode()
    found = mutants("code.py", source)
    assert [one.new for one in found] == news
    for one in found:
        assert len(applied(source, one).splitlines()) == 1


def test_statements_that_a_mutant_leaves_out_or_turns_round():
    source = (
        b"def f(x):\n    while x:\n        break\n    else:\n        yield 1\n"
        b"    match x:\n        case 1 if x:\n            return x\n"
    )
    assert [(one.line, one.new) for one in mutants("code.py", source)] == [
        (2, "not (x)"),
        (3, "continue"),
        (5, "pass"),
        (5, "0"),
        (7, "not (x)"),
        (8, "None"),
    ]


@pytest.fixture(scope="module")
def population() -> list[Mutant]:
    """Return every mutant of every target, which takes seconds to find."""
    return every(FILES)


def test_a_draw_is_the_same_every_time_and_grows_by_no_repetition(population):
    assert len(population) > 2000
    assert len(set(population)) == len(population)
    assert drawn(population, 300, 1) == drawn(every(FILES), 300, 1)
    assert len(set(drawn(population, 300, 1))) == 300
    assert drawn(population, 300, 1) != drawn(population, 300, 2)
    assert sorted(map(repr, drawn(population[:20], 300, 1))) == sorted(map(repr, population[:20]))


def test_code_that_changes_elsewhere_leaves_the_draw_as_it_is(population):
    less = [one for one in population if one.file != FILES[0]]
    before, after = drawn(population, 300, 1), drawn(less, 300, 1)
    kept = [one for one in before if one.file != FILES[0]]
    assert after[: len(kept)] == kept
    assert len(kept) > 200


@pytest.mark.parametrize("concept", TARGETS)
def test_the_files_of_a_concept_exist_and_have_mutants(concept, population):
    missing = [file for file in TARGETS[concept] if not (ROOT / file).is_file()]
    assert missing == [], "a target was moved: name its new place in tools/mutants/targets.py"
    assert set(TARGETS[concept]) <= {one.file for one in population}


def test_no_file_is_a_target_twice():
    assert len(set(FILES)) == len(FILES)


@pytest.mark.parametrize("file", FILES)
def test_a_marked_target_is_the_same_code_with_marks(file):
    source = (ROOT / file).read_bytes()
    tree = ast.parse(marked(file, source))
    found = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_HITS.add"
    ]
    assert len(found) == len(marks(source))


def test_marks_stand_where_a_statement_may_run_alone():
    source = b'''def f(x):
    """Say what."""
    y = 1
    z = 2
    if x:
        y = 3
    elif z:
        y = 4
    else:
        y = 5
    return y


TOP = 1
'''
    assert marks(source) == [3, 6, 8, 10, 11]

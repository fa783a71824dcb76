"""No ten lines of code stand in two places: the second is a call of the first."""

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.house.tracked import python_files
from tests.paths import ROOT

RUN = 10
"""Lines without imports, comments, docstrings and blank lines."""
FOLDERS = ("geneb_ci", "reference_harness", "tools", "tests")


class Line(NamedTuple):
    number: int
    text: str


def left_out(tree: ast.Module) -> Iterator[int]:
    """Yield the numbers of lines that are imports or docstrings."""
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def code(text: str) -> list[Line]:
    """Return the lines of code, each with single spaces."""
    skipped = set(left_out(ast.parse(text)))
    lines = [Line(n, " ".join(raw.split())) for n, raw in enumerate(text.splitlines(), 1)]
    return [
        line
        for line in lines
        if line.number not in skipped and line.text and not line.text.startswith("#")
    ]


def repeated(files: dict[str, str]) -> list[str]:
    """Name each pair of places where as many lines are the same."""
    places = defaultdict(list)
    for name, text in files.items():
        lines = code(text)
        for start in range(len(lines) - RUN + 1):
            run = tuple(line.text for line in lines[start : start + RUN])
            places[run].append((name, start, lines[start].number))
    pairs = {
        (one[0], other[0], other[1] - one[1]): f"{one[0]}:{one[2]} = {other[0]}:{other[2]}"
        for found in reversed(places.values())
        for one, other in itertools.pairwise(found)
    }
    return sorted(pairs.values())


def texts(paths: tuple[Path, ...]) -> dict[str, str]:
    return {str(path): (ROOT / path).read_text(encoding="utf-8") for path in paths}


def test_no_ten_lines_stand_in_two_places():
    assert repeated(texts(python_files(*FOLDERS))) == []


def test_the_search_itself():
    body = "".join(f"x{n} = {n}\n" for n in range(RUN))
    imports = "".join(f"import a{n}\n" for n in range(RUN))
    indented = "def f():\n    '''Text.'''\n\n" + "".join(f"    x{n} =  {n}\n" for n in range(RUN))
    assert repeated({"a": body, "b": indented}) == ["a:1 = b:4"]
    assert repeated({"a": body + body}) == [f"a:1 = a:{RUN + 1}"]
    assert repeated({"a": body, "b": body.replace("x3", "y3")}) == []
    assert repeated({"a": imports + "x = 1\n", "b": imports + "x = 1\n"}) == []
    assert repeated({"a": "'''\n" + body + "'''\n", "b": body}) == []

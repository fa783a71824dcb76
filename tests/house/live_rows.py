"""Which files could read the live `submissions/`, found in their source.

What a file reaches through `ROOT / "a constant"` is known. What it does with the bare root is not,
so it counts as a reader of the live folder.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

HOMES = {"tests.paths", "tests.harness.support"}
"""The modules that know where the root is."""
NAMES = {"ROOT", "REPOSITORY", "LIVE"}
FOLDER = "submissions"


def reaches(path: Path, source: str) -> list[str]:
    """Say at which lines a file names the live folder or may reach it; `path` is from the root."""
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in HOMES
        for alias in node.names
        if alias.name in NAMES
    }
    fine = {id(node) for node in _harmless(tree)}
    uses = _uses(tree, names, fine, len(path.parts))
    return sorted({f"{path}:{line}: {what}" for line, what in uses})


def _harmless(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the uses of the root that cannot reach the live folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            first = _first_text(node.right)
            parts = set() if first is None else set(first.removesuffix("/").split("/"))
            if parts and not parts & {"", ".", "..", FOLDER}:
                yield node.left
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "PYTHONPATH":
                    yield from ast.walk(value)


def _first_text(node: ast.expr) -> str | None:
    """Return the text that a path's part begins with, if it is written there."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _uses(tree: ast.AST, names: set[str], fine: set[int], depth: int) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and id(node) not in fine:
            yield node.lineno, f"{node.id} itself"
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node.lineno, f"{node.attr} by way of its module"
        elif isinstance(node, ast.Subscript | ast.Attribute) and _climbs(node) >= depth:
            yield node.lineno, "the root from the file's own path"


def _climbs(node: ast.AST) -> int:
    """Count the folders that an expression goes up from `__file__`; 0 where it begins elsewhere."""
    up = 0
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            up += int(node.slice.value) + 1 if isinstance(node.slice.value, int) else 0
            node = node.value
        elif isinstance(node, ast.Attribute):
            up += node.attr == "parent"
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        else:
            return 0
    return up if node.id == "__file__" else 0

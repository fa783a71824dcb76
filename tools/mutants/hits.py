"""Which statements of the targets each test executes, in its own process and in those it starts.

Tracers slow the arithmetic's tests tenfold. Here each target is rewritten: before each statement
that may run when the one before it did not, its place is put into a set. One set a test is the
answer.
"""

import ast
import atexit
import json
import os

from tools.mutants.clone import ROOT, TRACE

HITS: set[tuple[str, int]] = set()
"""File and line of every marked statement since the test began."""
FOLDER = ROOT / ".hits"
IMPORT = """try:
    from tools.mutants.hits import HITS as _HITS
except ImportError:  # inside a sandbox there is nothing but the harness
    _HITS = set()
"""


def marked(file: str, source: bytes) -> bytes:
    """Return a module that notes each mark it passes."""
    text = source.decode()
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    for line in sorted(marks(source), reverse=True):
        indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        lines.insert(line - 1, f"{indent}_HITS.add(({file!r}, {line}))\n")
    first = tree.body[1] if ast.get_docstring(tree) is not None else tree.body[0]
    lines.insert(first.lineno - 1, IMPORT)
    return "".join(lines).encode()


def marks(source: bytes) -> list[int]:
    """Return the lines, ascending, before which a mark belongs; none stands at module level."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= _in_block(_without_docstring(node.body))
    return sorted(found)


def mark_of(places: list[int], lines: tuple[int, int]) -> int:
    """Return the mark that is passed whenever a statement runs: the last one at or before it."""
    return max((place for place in places if place <= lines[0]), default=0)


def _in_block(block: list[ast.stmt]) -> set[int]:
    found = set()
    fresh = True
    for statement in block:
        inner = _blocks(statement)
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if fresh:
            found.add(_first_line(statement))
        fresh = bool(inner) or is_definition
        for each in inner:
            found |= _in_block(each)
    return found


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []  # walked on its own
    blocks = [getattr(statement, name, []) for name in ("body", "finalbody")]
    orelse = getattr(statement, "orelse", [])
    if len(orelse) == 1 and isinstance(statement, ast.If) and isinstance(orelse[0], ast.If):
        blocks += _blocks(orelse[0])  # `elif` takes no line before it
    else:
        blocks.append(orelse)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        blocks.append(part.body)
    return [block for block in blocks if block]


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body[0]:
        case ast.Expr(value=ast.Constant(value=str())) if len(body) > 1:
            return body[1:]
        case _:
            return body


def begin(test: str) -> None:
    """Note that a test begins, for the processes that it starts."""
    (ROOT / TRACE).write_text(test, encoding="utf-8")


def taken() -> list[tuple[str, int]]:
    """Return the marks passed since the last call, in this process and in ended children."""
    found = set(HITS)
    HITS.clear()
    for path in FOLDER.glob("*.json") if FOLDER.is_dir() else ():
        found |= {(file, line) for file, line in json.loads(path.read_text(encoding="utf-8"))}
        path.unlink()
    return sorted(found)


def child() -> None:
    """Arrange that a process which a test started leaves its marks when it ends."""
    FOLDER.mkdir(exist_ok=True)

    def end() -> None:
        if HITS:
            part = FOLDER / f"{os.getpid()}.part"
            part.write_text(json.dumps(sorted(HITS)), encoding="utf-8")
            part.replace(part.with_suffix(".json"))

    atexit.register(end)

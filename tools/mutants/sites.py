"""Every mutant of a source text: one small change of its text, placed by the syntax tree.

A mutant replaces one span of bytes, so its diff is what a reader would have typed. What carries no
truth is left alone: docstrings, types, decorators, f-strings, strings with a space in them (prose),
what is raised, descriptions, and the `strict` of `zip`, which guards us against ourselves.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", ("<=",)),
    ast.LtE: (r"<=", ("<",)),
    ast.Gt: (r">", (">=",)),
    ast.GtE: (r">=", (">",)),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.In: (r"\bin\b", ("not in",)),
    ast.NotIn: (r"\bnot\s+in\b", ("in",)),
    ast.Is: (r"\bis\b", ("is not",)),
    ast.IsNot: (r"\bis\s+not\b", ("is",)),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: (r"-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: (r"/", "*"),
    ast.FloorDiv: (r"//", "*"),
    ast.Mod: (r"%", "*"),
    ast.Pow: (r"\*\*", "*"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: (r"&", "|"),
    ast.MatMult: (r"@", "*"),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
PROSE_ARGUMENTS = {"description", "title", "help", "doc", "strict"}
BUILT_IN_TYPES = {"dict", "frozenset", "list", "set", "tuple", "type"}
NEGATED_BY_OPERATOR = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from start to end become `new`."""

    file: str
    scope: str
    """Function or class it lies in, as `Hull.above`; "" at the top of the module."""
    operator: str
    start: int
    end: int
    new: str
    line: int
    """First line of the change."""
    lines: tuple[int, int]
    """First and last line of the statement, or of its head, that the change lies in."""


def mutants(file: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file that is valid Python and has another syntax tree."""
    walk = _Walk(file, source)
    found: list[Mutant] = []
    for statement in ast.parse(source).body:
        # Held against the statement at the top alone: to parse whole files takes a minute.
        start, end = walk.span(statement)
        text = source[start:end]
        before = ast.dump(ast.parse(text))
        for one in dict.fromkeys(walk.statement(statement, ())):
            changed = text[: one.start - start] + one.new.encode() + text[one.end - start :]
            if _differs(changed, before):
                found.append(one)
    return found


def applied(source: bytes, mutant: Mutant) -> bytes:
    """Return the source with the change made."""
    return source[: mutant.start] + mutant.new.encode() + source[mutant.end :]


def _differs(source: bytes, before: str) -> bool:
    try:
        return ast.dump(ast.parse(source)) != before
    except SyntaxError:
        return False


class _Walk:
    """One pass over a tree, which knows where it stands."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def body(self, statements: list[ast.stmt], scope: tuple[str, ...]) -> Iterator[Mutant]:
        for statement in statements:
            yield from self.statement(statement, scope)

    def statement(  # noqa: C901, PLR0912 (one branch a kind of node)
        self, node: ast.stmt, scope: tuple[str, ...]
    ) -> Iterator[Mutant]:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_prose(node):
            return
        if not scope and _is_type(node):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                yield from self.expression(default, _At(scope, _extent(default)))
            yield from self.body(node.body, (*scope, node.name))
            return
        if isinstance(node, ast.ClassDef):
            yield from self.body(node.body, (*scope, node.name))
            return
        at = _At(scope, _head(node))
        yield from self.whole(node, at)
        if isinstance(node, ast.Raise):
            return
        for field, value in ast.iter_fields(node):
            if field == "annotation":
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt):
                    yield from self.statement(child, scope)
                elif isinstance(child, ast.ExceptHandler):
                    yield from self.body(child.body, scope)
                elif isinstance(child, ast.match_case):
                    yield from self.case(child, scope)
                elif isinstance(child, ast.expr):
                    yield from self.expression(child, at)
                elif isinstance(child, ast.withitem):
                    yield from self.expression(child.context_expr, at)

    def case(self, node: ast.match_case, scope: tuple[str, ...]) -> Iterator[Mutant]:
        if node.guard is not None:
            at = _At(scope, _extent(node.guard))
            yield self.replaced(node.guard, f"not ({self.text(node.guard)})", "negate", at)
            yield from self.expression(node.guard, at)
        yield from self.body(node.body, scope)

    def whole(self, node: ast.stmt, at: "_At") -> Iterator[Mutant]:
        """Yield changes of a statement as a whole."""
        match node:
            case ast.Raise() | ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
                yield self.replaced(node, "pass", "remove statement", at)
            case ast.AugAssign(target=target, op=op, value=value):
                yield self.replaced(node, "pass", "remove statement", at)
                yield from self.operator(op, target, value, at)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self.replaced(value, "None", "return None", at)
            case ast.Break():
                yield self.replaced(node, "continue", "loop", at)
            case ast.Continue():
                yield self.replaced(node, "break", "loop", at)
            case ast.If(test=test) | ast.While(test=test):
                yield from self.negated(test, at)

    def negated(self, test: ast.expr, at: "_At") -> Iterator[Mutant]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return  # removing `not` is this very change
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], NEGATED_BY_OPERATOR):
            return
        yield self.replaced(test, f"not ({self.text(test)})", "negate", at)

    def expression(self, node: ast.expr, at: "_At") -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr):
            return
        yield from self.own(node, at)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.keyword):
                if child.arg not in PROSE_ARGUMENTS:
                    yield from self.expression(child.value, at)
            elif isinstance(child, ast.comprehension):
                for test in child.ifs:
                    yield from self.negated(test, at)
                    yield from self.expression(test, at)
                yield from self.expression(child.iter, at)
            elif isinstance(child, ast.expr):
                yield from self.expression(child, at)

    def own(  # noqa: C901, PLR0912 (one case a kind of change)
        self, node: ast.expr, at: "_At"
    ) -> Iterator[Mutant]:
        """Yield changes of an expression itself, not of its parts."""
        match node:
            case ast.Constant(value=value):
                for new in _constants(value):
                    yield self.replaced(node, new, "constant", at)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [left, *comparators]
                for op, one, two in zip(ops, sides, comparators, strict=False):
                    pattern, news = COMPARISONS[type(op)]
                    for new in news:
                        yield from self.between(one, two, pattern, new, "comparison", at)
            case ast.BinOp(left=left, op=op, right=right):
                yield from self.operator(op, left, right, at)
            case ast.BoolOp(op=op, values=values):
                old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                for one, two in itertools.pairwise(values):
                    yield from self.between(one, two, rf"\b{old}\b", new, "and/or", at)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self.replaced(node, self.text(operand), "remove not", at)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield self.replaced(node, f"+{self.text(operand)}", "sign", at)
            case ast.IfExp(test=test):
                yield from self.negated(test, at)
            case ast.Call(func=ast.Name(id=name) as func) if name in CALLS:
                yield self.replaced(func, CALLS[name], "other call", at)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math") as module, attr=name)):
                if name in CALLS:
                    span = ast.Attribute(value=module, attr=name)
                    ast.copy_location(span, node.func)
                    yield self.replaced(span, f"math.{CALLS[name]}", "other call", at)
            case ast.Slice(lower=lower, upper=upper):
                for bound in (lower, upper):
                    if bound is not None and not _is_number(bound):
                        yield self.replaced(bound, f"({self.text(bound)}) + 1", "slice bound", at)
            case _:
                return

    def operator(
        self, op: ast.operator, left: ast.expr, right: ast.expr, at: "_At"
    ) -> Iterator[Mutant]:
        if type(op) in ARITHMETIC and not (_is_text(left) or _is_text(right)):
            pattern, new = ARITHMETIC[type(op)]
            yield from self.between(left, right, pattern, new, "arithmetic", at)

    def between(
        self, left: ast.expr, right: ast.expr, pattern: str, new: str, operator: str, at: "_At"
    ) -> Iterator[Mutant]:
        """Yield the change of an operator, which stands between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        found = re.search(pattern, self.source[start:end].decode())
        if found:
            yield self.mutant(start + found.start(), start + found.end(), new, operator, at)

    def replaced(self, node: ast.expr | ast.stmt, new: str, operator: str, at: "_At") -> Mutant:
        return self.mutant(*self.span(node), new, operator, at)

    def mutant(self, start: int, end: int, new: str, operator: str, at: "_At") -> Mutant:
        line = self.source.count(b"\n", 0, start) + 1
        scope = ".".join(at.scope)
        return Mutant(self.file, scope, operator, start, end, new, line, at.lines)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        first, last = _extent(node)
        return (
            self.starts[first - 1] + node.col_offset,
            self.starts[last - 1] + (node.end_col_offset or 0),
        )

    def text(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()


@dataclass(frozen=True)
class _At:
    scope: tuple[str, ...]
    lines: tuple[int, int]


def _extent(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _head(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement without those of the statements inside it."""
    first, last = _extent(node)
    inner = [
        child.lineno
        for child in ast.walk(node)
        if isinstance(child, ast.stmt) and child is not node
    ]
    return first, max(first, min(last, min(inner) - 1)) if inner else last


def _constants(value: object) -> tuple[str, ...]:
    match value:
        case bool():
            return (str(not value),)
        case int():
            return (str({0: 1, 1: 0}.get(value, value + 1)),)
        case float():
            return (repr(value * 2 if value else 1.0),)
        case str() if value and " " not in value:
            return ('""',)
        case _:
            return ()


def _is_prose(node: ast.stmt) -> bool:
    """Say whether a statement is a docstring, `__all__`, or code for type checkers only."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False


def _is_type(node: ast.stmt) -> bool:
    """Say whether a statement names a type; what `Annotated` demands of values is no mere type."""
    match node:
        case ast.Assign(value=ast.Subscript(value=ast.Name(id=name))):
            return name != "Annotated" and (name[0].isupper() or name in BUILT_IN_TYPES)
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "NewType"))):
            return True
        case _:
            return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )

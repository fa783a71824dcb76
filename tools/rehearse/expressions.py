"""Evaluates the expressions of workflows, `${{ }}`, as far as our workflows use the language.

Python's parser reads them, after each token is replaced by Python's. An unknown context, function
or operator is an error: it must not pass for an empty text.
"""

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|\.(?P<property>[A-Za-z_][\w-]*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>==|!=|&&|\|\||[!(),]))\s*"
)
# In Python, `~` precedes comparisons as `!` does, and `not` does not.
_SIGNS = {"&&": " and ", "||": " or ", "!": "~"}
_EMBEDDED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None}
STATUS = ("success", "failure", "always", "cancelled")
STATUS_FUNCTIONS = "()"
"""Key of the status functions among the contexts."""


class ExpressionError(Exception):
    """An expression that the rehearsal cannot evaluate, or a name that does not exist."""


class StrictContext(dict[str, Any]):
    """A context that has every name that may be used; any other name is an error."""


def substitute(text: str, contexts: Mapping[str, Any]) -> str:
    """Return a text in which each `${{ }}` is replaced by its value."""
    substituted = _EMBEDDED.sub(lambda match: as_text(evaluate(match[1], contexts)), text)
    if "${{" in _EMBEDDED.sub("", text):
        raise ExpressionError(f"an expression is not closed by }}}}: {text!r}")
    return substituted


def condition(text: str | None, contexts: Mapping[str, Any], *, success: bool) -> bool:
    """Return whether an `if:` is true; unless it calls a status function, `success` is required."""
    if text is None:
        return success
    expression = text.strip()
    if whole := re.fullmatch(r"\$\{\{(.*)\}\}", expression, re.DOTALL):
        expression = whole[1]
    elif "${{" in expression:
        raise ExpressionError(f"an `if:` with text around its ${{{{ }}}} is always true: {text!r}")
    calls_status_function = any(re.search(rf"\b{name}\s*\(", expression) for name in STATUS)
    holds = truth(evaluate(expression, contexts))
    return holds if calls_status_function else success and holds


def status_functions(*, success: bool) -> dict[str, Any]:
    """Return the status functions as contexts; `success` is whether all succeeded so far."""
    states = (success, not success, True, False)
    functions = {
        name: lambda value=value: value for name, value in zip(STATUS, states, strict=True)
    }
    return {STATUS_FUNCTIONS: functions}


def truth(value: Any) -> bool:
    """Whether GitHub treats a value as true."""
    return not (value is None or value is False or value in ("", 0))


def as_text(value: Any) -> str:
    """Return a value as the text that GitHub writes for it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise ExpressionError("an object where a text is expected: name one of its properties")


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (ValueError, TypeError):
        return math.nan


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    return _number(left) == _number(right)


def _format(pattern: Any, *values: Any) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: as_text(values[int(match[1])]), as_text(pattern))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "startsWith": lambda text, start: (
        as_text(text).casefold().startswith(as_text(start).casefold())
    ),
    "format": _format,
}


def evaluate(text: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of one expression, given without its braces."""
    python, position = "", 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"unknown text {text[position:].strip()!r} in {text!r}")
        kind, token = str(match.lastgroup), match[str(match.lastgroup)]
        python += {
            "text": repr(token[1:-1].replace("''", "'")),
            "property": f"[{token!r}]",
            "name": f" {token}",
            "sign": _SIGNS.get(token, token),
        }[kind]
        position = match.end()
    try:
        tree = ast.parse(python.strip(), mode="eval")
        return _value(tree.body, contexts)
    except SyntaxError as error:
        raise ExpressionError(f"the expression {text!r} is not complete") from error
    except ExpressionError as error:
        raise ExpressionError(f"{error} in the expression {text.strip()!r}") from error


def _value(node: ast.expr, contexts: Mapping[str, Any]) -> Any:
    value: Any
    match node:
        case ast.Constant(str(text)):
            value = text
        case ast.Name(name):
            value = _named(name, {**contexts, **_WORDS}, "the context {!r} does not exist here")
        case ast.Subscript(owner, ast.Constant(key)):
            value = _property(_value(owner, contexts), key)
        case ast.BoolOp(operator, operands):
            # All are evaluated, so that an unknown name is found wherever it is.
            values = [_value(operand, contexts) for operand in operands]
            is_or = isinstance(operator, ast.Or)
            value = next((part for part in values if truth(part) is is_or), values[-1])
        case ast.UnaryOp(ast.Invert(), operand):
            value = not truth(_value(operand, contexts))
        case ast.Compare(left, [ast.Eq() | ast.NotEq() as comparison], [right]):
            is_equal = _equal(_value(left, contexts), _value(right, contexts))
            value = is_equal is isinstance(comparison, ast.Eq)
        case ast.Call(ast.Name(name), arguments):
            functions = {**FUNCTIONS, **contexts.get(STATUS_FUNCTIONS, {})}
            function = _named(name, functions, "the rehearsal does not know the function {}()")
            value = function(*(_value(argument, contexts) for argument in arguments))
        case _:
            raise ExpressionError("the rehearsal does not know an operator")
    return value


def _named(name: str, values: Mapping[str, Any], error: str) -> Any:
    if name not in values:
        raise ExpressionError(error.format(name))
    return values[name]


def _property(value: Any, key: Any) -> Any:
    if isinstance(value, StrictContext) and key not in value:
        raise ExpressionError(f"{key!r} does not exist (there are: {', '.join(sorted(value))})")
    # As on GitHub, null for values that have no properties.
    return value.get(key) if isinstance(value, dict) else None

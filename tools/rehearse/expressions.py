"""Evaluates the expressions of workflows, `${{ }}`, as far as our workflows use the language.

An unknown context, function or operator is an error: it must not pass for an empty text.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKENS = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[!<>()\[\].,]))"
)
_EMBEDDED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None}
STATUS = ("success", "failure", "always", "cancelled")


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
    """Evaluate an `if:`. Unless it calls a status function, `success()` is required as well."""
    if text is None:
        return success
    expression = text.strip()
    if whole := re.fullmatch(r"\$\{\{(.*)\}\}", expression, re.DOTALL):
        expression = whole[1]
    elif "${{" in expression:
        raise ExpressionError(f"an `if:` with text around its ${{{{ }}}} is always true: {text!r}")
    calls_status_function = any(re.search(rf"\b{name}\s*\(", expression) for name in STATUS)
    value = truth(evaluate(expression, contexts))
    return value if calls_status_function else success and value


def evaluate(text: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of one expression, given without its braces."""
    return _Parser(text, contexts).whole()


def truth(value: Any) -> bool:
    """Whether GitHub treats a value as true."""
    return not (value is None or value is False or value in ("", 0) or value != value)  # noqa: PLR0124 (NaN)


def as_text(value: Any) -> str:
    """Return a value as the text that GitHub writes for it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, str | int):
        return str(value)
    raise ExpressionError("an object where a text is expected: name one of its properties")


def _number(value: Any) -> float:
    if value is None or value == "":
        return 0.0
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return math.nan


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return left is right
    return _number(left) == _number(right)


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return any(_equal(item, what) for item in where)
    return as_text(what).casefold() in as_text(where).casefold()


def _format(pattern: Any, *values: Any) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: as_text(values[int(match[1])]), as_text(pattern))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "contains": _contains,
    "startsWith": lambda text, start: (
        as_text(text).casefold().startswith(as_text(start).casefold())
    ),
    "endsWith": lambda text, end: as_text(text).casefold().endswith(as_text(end).casefold()),
    "format": _format,
    "join": lambda items, by=",": as_text(by).join(map(as_text, items)),
    "toJSON": lambda value: json.dumps(value, indent=2),
    "fromJSON": lambda text: json.loads(as_text(text)),
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: _number(left) < _number(right),
    "<=": lambda left, right: _number(left) <= _number(right),
    ">": lambda left, right: _number(left) > _number(right),
    ">=": lambda left, right: _number(left) >= _number(right),
}


class _Parser:
    """A parser that evaluates while it reads; each method handles one level of precedence."""

    def __init__(self, text: str, contexts: Mapping[str, Any]) -> None:
        self.text = text.strip()
        self.contexts = contexts
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(self.text):
            match = _TOKENS.match(self.text, position)
            if match is None:
                raise self._error(f"unknown character {self.text[position]!r}")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            position = match.end()
            while position < len(self.text) and self.text[position].isspace():
                position += 1

    def _error(self, expected: str) -> ExpressionError:
        return ExpressionError(f"{expected} in the expression {self.text!r}")

    def whole(self) -> Any:
        value = self._or()
        if self.tokens:
            raise self._error(f"unexpected {self.tokens[0][1]!r}")
        return value

    def _take(self, *signs: str) -> str | None:
        if self.tokens and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs:
            return self.tokens.pop(0)[1]
        return None

    def _require(self, sign: str) -> None:
        if self._take(sign) is None:
            raise self._error(f"{sign!r} is missing")

    def _or(self) -> Any:
        value = self._and()
        while self._take("||"):
            alternative = self._and()
            value = value if truth(value) else alternative
        return value

    def _and(self) -> Any:
        value = self._comparison()
        while self._take("&&"):
            further = self._comparison()
            value = further if truth(value) else value
        return value

    def _comparison(self) -> Any:
        value = self._unary()
        while sign := self._take(*_COMPARE):
            value = _COMPARE[sign](value, self._unary())
        return value

    def _unary(self) -> Any:
        if self._take("!"):
            return not truth(self._unary())
        value = self._primary()
        while sign := self._take(".", "["):
            if sign == "[":
                key = self._or()
                self._require("]")
            else:
                kind, key = self.tokens.pop(0) if self.tokens else ("", "")
                if kind != "name":
                    raise self._error("a property has no name")
            value = self._property(value, key)
        return value

    def _property(self, value: Any, key: Any) -> Any:
        if isinstance(value, StrictContext) and key not in value:
            raise self._error(f"{key!r} does not exist (there are: {', '.join(sorted(value))})")
        if isinstance(value, dict):
            return value.get(key)
        if isinstance(value, list) and isinstance(key, float) and key.is_integer():
            return value[int(key)] if 0 <= key < len(value) else None
        return None  # as on GitHub, for values that have no properties

    def _primary(self) -> Any:
        if self._take("("):
            value = self._or()
            self._require(")")
            return value
        kind, word = self.tokens.pop(0) if self.tokens else ("", "the end")
        if kind == "number":
            return float(word)
        if kind == "text":
            return word[1:-1].replace("''", "'")
        if kind != "name":
            raise self._error(f"unexpected {word!r}")
        if self._take("("):
            return self._call(word)
        if word in _WORDS:
            return _WORDS[word]
        if word not in self.contexts:
            raise self._error(f"the context {word!r} does not exist here")
        return self.contexts[word]

    def _call(self, name: str) -> Any:
        arguments = []
        while not self._take(")"):
            arguments.append(self._or())
            if not self._take(","):
                self._require(")")
                break
        status = self.contexts.get("()", {})
        function = status.get(name) if name in STATUS else FUNCTIONS.get(name)
        if function is None:
            raise self._error(f"the rehearsal does not know the function {name}()")
        return function(*arguments)

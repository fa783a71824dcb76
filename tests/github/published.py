"""Requests and answers held against what GitHub publishes of its API.

`contract/` has the part that the tests' server uses: `python -m tools.github_contract` writes it.
The server writes what a test is about; `complete` adds the members that every real answer has.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

CONTRACT = Path(__file__).with_name("contract")
GENERAL = frozenset({401, 403, 404, 429, 500, 502, 503})
"""Statuses that any request may have: GitHub's description names them for some operations alone."""
FORMATS = {
    "date-time": "2026-11-01T00:00:00Z",
    "uri": "https://api.github.com/",
    "email": "somebody@example.org",
}
_ABSENT: Any = object()


@dataclass(frozen=True)
class Operation:
    """One method of one path, as published."""

    name: str
    described: Mapping[str, Any] = field(repr=False)
    variables: Mapping[str, str]
    """Values of the parts of the path that vary."""

    def body_schema(self) -> Any:
        """Return the schema of a request's body; None where it has none."""
        body = self.described.get("requestBody") or {}
        return body.get("content", {}).get("application/json", {}).get("schema")

    def answer_schema(self, status: int) -> Any:
        """Return the schema of an answer with this status; None where it has no body."""
        answer = _resolved(self.described["responses"].get(str(status), {}))
        return answer.get("content", {}).get("application/json", {}).get("schema")


@lru_cache(maxsize=4096)  # tests ask for the same paths again and again
def find(verb: str, path: str) -> Operation | None:
    """Return the operation that a request asks for; None where GitHub publishes none."""
    for template, pattern, methods in _templates():
        match = pattern.fullmatch(path)
        if match and verb in methods:
            variables = {name: unquote(value) for name, value in match.groupdict().items()}
            return Operation(f"{verb} {template}", methods[verb], variables)
    return None


def request_faults(operation: Operation, query: Mapping[str, str], body: Any) -> list[str]:
    """List what GitHub's description does not know of a request, and what it lacks."""
    faults = []
    parameters = [_resolved(parameter) for parameter in operation.described.get("parameters", ())]
    named = {
        parameter["name"]: parameter["schema"]
        for parameter in parameters
        if parameter["in"] == "query"
    }
    for name, value in query.items():
        if name not in named:
            faults.append(f"there is no parameter {name}")
        elif not any(_is_valid(named[name], typed) for typed in _typed(value)):
            faults.append(f"the parameter {name} cannot be {value!r}")
    faults += [f"{n} is missing" for n in _required(parameters, "query") if n not in query]
    schema = operation.body_schema()
    if body is not None and schema is None:
        faults.append("it takes no body")
    elif schema is not None and body is not None:
        faults += _errors(schema, body)
        known = _members(_resolved(schema), body)
        faults += [f"the body has an unknown member {name}" for name in sorted({*body} - {*known})]
    return [f"{operation.name}: {fault}" for fault in faults]


def answer_faults(operation: Operation, status: int, body: Any) -> list[str]:
    """List where an answer is not as GitHub describes it."""
    if str(status) not in operation.described["responses"]:
        known = status in GENERAL
        return [] if known else [f"{operation.name}: it never answers {status}"]
    schema = operation.answer_schema(status)
    if schema is None or status >= 400:
        return []
    return [f"{operation.name}: {fault}" for fault in _errors(schema, body)]


_ANSWERED: dict[tuple[str, int, str], tuple[Any, list[str]]] = {}
"""Results of `answered`, by operation, status and body: a sweep has many equal answers."""


def answered(operation: Operation, status: int, body: Any) -> tuple[Any, list[str]]:
    """Return an answer with the members that it lacks, and where it is not as described."""
    key = (operation.name, status, json.dumps(body))
    if key not in _ANSWERED:
        whole = complete(operation, status, body)
        _ANSWERED[key] = whole, answer_faults(operation, status, whole)
    return _ANSWERED[key]


def complete(operation: Operation, status: int, body: Any) -> Any:
    """Return an answer with the members that it must have, as far as it does not have them."""
    schema = operation.answer_schema(status)
    return body if schema is None or status >= 400 else _complete(schema, body)


def _complete(schema: Any, value: Any) -> Any:
    schema = _branch(_resolved(schema), value)
    if isinstance(value, dict):
        members, minimal_values = _shape(schema, value)
        return minimal_values | {
            name: _complete(members[name], value[name]) if name in members else value[name]
            for name in value
        }
    if isinstance(value, list) and "items" in schema:
        return [_complete_item(schema["items"], item) for item in value]
    return value


_SHAPES: dict[tuple[int, ...], tuple[dict[str, Any], dict[str, Any]]] = {}


def _shape(schema: Any, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of a schema, and the plainest value of each that is required."""
    parts = _parts(schema, value)
    key = tuple(map(id, parts))  # schemas live as long as the process
    if key not in _SHAPES:
        members = _members(schema, value)
        required = {name for part in parts for name in part.get("required", ())}
        _SHAPES[key] = members, {name: _minimal(members[name]) for name in sorted(required)}
    return _SHAPES[key]


_COMPLETED: dict[tuple[int, str], Any] = {}
"""Items of lists by their schema and text: a sweep reads the same pull requests many times."""


def _complete_item(schema: Any, item: Any) -> Any:
    key = (id(schema), json.dumps(item))  # schemas live as long as the process
    if key not in _COMPLETED:
        _COMPLETED[key] = _complete(schema, item)
    return _COMPLETED[key]


def _minimal(schema: Any) -> Any:
    """Return the plainest value of a schema: null where it may be."""
    schema = _resolved(schema)
    if "anyOf" in schema or "oneOf" in schema:
        options = [_resolved(choice) for choice in schema.get("anyOf") or schema["oneOf"]]
        if any(option.get("type") == "null" for option in options):
            return None
        return _minimal(options[0])
    for key in ("default", "enum"):
        if key in schema:
            return schema[key][0] if key == "enum" else schema[key]
    kind = schema.get("type") or ("object" if "properties" in schema or "allOf" in schema else "")
    if kind == "object":
        return _complete(schema, {})
    text = FORMATS.get(schema.get("format", ""), "x" * schema.get("minLength", 0))
    plain = {"string": text, "integer": schema.get("minimum", 1), "number": 1, "boolean": False}
    return {**plain, "array": [], "null": None}.get(kind)


def _branch(schema: Any, value: Any) -> Any:
    """Return the alternative of a schema that a value, perhaps incomplete, is meant for."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if not options:
        return schema
    kinds = {dict: "object", list: "array", str: "string", type(None): "null"}
    kind = kinds.get(type(value), "")
    resolved = [_branch(_resolved(option), value) for option in options]
    fitting = [choice for choice in resolved if choice.get("type", "object") == kind] or resolved
    if isinstance(value, dict):
        return max(fitting, key=lambda option: _likeness(option, value))
    return fitting[0]


def _likeness(schema: Any, value: Mapping[str, Any]) -> int:
    """Return how many members of a schema a value has; a wrong one of a list counts against."""
    members = _members(schema, value)
    named = [_resolved(members[name]) | {"is": value[name]} for name in value if name in members]
    return sum(
        1 if choice["is"] in choice.get("enum", [choice["is"]]) else -100 for choice in named
    )


def _parts(schema: Any, value: Any) -> list[Any]:
    """Return a schema, and those that it joins."""
    joined = [_branch(_resolved(part), value) for part in schema.get("allOf", ())]
    return [schema, *(deep for part in joined for deep in _parts(part, value))]


def _members(schema: Any, value: Any) -> dict[str, Any]:
    schema = _branch(schema, value)
    return {
        name: sub
        for part in _parts(schema, value)
        for name, sub in part.get("properties", {}).items()
    }


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        _, _, kind, name = schema["$ref"].split("/")
        schema = _contract()["components"][kind][name]
    return schema


def _typed(text: str) -> list[Any]:
    """Return what the text of a parameter may stand for."""
    return [text, *([int(text)] if text.isdecimal() else []), text == "true"]


def _required(parameters: list[Any], path: str) -> list[str]:
    return [
        parameter["name"]
        for parameter in parameters
        if parameter["in"] == path and parameter.get("required")
    ]


def _is_valid(schema: Any, value: Any) -> bool:
    return bool(_validator(json.dumps(schema)).is_valid(value))


def _errors(schema: Any, value: Any) -> list[str]:
    return [
        f"/{'/'.join(map(str, error.instance_path))}: {error.message[:200]}"
        for error in _validator(json.dumps(schema)).iter_errors(value)
    ]


@cache
def _validator(text: str) -> Any:
    whole = json.loads(text) | {"components": _contract()["components"]}
    return jsonschema_rs.Draft202012Validator(whole)


@cache
def _contract() -> Any:
    return json.loads((CONTRACT / "rest.json").read_text(encoding="utf-8"))


@cache
def _templates() -> list[tuple[str, re.Pattern[str], Any]]:
    """Return path, pattern and methods; those with more fixed letters come first."""
    listed = []
    for template, methods in _contract()["operations"].items():
        pattern = re.sub(r"\{(ref|path|basehead)\}", r"(?P<\1>.+)", template)
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
        listed.append((template, re.compile(pattern), methods))
    return sorted(listed, key=lambda choice: -len(re.sub(r"\{\w+\}", "", choice[0])))

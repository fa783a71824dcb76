"""Types of the toolkit that are written from the schemas of the harness.

The two programs never import each other: they meet in files. For a file that the harness writes
and the toolkit reads, the harness's types give the schema, and the schema the toolkit's types.
"""

import json
import textwrap
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from geneb_ci.common import types
from reference_harness import rescored

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = '''"""What the harness's rescoring says: generated from schemas/rescored.schema.json.

Change reference_harness/rescored.py, then run `make generate`.
"""
'''
NAMES = {
    "BenchmarkRef": "RescoredBenchmark",
    "DatasetRef": "RescoredDataset",
    "HarnessRef": "RescoredHarness",
    "LibraryRef": "RescoredLibrary",
    "NoiseRef": "RescoredNoise",
    "PerSeed": "RescoredSeeds",
    "Regime": "RescoredBase",
    "Warned": "RescoredWarning",
}
"""The harness's name of a part to ours, where it is not "Rescored" and the harness's."""
SHARED = {"Triple": types.Scores}
"""Parts that the toolkit has a type for."""
KNOWN = {
    json.dumps(TypeAdapter(getattr(types, name)).json_schema(), sort_keys=True): name
    for name in ("Hex40", "Hex64", "Moment", "Signed", "Unit", "Count", "Positive")
}
BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minProperties": "min_length",
    "pattern": "pattern",
}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
LINE_MAX = 100  # characters, as pyproject.toml says to the formatter
SILENT = {"title", "description", "default"}
"""Keywords that say nothing of a value."""


def rescored_module() -> str:
    """Return the text of geneb_ci/audit/rescored.py."""
    schema: dict[str, Any] = json.loads(json.dumps(rescored.json_schema()))
    parts = schema["$defs"] | {"Rescored": schema}
    for name, shared in SHARED.items():
        if _facts(parts.pop(name)) != _facts(shared.model_json_schema()):
            raise ValueError(f"{name} of the harness is no longer {shared.__name__} of the toolkit")
    classes = "".join(_class(name, parts[name]) for name in _ordered(parts))
    used = [*KNOWN.values(), *(one.__name__ for one in SHARED.values()), "StrictModel"]
    shared_names = ", ".join(sorted(name for name in used if _uses(classes, name)))
    typing = ", ".join(name for name in ("Annotated", "Literal") if _uses(classes, name))
    return (
        f"{HEAD}\nfrom typing import {typing}\n\nfrom pydantic import Field\n\n"
        f"from geneb_ci.common.types import {shared_names}\n{classes}"
    )


def _uses(text: str, name: str) -> bool:
    return (
        f"{name}[" in text
        or f"{name}\n" in text
        or any(f"{before}{name}{after}" in text for before in " [(" for after in ",])")
    )


def _facts(node: Any) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    """Return a schema without what is written for people only."""
    if isinstance(node, dict):
        return {key: _facts(value) for key, value in node.items() if key not in SILENT}
    return [_facts(value) for value in node] if isinstance(node, list) else node


def _ordered(parts: dict[str, Any]) -> list[str]:
    """Return the names, each after those that it refers to."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        text = json.dumps(parts[name].get("properties", {}))
        for other in parts:
            if other != name and f'"#/$defs/{other}"' in text:
                visit(other)
        found.setdefault(name)

    for name in parts:
        visit(name)
    return list(found)


def _name(name: str) -> str:
    if name in SHARED:
        return SHARED[name].__name__
    return name if name.startswith("Rescored") else NAMES.get(name, f"Rescored{name}")


def _class(name: str, part: dict[str, Any]) -> str:
    """Return one class; every member is required, since the harness writes all of them."""
    if part.get("additionalProperties") is not False:
        raise ValueError(f"{name}: the harness allows members that nobody names")
    text = textwrap.fill(part["description"], 93)
    lines = [_line(f"    {key}: {_type(value)}") for key, value in part["properties"].items()]
    return f'\n\nclass {_name(name)}(StrictModel):\n    """{text}"""\n\n{"".join(lines)}'


def _line(line: str) -> str:
    """Return a line as the formatter writes it: a long list of words has a line of its own."""
    if len(line) > LINE_MAX and line.count("[") == 1:
        head, _, words = line.partition("[")
        return f"{head}[\n        {words.removesuffix(']')}\n    ]\n"
    return f"{line}\n"


def _type(node: dict[str, Any]) -> str:
    """Return the annotation for a schema. Raises ValueError for a keyword it does not know."""
    facts = {key: value for key, value in node.items() if key not in SILENT}
    if known := KNOWN.get(json.dumps(facts, sort_keys=True)):
        return known
    bounds = {BOUNDS[key]: facts.pop(key) for key in list(facts) if key in BOUNDS}
    found = _unbounded(facts)
    if not bounds:
        return found
    said = ", ".join(f"{key}={json.dumps(value)}" for key, value in bounds.items())
    return f"Annotated[{found}, Field({said})]"


def _unbounded(facts: dict[str, Any]) -> str:
    forms: dict[tuple[str, ...], Callable[[], str]] = {
        ("$ref",): lambda: _name(facts["$ref"].rpartition("/")[2]),
        ("anyOf",): lambda: " | ".join(map(_type, facts["anyOf"])),
        ("const", "type"): lambda: f"Literal[{json.dumps(facts['const'])}]",
        ("enum", "type"): lambda: f"Literal[{', '.join(map(json.dumps, facts['enum']))}]",
        ("items", "type"): lambda: f"list[{_type(facts['items'])}]",
        ("additionalProperties", "type"): lambda: (
            f"dict[str, {_type(facts['additionalProperties'])}]"
        ),
        ("type",): lambda: PLAIN[facts["type"]],
    }
    form = forms.get(tuple(sorted(facts)))
    if form is None:
        raise ValueError(f"no type is known for {facts}")
    return form()

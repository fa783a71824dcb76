"""Types of the toolkit that are written from the schemas of the harness.

The two programs never import each other: they meet in files. For a file that the harness writes
and the toolkit reads, the harness's types give the schema, and the schema the toolkit's types.
"""

import json
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter

from geneb_ci.common import types
from reference_harness import rescored
from reference_harness.receipt import cells

if TYPE_CHECKING:
    from collections.abc import Callable


class Contract(NamedTuple):
    """A file of the harness that the toolkit reads."""

    what: str
    """First line of the module's docstring, as far as its schema."""
    schema: str
    source: str
    """Where its types are written."""
    roots: dict[str, dict[str, Any]]
    """Name and schema of the type of each file."""
    prefix: str
    """Begins our name of a part, where `names` has none."""
    names: dict[str, str]
    """The harness's name of a part to ours."""


_REFS = ("Benchmark", "Dataset", "Harness", "Library", "Noise")


def _named(prefix: str, **more: str) -> dict[str, str]:
    return {f"{name}Ref": f"{prefix}{name}" for name in _REFS} | more


def _json(schema: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(schema))
    return found


CONTRACTS = {
    "geneb_ci/audit/rescored.py": Contract(
        "What the harness's rescoring says",
        "schemas/rescored.schema.json",
        "reference_harness/rescored.py",
        {"Rescored": _json(rescored.json_schema())},
        "Rescored",
        _named(
            "Rescored",
            PerSeed="RescoredSeeds",
            Regime="RescoredBase",
            Warned="RescoredWarning",
        ),
    ),
    "geneb_ci/receipt/receipt_cells.py": Contract(
        "What the harness computes from a receipt",
        "schemas/receipt-*.schema.json",
        "reference_harness/receipt/cells.py",
        {"ReceiptCells": _json(cells.cells_schema()), "EqualRows": _json(cells.equal_schema())},
        "Cells",
        _named(
            "Cells",
            PerSeed="CellsSeeds",
            TaskCells="TaskCells",
            ReceiptCells="ReceiptCells",
            EqualRows="EqualRows",
        ),
    ),
}
"""Path of each generated module to what it is generated from."""
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


def contract_modules() -> dict[str, str]:
    """Return path and text of each generated module."""
    return {path: _module(one) for path, one in CONTRACTS.items()}


def _module(contract: Contract) -> str:
    parts: dict[str, Any] = {}
    for name, schema in contract.roots.items():
        parts |= schema.get("$defs", {}) | {name: schema}
    for name, shared in SHARED.items():
        if name in parts and _facts(parts.pop(name)) != _facts(shared.model_json_schema()):
            raise ValueError(f"{name} of the harness is no longer {shared.__name__} of the toolkit")
    classes = "".join(_class(name, parts[name], contract) for name in _ordered(parts))
    used = [*KNOWN.values(), *(one.__name__ for one in SHARED.values()), "StrictModel"]
    shared_names = ", ".join(sorted(name for name in used if _uses(classes, name)))
    typing = ", ".join(name for name in ("Annotated", "Literal") if _uses(classes, name))
    return (
        f'"""{contract.what}: generated from {contract.schema}.\n\n'
        f'Change {contract.source}, then run `make generate`.\n"""\n'
        f"\nfrom typing import {typing}\n\nfrom pydantic import Field\n\n"
        f"from geneb_ci.common.types import {shared_names}\n{classes}"
    )


def _uses(text: str, name: str) -> bool:
    return (
        f"{name}[" in text
        or f"{name}\n" in text
        or any(f"{before}{name}{after}" in text for before in " [(" for after in ",])")
    )


def _facts(node: Any) -> Any:
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


def _name(name: str, contract: Contract) -> str:
    if name in SHARED:
        return SHARED[name].__name__
    if name in contract.names:
        return contract.names[name]
    return name if name.startswith(contract.prefix) else f"{contract.prefix}{name}"


def _class(name: str, part: dict[str, Any], contract: Contract) -> str:
    """Return one class; every member is required, since the harness writes all of them."""
    if part.get("additionalProperties") is not False:
        raise ValueError(f"{name}: the harness allows members that nobody names")
    text = textwrap.fill(part["description"], 93)
    lines = [
        _line(f"    {key}: {_type(value, contract)}") for key, value in part["properties"].items()
    ]
    return f'\n\nclass {_name(name, contract)}(StrictModel):\n    """{text}"""\n\n{"".join(lines)}'


def _line(line: str) -> str:
    """Return a line as the formatter writes it: a long list of words has a line of its own."""
    if len(line) > LINE_MAX and line.count("[") == 1:
        head, _, words = line.partition("[")
        return f"{head}[\n        {words.removesuffix(']')}\n    ]\n"
    return f"{line}\n"


def _type(node: dict[str, Any], contract: Contract) -> str:
    """Return the annotation for a schema. Raises ValueError for a keyword it does not know."""
    facts = {key: value for key, value in node.items() if key not in SILENT}
    if known := KNOWN.get(json.dumps(facts, sort_keys=True)):
        return known
    bounds = {BOUNDS[key]: facts.pop(key) for key in list(facts) if key in BOUNDS}
    found = _unbounded(facts, contract)
    if not bounds:
        return found
    said = ", ".join(f"{key}={json.dumps(value)}" for key, value in bounds.items())
    return f"Annotated[{found}, Field({said})]"


def _unbounded(facts: dict[str, Any], contract: Contract) -> str:
    forms: dict[tuple[str, ...], Callable[[], str]] = {
        ("$ref",): lambda: _name(facts["$ref"].rpartition("/")[2], contract),
        ("anyOf",): lambda: " | ".join(_type(one, contract) for one in facts["anyOf"]),
        ("const", "type"): lambda: f"Literal[{json.dumps(facts['const'])}]",
        ("enum", "type"): lambda: f"Literal[{', '.join(map(json.dumps, facts['enum']))}]",
        ("items", "type"): lambda: f"list[{_type(facts['items'], contract)}]",
        ("additionalProperties", "type"): lambda: (
            f"dict[str, {_type(facts['additionalProperties'], contract)}]"
        ),
        ("type",): lambda: PLAIN[facts["type"]],
    }
    form = forms.get(tuple(sorted(facts)))
    if form is None:
        raise ValueError(f"no type is known for {facts}")
    return form()

"""Validates by the published JSON Schemas with python-jsonschema, to compare with the typed models.

It does not detect NaN, which the scanner does.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from geneb_ci.common.finding import Fault, KeyPath
from geneb_ci.common.shipped import shipped
from geneb_ci.submission import structure
from geneb_ci.submission.tokens import UNUSABLE
from reference_harness.formats.submission import MODELS, Submission

_BOUNDS = {"minimum", "maximum"}
_TYPE_NAMES = {
    "number": "a number",
    "integer": "an integer",
    "string": "a string",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
}


def check_by_schema(value: object) -> tuple[Submission | None, list[Fault]]:
    """Return the result of `structure.check_structure`, computed by the published schema."""
    # The typed submission is built only if the schema has accepted the value.
    if value is UNUSABLE:
        return None, []
    if not isinstance(value, dict):
        return None, [structure.not_an_object(value)]
    refusal = structure.other_file(value)
    if refusal is not None:
        return None, [refusal]
    key = structure.format_key_of(value)
    version = structure.version_of(value)
    is_rejected = value.get("schema_version") is UNUSABLE
    faults = [] if version or is_rejected else [structure.unknown_version(value)]
    members = structure.known_members((), key or "1.0")
    errors = [
        error
        for error in _validator(version or "1.0").iter_errors(value)
        # Format 1.1 has two forms: members of the other form are not validated.
        if not error.absolute_path or error.absolute_path[0] in members
    ]
    for error in _well_typed(errors):
        faults.extend(_faults(error, key))
    if errors or key is None:
        return None, structure.with_rename_fixes(list(dict.fromkeys(faults)))
    return MODELS[key].model_validate(value), []


@functools.cache
def _validator(version: str) -> Validator:
    schema = json.loads(shipped("schemas", f"submission-{version}.schema.json").read_bytes())
    extend: Any = validators.extend  # it has no types
    validator: Validator = extend(Draft202012Validator, {"pattern": _pattern})(open_names(schema))
    return validator


def _pattern(_: Validator, pattern: str, instance: object, __: Any) -> Iterator[ValidationError]:
    """Match as in ECMA-262, where $ does not match before a final newline."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def open_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without names of regimes and tasks, which the coverage rules check."""
    definitions = dict(schema["$defs"])
    properties = dict(schema["properties"])
    for holder in (definitions, properties):
        for name, entry in holder.items():
            definition_name = entry.get("x-names")
            if definition_name:
                inner = next(iter(entry["properties"].values()))
                reference = {
                    key: inner[key] for key in inner if key not in {"title", "description"}
                }
                holder[name] = {"type": "object", "additionalProperties": reference}
    return schema | {"$defs": definitions, "properties": properties}


def _well_typed(errors: Iterable[ValidationError]) -> list[ValidationError]:
    """Return the errors except those about bounds of values that have the wrong type."""
    errors = list(errors)
    mistyped = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    return [
        e for e in errors if e.validator not in _BOUNDS or tuple(e.absolute_path) not in mistyped
    ]


def _faults(error: ValidationError, version: str | None) -> Iterator[Fault]:
    path: KeyPath = tuple(error.absolute_path)
    if path[:1] == ("schema_version",) or error.instance is UNUSABLE:
        return
    kind = str(error.validator)
    value: Any = error.instance
    demand: Any = error.validator_value
    if kind == "required":
        for name in demand:
            if name not in value and (path or name != "schema_version"):
                yield structure.missing((*path, name))
    elif kind == "additionalProperties":
        schema: Any = error.schema
        for name in value:
            if name not in schema["properties"] and (version or path):
                yield structure.unknown((*path, name), version or "1.0", value)
    elif kind == "anyOf":
        yield from _nullable(error, version)
    elif kind == "type" and _lists_values(error.schema):
        return  # the error about the value suffices
    else:
        yield _value_fault(kind, path, value, demand)


def _lists_values(schema: Any) -> bool:  # jsonschema has no narrower type
    return "enum" in schema or "const" in schema


def _value_fault(kind: str, path: KeyPath, value: Any, keyword: Any) -> Fault:
    if kind in {"minimum", "maximum"}:
        bound = f"{'at least' if kind == 'minimum' else 'at most'} {keyword:g}"
        fault = structure.out_of_range(path, value, bound)
    elif kind in {"minLength", "maxLength", "minItems", "maxItems"}:
        word = "at least" if kind.startswith("min") else "at most"
        fault = structure.wrong_length(path, value, f"{word} {keyword}")
    elif kind == "pattern":
        fault = structure.wrong_form(path, value, f"a string of the form {keyword}")
    elif kind in {"enum", "const"}:
        *first_options, last = [
            repr(option) for option in ([keyword] if kind == "const" else keyword)
        ]
        options = f"{', '.join(first_options)} or {last}" if first_options else last
        fault = structure.wrong_form(path, value, f"one of {options}")
    else:
        fault = structure.wrong_type(path, value, _TYPE_NAMES[str(keyword)])
    return fault


def _nullable(error: ValidationError, version: str | None) -> Iterator[Fault]:
    """Yield the faults of the non-null branch, for a value that is not null."""
    # Leave out the error that the value is not null.
    other_types = [
        inner_error for inner_error in error.context or () if inner_error.validator_value != "null"
    ]
    for inner in _well_typed(other_types):
        yield from _faults(inner, version)

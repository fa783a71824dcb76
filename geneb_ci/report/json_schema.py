"""The JSON Schema of findings, made from the classes that are rendered."""

from typing import Any

from pydantic import TypeAdapter

from geneb_ci.report.json_shape import ReportV1


def findings_schema() -> dict[str, Any]:
    """Give the content of `schemas/findings-1.0.schema.json` (Draft 2020-12)."""
    schema = TypeAdapter(ReportV1).json_schema(mode="serialization")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:geneb-ci:schema:findings-1.0",
        "title": "Findings of geneb-ci check, format 1.0",
    }
    return head | {key: _untitled(value) for key, value in schema.items() if key != "title"}


def _untitled(node: Any) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    """Leave out the titles, which only repeat the names."""
    if isinstance(node, dict):
        return {key: _untitled(value) for key, value in node.items() if key != "title"}
    return [_untitled(item) for item in node] if isinstance(node, list) else node

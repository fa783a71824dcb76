"""JSON as text, for the two formats that are JSON: ASCII, and inert in a log of GitHub Actions."""

import json
from collections.abc import Mapping
from typing import Any

from geneb_ci.report.plain import well_formed


def dumps(value: Mapping[str, Any]) -> str:
    """Write JSON that reads back as the same value, lone surrogates aside.

    The runner takes "##[" for a command anywhere in a line; it can stand only inside a string,
    where an escape means the same.
    """
    text = json.dumps(_well_formed(value), indent=2, ensure_ascii=True, allow_nan=False)
    return text.replace("##[", r"#\u0023[") + "\n"


def _well_formed(value: Any) -> Any:  # noqa: ANN401 (JSON has no narrower type)
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {key: _well_formed(member) for key, member in value.items()}
    return [_well_formed(item) for item in value] if isinstance(value, list) else value

"""Contributor text as visible characters, and JSON that is inert in a log of GitHub Actions."""

import json
from collections.abc import Mapping
from typing import Any

TEXT_MAX = 1000  # characters of one text; a hostile key can be as long as its file
_CUT = "..."


def pieces(text: str) -> list[str]:
    r"""Return one visible piece a character, so that a caret can still be placed under it.

    What a terminal or a reader would not show as itself (control characters, bidirectional
    overrides, zero-width characters, lone surrogates) becomes its backslash escape. So does the
    first # of "##[": the runner of GitHub Actions takes it for a command anywhere in a line.
    """
    found = [c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text]
    at = text.find("##[")
    while at >= 0:
        found[at] = r"\x23"
        at = text.find("##[", at + 1)
    return found


def visible(text: str, limit: int = TEXT_MAX) -> str:
    """Return text as one line of visible characters, cut at `limit`."""
    shown = "".join(pieces(text[: limit + 1]))
    return shown if len(shown) <= limit else f"{shown[: limit - len(_CUT)]}{_CUT}"


def well_formed(text: str) -> str:
    """Write lone surrogates as escapes, since not every reader of JSON takes them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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

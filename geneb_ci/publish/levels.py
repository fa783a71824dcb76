"""Trust level of a row at one point of the history, from the evidence that lay there then."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from geneb_ci.label.policy import level_of


@dataclass(frozen=True)
class Standing:
    """All that lay in the repository about one row at one commit."""

    model: str
    sha256: str
    """Of the submission's bytes."""
    official: Mapping[str, str]
    """`files` of official.json."""
    audits: Mapping[str, bytes]
    """Path to bytes of each audit record of this model, in the order of the paths."""


Levels = Callable[[Standing], str]


def level_at(standing: Standing) -> str:
    """Give the level, by the same policy that `build` follows."""
    return str(level_of(standing.sha256, standing.official))


def official_files(raw: bytes | None) -> dict[str, str]:
    """Read official.json as it stood; one that could not be used listed nothing.

    An earlier commit cannot be repaired, so that a broken policy of the past is no fault of today.
    """
    try:
        files = json.loads(raw)["files"] if raw is not None else {}
    except (ValueError, KeyError, TypeError):
        return {}
    if not isinstance(files, dict):
        return {}
    return {str(key): value for key, value in files.items() if isinstance(value, str)}

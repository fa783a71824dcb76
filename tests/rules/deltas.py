"""Fixtures are deltas: one sound row with small named changes, written when a test runs."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from geneb_ci.check.change import Change
from tests.hostile.text import Members, Raw, written
from tests.small import CARD, small, small_v11

Files = dict[str, bytes]
"""A repository: what it holds, by path. `place.py` adds the benchmark where none is given."""
Delta = Callable[[Any], None]
"""One change to a document, in place."""
Fixture = Files | Change
Pairs = dict[str, tuple[Fixture, Fixture]]
"""Rule to its failing and its passing fixture."""


def row(document: Any, name: str = "", card_text: str = CARD) -> Files:
    """Return the file of a row and its card; `name` is for a file not called after its id."""
    name = name or document["model_id"]
    return {
        f"submissions/{name}.json": written(document).encode() + b"\n",
        f"submissions/cards/{name}.md": card_text.encode(),
    }


def raw(data: bytes) -> Files:
    """Return a row of these bytes, without a card."""
    return {"submissions/model.json": data}


def v10(*changes: Delta, **options: Any) -> Files:
    """Return a sound row of format 1.0 with some changes."""
    return row(changed(small("model"), *changes), **options)


def v11(*changes: Delta, **options: Any) -> Files:
    """Return a sound row of format 1.1 with some changes."""
    return row(changed(small_v11("model"), *changes), **options)


def changed(document: Any, *changes: Delta) -> Any:
    document = copy.deepcopy(document)
    for change in changes:
        change(document)
    return document


def holder(document: Any, path: str) -> tuple[Any, str]:
    *parents, last = path.split("/")
    for part in parents:
        document = document[int(part) if isinstance(document, list) else part]
    return document, last


def put(path: str, value: Any) -> Delta:
    """Replace a member, or add it; `path` is keys joined by slashes."""

    def change(document: Any) -> None:
        parent, last = holder(document, path)
        parent[last] = value

    return change


def drop(path: str) -> Delta:
    """Remove a member."""

    def change(document: Any) -> None:
        parent, last = holder(document, path)
        del parent[last]

    return change


def again(path: str, key: str, value: Any) -> Delta:
    """Add a member to an object that may have it already."""

    def change(document: Any) -> None:
        parent, last = holder(document, path)
        parent[last] = Members([*parent[last].items(), (key, value)])

    return change


def token(path: str, text: str) -> Delta:
    """Write a value as this text, which need not be JSON."""
    return put(path, Raw(text))


def card_with(old: str, new: str) -> str:
    """Return the card of the sound row with one text replaced."""
    assert old in CARD
    return CARD.replace(old, new)


def policy(official: dict[str, str], registry: dict[str, Any]) -> Files:
    """Return the policy files of the maintainers."""
    return {
        "leaderboard/policy/official.json": json.dumps({"files": official}, indent=1).encode(),
        **{
            f"leaderboard/policy/models/{model}.toml": entry_of(facts)
            for model, facts in registry.items()
        },
    }


def entry_of(facts: Mapping[str, Any]) -> bytes:
    """Return an entry of the model registry with these facts, each a number or a text."""
    lines = ['schema_version = "1.0"', *(f"{key} = {json.dumps(facts[key])}" for key in facts)]
    return "\n".join(lines).encode()


CELL = "results/full/promoter_tata"
EVIDENCE = "evidence/full/promoter_tata"
MCC = small("model")["results"]["full"]["promoter_tata"]["MCC"]
SOUND = v10()
SOUND_V11 = v11()

"""What fixtures are made of: sound rows with one change."""

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.hostile.text import Members, Raw, written
from tests.small import CARD, small, small_v11

Files = dict[str, bytes]
Change = Callable[[Any], None]


def row(document: Any, name: str = "", card_text: str = CARD) -> Files:
    """Give the file of a row and its card; `name` where the file is not called after its id."""
    name = name or document["model_id"]
    return {
        f"submissions/{name}.json": written(document).encode() + b"\n",
        f"submissions/cards/{name}.md": card_text.encode(),
    }


def raw(data: bytes) -> Files:
    """Give a row that is nothing but these bytes."""
    return {"submissions/model.json": data}


def v10(*changes: Change, **options: Any) -> Files:
    """Give a row of format 1.0 after some changes."""
    return row(changed(small("model"), *changes), **options)


def v11(*changes: Change, **options: Any) -> Files:
    """Give a row of format 1.1 after some changes."""
    return row(changed(small_v11("model"), *changes), **options)


def changed(document: Any, *changes: Change) -> Any:
    document = copy.deepcopy(document)
    for change in changes:
        change(document)
    return document


def holder(document: Any, path: str) -> tuple[Any, str]:
    *parents, last = path.split("/")
    for part in parents:
        document = document[part]
    return document, last


def put(path: str, value: Any) -> Change:
    """Put a value in the place of a member, or add it."""

    def change(document: Any) -> None:
        place, last = holder(document, path)
        place[last] = value

    return change


def drop(path: str) -> Change:
    """Take a member out."""

    def change(document: Any) -> None:
        place, last = holder(document, path)
        del place[last]

    return change


def again(path: str, key: str, value: Any) -> Change:
    """Add a member to an object that may have it already."""

    def change(document: Any) -> None:
        place, last = holder(document, path)
        place[last] = Members([*place[last].items(), (key, value)])

    return change


def token(path: str, text: str) -> Change:
    """Write a token as it stands."""
    return put(path, Raw(text))


def card_with(old: str, new: str) -> str:
    """Give the card of the row with one text replaced."""
    assert old in CARD
    return CARD.replace(old, new)


def policy(official: dict[str, str], registry: dict[str, Any]) -> Files:
    """Give a policy of the maintainers."""
    return {
        "leaderboard/policy/official.json": json.dumps({"files": official}, indent=1).encode(),
        "leaderboard/policy/registry.json": json.dumps({"models": registry}, indent=1).encode(),
    }

"""Answers of GitHub that may still hold: asked again with their ETag, they cost nothing."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = 1
# A queue of 200 pull requests leaves about 2 MB.
BYTES_MAX = 20_000_000


class Kept(NamedTuple):
    """One answer: its ETag, its JSON, the address of the next page."""

    etag: str
    body: Any
    following: str | None


class Etags:
    """Answers by address, in memory; on disk where a file is named."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, Kept] = _read(path) if path is not None else {}
        self._used: dict[str, Kept] = {}

    def find(self, key: str) -> Kept | None:
        """Give the answer that an address had last."""
        kept = self._known.get(key)
        if kept is not None:
            self._used[key] = kept
        return kept

    def keep(self, key: str, kept: Kept) -> None:
        """Remember an answer."""
        self._known[key] = self._used[key] = kept

    def save(self) -> None:
        """Write what this run used; a cache that cannot be written is none."""
        if self._path is None:
            return
        text = json.dumps({"format": FORMAT, "answers": self._used})
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent)
            with open(handle, "w", encoding="utf-8") as stream:  # noqa: PTH123 (a descriptor has no Path)
                stream.write(text)
            os.replace(name, self._path)  # noqa: PTH105
        except OSError:
            return


def _read(path: Path) -> dict[str, Kept]:
    """Read the answers of an earlier run; a file that is not one of ours holds none."""
    try:
        if path.stat().st_size > BYTES_MAX:
            return {}
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            return {}
        return {
            str(key): Kept(str(etag), body, following if isinstance(following, str) else None)
            for key, (etag, body, following) in content["answers"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}

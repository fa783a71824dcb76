"""The shards of one cache in an object store, which every machine of a cluster reaches.

Each machine keeps a folder of its own and fetches the shards that it lacks. A shard never changes
and its name is used once, so there is nothing to reconcile.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import OptionError, StateError
from .shard import DAMAGED_SUFFIX, SUFFIX

SCHEME = "://"
"""The mark that tells an address of fsspec from a path."""


class Mirror:
    """A folder of shards, and the address that it shares them at."""

    def __init__(self, address: str, folder: Path) -> None:
        """Raise OptionError for an address of a kind that is unknown or lacks its package."""
        import fsspec  # it takes a fifth of a second, and a folder needs none

        self._address, self._folder = address, folder
        self._here: set[str] = set()
        try:
            files, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            msg = f"--cache {address}: {error}"
            raise OptionError(msg) from error
        self._files: Any = files
        self._root = str(root).rstrip("/")

    def pull(self) -> bool:
        """Fetch each shard that is not here; return whether there was one. Raises StateError.

        One that was damaged here is left out: its embeddings are computed again.
        """
        is_new = False
        with self._explained():
            for name in sorted(self._names() - self._here):
                paths = (self._folder / name, self._folder / f"{name}{DAMAGED_SUFFIX}")
                if not any(path.exists() for path in paths):
                    self._fetch(name)
                    is_new = True
                self._here.add(name)
        return is_new

    def push(self, name: str) -> None:
        """Share a shard of the folder. Raises StateError."""
        part = f"{self._root}/.{name}.part"  # not every store shows a file only when it is whole
        with self._explained():
            self._files.makedirs(self._root, exist_ok=True)
            self._files.put_file(str(self._folder / name), part)
            self._files.mv(part, f"{self._root}/{name}")
        self._here.add(name)

    def _names(self) -> set[str]:
        try:
            paths = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return set()
        names = {str(path).rstrip("/").rpartition("/")[2] for path in paths}
        return {name for name in names if name.endswith(SUFFIX) and not name.startswith(".")}

    def _fetch(self, name: str) -> None:
        handle, part = tempfile.mkstemp(prefix=f".{name}.", dir=self._folder)
        os.close(handle)
        try:
            self._files.get_file(f"{self._root}/{name}", part)
            Path(part).replace(self._folder / name)
        finally:
            Path(part).unlink(missing_ok=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what a store's client raises, which is of any kind, into a sentence."""
        try:
            yield
        except Exception as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            msg = f"{self._address}: {message}: check the address and what may be read and written"
            raise StateError(msg) from error

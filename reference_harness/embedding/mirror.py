"""The shards of a cache in an object store, which every machine of a cluster can reach.

Each machine has its own folder and fetches the shards that it lacks. A shard never changes and its
name is used once, so there can be no conflict.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reference_harness.errors import OptionError, StateError

from .shard import DAMAGED_SUFFIX, SHARD_SUFFIX

SCHEME = "://"
"""The part of an address of fsspec that a path does not have."""


class Mirror:
    """A folder of shards, and the address of the object store to which they are copied."""

    def __init__(self, address: str, folder: Path) -> None:
        """Raise OptionError for an unknown kind of address, or if its package is missing."""
        import fsspec  # it takes a fifth of a second, and a folder needs none

        self._address, self._folder = address, folder
        self._local_names: set[str] = set()
        """Names of shards that need not be fetched: this machine has or had them."""
        try:
            filesystem, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            msg = f"--cache {address}: {error}"
            raise OptionError(msg) from error
        self._filesystem: Any = filesystem
        self._root = str(root).rstrip("/")

    def pull(self) -> bool:
        """Fetch each missing shard; return whether there was one. Raise StateError.

        A shard that was found damaged here is not fetched: its embeddings are computed again.
        """
        is_new = False
        with self._explained():
            for shard in sorted(self._stored_names() - self._local_names):
                paths = (self._folder / shard, self._folder / f"{shard}{DAMAGED_SUFFIX}")
                if not any(path.exists() for path in paths):
                    self._fetch(shard)
                    is_new = True
                self._local_names.add(shard)
        return is_new

    def push(self, shard: str) -> None:
        """Copy a shard of the folder to the store. Raise StateError."""
        temporary_path = f"{self._root}/.{shard}.part"  # as some stores show incomplete files
        with self._explained():
            self._filesystem.makedirs(self._root, exist_ok=True)
            self._filesystem.put_file(str(self._folder / shard), temporary_path)
            self._filesystem.mv(temporary_path, f"{self._root}/{shard}")
        self._local_names.add(shard)

    def _stored_names(self) -> set[str]:
        """Return the names of the shards in the object store."""
        try:
            paths = self._filesystem.ls(self._root, detail=False)
        except FileNotFoundError:
            return set()
        stored = {str(path).rstrip("/").rpartition("/")[2] for path in paths}
        return {name for name in stored if name.endswith(SHARD_SUFFIX) and not name.startswith(".")}

    def _fetch(self, shard: str) -> None:
        """Copy a shard from the object store to the folder."""
        handle, temporary_path = tempfile.mkstemp(prefix=f".{shard}.", dir=self._folder)
        os.close(handle)
        try:
            self._filesystem.get_file(f"{self._root}/{shard}", temporary_path)
            Path(temporary_path).replace(self._folder / shard)
        finally:
            Path(temporary_path).unlink(missing_ok=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise any error of a store's client as a StateError with a message."""
        try:
            yield
        except Exception as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            msg = f"{self._address}: {message}: check the address and your permissions there"
            raise StateError(msg) from error

"""A folder that caches results; the key of a result is a digest of everything that it depends on.

An entry is a file with one result. If it cannot be read, or was cut, changed or renamed, it counts
as missing. The entries that were not used for the longest time are deleted first. Whoever can write
to the folder can change results, so the cache is not used in GitHub Actions.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from geneb_ci.common.config import cache_folder
from geneb_ci.common.errors import UsageProblem
from reference_harness.formats.files import NotReadable, read_regular, write_whole

CACHE_BYTES_MAX = 64_000_000
"""Maximum size of all entries of a cache; the findings of 10,000 submissions take 15 MB."""
_ENTRY_BEGINNING = b"geneb-ci cache 2\n"
"""First bytes of each entry, with the version of its format."""


class Cache:
    """A cache of results in a folder; without a folder, it saves nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, key: str) -> bytes | None:
        """Return the content saved under a key of hex digits; None if there is none."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            raw = read_regular(path, CACHE_BYTES_MAX, links=False)
        except NotReadable:
            return None
        header, body = raw[: len(_ENTRY_BEGINNING) + 32], raw[len(_ENTRY_BEGINNING) + 32 :]
        if header != _entry_header(key, body):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # so that it is deleted later
        return body

    def save(self, key: str, body: bytes) -> None:
        """Save content under a key; do nothing if it cannot be written."""
        if self.folder is None or len(body) > CACHE_BYTES_MAX // 4:
            return
        content = _entry_header(key, body) + body
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.folder / key, lambda stream: stream.write(content))
            self._prune(self.folder)

    @staticmethod
    def _prune(folder: Path) -> None:
        """Remove entries, those not used for the longest time first, down to `CACHE_BYTES_MAX`."""
        with os.scandir(folder) as listing:
            files = sorted(
                ((e.stat(follow_symlinks=False), e.path) for e in listing), key=_last_used_first
            )
        total = 0
        for status, path in files:
            total += status.st_size
            if total > CACHE_BYTES_MAX:
                Path(path).unlink(missing_ok=True)


NO_CACHE = Cache(None)
"""A cache that saves nothing."""


def user_cache(purpose: str) -> Cache:
    """Return the user's cache for a purpose; in GitHub Actions, a cache that saves nothing."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return NO_CACHE
    try:
        return Cache(cache_folder(purpose))
    except UsageProblem:  # the user has no home folder
        return NO_CACHE


def _entry_header(key: str, body: bytes) -> bytes:
    """Return the header of an entry: it reveals damage or another key, but no forgery."""
    return _ENTRY_BEGINNING + hashlib.sha256(key.encode() + b"\0" + body).digest()


def _last_used_first(status_and_path: tuple[os.stat_result, str]) -> float:
    """Return a sort key by which the entry that was used last comes first."""
    return -status_and_path[0].st_mtime

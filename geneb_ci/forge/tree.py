"""What a pull request changes, from git's own trees: nothing is checked out, no diff is parsed.

The contents API follows links, a diff is text that a contributor shapes; a tree has the mode, the
name and the SHA of each path, and each blob's bytes are hashed again.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from geneb_ci.check.change import REGULAR, Blob, Change, FileChange, Places
from geneb_ci.forge.errors import Tampered
from geneb_ci.forge.github import GitHub
from geneb_ci.forge.replies import Pull, RecursiveTree
from geneb_ci.read.bytes import BYTES_MAX, too_large
from geneb_ci.read.fault import Fault

_AGAIN = "run it again; if it stays, somebody is between you and GitHub"


@dataclass(frozen=True)
class Sides:
    """Two trees of one pull request, by their one merge base."""

    merge_base: str
    change: Change
    head: dict[str, Blob]
    """Every path of the head that is no folder."""


def read_sides(github: GitHub, pull: Pull, places: Places) -> Sides:
    """Read both trees: three requests, fewer where another pull request began at the same commit.

    Raises Tampered where an answer contradicts itself.
    """
    base = github.comparison(pull.base.sha, pull.head.sha).merge_base_commit
    before, base_cut = _entries(github.tree(base.commit.tree.sha))
    after, head_cut = _entries(github.tree(pull.head.sha))
    paths = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    files = tuple(FileChange(path, before.get(path), after.get(path)) for path in paths)
    change = Change(files, truncated=base_cut or head_cut, places=places)
    return Sides(base.sha, change, after)


def _entries(tree: RecursiveTree) -> tuple[dict[str, Blob], bool]:
    found: dict[str, Blob] = {}
    for entry in tree.tree:
        if entry.type == "tree":
            continue
        if entry.path in found:
            raise Tampered(f"a tree names one path twice: {ascii(entry.path)[:80]}", _AGAIN)
        found[entry.path] = Blob(entry.mode, entry.sha, entry.size)
    return found, tree.truncated


def read_blob(github: GitHub, blob: Blob) -> bytes | Fault:
    """Read the bytes of a regular file: a request, or none where it is too large to be one of ours.

    Raises Tampered where the bytes are not those of their name.
    """
    if blob.mode != REGULAR:
        raise ValueError(blob.mode)
    if blob.size > BYTES_MAX:
        return too_large(blob.size)
    reply = github.blob(blob.sha)
    try:
        if reply.encoding != "base64":
            raise Tampered(f"blob {blob.sha}: encoding {reply.encoding[:20]!a}", _AGAIN)
        raw = base64.b64decode(reply.content.replace("\n", ""), validate=True)
    except binascii.Error as error:
        raise Tampered(f"blob {blob.sha}: this is not base64", _AGAIN) from error
    if git_sha(raw) != blob.sha:
        raise Tampered(f"blob {blob.sha}: GitHub sent other bytes, of SHA-1 {git_sha(raw)}", _AGAIN)
    return raw if len(raw) <= BYTES_MAX else too_large(len(raw))


def git_sha(raw: bytes) -> str:
    """Name bytes as git does: SHA-1 over "blob", their number, a NUL and themselves."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()

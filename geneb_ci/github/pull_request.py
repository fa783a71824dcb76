"""Reads what a pull request changes, from git trees, and runs the rules about the change."""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from geneb_ci.check.change import REGULAR, Blob, Change, ChangeFault, FileChange, Places
from geneb_ci.check.registry import BY_ID, CHANGE_RULES
from geneb_ci.check.rule import AnyRule, ChangeRule
from geneb_ci.check.runner import crash_message
from geneb_ci.common.finding import Finding
from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import Tampered
from geneb_ci.github.replies import Pull, RecursiveTree
from geneb_ci.submission.bytes import BYTES_MAX, too_large
from geneb_ci.submission.fault import Fault

_AGAIN = "run the command again; if it fails again, the connection to GitHub may be tampered with"


@dataclass(frozen=True)
class Sides:
    """The trees of the merge base and of the head of a pull request."""

    merge_base: str
    change: Change
    head: dict[str, Blob]
    """Every path of the head except folders."""


def read_sides(github: GitHub, pull: Pull, places: Places) -> Sides:
    """Read both trees, in at most three requests; trees of an earlier merge base are cached.

    Raises Tampered if an answer contradicts itself.
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
            raise Tampered(f"a tree has a duplicate path: {ascii(entry.path)[:80]}", _AGAIN)
        found[entry.path] = Blob(entry.mode, entry.sha, entry.size)
    return found, tree.truncated


def read_blob(github: GitHub, blob: Blob) -> bytes | Fault:
    """Return the bytes of a file, in one request; a Fault without a request if it is too large.

    Raises Tampered if the bytes do not match their git object id.
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
        raise Tampered(f"blob {blob.sha}: not base64", _AGAIN) from error
    if git_sha(raw) != blob.sha:
        raise Tampered(f"blob {blob.sha}: GitHub sent bytes with the id {git_sha(raw)}", _AGAIN)
    return raw if len(raw) <= BYTES_MAX else too_large(len(raw))


def git_sha(raw: bytes) -> str:
    """Return the git object id of a blob: SHA-1 of "blob", a space, the size, a NUL, the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


# Listed findings per rule; the others are counted.
PATHS_MAX = 20


def change_findings(change: Change, rules: Iterable[ChangeRule] = CHANGE_RULES) -> list[Finding]:
    """Return the findings about a change, sorted by file and rule."""
    return sorted(_findings(change, rules), key=Finding.sort_key)


def _findings(change: Change, rules: Iterable[ChangeRule]) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(change))
        except Exception as error:  # noqa: BLE001 (any exception is a bug, reported as a finding)
            crash = ChangeFault("check-crashed", "", crash_message(rule, error), rule.id)
            yield _finding(BY_ID["check-crashed"], crash)
            continue
        yield from (_finding(rule, fault) for fault in faults[:PATHS_MAX])
        if len(faults) > PATHS_MAX:
            more = len(faults) - PATHS_MAX
            message = f"{more:,} more findings of {rule.id} are not listed"
            yield _finding(rule, ChangeFault(rule.id, "", message, f"{len(faults)} paths", "none"))


def _finding(rule: AnyRule, fault: ChangeFault) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        message=fault.message,
        file=fault.file,
        pointer="",
        line=1,
        column=1,
        found=fault.found,
        expected=fault.expected,
        fix=fault.fix or rule.fix,
    )

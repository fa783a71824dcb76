"""What a pull request changes, from git's own trees, and the rules that look at the change."""

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


# Findings of one rule: enough to mend the change, few enough to read.
PATHS_MAX = 20


def change_findings(change: Change, rules: Iterable[ChangeRule] = CHANGE_RULES) -> list[Finding]:
    """Return every finding of a change, in the order of file and rule."""
    return sorted(_findings(change, rules), key=Finding.sort_key)


def _findings(change: Change, rules: Iterable[ChangeRule]) -> Iterator[Finding]:
    for rule in rules:
        try:
            faults = list(rule.check(change))
        except Exception as error:  # noqa: BLE001 (whatever a rule raises is our fault, and shown)
            crash = ChangeFault("check-crashed", "", crash_message(rule, error), rule.id)
            yield _finding(BY_ID["check-crashed"], crash)
            continue
        yield from (_finding(rule, fault) for fault in faults[:PATHS_MAX])
        if len(faults) > PATHS_MAX:
            more = len(faults) - PATHS_MAX
            message = f"{more:,} more paths have the fault {rule.id}"
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

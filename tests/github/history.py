"""Commits, flat trees and blobs in memory, and what a merge makes of them."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

Files = dict[str, tuple[str, bytes]]
"""Path to mode and bytes."""


def git_sha(kind: str, raw: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(raw)}\0".encode() + raw, usedforsecurity=False).hexdigest()


class History:
    """The history of one repository, whose pull requests are squashed into main."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.trees: dict[str, dict[str, tuple[str, str]]] = {}
        self.commits: dict[str, tuple[str, str | None]] = {}
        self.pulls: dict[int, dict[str, Any]] = {}
        self.default_head = ""
        """Head of the default branch; the first commit where it is not set."""
        self.merges: dict[str, str] = {}
        """Second parents of merge commits."""

    def commit(self, files: Files, parent: str | None = None) -> str:
        tree = {}
        for path, (mode, raw) in files.items():
            sha = raw.decode() if mode == "160000" else git_sha("blob", raw)
            self.blobs[sha] = raw
            tree[path] = (mode, sha)
        return self.commit_tree(tree, parent)

    def main_sha(self) -> str:
        """Return the head of the default branch."""
        return self.default_head or next(iter(self.commits))

    def squash(self, number: int) -> str:
        """Squash a pull request into main; raise AssertionError where git would see a conflict."""
        pull = self.pulls[number]
        main, head = self.main_sha(), pull["head"]["sha"]
        files = self.merged(main, head)
        assert files is not None
        pull |= {"state": "closed", "merged_at": pull["updated_at"]}
        self.default_head = self.commit_tree(files, main)
        return self.default_head

    def merged(self, main: str, head: str) -> dict[str, tuple[str, str]] | None:
        """Return the files of a merge, each whole; None where both sides changed one."""
        line = set(self.ancestors(main))
        base = next(sha for sha in self.ancestors(head) if sha in line)
        before, now, after = (self.trees[self.commits[sha][0]] for sha in (base, main, head))
        files = dict(now)
        for path in before.keys() | after.keys():
            if after.get(path) in {before.get(path), now.get(path)}:
                continue
            if before.get(path) != now.get(path):
                return None
            files.pop(path, None)
            if path in after:
                files[path] = after[path]
        return files

    def commit_tree(self, tree: dict[str, tuple[str, str]], parent: str | None) -> str:
        """Commit files that are known."""
        name = git_sha("tree", json.dumps(tree, sort_keys=True).encode())
        self.trees[name] = tree
        sha = git_sha("commit", f"{name} {parent} {len(self.commits)}".encode())
        self.commits[sha] = (name, parent)
        return sha

    def ancestors(self, sha: str | None) -> Iterator[str]:
        pending = [sha]
        while pending:
            sha = pending.pop()
            if sha in self.commits:
                yield sha
                pending += [self.commits[sha][1], self.merges.get(sha)]

"""A repository of the Hub of the tests: a line of commits with whole trees, as git names them."""

import fnmatch
import hashlib
import json
import threading
from dataclasses import dataclass, field
from typing import NamedTuple


class Commit(NamedTuple):
    """One commit of a repository."""

    oid: str
    parent: str | None
    tree: dict[str, bytes]
    title: str
    message: str


@dataclass
class Repo:
    """One Space or data set: a line of commits, and who may write now."""

    name: str
    commits: list[Commit] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    large: dict[str, bytes] = field(default_factory=dict)
    """sha256 to bytes of what was uploaded by LFS."""
    lfs_over: int = 10_000_000
    """Files with more bytes go by LFS, and so do those that .gitattributes names."""
    xet: bool = True
    """Whether large files lie in Xet storage, so that the Hub names their place there."""
    ignored: set[str] = field(default_factory=set)
    """What a .gitignore on the Hub names."""
    is_private: bool = False
    stage: str | None = "RUNNING"
    """Of a Space."""
    renamed: str = ""
    """OWNER/NAME that it has now; the former one goes on leading to it."""
    served: int = -1
    """Index of the commit that visitors of a Space get."""
    names_host: bool = True

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    def at(self, revision: str) -> Commit | None:
        if revision == "main":
            return self.head
        return next((commit for commit in self.commits if commit.oid == revision), None)

    def add(self, tree: dict[str, bytes], title: str, message: str = "") -> Commit:
        parent = self.commits[-1].oid if self.commits else None
        facts = [parent, title, message, len(self.commits), *sorted(map(git_name, tree.values()))]
        oid = hashlib.sha1(json.dumps(facts).encode(), usedforsecurity=False).hexdigest()
        self.commits.append(Commit(oid, parent, dict(tree), title, message))
        return self.head

    def by_lfs(self, path: str, size: int) -> bool:
        """Whether the Hub asks for a file by LFS: the size decides, or .gitattributes."""
        lines = self.head.tree.get(".gitattributes", b"").decode().splitlines()
        named = (line.split()[0] for line in lines if "filter=lfs" in line)
        name = path.rpartition("/")[2]
        return size > self.lfs_over or any(fnmatch.fnmatch(name, pattern) for pattern in named)

    def is_large(self, path: str, content: bytes) -> bool:
        """Whether a file lies elsewhere, and the repository has but its sha256."""
        by_lfs = self.by_lfs(path, len(content))
        return by_lfs or hashlib.sha256(content).hexdigest() in self.large


def git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

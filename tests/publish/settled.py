"""What must hold of a Space whatever happened: whole boards, each generation once, the newest."""

import hashlib
from collections import Counter

from geneb_ci.publish.generation import Generation
from geneb_ci.publish.manifest import MANIFEST_FILE, parse_manifest
from tests.publish.hub import Commit, Repo

BY_HAND = "by hand"
"""Title of a commit that somebody makes on the Space, beside ours."""


class Patience:
    """A clock that notes how long it was told to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float, /) -> None:
        self.waits.append(seconds)


def generation_of(commit: Commit) -> str | None:
    """Return the generation of a commit of the Space, whose files must all be those it lists."""
    if MANIFEST_FILE not in commit.tree:
        return None
    manifest = parse_manifest(commit.tree[MANIFEST_FILE], commit.oid)
    held = {name: commit.tree.get(name, b"") for name in manifest.files}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
    assert digests == {name: file.sha256 for name, file in manifest.files.items()}, "a half board"
    return manifest.generation


def assert_settled(repo: Repo, newest: Generation) -> None:
    """Hold the whole history of a Space against what must never happen."""
    held = [(generation_of(commit), commit.title) for commit in repo.commits]
    generations = [generation for generation, _ in held if generation]
    made = [generation for generation, title in held if generation and title != BY_HAND]
    assert Counter(made).most_common(1)[0][1] == 1, "a generation was committed twice"
    assert generations[-1] == newest.manifest.generation, "the newest main is not live"
    assert {name: repo.head.tree.get(name) for name in newest.published} == newest.published
    parents = [commit.parent for commit in repo.commits]
    assert parents == [None, *(commit.oid for commit in repo.commits[:-1])]
    for name, content in repo.commits[0].tree.items():
        assert repo.head.tree[name] == content, "a file that is not ours was touched"

"""The requests that we make of GitHub, each with what it costs."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Self

from geneb_ci.common.errors import UsageProblem
from geneb_ci.github import errors as waiting
from geneb_ci.github.errors import NoGitHubToken, NotFound
from geneb_ci.github.replies import (
    BlobReply,
    Comment,
    CommitComparison,
    Label,
    Pull,
    RecursiveTree,
    parsed,
)
from geneb_ci.github.verdict import REPOSITORY
from geneb_ci.github.wire import Etags, Wire

API = "https://api.github.com"
STATUS_CONTEXT = "geneb/verdict"
# The account of GITHUB_TOKEN in GitHub Actions; `GET /user` is closed to that token.
ACTIONS_BOT = 41898282
PULLS_PAGES_MAX = 10  # 1,000 open pull requests
# A flood of 3,000 comments: then a maintainer locks the conversation first.
COMMENTS_PAGES_MAX = 30
TREES_MAX = 16  # kept in memory: most pull requests of a sweep began at one of few commits


class GitHub:
    """One repository, as far as we read and write it."""

    def __init__(self, wire: Wire, author: int = ACTIONS_BOT) -> None:
        self.wire = wire
        self.author = author
        """Id of the account that our token writes as."""
        self._trees: dict[str, RecursiveTree] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.wire.close()

    def open_pulls(self) -> Iterator[Pull]:
        """Return the open pull requests to the default branch, the one that changed last first.

        A request for 100. A commit may be the head of several; a verdict is on what it would do to
        main, so those to another branch are not ours to judge. One that moves from page to page
        while we read comes once.
        """
        met: set[int] = set()
        parameters = {"state": "open", "sort": "updated", "direction": "desc"}
        for page in self.wire.pages("/pulls", PULLS_PAGES_MAX, **parameters):
            for pull in parsed(list[Pull], page, "the list of pull requests"):
                if self._known(pull).is_to_main and pull.number not in met:
                    met.add(pull.number)
                    yield pull

    def pull(self, number: int) -> Pull:
        """Return one pull request: a request."""
        body = self.wire.get(f"/pulls/{number}").body
        return self._known(parsed(Pull, body, f"pull request {number}"))

    def _known(self, pull: Pull) -> Pull:
        """Raise NotFound where a redirection led to another repository: it drops our parameters."""
        name = pull.base.repo.full_name
        if name.casefold() != self.wire.repository.casefold():
            raise NotFound(
                f"{self.wire.repository} is now {name!a}", "name it so: --repo OWNER/NAME"
            )
        return pull

    def comparison(self, base: str, head: str) -> CommitComparison:
        """Find where two commits part: a request. One file and one commit are all we ask for."""
        body = self.wire.get(f"/compare/{base}...{head}", per_page=1).body
        return parsed(CommitComparison, body, "the comparison of base and head")

    def tree(self, sha: str) -> RecursiveTree:
        """Return all paths of a commit or tree: a request the first time, for it never changes."""
        if sha not in self._trees:
            body = self.wire.get(f"/git/trees/{sha}", recursive=1).body
            if len(self._trees) == TREES_MAX:
                self._trees.pop(next(iter(self._trees)))
            self._trees[sha] = parsed(RecursiveTree, body, f"the tree {sha}")
        return self._trees[sha]

    def blob(self, sha: str) -> BlobReply:
        """Return the bytes of a file: a request."""
        return parsed(BlobReply, self.wire.get(f"/git/blobs/{sha}").body, f"the blob {sha}")

    def comments(self, number: int) -> Iterator[Comment]:
        """Return the comments on a pull request, the oldest first: a request for 100."""
        path = f"/issues/{number}/comments"
        for page in self.wire.pages(path, COMMENTS_PAGES_MAX):
            yield from parsed(list[Comment], page, "the comments")

    def set_status(self, sha: str, state: str, description: str) -> None:
        """Set our status on a commit: a write."""
        body = {"state": state, "description": description, "context": STATUS_CONTEXT}
        self.wire.send("POST", f"/statuses/{sha}", body)

    def add_label(self, number: int, name: str) -> None:
        """Add a label to a pull request: a write that touches no other label."""
        reply = self.wire.send("POST", f"/issues/{number}/labels", {"labels": [name]})
        parsed(list[Label], reply, "the labels")

    def set_labels(self, number: int, names: list[str]) -> None:
        """Replace the labels of a pull request: a write. One that was just set is lost."""
        reply = self.wire.send("PUT", f"/issues/{number}/labels", {"labels": names})
        parsed(list[Label], reply, "the labels")

    def edit_comment(self, comment: int, text: str) -> None:
        """Replace the text of a comment: a write."""
        reply = self.wire.send("PATCH", f"/issues/comments/{comment}", {"body": text})
        parsed(Comment, reply, "the comment")

    def add_comment(self, number: int, text: str) -> None:
        """Comment on a pull request: a write. After Unavailable, nobody knows whether it stands."""
        reply = self.wire.send("POST", f"/issues/{number}/comments", {"body": text})
        parsed(Comment, reply, "the comment")


def connect(
    repository: str | None,
    environment: Mapping[str, str] = os.environ,
    author: int | None = None,
    etags: Etags | None = None,
) -> GitHub:
    """Connect with what GitHub Actions sets: GH_TOKEN, GITHUB_REPOSITORY, GITHUB_API_URL.

    Raises NoToken without a token, UsageProblem without a repository. Nothing is asked yet.
    """
    token = environment.get("GH_TOKEN") or environment.get("GITHUB_TOKEN")
    if not token:
        raise NoGitHubToken(
            "there is no token: GH_TOKEN is not set",
            "export GH_TOKEN=$(gh auth token), or in a workflow: GH_TOKEN: ${{ github.token }}",
        )
    name = repository or environment.get("GITHUB_REPOSITORY") or ""
    if not re.fullmatch(REPOSITORY, name):
        raise UsageProblem(
            f"{name!r} is not a repository" if name else "no repository is named",
            "name it: --repo OWNER/NAME",
        )
    api = environment.get("GITHUB_API_URL") or API
    connection = Wire(token, name, api.rstrip("/"), waiting.PATIENCE, etags)
    return GitHub(connection, ACTIONS_BOT if author is None else author)

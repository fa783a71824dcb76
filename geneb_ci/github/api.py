"""The GitHub API calls that geneb-ci uses, each with its cost in requests."""

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
# Id of github-actions[bot], the account of GITHUB_TOKEN, which may not call `GET /user`.
ACTIONS_BOT = 41898282
PULLS_PAGES_MAX = 10  # 1,000 open pull requests
# 3,000 comments; after more, a maintainer has to lock the conversation.
COMMENTS_PAGES_MAX = 30
TREES_MAX = 16  # kept in memory: most pull requests of a sweep share a few merge bases


class GitHub:
    """One GitHub repository."""

    def __init__(self, wire: Wire, author: int = ACTIONS_BOT) -> None:
        self.wire = wire
        self.author = author
        """Id of the account of our token."""
        self._trees: dict[str, RecursiveTree] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.wire.close()

    def open_pulls(self) -> Iterator[Pull]:
        """Yield the open pull requests to the default branch, the last updated first.

        One request per 100. Pull requests to other branches are skipped, because a verdict is about
        the default branch. One that moves between pages during reading is returned once.
        """
        met: set[int] = set()
        parameters = {"state": "open", "sort": "updated", "direction": "desc"}
        for page in self.wire.pages("/pulls", PULLS_PAGES_MAX, **parameters):
            for pull in parsed(list[Pull], page, "the list of pull requests"):
                if self._known(pull).is_to_main and pull.number not in met:
                    met.add(pull.number)
                    yield pull

    def pull(self, number: int) -> Pull:
        """Return one pull request; one request."""
        body = self.wire.get(f"/pulls/{number}").body
        return self._known(parsed(Pull, body, f"pull request {number}"))

    def _known(self, pull: Pull) -> Pull:
        """Raise NotFound after a redirect to a renamed repository, which drops parameters."""
        name = pull.base.repo.full_name
        if name.casefold() != self.wire.repository.casefold():
            raise NotFound(
                f"{self.wire.repository} was renamed to {name!a}", "pass --repo with the new name"
            )
        return pull

    def comparison(self, base: str, head: str) -> CommitComparison:
        """Return the merge base of two commits; one request, for as little data as possible."""
        body = self.wire.get(f"/compare/{base}...{head}", per_page=1).body
        return parsed(CommitComparison, body, "the comparison of base and head")

    def tree(self, sha: str) -> RecursiveTree:
        """Return all paths of a commit or tree; one request, cached because trees are immutable."""
        if sha not in self._trees:
            body = self.wire.get(f"/git/trees/{sha}", recursive=1).body
            if len(self._trees) == TREES_MAX:
                self._trees.pop(next(iter(self._trees)))
            self._trees[sha] = parsed(RecursiveTree, body, f"the tree {sha}")
        return self._trees[sha]

    def blob(self, sha: str) -> BlobReply:
        """Return the bytes of a file; one request."""
        return parsed(BlobReply, self.wire.get(f"/git/blobs/{sha}").body, f"the blob {sha}")

    def comments(self, number: int) -> Iterator[Comment]:
        """Yield the comments on a pull request, the oldest first; one request per 100."""
        path = f"/issues/{number}/comments"
        for page in self.wire.pages(path, COMMENTS_PAGES_MAX):
            yield from parsed(list[Comment], page, "the comments")

    def set_status(self, sha: str, state: str, description: str) -> None:
        """Set our status on a commit; one write."""
        body = {"state": state, "description": description, "context": STATUS_CONTEXT}
        self.wire.send("POST", f"/statuses/{sha}", body)

    def add_label(self, number: int, name: str) -> None:
        """Add a label to a pull request; one write, which keeps the other labels."""
        reply = self.wire.send("POST", f"/issues/{number}/labels", {"labels": [name]})
        parsed(list[Label], reply, "the labels")

    def set_labels(self, number: int, names: list[str]) -> None:
        """Replace all labels of a pull request; one write. Labels set meanwhile are lost."""
        reply = self.wire.send("PUT", f"/issues/{number}/labels", {"labels": names})
        parsed(list[Label], reply, "the labels")

    def edit_comment(self, comment: int, text: str) -> None:
        """Replace the text of a comment; one write."""
        reply = self.wire.send("PATCH", f"/issues/comments/{comment}", {"body": text})
        parsed(Comment, reply, "the comment")

    def add_comment(self, number: int, text: str) -> None:
        """Comment on a pull request; one write. After Unavailable it may or may not exist."""
        reply = self.wire.send("POST", f"/issues/{number}/comments", {"body": text})
        parsed(Comment, reply, "the comment")


def connect(
    repository: str | None,
    environment: Mapping[str, str] = os.environ,
    author: int | None = None,
    etags: Etags | None = None,
) -> GitHub:
    """Return a client, configured by GH_TOKEN, GITHUB_REPOSITORY and GITHUB_API_URL.

    Raises NoGitHubToken without a token, UsageProblem without a repository. Sends no request.
    """
    token = environment.get("GH_TOKEN") or environment.get("GITHUB_TOKEN")
    if not token:
        raise NoGitHubToken(
            "GH_TOKEN is not set: a GitHub token is required",
            "export GH_TOKEN=$(gh auth token), or in a workflow: GH_TOKEN: ${{ github.token }}",
        )
    name = repository or environment.get("GITHUB_REPOSITORY") or ""
    if not re.fullmatch(REPOSITORY, name):
        raise UsageProblem(
            f"{name!r} is not a repository" if name else "no repository is given",
            "pass --repo OWNER/NAME",
        )
    api = environment.get("GITHUB_API_URL") or API
    connection = Wire(token, name, api.rstrip("/"), waiting.PATIENCE, etags)
    return GitHub(connection, ACTIONS_BOT if author is None else author)

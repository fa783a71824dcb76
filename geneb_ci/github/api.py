"""The GitHub API calls that geneb-ci uses, each with its cost in requests."""

import base64
import binascii
import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self
from urllib.parse import quote

from geneb_ci.check.change import REGULAR
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github import errors
from geneb_ci.github.connection import Connection
from geneb_ci.github.errors import NotFound, Tampered, UnexpectedReply
from geneb_ci.github.replies import (
    REPORT_FIX,
    UNREADABLE_LABEL,
    BlobReply,
    Comment,
    Commit,
    CommitComparison,
    Conversation,
    GitObject,
    Issue,
    Labelled,
    NumberedItem,
    Permission,
    Pull,
    RecursiveTree,
    Ref,
    Status,
    StatusState,
    UnreadablePull,
    is_account,
    parsed,
    readable_pulls,
)
from geneb_ci.github.trees import TAMPERED_FIX, Tree, tree_of
from geneb_ci.github.verdict.model import REPOSITORY
from reference_harness.formats.files import blob_id

GITHUB_API_ADDRESS = "https://api.github.com"
"""Address of GitHub's API, unless the environment names another server."""
GITHUB_ADDRESS = "https://github.com"
"""Address of GitHub, unless the environment names another server."""
VERDICT_STATUS = "geneb/verdict"
"""Name of the commit status that shows the verdict on a pull request."""
NO_VERDICT_PREFIX = "no verdict: "
"""Beginning of the description of a status that says that a commit has no verdict."""
COMMITMENT_STATUS = "geneb/audit-commit"
"""Name of the commit status that publishes the digest of an audit's commitment."""
ACTIONS_BOT_ID = 41898282
"""Id of github-actions[bot], the account of GITHUB_TOKEN, which may not call `GET /user`."""
VERDICT_APP, VERDICT_BOT, VERDICT_TOKEN = "VERDICT_APP", "VERDICT_BOT", "VERDICT_TOKEN"
"""Environment variables with the App's id, its account's id and a token of the App, if a board has
an App that sets the statuses of verdicts."""
PULLS_PAGES_MAX = 10
"""Maximum number of pages of 100 open pull requests that are read."""
COMMENTS_PAGES_MAX = 30
"""Maximum number of pages of 100 comments on a pull request that are read.

After more comments, a maintainer has to lock the conversation.
"""
ISSUES_PAGES_MAX = 10
"""Maximum number of pages of 100 issues that are read."""
STATUS_DESCRIPTION_MAX = 140
"""Maximum characters that GitHub accepts in the description of a status."""
LAST_ACCEPTED_CHARACTER = "\uffff"
"""Last Unicode character that GitHub accepts in the description of a status."""
STATUSES_PAGES_MAX = 10
"""Maximum number of pages of 100 statuses; GitHub keeps 1,000 of one commit and name."""
CACHED_TREES_MAX = 16
"""Maximum number of git trees in memory: most pull requests share a few merge bases."""


class PullListing(NamedTuple):
    """The open pull requests, in two lists: the readable ones and the unreadable ones."""

    pulls: list[Pull]
    """The readable pull requests, the last updated first."""
    unreadable: list[UnreadablePull]
    """The pull requests with invalid data in GitHub's answer."""

    def require_all(self, open_question: str) -> None:
        """Raise UnexpectedReply, which begins with `open_question`, unless all can be read."""
        if self.unreadable:
            pull = self.unreadable[0]
            raise UnexpectedReply(
                f"{open_question}: pull request #{pull.number}: {pull.reason}", REPORT_FIX
            )


class VerdictApp(NamedTuple):
    """The GitHub App of a board whose statuses alone count as verdicts on pull requests."""

    account_id: int
    """Id of the account with which the App acts."""
    connection: Connection | None
    """A connection with a token of the App; None without such a token."""

    def require_connection(self) -> Connection:
        """Return the connection. Raises UsageProblem if the workflow got no token of the App."""
        if self.connection is None:
            raise UsageProblem(
                "the App that sets the status of verdicts gave no token, so the status is not set",
                "install the App on this repository, and store its key as the secret "
                "VERDICT_APP_KEY of the environment geneb-verdict; to do without the App: "
                f"gh variable delete {VERDICT_APP}, then geneb-ci init --apply",
            )
        return self.connection


class GitHub:
    """A client of one GitHub repository."""

    def __init__(
        self,
        connection: Connection,
        own_account_id: int = ACTIONS_BOT_ID,
        verdict_app: "VerdictApp | None" = None,
    ) -> None:
        self.connection = connection
        self.own_account_id = own_account_id
        """Id of the account that our token belongs to."""
        self.verdict_app = verdict_app
        """The App that sets the status of a verdict; None if the token's own account sets it."""
        self._trees: dict[str, Tree] = {}
        self.conversations: dict[int, Conversation] = {}
        """Conversations that geneb_ci.github.prefetch has read, by number of the pull request."""
        self.merge_bases: dict[tuple[str, str], Commit] = {}
        """Merge bases that geneb_ci.github.prefetch has read, by base and head."""
        self.blobs: dict[str, bytes] = {}
        """Bytes of files that geneb_ci.github.prefetch has read, by git object id."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.close()
        if self.verdict_app is not None and self.verdict_app.connection is not None:
            self.verdict_app.connection.close()

    def open_pulls(self) -> PullListing:
        """Return the open pull requests to the default branch, the last updated first.

        Pull requests to other branches are omitted, because a verdict is about the default branch.
        One request per 100.
        """
        listing = self.all_open_pulls()
        return listing._replace(pulls=[pull for pull in listing.pulls if pull.is_to_main])

    def all_open_pulls(self) -> PullListing:
        """Return the open pull requests to any branch; one request per 100.

        A pull request that moves between pages during reading is returned once.
        """
        pulls: dict[int, Pull] = {}
        unreadable_by_number: dict[int, UnreadablePull] = {}
        parameters = {"state": "open", "sort": "updated", "direction": "desc"}
        for page in self.connection.pages("/pulls", PULLS_PAGES_MAX, **parameters):
            readable, unreadable = readable_pulls(page)
            for pull in readable:
                pulls.setdefault(self._require_not_renamed(pull).number, pull)
            unreadable_by_number |= {pull.number: pull for pull in unreadable}
        return PullListing(list(pulls.values()), list(unreadable_by_number.values()))

    def main(self) -> Commit:
        """Return the head of the default branch; one request."""
        return parsed(
            Commit, self.connection.get("/commits/HEAD").body, "the head of the base branch"
        )

    def pull(self, number: int) -> Pull:
        """Return one pull request; one request."""
        body = self.connection.get(f"/pulls/{number}").body
        return self._require_not_renamed(parsed(Pull, body, f"pull request {number}"))

    def _require_not_renamed(self, pull: Pull) -> Pull:
        """Return a pull request. Raises NotFound if the repository has a new name.

        GitHub redirects requests to the new name, but loses their parameters.
        """
        name = pull.base.repo.full_name
        if name.casefold() != self.connection.repository.casefold():
            raise NotFound(
                f"{self.connection.repository} was renamed to {name!a}",
                "pass --repo with the new name",
            )
        return pull

    def merge_base(self, base: str, head: str) -> Commit:
        """Return the merge base of two commits; one request."""
        cached = self.merge_bases.get((base, head))
        if cached is not None:
            return cached
        body = self.connection.get(f"/compare/{base}...{head}", per_page=1).body
        return parsed(CommitComparison, body, "the comparison of base and head").merge_base_commit

    def tree(self, sha: str) -> Tree:
        """Return the files of a commit or tree; one request, cached because trees are immutable.

        Raises Tampered for a path that is listed twice.
        """
        if sha not in self._trees:
            body = self.connection.get(f"/git/trees/{sha}", recursive=1).body
            if len(self._trees) == CACHED_TREES_MAX:
                self._trees.pop(next(iter(self._trees)))
            tree_reply = parsed(RecursiveTree, body, f"the tree {sha}")
            files = (
                (entry.path, entry.mode, entry.sha, entry.size)
                for entry in tree_reply.tree
                if entry.is_file
            )
            self._trees[sha] = tree_of(files, is_truncated=tree_reply.truncated)
        return self._trees[sha]

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a file; one request. Raises Tampered if the answer is not base64."""
        if sha in self.blobs:
            return self.blobs[sha]
        reply = parsed(BlobReply, self.connection.get(f"/git/blobs/{sha}").body, f"the blob {sha}")
        try:
            return base64.b64decode(reply.content.replace("\n", ""), validate=True)
        except binascii.Error as error:
            raise Tampered(
                f"blob {sha}: the content that GitHub sent is not base64", TAMPERED_FIX
            ) from error

    def comments(self, number: int) -> Iterator[Comment]:
        """Yield the comments on a pull request, the oldest first; one request per 100."""
        path = f"/issues/{number}/comments"
        for page in self.connection.pages(path, COMMENTS_PAGES_MAX):
            yield from parsed(list[Comment], page, "the comments")

    def permission(self, login: str) -> str:
        """Return the permission of an account: admin, write, read or none; one request."""
        body = self.connection.get(f"/collaborators/{login}/permission").body
        return parsed(Permission, body, "the permission").permission

    def issues(self) -> Iterator[Issue]:
        """Yield the open issues, the oldest first; one request per 100.

        With the token of a workflow, only issues that workflows opened are read.
        """
        parameters = {"state": "open", "sort": "created", "direction": "asc"}
        if self.own_account_id == ACTIONS_BOT_ID:
            parameters["creator"] = "github-actions[bot]"
        for page in self.connection.pages("/issues", ISSUES_PAGES_MAX, **parameters):
            yield from parsed(list[Issue], page, "the issues")

    def marked_issue(self, mark: str) -> Issue | None:
        """Return our open issue whose text begins with `mark`; None without one.

        One request per 100 issues.
        """
        our_issues = (
            issue for issue in self.issues() if is_account(issue.user, self.own_account_id)
        )
        return next((issue for issue in our_issues if issue.body.startswith(mark)), None)

    def numbers_with_label(self, label: str) -> Iterator[int]:
        """Yield the numbers of issues and pull requests with a label, the newest first.

        One request per 100; at most 1,000.
        """
        order = {"state": "all", "sort": "created", "direction": "desc"}
        for page in self.connection.pages("/issues", ISSUES_PAGES_MAX, labels=label, **order):
            yield from (issue.number for issue in parsed(list[NumberedItem], page, "the issues"))

    def open_issue(self, title: str, text: str) -> int:
        """Open an issue, and return its number; one write."""
        reply = self.connection.send("POST", "/issues", {"title": title, "body": text})
        return parsed(Issue, reply, "the issue").number

    def labels(self, number: int) -> Sequence[str]:
        """Return the labels of an issue or a pull request; one request."""
        body = self.connection.get(f"/issues/{number}").body
        return parsed(Labelled, body, f"the labels of #{number}").labels

    def edit_issue(self, number: int, text: str, state: str = "open") -> None:
        """Replace the text and the state of an issue; one write."""
        body = {"body": text, "state": state}
        parsed(Issue, self.connection.send("PATCH", f"/issues/{number}", body), "the issue")

    def set_status(
        self, sha: str, state: str, description: str, context: str = VERDICT_STATUS
    ) -> Status:
        """Set a status on a commit, by default that of the verdict; one write.

        GitHub refuses longer descriptions than 140 characters and characters of four bytes in
        UTF-8, so the description is cut, and such characters are replaced.
        Raises UsageProblem if an App sets the status of verdicts and gave no token.
        """
        connection = self.connection
        if context == VERDICT_STATUS and self.verdict_app is not None:
            connection = self.verdict_app.require_connection()
        characters = [
            c if c <= LAST_ACCEPTED_CHARACTER else "\ufffd"
            for c in description[:STATUS_DESCRIPTION_MAX]
        ]
        body = {"state": state, "description": "".join(characters), "context": context}
        return parsed(Status, connection.send("POST", f"/statuses/{sha}", body), "the status")

    def verdict_statuses(self, sha: str) -> Iterator[Status]:
        """Yield the statuses of a commit that count as its verdict, the latest first."""
        for status in self.statuses(sha):
            if status.context == VERDICT_STATUS and self.counts_as_verdict(status):
                yield status

    def counts_as_verdict(self, status: StatusState) -> bool:
        """Whether a status counts as a verdict: if the board has an App, the App must have set it.

        GitHub enforces the same by the ruleset of main.
        """
        creator_id = status.creator.id if status.creator is not None else None
        return self.verdict_app is None or creator_id == self.verdict_app.account_id

    def statuses(self, sha: str) -> Iterator[Status]:
        """Yield the statuses of a commit, the latest first; one request per 100."""
        for page in self.connection.pages(f"/commits/{sha}/statuses", STATUSES_PAGES_MAX):
            yield from parsed(list[Status], page, "the statuses")

    def publication_time(self, commit: str, commitment: str) -> str:
        """Return when a commit first had the status that publishes a commitment, in UTC.

        Return "" if there is no such status or no such commit.
        """
        expected = (COMMITMENT_STATUS, commitment)
        try:
            times = [
                status.moment
                for status in self.statuses(commit)
                if (status.context, status.description) == expected
            ]
        except NotFound:
            return ""
        return min(times, default="")  # ISO 8601 in UTC sorts as it is

    def branches(self, prefix: str) -> dict[str, str]:
        """Return the head commit of each branch whose name begins with `prefix`, by name."""
        body = self.connection.get(f"/git/matching-refs/heads/{quote(prefix)}").body
        refs = parsed(list[Ref], body, f"the branches {prefix}*")
        return {ref.ref.removeprefix("refs/heads/"): ref.object.sha for ref in refs}

    def add_label(self, number: int, label: str) -> None:
        """Add a label to a pull request; one write, which keeps the other labels."""
        self.connection.send("POST", f"/issues/{number}/labels", {"labels": [label]})

    def replace_labels(
        self, number: int, present_labels: Sequence[str], our_labels: Collection[str], label: str
    ) -> None:
        """Replace our labels of a pull request by `label`, and keep the others.

        `present_labels` are the labels that it has. One write sets all labels, so that labels set
        since are lost. If a name is unreadable, one write removes each of ours, because the
        unreadable label could not be set again.
        """
        if UNREADABLE_LABEL not in present_labels:
            other_labels = [other for other in present_labels if other not in our_labels]
            self.connection.send(
                "PUT", f"/issues/{number}/labels", {"labels": [*other_labels, label]}
            )
            return
        self.add_label(number, label)
        for superseded in sorted(set(our_labels) - {label}):
            with contextlib.suppress(NotFound):
                self.connection.send("DELETE", f"/issues/{number}/labels/{quote(superseded)}", None)

    def close(self, number: int, collection: str = "pulls") -> None:
        """Close a pull request, or an issue if `collection` is "issues"; one write."""
        self.connection.send("PATCH", f"/{collection}/{number}", {"state": "closed"})

    def make_branch(self, branch: str, base: Commit, files: Mapping[str, bytes], text: str) -> str:
        """Make a branch on `base` with one commit that adds files, and return the commit's id.

        One write per file, and three more. Raises Tampered if GitHub stored other bytes.
        """
        tree_entries = []
        for path, raw in sorted(files.items()):
            body = {"content": base64.b64encode(raw).decode(), "encoding": "base64"}
            sha = parsed(
                GitObject, self.connection.send("POST", "/git/blobs", body), "the file"
            ).sha
            if sha != blob_id(raw):
                raise Tampered(
                    f"{path}: GitHub stored other bytes than were sent", "run the command again"
                )
            tree_entries.append({"path": path, "mode": REGULAR, "type": "blob", "sha": sha})
        tree = {"base_tree": base.tree, "tree": tree_entries}
        tree_sha = parsed(
            GitObject, self.connection.send("POST", "/git/trees", tree), "the tree"
        ).sha
        commit = {"message": text, "tree": tree_sha, "parents": [base.sha]}
        sha = parsed(
            GitObject, self.connection.send("POST", "/git/commits", commit), "the commit"
        ).sha
        self.connection.send("POST", "/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha})
        return sha

    def propose(self, branch: str, base: str, title: str, text: str) -> int:
        """Open a pull request from a branch, unless one is open, and return its number."""
        owner = self.connection.repository.partition("/")[0]
        pulls_reply = self.connection.get("/pulls", state="open", head=f"{owner}:{branch}").body
        open_pulls = parsed(list[NumberedItem], pulls_reply, "the pull requests of a branch")
        if open_pulls:
            return open_pulls[0].number
        body = {"head": branch, "base": base, "title": title, "body": text}
        reply = self.connection.send("POST", "/pulls", body)
        return parsed(NumberedItem, reply, "the pull request").number

    def edit_comment(self, comment: int, text: str) -> None:
        """Replace the text of a comment; one write."""
        reply = self.connection.send("PATCH", f"/issues/comments/{comment}", {"body": text})
        parsed(Comment, reply, "the comment")

    def add_comment(self, number: int, text: str) -> None:
        """Comment on a pull request; one write. Raises Unavailable if the outcome is unknown."""
        reply = self.connection.send("POST", f"/issues/{number}/comments", {"body": text})
        parsed(Comment, reply, "the comment")


def numbers_by_head(pulls: Iterable[Pull]) -> dict[str, list[int]]:
    """Return, by head commit, the numbers of its pull requests, the smallest first.

    Only the first one sets the status of the commit; otherwise two pull requests would replace each
    other's status in every sweep.
    """
    numbers: dict[str, list[int]] = {}
    for pull in sorted(pulls, key=lambda pull: pull.number):
        numbers.setdefault(pull.head.sha, []).append(pull.number)
    return numbers


def repository_address(repository: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the address of a repository, for git: on GITHUB_SERVER_URL, else on github.com."""
    return f"{(environment.get('GITHUB_SERVER_URL') or GITHUB_ADDRESS).rstrip('/')}/{repository}"


def is_gh_usable() -> bool:
    """Whether the program gh is installed and uses the same server as these commands."""
    return (
        os.environ.get("GITHUB_API_URL", GITHUB_API_ADDRESS) == GITHUB_API_ADDRESS
        and shutil.which("gh") is not None
    )


def connect(
    repository: str | None,
    environment: Mapping[str, str] = os.environ,
    own_account_id: int | None = None,
) -> GitHub:
    """Return a client, configured by GH_TOKEN, GITHUB_REPOSITORY and GITHUB_API_URL.

    If only an App sets the status of verdicts, VERDICT_BOT is the id of its account, and
    VERDICT_TOKEN its token. Raises UsageProblem without a token or a repository. Sends no request.
    """
    name = repository or environment.get("GITHUB_REPOSITORY") or ""
    if name and not re.fullmatch(REPOSITORY, name):
        raise UsageProblem(f"{name!r} is not the name of a repository", "pass --repo OWNER/NAME")
    token = environment.get("GH_TOKEN") or environment.get("GITHUB_TOKEN")
    if not token:
        raise UsageProblem(
            "GH_TOKEN is not set: a GitHub token is required",
            "export GH_TOKEN=$(gh auth token), or in a workflow: GH_TOKEN: ${{ github.token }}",
        )
    if not name:
        raise UsageProblem("no repository is given", "pass --repo OWNER/NAME")
    api = environment.get("GITHUB_API_URL") or GITHUB_API_ADDRESS
    connection = Connection(token, name, api.rstrip("/"), errors.WAITING_LIMITS)
    verdict_app = None
    if account := environment.get(VERDICT_BOT):
        if not account.isascii() or not account.isdigit():
            raise UsageProblem(
                f"{VERDICT_BOT} is {account!r}, expected the number of an account",
                f"set {VERDICT_BOT} to what `gh api 'users/SLUG[bot]' --jq .id` prints, with SLUG "
                "from the page of this board's App, github.com/apps/SLUG",
            )
        app_token = environment.get(VERDICT_TOKEN)
        app_connection = (
            Connection(app_token, name, api.rstrip("/"), errors.WAITING_LIMITS)
            if app_token
            else None
        )
        verdict_app = VerdictApp(int(account), app_connection)
    return GitHub(
        connection, ACTIONS_BOT_ID if own_account_id is None else own_account_id, verdict_app
    )

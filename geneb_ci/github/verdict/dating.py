"""Check by GitHub's data that a commitment was public before the beacon's round that decides it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import quote

from geneb_ci.audit.record.events import StatementKind
from geneb_ci.audit.record.history import COMMIT_DIGITS
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.sampling.plan import BasePlan
from geneb_ci.check.change import REGULAR, Blob
from geneb_ci.github.api import GitHub
from geneb_ci.github.audits import earlier_orders
from geneb_ci.github.replies import GitObject, ReplyModel, Sha, parsed
from geneb_ci.github.trees import Main
from reference_harness.formats.files import blob_id

COMMITS_PAGES_MAX = 30
"""Maximum number of pages of 100 commits of main to search for the commit of a commitment."""


def dating_errors(
    repository: AuditRepository, plan: BasePlan, audits: str, github: GitHub, main: Main
) -> Iterator[str]:
    """Yield why a commitment is not proven to have been public before its round of the beacon.

    `audits` is the folder of audits, relative to the root of the repository.

    GitHub must show a status with the commitment, set at the time that `plan` states. To exclude
    that one of many prepared draws was chosen, the commit with this status must be the one that
    added the signed commitment to main, or our comment on a pull request must contain the draw.
    """
    history = repository.history
    starts = [event for _, event in history.events(StatementKind.START) if event.plan == plan]
    digest, commits = plan.commitment_sha256, sorted({start.shown_on for start in starts} - {""})
    dated_commits = [
        commit for commit in commits if github.publication_time(commit, digest) == plan.committed_at
    ]
    if not commits:
        yield (
            "dating: the record names no commit whose status shows the commitment of the record: "
            "draw again with --shown-on COMMIT"
        )
        return
    if not dated_commits:
        yield (
            f"dating: GitHub has no status of commit {', '.join(commits)} with commitment "
            f"{digest[:16]}... that was set at {plan.committed_at}: draw again with the time and "
            "the commit of such a status"
        )
        return
    pulls = sorted({start.pull for start in starts if start.pull})
    if any(plan == order.plan for pull in pulls for order in earlier_orders(github, pull)):
        return
    path, sha = _signed_commitment(repository, plan, audits)
    if not path or not _has_regular_file(main.files, path, sha):
        yield (
            "dating: main lacks the signed commitment of the record, and no comment on a pull "
            "request has the draw: merge what `geneb-ci audit commit --key` signs, then publish "
            "the digest"
        )
    elif not any(_has_added(commit, path, sha, github, main) for commit in dated_commits):
        yield (
            f"dating: commit {dated_commits[0][:COMMIT_DIGITS]} did not add the signed commitment "
            "to main, so the draw may be one of many: publish the digest on the commit of main "
            "that added it, and draw with --shown-on that commit"
        )


def _signed_commitment(repository: AuditRepository, plan: BasePlan, audits: str) -> tuple[str, str]:
    """Return path and git object id of the signed commitment of a plan; "" if there is none."""
    for statement, event in repository.history.events(StatementKind.COMMITMENT):
        if event.commitment == plan.commitment:
            raw = repository.read(repository.layout.root / audits / statement)
            return f"{audits}/{statement}", blob_id(raw)
    return "", ""


def _has_regular_file(files: Mapping[str, Blob], path: str, sha: str) -> bool:
    """Whether files contain a regular file with this path and this object id."""
    blob = files.get(path)
    return blob is not None and (blob.mode, blob.sha) == (REGULAR, sha)


class _ListedCommit(ReplyModel):
    """A commit in GitHub's list, with its parents in their order."""

    sha: Sha
    parents: list[GitObject]


def _has_added(commit: str, path: str, sha: str, github: GitHub, main: Main) -> bool:
    """Whether a commit on main's first-parent line added a file: its first parent lacks it."""
    parent = _first_parent(commit, github, main)
    if parent is None or not _has_regular_file(github.tree(commit).files, path, sha):
        return False
    if not parent:
        return True
    before, is_truncated = github.tree(parent)
    if is_truncated or path in before:
        return False
    earlier_commits = github.connection.get(
        f"/commits?path={quote(path, safe='')}", sha=parent, per_page=1
    )
    return not parsed(list[_ListedCommit], earlier_commits.body, "the commits of the commitment")


def _first_parent(commit: str, github: GitHub, main: Main) -> str | None:
    """Return the first parent of a commit of main; "" if it has none.

    Returns None if main does not reach the commit by first parents within the searched pages.
    """
    sha, parents = main.sha, dict[str, str]()
    pages = github.connection.pages("/commits", COMMITS_PAGES_MAX + 1, sha=main.sha)
    for page in islice(pages, COMMITS_PAGES_MAX):
        for commit_entry in parsed(list[_ListedCommit], page, "the commits of main"):
            parents[commit_entry.sha] = commit_entry.parents[0].sha if commit_entry.parents else ""
        while sha in parents:
            if sha == commit:
                return parents[commit]
            sha = parents.pop(sha)
    return None

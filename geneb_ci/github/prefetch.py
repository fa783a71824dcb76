"""Read many pull requests, commits or files from GitHub in one request.

GitHub's GraphQL API answers for many objects at once. Objects that an answer lacks are read one by
one afterwards, so a failure here only costs requests. All values in a query are numbers and commit
ids of fixed form.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import AliasPath, Field, ValidationError

from geneb_ci.check.change import Blob
from geneb_ci.github.api import VERDICT_STATUS, GitHub
from geneb_ci.github.replies import (
    Commit,
    Conversation,
    HeadStatus,
    Pull,
    ReplyModel,
    Sha,
    adapter,
    is_account,
    lenient,
)
from geneb_ci.github.verdict.model import SUCCESS, PullHead
from reference_harness.formats.files import blob_id

CONVERSATIONS_PER_QUERY = 25
"""Number of pull requests that a query reads; GitHub ends a query after ten seconds."""
LATEST_COMMENTS_READ = 5
"""Number of last comments that a query reads; if more are new, they are read one by one."""
CLOSED_PULLS_READ = 50
"""Number of closed pull requests, the last updated first, whose status is read."""
FIRST_COMMENTS_READ = 20
"""Number of first comments that a query reads; ours is usually the first of all."""
BASES_PER_QUERY = 20
"""Number of pull requests whose merge base one query finds."""
MAIN_COMMITS_READ = 100
"""Number of main's last commits among which a merge base is looked for."""
PULL_COMMITS_READ = 30
"""Number of a pull request's last commits that are compared with the commits of main."""
FILE_BYTES_MAX = 400_000
"""Size above which a file is read on its own: GitHub truncates text of more than 512 kB."""
FILES_PER_QUERY, FILES_BYTES_PER_QUERY = 40, 1_500_000

_ACCOUNT_FIELDS = (
    "{ kind: __typename login ... on Bot { id: databaseId } ... on User { id: databaseId } }"
)
"""Part of a GraphQL query: an account with its id."""
_HEAD_STATUS_FIELDS = f"""commits(last: 1) {{ nodes {{ commit {{ oid status {{
  context(name: "{VERDICT_STATUS}") {{ state creator {_ACCOUNT_FIELDS} }} }} }} }} }}"""
"""Part of a GraphQL query: the last commit of a pull request, and our status on it."""
_COMMENT_FIELDS = f"id: databaseId body user: author {_ACCOUNT_FIELDS}"
"""Part of a GraphQL query: a comment with its author."""
_CONVERSATION_FRAGMENT = f"""fragment Conversation on PullRequest {{ number state locked headRefOid
 labels(first: 100) {{ nodes {{ name }} }}
 comments(first: {FIRST_COMMENTS_READ}) {{ totalCount nodes {{ {_COMMENT_FIELDS} }} }}
 latest: comments(last: {LATEST_COMMENTS_READ}) {{ nodes {{ {_COMMENT_FIELDS} }} }}
 {_HEAD_STATUS_FIELDS} }}"""
"""Part of a GraphQL query: a pull request with its comments, labels and status."""
_CLOSED_FRAGMENT = f"""fragment Closed on PullRequestConnection {{
 nodes {{ number headRefOid {_HEAD_STATUS_FIELDS} }} }}"""
"""Part of a GraphQL query: closed pull requests with their statuses."""
_PULL_HISTORY_FRAGMENT = f"""fragment History on Commit {{ history(first: {PULL_COMMITS_READ}) {{
 nodes {{ oid tree {{ oid }} }} }} }}"""
"""Part of a GraphQL query: the last commits of a pull request."""
_MAIN_HISTORY_FRAGMENT = f"""fragment Line on Commit {{ history(first: {MAIN_COMMITS_READ}) {{
 nodes {{ oid parents(first: 2) {{ totalCount }} }} }} }}"""
"""Part of a GraphQL query: the last commits of main, with their parents."""
_FILE_FRAGMENT = "fragment File on Blob { oid text }"
"""Part of a GraphQL query: a file with its text."""


class _PullCommits(ReplyModel):
    """The last commits of a pull request."""

    commits: list[Commit] = Field(validation_alias=AliasPath("history", "nodes"))


class _MainCommit(ReplyModel):
    """A commit of main, with the number of its parents."""

    oid: Sha
    parents: int = Field(validation_alias=AliasPath("parents", "totalCount"))
    """Number of the commit's parents; more than one for a merge."""


class _MainCommits(ReplyModel):
    """The last commits of main, the newest first."""

    commits: list[_MainCommit] = Field(validation_alias=AliasPath("history", "nodes"))


class _FileText(ReplyModel):
    """A file of the repository; its text is None if the file is binary."""

    oid: Sha
    text: str | None


class _ClosedPulls(ReplyModel):
    """The heads of closed pull requests, and our statuses on them."""

    nodes: list[Annotated[HeadStatus | None, lenient(None)]]


T = TypeVar("T")
H = TypeVar("H", bound=HeadStatus)


def prefetch_conversations(github: GitHub, numbers: Iterable[int]) -> None:
    """Read pull requests into `github.conversations`, 25 in each request."""
    for batch in _batches(numbers, CONVERSATIONS_PER_QUERY):
        fields = [f"p{n}: pullRequest(number: {n}) {{ ...Conversation }}" for n in batch]
        for conversation in _answers_by_alias(
            github, fields, _CONVERSATION_FRAGMENT, Conversation
        ).values():
            has_ours = any(is_account(c.user, github.own_account_id) for c in conversation.comments)
            if has_ours or conversation.number_of_comments <= len(conversation.comments):
                github.conversations[conversation.number] = _without_foreign_status(
                    github, conversation
                )


def _without_foreign_status(github: GitHub, pull: H) -> H:
    """Return a pull request, without its status if that status does not count as a verdict."""
    if pull.status is None or github.counts_as_verdict(pull.status):
        return pull
    return pull.model_copy(update={"status": None})


def passing_outside_main(
    github: GitHub, open_pulls: Iterable[Pull], heads: Collection[str]
) -> Iterator[PullHead]:
    """Yield pull requests with a passing status that are closed or go to another branch.

    A status stays on its commit, so such a pull request would pass at once if it were opened to
    main again. `heads` are the heads of pull requests to main, which are omitted. One query reads
    the last 50 pull requests closed without a merge, and one query reads 25 to other branches.
    Nothing is yielded if GitHub does not answer.
    """
    other_numbers = [pull.number for pull in open_pulls if not pull.is_to_main]
    prefetch_conversations(github, other_numbers)
    statuses: list[HeadStatus] = [
        github.conversations[number] for number in other_numbers if number in github.conversations
    ]
    field = (
        f"c: pullRequests(states: CLOSED, first: {CLOSED_PULLS_READ}, "
        "orderBy: {field: UPDATED_AT, direction: DESC}) { ...Closed }"
    )
    for answer in _answers_by_alias(github, [field], _CLOSED_FRAGMENT, _ClosedPulls).values():
        statuses += [
            _without_foreign_status(github, pull) for pull in answer.nodes if pull is not None
        ]
    for pull in statuses:
        if pull.state == SUCCESS and pull.head_sha not in heads:
            yield PullHead(number=pull.number, head_sha=pull.head_sha)


def prefetch_bases(github: GitHub, main: str, heads: Sequence[str]) -> None:
    """Read merge bases of heads with main into `github.merge_bases`, in few requests.

    If the last commits of main form a line, a head's merge base is the newest commit of this line
    that the head contains. Otherwise nothing is read.
    """
    position_by_sha: dict[str, int] = {}
    for batch in _batches(heads, BASES_PER_QUERY):
        if not position_by_sha:
            answers = _answers_by_alias(
                github,
                [f'm: object(oid: "{main}") {{ ...Line }}'],
                _MAIN_HISTORY_FRAGMENT,
                _MainCommits,
            )
            commits = [commit for answer in answers.values() for commit in answer.commits]
            if not commits or any(commit.parents > 1 for commit in commits):
                return
            position_by_sha = {commit.oid: position for position, commit in enumerate(commits)}
        fields = [f'h{n}: object(oid: "{sha}") {{ ...History }}' for n, sha in enumerate(batch)]
        for alias, history in _answers_by_alias(
            github, fields, _PULL_HISTORY_FRAGMENT, _PullCommits
        ).items():
            common = [commit for commit in history.commits if commit.sha in position_by_sha]
            if common:
                base = min(common, key=lambda commit: position_by_sha[commit.sha])
                github.merge_bases[main, batch[int(alias[1:])]] = base


def prefetch_blobs(github: GitHub, blobs: Iterable[Blob]) -> None:
    """Read files into `github.blobs`, up to 40 and 1.5 MB in each request; omit large files."""
    sizes = {blob.sha: blob.size for blob in blobs if blob.size <= FILE_BYTES_MAX}
    for batch in _batches_by_size(sizes):
        fields = [f'b{n}: object(oid: "{sha}") {{ ...File }}' for n, sha in enumerate(batch)]
        for file in _answers_by_alias(github, fields, _FILE_FRAGMENT, _FileText).values():
            raw = (file.text or "").encode("utf-8", "surrogatepass")
            if blob_id(raw) == file.oid:  # no text is read of a binary or truncated file
                github.blobs[file.oid] = raw


def _batches_by_size(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the ids of files in batches that one query can read; `sizes` are their sizes."""
    batch: list[str] = []
    size = 0
    for sha, file_size in sizes.items():
        if batch and (len(batch) == FILES_PER_QUERY or size + file_size > FILES_BYTES_PER_QUERY):
            yield batch
            batch, size = [], 0
        batch.append(sha)
        size += file_size
    if len(batch) > 1:  # a single file is read as well on its own
        yield batch


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _answers_by_alias(
    github: GitHub, fields: Sequence[str], fragment: str, type_: type[T]
) -> Mapping[str, T]:
    """Return GitHub's answers to a query, by the alias of the field, without invalid answers."""
    owner, repository = github.connection.repository.split("/")
    body = " ".join(fields)
    answer_by_alias = github.connection.graphql(
        f'query {{ repository(owner: "{owner}", name: "{repository}") {{ {body} }} }} {fragment}'
    )
    validate = adapter(type_).validate_python
    answers = {}
    for alias, answer in answer_by_alias.items():
        try:
            answers[alias] = validate(answer)
        except ValidationError:
            continue
    return answers

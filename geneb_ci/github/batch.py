"""Many small reads in one request; and the commands in comments.

GitHub's GraphQL API answers for many objects at once. Whatever it leaves out is read one by one
afterwards, so that a failure here costs requests and nothing else. All values in a query are
numbers and commit ids of fixed form.

A comment on a pull request is a reason to look, and no more: strangers comment, too. `/recheck`
computes the verdict again, and ends what the other two asked for. `/audit` sets the label that asks
for an audit. `/dispute REASON` takes the pass back.
"""

import base64
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from geneb_ci.check.change import Blob
from geneb_ci.github.api import STATUS_CONTEXT, Conversation, GitHub
from geneb_ci.github.errors import MissingScope, NotFound, UnexpectedReply
from geneb_ci.github.replies import (
    REPORT_IT,
    BlobReply,
    Body,
    Comment,
    Commit,
    Id,
    Labels,
    Pull,
    ReplyModel,
    Sha,
    Shown,
    User,
    adapter,
    readable_items,
)
from geneb_ci.github.verdict.model import (
    REASON_MAX,
    SUCCESS,
    Command,
    CommandName,
    CommandState,
    PullHead,
)
from geneb_ci.render.plain import visible
from reference_harness.formats.files import blob_id

# GitHub ends a query after ten seconds. Comments are the largest part of what is read.
TALKS = 25
LATEST = 5  # read with their text; where there are more new ones, all comments are read
CLOSED = 50  # closed pull requests whose status is looked at, the last updated first
COMMENTS = 20  # ours comes within minutes; where more were faster, it is looked up on its own
BASES = 20
LINE = 100  # commits of main among which a merge base is looked up
HISTORY = 30  # commits of a pull request
# A file of more than 512 kB is cut by GitHub.
FILE_BYTES_MAX = 400_000
FILES, FILES_BYTES = 40, 1_500_000

_ACCOUNT = "{ kind: __typename login ... on Bot { databaseId } ... on User { databaseId } }"
_TIP = f"""commits(last: 1) {{ nodes {{ commit {{ oid status {{
  context(name: "{STATUS_CONTEXT}") {{ state creator {_ACCOUNT} }} }} }} }} }}"""
_COMMENT = f"databaseId body author {_ACCOUNT}"
_TALK = f"""fragment Talk on PullRequest {{ number state locked headRefOid
 labels(first: 100) {{ nodes {{ name }} }}
 comments(first: {COMMENTS}) {{ totalCount nodes {{ {_COMMENT} }} }}
 latest: comments(last: {LATEST}) {{ nodes {{ {_COMMENT} }} }}
 {_TIP} }}"""
_GONE = f"""fragment Gone on PullRequestConnection {{ nodes {{ number headRefOid {_TIP} }} }}"""
_HISTORY = f"""fragment History on Commit {{ history(first: {HISTORY}) {{
 nodes {{ oid tree {{ oid }} }} }} }}"""
_LINE = f"""fragment Line on Commit {{ history(first: {LINE}) {{
 nodes {{ oid parents(first: 2) {{ totalCount }} }} }} }}"""
_FILE = "fragment File on Blob { oid text }"


class _Tree(ReplyModel):
    oid: Sha


class _Parents(ReplyModel):
    totalCount: int  # noqa: N815 (GitHub's names, here and below)


class _Commit(ReplyModel):
    oid: Sha
    tree: _Tree | None = None
    parents: _Parents | None = None


class _CommitList(ReplyModel):
    nodes: list[_Commit]


class _History(ReplyModel):
    history: _CommitList


class _File(ReplyModel):
    oid: Sha
    text: str | None


class _Author(ReplyModel):
    kind: str = ""
    login: Shown = ""
    databaseId: Id | None = None  # noqa: N815


class _Comment(ReplyModel):
    databaseId: Id  # noqa: N815
    body: Body = ""
    author: _Author | None


class _Comments(ReplyModel):
    nodes: list[_Comment]


class _CountedComments(_Comments):
    totalCount: Id  # noqa: N815


class _Context(ReplyModel):
    state: str
    creator: _Author | None = None


class _Status(ReplyModel):
    context: _Context | None


class _Tip(ReplyModel):
    oid: Sha
    status: _Status | None


class _Node(ReplyModel):
    commit: _Tip


class _Commits(ReplyModel):
    nodes: list[_Node]


class _Labels(ReplyModel):
    nodes: Labels


class _Headed(ReplyModel):
    number: Annotated[int, Field(ge=1)]
    headRefOid: Sha  # noqa: N815
    commits: _Commits

    def status(self, github: GitHub) -> str:
        """Return the state of our status on the head; "" if there is none that counts."""
        tips = [node.commit for node in self.commits.nodes if node.commit.oid == self.headRefOid]
        contexts = [tip.status.context for tip in tips if tip.status and tip.status.context]
        for context in contexts[:1]:
            creator = context.creator.databaseId if context.creator is not None else None
            return context.state.lower() if github.counts(creator) else ""
        return ""


class _Gone(ReplyModel):
    nodes: list[Any]
    """Each is read on its own."""


class _Conversation(_Headed):
    state: Literal["OPEN", "CLOSED", "MERGED"]
    locked: bool
    labels: _Labels
    comments: _CountedComments
    latest: _Comments


T = TypeVar("T")


def prefetch_talks(github: GitHub, numbers: Iterable[int]) -> None:
    """Read comments, labels, head and status of pull requests, 25 in each request."""
    for part in _parts(numbers, TALKS):
        fields = [f"p{number}: pullRequest(number: {number}) {{ ...Talk }}" for number in part]
        for talk in _answers(github, fields, _TALK, _Conversation).values():
            if talk.comments.totalCount <= len(talk.comments.nodes) or _has_own_comment(
                github, talk
            ):
                github.talks[talk.number] = _talk(github, talk)


def _has_own_comment(github: GitHub, conversation: _Conversation) -> bool:
    authors = (
        comment.author.databaseId
        for comment in conversation.comments.nodes
        if comment.author is not None
    )
    return github.author in authors


def _talk(github: GitHub, conversation: _Conversation) -> Conversation:
    comments = list(map(_comment, conversation.comments.nodes))
    return Conversation(
        comments=comments,
        head_sha=conversation.headRefOid,
        is_open=conversation.state == "OPEN",
        locked=conversation.locked,
        labels=[label.name for label in conversation.labels.nodes],
        state=conversation.status(github),
        latest=tuple(map(_comment, conversation.latest.nodes)),
        number_of_comments=conversation.comments.totalCount,
    )


def _comment(comment: _Comment) -> Comment:
    author = comment.author
    user = None
    if author is not None and author.databaseId is not None:
        # REST marks the login of an App, which may otherwise be that of a person.
        suffix = "[bot]" if author.kind == "Bot" else ""
        user = User(id=author.databaseId, login=author.login + suffix)
    return Comment(id=comment.databaseId, user=user, body=comment.body)


def passing_elsewhere(
    github: GitHub, listed: Iterable[Pull], heads: Collection[str]
) -> Iterator[PullHead]:
    """Yield pull requests with a passing status that are closed, or to another branch.

    A status stays on its commit: open to main again, it would pass at once. One query, and one for
    each 25 to another branch. Of the closed, the last 50 are looked at; those that were merged are
    not among them. None where GitHub does not answer. `heads` are those of the pull requests to
    main, whose status counts.
    """
    elsewhere = [pull for pull in listed if not pull.is_to_main]
    prefetch_talks(github, [pull.number for pull in elsewhere])
    heads_read = [
        (pull.number, pull.head.sha, github.talks[pull.number].state)
        for pull in elsewhere
        if pull.number in github.talks
    ]
    field = (
        f"c: pullRequests(states: CLOSED, first: {CLOSED}, "
        "orderBy: {field: UPDATED_AT, direction: DESC}) { ...Gone }"
    )
    for gone in _answers(github, [field], _GONE, _Gone).values():
        closed, _ = readable_items(_Headed, gone.nodes, "the closed pull requests")
        heads_read += [(pull.number, pull.headRefOid, pull.status(github)) for pull in closed]
    for number, head, state in heads_read:
        if state == SUCCESS and head not in heads:
            yield PullHead(number=number, head_sha=head)


def prefetch_bases(github: GitHub, main: str, heads: Sequence[str]) -> None:
    """Find the merge bases of heads with main, where main is a line of commits.

    Of the commits that main and a head have in common, the newest on the line is the merge base.
    """
    line: dict[str, int] = {}
    for part in _parts(heads, BASES):
        if not line:
            replies = _answers(github, [f'm: object(oid: "{main}") {{ ...Line }}'], _LINE, _History)
            line = _line(replies.get("m"))
            if not line:
                return
        fields = [f'h{n}: object(oid: "{sha}") {{ ...History }}' for n, sha in enumerate(part)]
        for name, history in _answers(github, fields, _HISTORY, _History).items():
            common = [node for node in history.history.nodes if node.oid in line and node.tree]
            if common:
                base = min(common, key=lambda node: line[node.oid])
                commit = {"sha": base.oid, "commit": {"tree": {"sha": base.tree.oid}}}  # type: ignore[union-attr]
                github.bases[main, part[int(name[1:])]] = Commit.model_validate(commit)


def _line(history: _History | None) -> dict[str, int]:
    """Return the place of each commit of main, newest first; empty if main has merge commits."""
    nodes = history.history.nodes if history is not None else []
    if any(node.parents is None or node.parents.totalCount > 1 for node in nodes):
        return {}
    return {node.oid: position for position, node in enumerate(nodes)}


def prefetch_blobs(github: GitHub, blobs: Iterable[Blob]) -> None:
    """Read files, up to 40 and 1.5 MB in each request; large ones are left out."""
    sizes = {blob.sha: blob.size for blob in blobs if blob.size <= FILE_BYTES_MAX}
    for part in _by_size(sizes):
        fields = [f'b{n}: object(oid: "{sha}") {{ ...File }}' for n, sha in enumerate(part)]
        for file in _answers(github, fields, _FILE, _File).values():
            raw = (file.text or "").encode("utf-8", "surrogatepass")
            if blob_id(raw) == file.oid:  # no text is read of a binary or truncated file
                content = base64.b64encode(raw).decode()
                github.blobs[file.oid] = BlobReply(sha=file.oid, encoding="base64", content=content)


def _by_size(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for sha, file_size in sizes.items():
        if part and (len(part) == FILES or size + file_size > FILES_BYTES):
            yield part
            part, size = [], 0
        part.append(sha)
        size += file_size
    if len(part) > 1:  # a single file is read as well on its own
        yield part


def _parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def _answers(
    github: GitHub, fields: Sequence[str], fragment: str, kind: type[T]
) -> Mapping[str, T]:
    """Return the answers by alias; those that are missing or malformed are left out."""
    owner, name = github.wire.repository.split("/")
    body = " ".join(fields)
    values = github.wire.graphql(
        f'query {{ repository(owner: "{owner}", name: "{name}") {{ {body} }} }} {fragment}'
    )
    read = adapter(kind).validate_python
    answers = {}
    for alias, value in values.items():
        try:
            answers[alias] = read(value)
        except ValidationError:
            continue
    return answers


_COMMAND = re.compile(r"/(recheck|audit|dispute)(?:[ \t]+(\S[^\r\n]*))?")
_RIGHTS = frozenset({"admin", "write"})
# Commands of people without rights that are read in each sweep; after more, they are passed over.
REFUSED_MAX = 5


def read_commands(
    github: GitHub, numbers: Sequence[int], command_state: CommandState, rights: dict[str, bool]
) -> tuple[CommandState, bool]:
    """Return what is asked for on pull requests of one head, with the commands since its verdict.

    And whether so much was read for it that a verdict should note how far. One request for each new
    author of a command, and one for each hundred comments where more are new than were read
    together with others. A comment does not say who is a member: GitHub hides private
    memberships from the token. `rights` keeps who may write, for the next pull request. Raises
    UnexpectedReply where there are more comments than can be read.
    """
    state = command_state
    after = max(
        command_state.seen,
        command_state.command.comment if command_state.command is not None else 0,
    )
    comments: list[Comment] = []
    is_far = False
    for number in numbers:
        talk = github.talks.get(number)
        are_many = talk is not None and _are_many(talk, after)
        is_far |= are_many
        comments += github.comments(number) if talk is None or are_many else talk.latest
    refused = 0
    for comment in sorted(comments, key=lambda comment: comment.id):
        if comment.id <= after or (comment.user is not None and comment.user.id == github.author):
            continue
        command = _command_in(comment)
        if command is not None and _may_write(github, command.login, rights):
            state = state.after(command)
        elif command is not None:
            refused += 1
        after = comment.id
    return state._replace(seen=after), is_far or refused > REFUSED_MAX


def _are_many(conversation: Conversation, after: int) -> bool:
    """Whether there can be comments between the last verdict and the last comments."""
    if conversation.number_of_comments <= len(conversation.latest):
        return False
    return not conversation.latest or min(comment.id for comment in conversation.latest) > after


def _command_in(comment: Comment) -> Command | None:
    """Return the command of a comment; None without a valid one.

    Raises UnexpectedReply if nobody can tell who gave it.
    """
    match = _COMMAND.fullmatch(comment.body.strip().split("\n", 1)[0].strip())
    if match is None or comment.user is None:
        return None
    name, reason = CommandName(match[1]), visible(match[2] or "", REASON_MAX)
    login = comment.user.login
    if name is CommandName.DISPUTE and not reason:
        return None
    if not login:
        what = f"comment {comment.id} has a command, and its author cannot be read"
        raise UnexpectedReply(what, REPORT_IT)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", login):
        return None
    return Command(comment=comment.id, name=name, login=login, reason=reason)


def _may_write(github: GitHub, login: str, rights: dict[str, bool]) -> bool:
    if login not in rights:
        try:
            rights[login] = github.permission(login) in _RIGHTS
        except (NotFound, MissingScope):  # no collaborator, or the token may not ask
            rights[login] = False
    return rights[login]

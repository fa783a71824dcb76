"""The commands in comments on pull requests.

Anybody may comment, so a command counts only if its author may write to the repository. `/recheck`
computes the verdict again and ends a dispute. `/audit` sets the label that requests an audit.
`/dispute REASON` withdraws the pass.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import MissingScope, NotFound, UnexpectedReply
from geneb_ci.github.replies import REPORT_FIX, Comment, Conversation, is_account
from geneb_ci.github.verdict.model import REASON_MAX, Command, CommandName, CommandState
from geneb_ci.render.plain import visible

_COMMAND = re.compile(r"/(recheck|audit|dispute)(?:[ \t]+(\S[^\r\n]*))?")
"""First line of a comment that is a command, and its reason."""
_WRITE_PERMISSIONS = frozenset({"admin", "write"})
"""Permissions on GitHub with which an account's commands count."""
REFUSED_COMMANDS_MAX = 5
"""Number of refused commands above which a new verdict notes the last comment that was read.

Otherwise, every sweep would read the refused commands again.
"""


def read_commands(
    github: GitHub,
    numbers: Sequence[int],
    command_state: CommandState,
    may_write_by_login: dict[str, bool],
    comments_by_pull: Mapping[int, list[Comment]] = MappingProxyType({}),
) -> tuple[CommandState, bool]:
    """Return the commands in force, and whether a new verdict should note the last read comment.

    A verdict notes that comment in its member `seen`, so that the next sweep reads only newer
    ones; this pays after many comments. `numbers` are the pull requests that share one
    head commit, and `command_state` has their earlier commands. `comments_by_pull` has all comments
    on pull requests that were read one by one. `may_write_by_login` caches who may write: comments
    do not show that, because GitHub hides private memberships.

    Costs one request for each new author of a command, and one for each 100 comments that are not
    read yet. Raises UnexpectedReply if there are more comments than can be read.
    """
    new_state = command_state
    last_id = max(
        command_state.seen,
        command_state.command.comment if command_state.command is not None else 0,
    )
    comments: list[Comment] = []
    should_store_seen = False
    for number in numbers:
        conversation = github.conversations.get(number)
        may_lack_some = conversation is not None and _may_lack_comments(conversation, last_id)
        should_store_seen |= may_lack_some
        is_read = conversation is not None and not may_lack_some
        if number in comments_by_pull:
            comments += comments_by_pull[number]
        else:
            comments += conversation.latest if conversation and is_read else github.comments(number)
    refused_count = 0
    for comment in sorted(comments, key=lambda comment: comment.id):
        if comment.id <= last_id or is_account(comment.user, github.own_account_id):
            continue
        command = _command_in(comment)
        if command is not None and _may_write(github, command.login, may_write_by_login):
            new_state = new_state.after(command)
        elif command is not None:
            refused_count += 1
        last_id = comment.id
    return new_state._replace(
        seen=last_id
    ), should_store_seen or refused_count > REFUSED_COMMANDS_MAX


def _may_lack_comments(conversation: Conversation, last_id: int) -> bool:
    """Whether there may be unread comments between the last verdict and the last comments."""
    if conversation.number_of_comments <= len(conversation.latest):
        return False
    return not conversation.latest or min(comment.id for comment in conversation.latest) > last_id


def _command_in(comment: Comment) -> Command | None:
    """Return the command of a comment; None without a valid one.

    Raises UnexpectedReply if its author cannot be read.
    """
    match = _COMMAND.fullmatch(comment.body.strip().split("\n", 1)[0].strip())
    if match is None or comment.user is None:
        return None
    command_name, reason = CommandName(match[1]), visible(match[2] or "", REASON_MAX)
    login = comment.user.login
    if command_name is CommandName.DISPUTE and not reason:
        return None
    if not login:
        message = f"comment {comment.id} has a command, but its author cannot be read"
        raise UnexpectedReply(message, REPORT_FIX)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", login):
        return None
    return Command(comment=comment.id, name=command_name, login=login, reason=reason)


def _may_write(github: GitHub, login: str, may_write_by_login: dict[str, bool]) -> bool:
    """Whether an account may write to the repository; asked of GitHub once for each account."""
    if login not in may_write_by_login:
        try:
            may_write_by_login[login] = github.permission(login) in _WRITE_PERMISSIONS
        except (NotFound, MissingScope):  # no collaborator, or the token may not ask
            may_write_by_login[login] = False
    return may_write_by_login[login]

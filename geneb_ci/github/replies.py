"""Models of the parts of GitHub's answers that are used.

Members on which a decision depends are validated strictly. Members that are only shown, such as
`DisplayText`, are lenient: an invalid value is shown as missing.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AliasChoices,
    AliasPath,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from geneb_ci.github.errors import UnexpectedReply
from reference_harness.formats.base import Hex40, first_error

Sha = Hex40
"""Id of an object of git: 40 hexadecimal digits."""
Id = Annotated[int, Field(ge=0)]
"""Number by which GitHub identifies an account, a comment or an App."""
REPORT_FIX = (
    "run the command again; if it fails again, report this message to the maintainers of geneb-ci"
)
"""Advice after an answer of GitHub that cannot be understood."""


def lenient(default: Any) -> WrapValidator:
    """Return a validator that replaces an invalid value by `default`."""

    def read(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return default

    return WrapValidator(read)


DisplayText = Annotated[str, lenient("")]
"""A text that is only shown."""
ShownMoment = Annotated[AwareDatetime | None, lenient(None)]
"""A time that is only shown, or decides an order; None if it cannot be read."""
Body = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text on which a decision depends; null is read as an empty text."""


class ReplyModel(BaseModel):
    """Base class of the models of GitHub's answers; members without a field are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class User(ReplyModel):
    """A GitHub account, identified by id: logins can be renamed and reused."""

    id: Id
    login: DisplayText = ""


def is_account(user: User | None, account_id: int) -> bool:
    """Return whether an account is the one with an id; False for a deleted one."""
    return user is not None and user.id == account_id


ShownUser = Annotated[User | None, lenient(None)]
"""An account that is only shown; None if it was deleted, or cannot be read."""


def _rest_account(owner: Any) -> Any:
    """Return an account as REST describes it; None if it is neither a person nor an App."""
    if not isinstance(owner, dict) or "kind" not in owner:
        return owner
    # REST marks the login of an App, which may otherwise be that of a person.
    suffix = "[bot]" if owner["kind"] == "Bot" else ""
    return owner | {"login": f"{owner.get('login') or ''}{suffix}"} if owner.get("id") else None


Account = Annotated[User | None, BeforeValidator(_rest_account)]
"""An account on which a decision depends, from REST or GraphQL; None if it was deleted."""


class RepositoryOfBase(ReplyModel):
    """The repository of the base branch."""

    full_name: str
    default_branch: str


class Head(ReplyModel):
    """The head commit of a pull request."""

    sha: Sha


class PullBase(ReplyModel):
    """The base branch of a pull request."""

    sha: Sha
    ref: str
    """Name of the branch."""
    repo: RepositoryOfBase


UNREADABLE_LABEL = ""
"""Stands for a label whose name cannot be read; on GitHub every label has a name."""


def _label_name(label: Any) -> Any:
    """Return the name of a label, which GitHub describes as an object or as a text."""
    return label.get("name") if isinstance(label, dict) else label  # GitHub also has texts


Labels = Annotated[
    tuple[Annotated[str, BeforeValidator(_label_name), lenient(UNREADABLE_LABEL)], ...],
    lenient((UNREADABLE_LABEL,)),
]
"""Names of all labels; an unreadable one is `UNREADABLE_LABEL`."""


class Labelled(ReplyModel):
    """An issue or a pull request; only its labels are read."""

    labels: Labels = ()


class Pull(Labelled):
    """A pull request."""

    number: Annotated[int, Field(ge=1)]
    state: Literal["open", "closed"]
    title: DisplayText = ""
    html_url: DisplayText = ""
    draft: Annotated[bool, lenient(False)] = False  # noqa: FBT003 (a value, not a switch)
    created_at: ShownMoment = None
    updated_at: ShownMoment = None
    user: ShownUser = None
    locked: Annotated[bool, lenient(False)] = False  # noqa: FBT003 (a value, not a switch)
    """Whether comments are refused; if this is unreadable, writing fails with GitHub's error."""
    assignees: Annotated[tuple[ShownUser, ...], lenient(())] = ()
    head: Head
    base: PullBase

    @property
    def is_to_main(self) -> bool:
        """Whether the base branch is the default branch."""
        return self.base.ref == self.base.repo.default_branch


class GitObject(ReplyModel):
    """An object of git; only its id is read."""

    sha: Sha


class Commit(ReplyModel):
    """The ids of a commit and of its tree, from REST or GraphQL."""

    model_config = ConfigDict(populate_by_name=True)

    sha: Sha = Field(validation_alias=AliasChoices("sha", "oid"))
    tree: Sha = Field(
        validation_alias=AliasChoices(
            AliasPath("commit", "tree", "sha"), AliasPath("tree", "oid"), "tree"
        )
    )
    """Id of the tree with the commit's files."""


class CommitComparison(ReplyModel):
    """The merge base of two commits."""

    merge_base_commit: Commit


class TreeEntry(ReplyModel):
    """One path of a git tree."""

    path: str
    mode: str
    """Git's mode: a regular file, a link, a folder or a submodule."""
    type: str
    """Git's type: blob, tree or commit."""
    sha: Sha
    size: Annotated[int, Field(ge=0)] = 0

    @property
    def is_file(self) -> bool:
        """Whether this is a file, not a folder."""
        return self.type != "tree"


class RecursiveTree(ReplyModel):
    """All paths of a git tree, unless GitHub has left out some."""

    sha: Sha
    tree: list[TreeEntry]
    truncated: bool
    """Whether GitHub left out files, because there are too many."""


class BlobReply(ReplyModel):
    """The bytes of a file, in base64."""

    encoding: Literal["base64"]
    content: str


class Comment(ReplyModel):
    """A comment on a pull request."""

    id: Id
    user: Account
    """Author, by whom our own comments are recognised."""
    body: Body = ""


class StatusState(ReplyModel):
    """The state of a commit status, and who set it."""

    state: str = ""
    creator: Annotated[Account, lenient(None)] = None
    """Account that set the status; None if that is unknown."""


class Status(StatusState):
    """A commit status with its name, description and time."""

    context: str
    """Name of the status; a commit has one of each name."""
    description: str | None = None
    created_at: DisplayText = ""

    @property
    def moment(self) -> str:
        """Time at which the status was set, in UTC. Raises UnexpectedReply if it is invalid."""
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", self.created_at):
            raise UnexpectedReply(f"the status {self.context} has no valid time", REPORT_FIX)
        return self.created_at


_LAST_COMMIT_PATH = ("commits", "nodes", 0, "commit")
"""Keys under which GraphQL's answer has the last commit of a pull request."""


class HeadStatus(ReplyModel):
    """The head of a pull request and our status on it, from GraphQL."""

    model_config = ConfigDict(populate_by_name=True)

    number: Annotated[int, Field(ge=1)]
    head_sha: Sha = Field(validation_alias="headRefOid")
    status_sha: Sha = Field(validation_alias=AliasPath(*_LAST_COMMIT_PATH, "oid"))
    """Commit that has the status."""
    status: StatusState | None = Field(
        None, validation_alias=AliasPath(*_LAST_COMMIT_PATH, "status", "context")
    )
    """Our status on this commit; None without one."""

    @property
    def state(self) -> str:
        """State of our status on the head; "" if there is none."""
        is_of_head = self.status_sha == self.head_sha
        return self.status.state.lower() if self.status is not None and is_of_head else ""


class Conversation(HeadStatus, Labelled):
    """Comments, labels, head and status of a pull request, from GraphQL."""

    pull_state: Literal["OPEN", "CLOSED", "MERGED"] = Field(validation_alias="state")
    locked: bool
    labels: Labels = Field(validation_alias=AliasPath("labels", "nodes"))
    comments: list[Comment] = Field(validation_alias=AliasPath("comments", "nodes"))
    """All comments, or the first ones if our own comment is among them."""
    number_of_comments: Id = Field(validation_alias=AliasPath("comments", "totalCount"))
    latest: list[Comment] = Field(validation_alias=AliasPath("latest", "nodes"))
    """The last comments."""

    @property
    def is_open(self) -> bool:
        """Whether the pull request is open."""
        return self.pull_state == "OPEN"


class Ref(ReplyModel):
    """A branch, and the commit that it points to."""

    ref: str
    """Full name of the branch, such as refs/heads/main."""
    object: GitObject


class NumberedItem(ReplyModel):
    """An issue or a pull request; only its number is read."""

    number: Annotated[int, Field(ge=1)]


class Permission(ReplyModel):
    """A user's permission in the repository."""

    permission: str


class Issue(ReplyModel):
    """An issue."""

    number: Annotated[int, Field(ge=1)]
    user: User | None
    body: Body = ""


T = TypeVar("T")


_adapters: dict[Any, TypeAdapter[Any]] = {}
"""Validators by type, as `adapter` has made them."""


def adapter(type_: type[T]) -> TypeAdapter[T]:
    """Return the validator of a type, cached because it takes longer to make than to use."""
    if type_ not in _adapters:
        _adapters[type_] = TypeAdapter(type_)
    return _adapters[type_]


def parsed(type_: type[T], body: Any, subject: str) -> T:
    """Return `body` as a model.

    Raises UnexpectedReply, with `subject` and the first error, if it is no valid one.
    """
    try:
        return adapter(type_).validate_python(body)
    except ValidationError as error:
        raise UnexpectedReply(
            f"{subject}: unexpected answer of GitHub, at {first_error(error, 'the top level')}",
            REPORT_FIX,
        ) from error


class UnreadablePull(NamedTuple):
    """A pull request with invalid data in GitHub's list; its number is known."""

    number: int
    head_sha: str | None
    """Id of the head commit; None if it cannot be read either."""
    reason: str
    """Description of what is invalid in GitHub's answer."""


class _NumberedHead(NumberedItem):
    """The number of a pull request, and its head as far as that can be read."""

    head: Annotated[Head | None, lenient(None)] = None


def readable_pulls(pull_items: Iterable[Any]) -> tuple[list[Pull], list[UnreadablePull]]:
    """Return the readable pull requests of a list, and the unreadable ones.

    Raises UnexpectedReply if one has no number.
    """
    subject = "the list of pull requests"
    readable: list[Pull] = []
    unreadable: list[UnreadablePull] = []
    for pull_item in pull_items:
        try:
            readable.append(adapter(Pull).validate_python(pull_item))
        except ValidationError as error:
            pull = parsed(_NumberedHead, pull_item, subject)
            head = pull.head.sha if pull.head is not None else None
            reason = f"unexpected answer of GitHub in {subject}, at {first_error(error, 'the top')}"
            unreadable.append(UnreadablePull(pull.number, head, reason))
    return readable, unreadable

"""Models of the parts of GitHub's answers that are used.

A member that decides something is read strictly: without it, nothing is concluded. One that is only
shown is read leniently, as `Shown` and the like: what cannot be read is shown as missing.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from geneb_ci.github.errors import UnexpectedReply
from reference_harness.formats.base import Hex40, first_error

Sha = Hex40
Id = Annotated[int, Field(ge=0)]
REPORT_IT = "run the command again; if it fails again, report it to the maintainers"


def lenient(default: Any) -> WrapValidator:
    """Return a validator that puts this value in the place of an invalid one."""

    def read(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            return default

    return WrapValidator(read)


Shown = Annotated[str, lenient("")]
"""A text that is only shown."""
ShownMoment = Annotated[AwareDatetime | None, lenient(None)]
"""A time that is only shown, or decides an order; None if it cannot be read."""
Body = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that decides; null is an empty one."""


class ReplyModel(BaseModel):
    """Base of the models; unknown members are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class User(ReplyModel):
    """A GitHub account, identified by id: logins can be renamed and reused."""

    id: Id
    login: Shown = ""


ShownUser = Annotated[User | None, lenient(None)]
"""An account that is only shown; None if it was deleted, or cannot be read."""


class BaseRepository(ReplyModel):
    """The repository of the base branch."""

    full_name: str
    default_branch: str


class Head(ReplyModel):
    """The head commit of a pull request."""

    sha: Sha


class Target(ReplyModel):
    """The base branch of a pull request."""

    sha: Sha
    ref: str
    repo: BaseRepository


UNREADABLE = ""
"""Name of a label that cannot be read; GitHub has none without a name."""


class Label(ReplyModel):
    """A label; its name is `UNREADABLE` if it cannot be read."""

    name: Shown = UNREADABLE

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        """Return a label as an object: GitHub also has them as texts."""
        return {"name": value} if isinstance(value, str) else value


_NO_LABEL = Label()
Labels = Annotated[
    tuple[Annotated[Label, lenient(_NO_LABEL)], ...],
    lenient((_NO_LABEL,)),
]
"""All labels; where they cannot be read, one or more are `UNREADABLE`."""


class Labelled(ReplyModel):
    """An issue or a pull request, of which the labels are read."""

    labels: Labels = ()

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return [label.name for label in self.labels]


class Pull(Labelled):
    """A pull request."""

    number: Annotated[int, Field(ge=1)]
    state: Literal["open", "closed"]
    title: Shown = ""
    html_url: Shown = ""
    draft: Annotated[bool, lenient(False)] = False  # noqa: FBT003 (a value, not a switch)
    created_at: ShownMoment = None
    updated_at: ShownMoment = None
    user: ShownUser = None
    locked: Annotated[bool, lenient(False)] = False  # noqa: FBT003 (a value, not a switch)
    """It spares the attempt to write: GitHub refuses it where this could not be read."""
    assignees: Annotated[tuple[ShownUser, ...], lenient(())] = ()
    head: Head
    base: Target

    @property
    def is_to_main(self) -> bool:
        """Whether the base branch is the default branch."""
        return self.base.ref == self.base.repo.default_branch


class Tree(ReplyModel):
    """The tree of a commit."""

    sha: Sha


class CommitBody(ReplyModel):
    """The content of a commit."""

    tree: Tree


class Commit(ReplyModel):
    """A commit."""

    sha: Sha
    commit: CommitBody


class CommitComparison(ReplyModel):
    """The merge base of two commits."""

    merge_base_commit: Commit


class TreeEntry(ReplyModel):
    """One path of a recursive tree."""

    path: str
    mode: str
    type: str
    sha: Sha
    size: Annotated[int, Field(ge=0)] = 0


class RecursiveTree(ReplyModel):
    """All paths of a tree, unless it is truncated."""

    sha: Sha
    tree: list[TreeEntry]
    truncated: bool


class BlobReply(ReplyModel):
    """The bytes of a file, in base64."""

    sha: Sha
    encoding: str
    content: str


class Comment(ReplyModel):
    """A comment on a pull request."""

    id: Id
    user: User | None
    """None if the account was deleted. It decides: only our own comments are ours."""
    body: Body = ""


class Status(ReplyModel):
    """A status of a commit."""

    context: str
    state: str = ""
    description: str | None = None
    created_at: Shown = ""
    creator: ShownUser = None

    @property
    def moment(self) -> str:
        """When the server set it, which decides for commitments. Raises UnexpectedReply."""
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", self.created_at):
            raise UnexpectedReply(f"the status {self.context} has no time", REPORT_IT)
        return self.created_at


class Ref(ReplyModel):
    """A branch, and the commit that it names."""

    ref: str
    object: Tree


class Numbered(ReplyModel):
    """An issue or a pull request, of which the number is read."""

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


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Return the validator of a type, made once: that takes longer than to read an answer."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def parsed(kind: type[T], body: Any, what: str) -> T:
    """Return an answer as a model. Raises UnexpectedReply with the first validation error."""
    try:
        return adapter(kind).validate_python(body)
    except ValidationError as error:
        raise UnexpectedReply(
            f"{what}: unexpected answer of GitHub, at {first_error(error, 'the top level')}",
            REPORT_IT,
        ) from error


class UnreadableItem(NamedTuple):
    """An item of a list that cannot be read; number and head as far as they can."""

    number: int | None
    head_sha: str | None
    reason: str

    @property
    def name(self) -> str:
        """Its number, for people."""
        return f"#{self.number}" if self.number is not None else "one without a number"


class _Named(ReplyModel):
    """The name of a pull request of which other members cannot be read."""

    number: Annotated[int | None, Field(ge=1), lenient(None)] = None
    head: Annotated[Head | None, lenient(None)] = None


def readable_items(
    kind: type[T], items: Iterable[Any], what: str
) -> tuple[list[T], list[UnreadableItem]]:
    """Return the items of a list as models, each read on its own, and those that cannot be."""
    read: list[T] = []
    unread: list[UnreadableItem] = []
    for item in items:
        try:
            read.append(adapter(kind).validate_python(item))
        except ValidationError as error:
            named = _Named.model_validate(item if isinstance(item, dict) else {})
            head = named.head.sha if named.head is not None else None
            reason = f"unexpected answer of GitHub in {what}, at {first_error(error, 'the top')}"
            unread.append(UnreadableItem(named.number, head, reason))
    return read, unread

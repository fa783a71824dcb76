"""Models of the parts of GitHub's answers that are used."""

import datetime as dt
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from geneb_ci.common.types import Hex40, first_error
from geneb_ci.github.errors import UnexpectedReply

Sha = Hex40
Id = Annotated[int, Field(ge=0)]


class ReplyModel(BaseModel):
    """Base of the models; unknown members are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class User(ReplyModel):
    """A GitHub account, identified by id: logins can be renamed and reused."""

    id: Id
    login: str = ""


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


class Label(ReplyModel):
    """A label."""

    name: str


class Pull(ReplyModel):
    """A pull request."""

    number: Annotated[int, Field(ge=1)]
    state: str
    title: str = ""
    html_url: str = ""
    draft: bool = False
    created_at: dt.datetime
    updated_at: dt.datetime
    user: User | None
    """None if the account was deleted."""
    labels: list[Label] = []
    locked: bool = False
    assignees: list[User] = []
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
    body: str = ""


class Status(ReplyModel):
    """A status of a commit; the server says when it was set."""

    context: str
    description: str | None = None
    created_at: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$")]


class Ref(ReplyModel):
    """A branch, and the commit that it names."""

    object: Tree


class Numbered(ReplyModel):
    """An issue or a pull request, of which the number is read."""

    number: Annotated[int, Field(ge=1)]


class Permission(ReplyModel):
    """What somebody may do in the repository."""

    permission: str


class Issue(ReplyModel):
    """An issue."""

    number: Annotated[int, Field(ge=1)]
    title: str = ""
    user: User | None
    body: str | None = None


T = TypeVar("T")


_adapters: dict[Any, TypeAdapter[Any]] = {}


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Return what reads this type, made once: that takes longer than to read an answer."""
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
            "run the command again; if it fails again, report it to the maintainers",
        ) from error

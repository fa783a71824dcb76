"""The parts of GitHub's answers that we use; anything else in them is left aside."""

import datetime as dt
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from geneb_ci.common.types import Hex40, first_error
from geneb_ci.github.errors import UnexpectedReply

Sha = Hex40
Id = Annotated[int, Field(ge=0)]


class ReplyModel(BaseModel):
    """Whatever GitHub adds to its answers is no concern of ours."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class User(ReplyModel):
    """Who did something; the id stays, a login can be renamed and taken by another."""

    id: Id
    login: str = ""


class BaseRepository(ReplyModel):
    """Where a pull request leads."""

    full_name: str
    default_branch: str


class Head(ReplyModel):
    """What a pull request proposes."""

    sha: Sha


class Target(ReplyModel):
    """The branch that a pull request would change."""

    sha: Sha
    ref: str
    repo: BaseRepository


class Label(ReplyModel):
    """A label by its name."""

    name: str


class Pull(ReplyModel):
    """A pull request."""

    number: Annotated[int, Field(ge=1)]
    state: str
    title: str = ""
    draft: bool = False
    created_at: dt.datetime
    updated_at: dt.datetime
    user: User | None
    """None for an account that is gone."""
    labels: list[Label] = []
    head: Head
    base: Target

    @property
    def is_to_main(self) -> bool:
        """Whether it would change the branch that rows are published from."""
        return self.base.ref == self.base.repo.default_branch


class Tree(ReplyModel):
    """A commit's tree, by its own name."""

    sha: Sha


class CommitBody(ReplyModel):
    """What a commit holds."""

    tree: Tree


class Commit(ReplyModel):
    """A commit."""

    sha: Sha
    commit: CommitBody


class CommitComparison(ReplyModel):
    """Where two commits part."""

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


T = TypeVar("T")


def parsed(kind: type[T], body: Any, what: str) -> T:  # noqa: ANN401 (JSON)
    """Read an answer. Raises UnexpectedReply, with the first thing that is not as documented."""
    try:
        return TypeAdapter(kind).validate_python(body)
    except ValidationError as error:
        raise UnexpectedReply(
            f"{what}: not as GitHub documents it, at {first_error(error, 'the top')}",
            "run it again; if it stays, report it to the maintainers",
        ) from error

"""The repository of a working tree, and where in it the places of its layout lie."""

from pathlib import Path

from geneb_ci.config import Layout
from geneb_ci.errors import GenebError, UsageProblem
from geneb_ci.publish.git import BadRepository, Repository


def repository_at(layout: Layout) -> Repository:
    """Give the repository of a layout, whose root must be the repository's own.

    Raises BadRepository when it is not, or when there is no repository.
    """
    repository = Repository(layout.root)
    top = Path(repository.run("rev-parse", "--show-toplevel").decode().rstrip("\n"))
    if top.resolve() != layout.root.resolve():
        raise BadRepository(
            f"{layout.root}: the submissions do not lie at the root of their git repository",
            f"the root is {top}: submissions/ must lie directly in it",
        )
    return repository


def repository_of(layout: Layout, name: str) -> tuple[Repository, str]:
    """Give the repository that a working tree belongs to, and the commit of that name.

    Raises UsageProblem when there is no such repository or commit.
    """
    try:
        repository = repository_at(layout)
        return repository, repository.resolve(name)
    except GenebError as error:
        raise UsageProblem(error.message, error.fix) from error


def named_places(layout: Layout, *places: Path | None) -> list[str]:
    """Give places of a layout as paths of its repository, those that lie inside it."""
    inside = (p for p in places if p is not None and p.is_relative_to(layout.root))
    return sorted({str(place.relative_to(layout.root)) for place in inside} - {"."})

"""A Hub, a Space on it, and a repository of submissions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.publish.generation import Generation, generate
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.space import Space
from tests.publish.clone import Clone, Folder, Public
from tests.publish.hub import WRITER, Hub, Repo

SCRIPTS = (
    *("board-data.js", "board-history.js", "board-matrices.js"),
    *("board-tasks-0.js", "board-tasks-1.js", "board-tasks-2.js"),
)
"""What the page reads, in the order of the names."""
NAME = "geneb/board"
RESOURCE = f"spaces/{NAME}"


@pytest.fixture
def hub() -> Iterator[Hub]:
    served = Hub()
    yield served
    served.close()


@pytest.fixture
def repo(hub: Hub) -> Repo:
    return hub.create(RESOURCE, {".gitattributes": b"", "notes.txt": b"not ours"})


@pytest.fixture
def space(hub: Hub, repo: Repo) -> Space:  # noqa: ARG001 (the Space must be there)
    return Space(NAME, token=WRITER, endpoint=hub.endpoint, timeout_s=5)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture
def public(tmp_path: Path) -> Public:
    return Public(tmp_path / "public")


def made(clone: Folder, commit: str = "HEAD") -> Generation:
    """Build what would be published of a commit."""
    repository = GitRepository(clone.root)
    report, found = generate(repository, repository.resolve(commit))
    assert found is not None, report.findings
    return found

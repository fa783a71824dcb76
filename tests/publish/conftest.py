"""A Hub, a Space on it, and a repository of submissions."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.board.site.inputs import file_names_of
from geneb_ci.board.texts import script_part
from geneb_ci.publish.generation import Generation, generate
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.space import Space
from tests.publish.clone import Clone, Folder, Public
from tests.publish.hub import WRITER, Hub, Repo
from tests.small import BENCHMARK, METRICS

MEANS_AND_TASKS = [f"{part}-{regime}" for part in ("scores", "tasks") for regime in range(3)]
PARTS = ("data", "history", "matrices", *MEANS_AND_TASKS)
SCRIPTS = ("board-current.js", *(f"board-{part}.DIGEST.js" for part in PARTS))
"""What the page reads, in the order of the names, as `undated` writes them."""
STANDING = ("models/", "badges/", "tasks/", "categories/", "scores/", "v/")
"""Folders of the pages that stand alone."""
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


@pytest.fixture(scope="session")
def _clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("small") / "clone")


@pytest.fixture
def clone(_clone: Clone, tmp_path: Path) -> Clone:
    return _clone.copied(tmp_path / "clone")


@pytest.fixture(scope="session")
def _public(tmp_path_factory: pytest.TempPathFactory) -> Public:
    return Public(tmp_path_factory.mktemp("all") / "public")


@pytest.fixture
def public(_public: Public, tmp_path: Path) -> Public:
    return _public.copied(tmp_path / "public")


def undated(name: str) -> str:
    """Return the name of a file without the digest of its board."""
    part = script_part(name)
    return name if part is None else f"board-{part}.DIGEST.js"


def is_page(name: str) -> bool:
    """Whether a published file is one of the pages that stand alone, their style or their feed."""
    return name.startswith(STANDING) or name in {"feed.xml", "marks.html", "pages.css"}


def pages_of(model: str, generation: str, commit: str) -> list[str]:
    """Return the pages of a board of one model and the benchmark of three tasks, sorted."""
    scores = [f"scores/{r}-{m}.html" for r in ("10shot", "1shot", "full") for m in METRICS]
    return sorted(
        [
            *(f"badges/{model}.svg", f"models/{model}.html"),
            *("feed.xml", "marks.html", "pages.css"),
            *(
                f"categories/{slug}.html"
                for slug in file_names_of(BENCHMARK.category_order).values()
            ),
            *(f"tasks/{task}.html" for task in BENCHMARK.task_ids),
            *scores,
            *(f"v/{folder}index.html" for folder in ("", f"{generation}/", f"{commit}/")),
        ]
    )


_MADE: dict[str, Generation] = {}
"""By commit, on which alone a board depends: most tests begin with the same one."""


def made(clone: Folder, commit: str = "HEAD") -> Generation:
    """Build what would be published of a commit."""
    repository = GitRepository(clone.root)
    resolved = repository.resolve(commit)
    if resolved not in _MADE:
        _MADE[resolved] = generate(repository, resolved)
    space_made = _MADE[resolved]
    return dataclasses.replace(
        space_made, files=dict(space_made.files), editions=dict(space_made.editions)
    )

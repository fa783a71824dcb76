"""Lays out the tree of a commit in an empty folder, so that a board is built from nothing else."""

from collections.abc import Iterable
from pathlib import Path

from geneb_ci.publish.git import LINK, REGULAR, BadRepository, Repository
from geneb_ci.publish.inputs import INPUTS

_FORBIDDEN = frozenset({"", ".", "..", ".git"})


def lay_out(
    repository: Repository, commit: str, folder: Path, paths: Iterable[str] = INPUTS
) -> None:
    """Write the inputs of a commit's board, or other paths of it, into a folder that is empty.

    Only regular files are written. A symbolic link becomes one that points at itself, so that
    whoever reads it fails as with the real one, and nobody is led out of the folder.
    Raises BadRepository when the tree holds a path that no checkout would make.
    """
    entries = repository.tree(commit, paths)
    contents = dict(repository.blobs(e.blob for e in entries if e.mode in REGULAR))
    for entry in entries:
        parts = entry.path.split("/")
        if _FORBIDDEN.intersection(parts):
            raise BadRepository(
                f"commit {commit}: the path {entry.path!r} is not allowed", "remove it by a commit"
            )
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode in REGULAR:
            path.write_bytes(contents[entry.blob])
        elif entry.mode == LINK:
            path.symlink_to(path.name)
        else:
            path.mkdir()  # another repository's place: git leaves an empty folder there, too

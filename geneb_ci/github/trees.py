"""Read commits, trees and files from the API or a clone, and what a head changes on main."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from geneb_ci.check.change import REGULAR, Blob, Change, FileChange, RepositoryFolders
from geneb_ci.common.finding import Fault
from geneb_ci.github.errors import Tampered, UnexpectedReply
from geneb_ci.github.replies import Commit
from geneb_ci.publish.git import BOARD_INPUTS, CODE_FOLDER
from geneb_ci.submission.reading import too_large
from reference_harness.formats.files import blob_id
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

TRUNCATED_TREE_MESSAGE = "GitHub truncated the list of files of the base branch"
TRUNCATED_TREE_FIX = (
    "remove files that do not belong to the repository: it has more than GitHub lists"
)
TAMPERED_FIX = (
    "run the command again; if it fails again, the connection to GitHub may be tampered with"
)


class Tree(NamedTuple):
    """The files of a tree of git by their paths: everything except folders."""

    files: dict[str, Blob]
    """Mode, id and size of each file, by path."""
    is_truncated: bool
    """Whether the list of files is incomplete."""


def tree_of(
    listed_files: Iterable[tuple[str, str, str, int]], *, is_truncated: bool = False
) -> Tree:
    """Return the tree with files of these paths, modes, ids and sizes.

    Raises Tampered for a path that is listed twice.
    """
    files: dict[str, Blob] = {}
    for path, mode, sha, size in listed_files:
        if path in files:
            raise Tampered(f"a tree has a duplicate path: {ascii(path)[:80]}", TAMPERED_FIX)
        files[path] = Blob(mode, sha, size)
    return Tree(files, is_truncated)


class GitReader(Protocol):
    """A reader of commits, trees and blobs: the API of GitHub, or a clone."""

    def merge_base(self, base: str, head: str) -> Commit:
        """Return the merge base of two commits."""

    def tree(self, sha: str) -> Tree:
        """Return the files of a commit or tree."""

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a file."""


@dataclass(frozen=True)
class Main:
    """The last commit of the base branch, with the files on which verdicts depend."""

    sha: str
    """Id of the commit."""
    files: dict[str, Blob]
    """Mode, id and size of each file, by path."""
    digest: str
    """SHA-256 of all files of the base branch on which a verdict depends."""
    digested_paths: frozenset[str] = field(default=frozenset(), repr=False)
    """The paths that the digest covers."""


def main_at(reader: GitReader, commit: Commit, configured_paths: Iterable[str] = ()) -> Main:
    """Return the state of the base branch at a commit; one request, unless its tree is cached.

    The digest also covers `configured_paths`, which are files and folders that the settings name.
    Raises UnexpectedReply if GitHub does not list all files.
    """
    files, is_truncated = reader.tree(commit.tree)
    if is_truncated:
        raise UnexpectedReply(TRUNCATED_TREE_MESSAGE, TRUNCATED_TREE_FIX)
    roots = (*BOARD_INPUTS, CODE_FOLDER, *configured_paths)
    digested_paths = frozenset(
        path for path in files if path in roots or path.startswith(tuple(f"{r}/" for r in roots))
    )
    lines = (f"{files[path].mode} {files[path].sha} {path}\n" for path in sorted(digested_paths))
    digest = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return Main(commit.sha, files, digest, digested_paths)


@dataclass(frozen=True)
class Proposal:
    """The change that a pull request makes on the base branch."""

    merge_base: str
    """Id of the last commit that the pull request has in common with the base branch."""
    change: Change
    """The changed files, as the rules get them."""
    merged_files: dict[str, Blob]
    """Mode, id and size of each file after the merge, by path."""


def read_proposal(reader: GitReader, head: str, folders: RepositoryFolders, main: Main) -> Proposal:
    """Return the change that a head makes on the base branch; at most three requests.

    A path counts as changed if it differs from the merge base and from the base branch. So changes
    that were merged meanwhile, such as the parent of a stacked pull request, do not count.
    Raises Tampered if an answer contradicts itself.
    """
    base = reader.merge_base(main.sha, head)
    base_files, is_base_cut = reader.tree(base.tree)
    files_at_head, is_head_cut = reader.tree(head)
    main_files = main.files
    paths = sorted(
        path
        for path in base_files.keys() | files_at_head.keys()
        if base_files.get(path) != files_at_head.get(path) != main_files.get(path)
    )
    files = tuple(FileChange(path, main_files.get(path), files_at_head.get(path)) for path in paths)
    outdated = tuple(path for path in paths if base_files.get(path) != main_files.get(path))
    change = Change(
        files, is_truncated=is_base_cut or is_head_cut, folders=folders, outdated_paths=outdated
    )
    blob_by_path = {**main_files, **{path: files_at_head.get(path) for path in paths}}
    merged_files = {path: blob for path, blob in blob_by_path.items() if blob is not None}
    return Proposal(base.sha, change, merged_files)


def read_blob(reader: GitReader, blob: Blob) -> bytes | Fault:
    """Return the bytes of a file, in one request; a Fault without a request if it is too large.

    Raises Tampered if the bytes do not match their git object id.
    """
    if blob.mode != REGULAR:
        raise ValueError(blob.mode)
    if blob.size > SUBMISSION_BYTES_MAX:
        return too_large(blob.size)
    raw = reader.blob(blob.sha)
    if blob_id(raw) != blob.sha:
        message = f"blob {blob.sha}: GitHub sent bytes with the id {blob_id(raw)}"
        raise Tampered(message, TAMPERED_FIX)
    return raw if len(raw) <= SUBMISSION_BYTES_MAX else too_large(len(raw))

"""Read the files of the base branch from the API or a clone, because a checkout may be older."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from geneb_ci.check.change import REGULAR, Blob
from geneb_ci.common.config import LAYOUT_FILES, ROWS_FOLDER, SETTINGS_FILE, Layout, find_layout
from geneb_ci.github.errors import MainMoved, UnexpectedReply
from geneb_ci.github.replies import Commit
from geneb_ci.github.trees import (
    GitReader,
    Main,
    Tree,
    read_blob,
    tree_of,
)
from geneb_ci.publish.git import CODE_FOLDER, GitRepository
from reference_harness.formats.files import blob_id
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from reference_harness.formats.text import Say

_TREE_LINE = re.compile(rb"(\d{6}) (?:blob|commit) ([0-9a-f]{40}) +(\d+|-)\t(.*)", re.DOTALL)
"""Line of `git ls-tree --long`: mode, object id, size and path of a file."""


class Clone:
    """A local git repository as a reader of commits, trees and blobs."""

    def __init__(self, repository: GitRepository) -> None:
        self.repository = repository
        self._trees: dict[str, Tree] = {}
        self._commits: dict[str, Commit] = {}
        self._merge_bases: dict[tuple[str, str], Commit] = {}
        self._blobs: dict[str, bytes] = {}
        """Bytes of files, by git object id."""

    def commit(self, revision: str) -> Commit:
        """Return the commit that a branch, a tag or an id names.

        Raises WrongRepository if there is none.
        """
        if revision not in self._commits:
            sha, tree = self.repository.commit_and_tree(revision)
            self._commits[revision] = self._commits[sha] = Commit(sha=sha, tree=tree)
        return self._commits[revision]

    def merge_base(self, base: str, head: str) -> Commit:
        """Return the merge base of two commits; read once. Raises UnexpectedReply without one.

        Raises BadRepository if a shallow clone does not have it.
        """
        if (base, head) not in self._merge_bases:
            self._merge_bases[base, head] = self._merge_base(base, head)
        return self._merge_bases[base, head]

    def _merge_base(self, base: str, head: str) -> Commit:
        """Return the merge base of two commits, which git computes."""
        merge_base = self.repository.run(
            "merge-base", "--end-of-options", base, head, accepted_codes=(0, 1)
        )
        if not merge_base.strip():
            self.repository.require_whole()
            raise UnexpectedReply(
                "this branch has no commit in common with the base branch",
                "make the branch again from the base branch, or fetch the whole history",
            )
        return self.commit(merge_base.decode("ascii").split("\n", 1)[0])

    def tree(self, sha: str) -> Tree:
        """Return the files of a commit or tree; read once."""
        if sha not in self._trees:
            listing = self.repository.run("ls-tree", "-r", "-l", "-z", "--full-tree", sha)
            self._trees[sha] = tree_of(map(_listed_file, listing.split(b"\0")[:-1]))
        return self._trees[sha]

    def prefetch(self, blobs: Iterable[Blob]) -> None:
        """Read files in one process of git, but no link and no file that is too large.

        `blob` returns each of them and forgets it.
        """
        shas = (blob.sha for blob in blobs if _is_regular_and_small(blob))
        self._blobs.update(self.repository.blobs(shas))

    def blob(self, sha: str) -> bytes:
        """Return the bytes of a file."""
        if sha not in self._blobs:
            self._blobs.update(self.repository.blobs([sha]))
        return self._blobs.pop(sha)


def _listed_file(line: bytes) -> tuple[str, str, str, int]:
    """Return path, mode, id and size of a file that git lists."""
    match = _TREE_LINE.fullmatch(line)
    if match is None:
        raise UnexpectedReply(
            "git prints a line of its list of files in an unknown form", "update git"
        )
    mode, sha, size, path = match.groups()
    size_in_bytes = 0 if size == b"-" else int(size)
    return path.decode("utf-8", "replace"), mode.decode(), sha.decode(), size_in_bytes


_CODE_PREFIX = f"{CODE_FOLDER}/"
"""Beginning of the paths of the toolkit's code."""
_CHECKOUT_FIX = "run the command in a checkout of the head of the base branch; nothing was written"


@contextlib.contextmanager
def layout_of_main(
    reader: GitReader, root: Path, main: Main, warn: Say | None = None
) -> Iterator[Layout]:
    """Yield the layout of the base branch: the checkout, or a copy with the present files of main.

    `root` is the top folder of the checkout, whose files are used where they equal those of main.
    If the code of the checkout differs from main, other rules run than those of main: raises
    MainMoved, or passes a warning to `warn` if that is given. Raises GitHubProblem if a file cannot
    be read.
    """
    bytes_by_path = {
        path: _local_bytes(root, path, main.files[path]) for path in sorted(main.digested_paths)
    }
    differing_paths = [path for path, raw in bytes_by_path.items() if raw is None]
    differing_code = next((path for path in differing_paths if path.startswith(_CODE_PREFIX)), None)
    if differing_code is not None and warn is not None:
        warn(
            f"{differing_code} differs from main: to get the verdict of main's rules, merge main "
            "into this branch"
        )
    elif differing_code is not None:
        raise MainMoved(f"the checkout is not main's head: {differing_code} differs", _CHECKOUT_FIX)
    if not differing_paths and not _has_other_files(root, main):
        yield find_layout(root)
        return
    if isinstance(reader, Clone):
        paths = (path for path in differing_paths if not path.startswith(_CODE_PREFIX))
        reader.prefetch(main.files[path] for path in paths)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-main-") as folder_name:
        folder = Path(os.path.realpath(folder_name))
        for path, raw in bytes_by_path.items():
            if path.startswith(_CODE_PREFIX):
                continue
            content = _fetched_bytes(reader, main.files[path]) if raw is None else raw
            if content is not None:
                _write(folder, path, content)
        yield find_layout(folder)


@contextlib.contextmanager
def changed_main(layout: Layout, main: Main, changes: Mapping[str, bytes]) -> Iterator[Layout]:
    """Yield the layout of a temporary copy of the base branch in which some files are changed.

    `layout` has the unchanged files, and `changes` the bytes of each changed file, by path. The
    copy has neither git's data nor code.
    """
    with tempfile.TemporaryDirectory(prefix="geneb-ci-changed-") as folder_name:
        folder = Path(os.path.realpath(folder_name))
        for path in main.digested_paths:
            file = layout.root / path
            if not path.startswith(_CODE_PREFIX) and path not in changes and file.is_file():
                _write(folder, path, file.read_bytes())
        for path, raw in changes.items():
            _write(folder, path, raw)
        yield find_layout(folder)


def _write(folder: Path, path: str, raw: bytes) -> None:
    file = folder.joinpath(*path.split("/"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(raw)


def _local_bytes(root: Path, path: str, blob: Blob) -> bytes | None:
    """Return the bytes of a file of the checkout; None if main has other bytes."""
    file = root / path
    if file.is_symlink():
        return None
    try:
        raw = file.read_bytes()
    except OSError:
        return None
    return raw if blob_id(raw) == blob.sha else None


def _has_other_files(root: Path, main: Main) -> bool:
    """Whether a folder of the checkout has files that main lacks, for example a deleted row."""
    folders = {path.rsplit("/", 1)[0] for path in main.digested_paths if "/" in path}
    for folder in sorted(folders):
        if folder == CODE_FOLDER or folder.startswith(_CODE_PREFIX):
            continue
        for file in (root / folder).iterdir():
            if file.is_file() and f"{folder}/{file.name}" not in main.files:
                return True
    return False


def _is_regular_and_small(blob: Blob) -> bool:
    """Whether a file is regular, not a link, and within the size limit of submissions."""
    return blob.mode == REGULAR and blob.size <= SUBMISSION_BYTES_MAX


def _fetched_bytes(reader: GitReader, blob: Blob) -> bytes | None:
    """Return the bytes of a file of main; None for a link or a file that is too large."""
    if not _is_regular_and_small(blob):
        return None
    raw = read_blob(reader, blob)
    return raw if isinstance(raw, bytes) else None


def layout_of_settings(reader: GitReader, files: Mapping[str, Blob]) -> Layout:
    """Return the layout that the settings in a tree define, without using the checkout.

    Its folders do not exist: only their paths relative to the root are meaningful. Raises
    BadConfiguration if the settings cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="geneb-ci-settings-") as folder_name:
        folder = Path(os.path.realpath(folder_name))
        if any(path.startswith(f"{ROWS_FOLDER}/") for path in files):
            (folder / ROWS_FOLDER).mkdir()
        for path in LAYOUT_FILES:
            blob = files.get(path)
            if blob is not None and blob.mode == REGULAR:
                content = _fetched_bytes(reader, blob) if path == SETTINGS_FILE else b""
                _write(folder, path, content or b"")
        return find_layout(folder)


def configured_folders(layout: Layout) -> list[str]:
    """Return the folders that the settings of a board name, relative to the repository's root."""
    folders = layout.settings.paths.values() if layout.settings is not None else ()
    inner_folders = (folder for folder in folders if folder.is_relative_to(layout.root))
    return [folder.relative_to(layout.root).as_posix() for folder in inner_folders]

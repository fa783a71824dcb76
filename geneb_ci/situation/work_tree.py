"""Read the working tree of a clone from git: branch, upstream, and uncommitted files."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from geneb_ci.check.change import (
    EXECUTABLE,
    MODEL_FILE_SUFFIXES,
    REGULAR,
    SYMLINK,
    Blob,
    RepositoryFolders,
)
from geneb_ci.common.config import Layout
from geneb_ci.github.verdict.checker import repository_folders
from geneb_ci.publish.git import GitRepository, NoBranch, main_branch_of, repository_at

PYTHON_CACHE = "__pycache__"
"""Name of the folders in which Python stores compiled modules."""
_TRACKED, _RENAMED, _UNMERGED = "1", "2", "u"
_FIELDS_BEFORE_PATH = {_TRACKED: 8, _RENAMED: 9, _UNMERGED: 10}
"""Number of fields before the path in an entry of `git status`, by the entry's kind."""
_GITHUB_ADDRESS = re.compile(
    r"(?:https://[^/]*/|ssh://[^/]*/|[^/@]*@[^/:]*:)([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
"""Address of a remote repository, with OWNER/NAME in a group."""


@dataclass(frozen=True)
class WorkTree:
    """The branch of a clone, and its files that differ from the last commit."""

    branch: str = ""
    """Name of the branch; "" if HEAD is detached."""
    head: str = ""
    """Id of the last commit; "" if there is none."""
    upstream: str = ""
    """The branch that this one is pushed to; "" before the first push."""
    ahead: int = 0
    """Number of commits that the upstream lacks."""
    behind: int = 0
    """Number of commits of the upstream that this branch lacks."""
    changed_files: tuple[str, ...] = ()
    """Paths of tracked files that differ from the last commit."""
    untracked_files: tuple[str, ...] = ()
    """Paths of files that git neither tracks nor ignores."""
    ignored_files: tuple[str, ...] = ()
    """Paths of ignored files in the folders of a board whose suffix is in `MODEL_FILE_SUFFIXES`."""
    conflicts: tuple[str, ...] = ()
    """Paths of files in which a merge left both versions."""
    base: str = ""
    """The branch into which a pull request is merged; "" if unknown."""
    remotes: dict[str, str] = field(default_factory=dict)
    """OWNER/NAME of the repository of each remote, by the remote's name.

    It is "" for an address of another form.
    """

    @property
    def pending(self) -> tuple[str, ...]:
        """Paths that the next commit could contain, sorted."""
        return tuple(sorted({*self.changed_files, *self.untracked_files, *self.ignored_files}))

    def add_command(self, *paths: str) -> list[str]:
        """Return the command that adds paths to the next commit, including ignored ones."""
        force = ["--force"] if {*paths} & {*self.ignored_files} else []
        return ["git", "add", *force, "--all", "--", *paths]

    @property
    def is_pushed(self) -> bool:
        """Whether the upstream has every commit of the branch, as far as this clone has fetched."""
        return bool(self.upstream) and not self.ahead

    @property
    def is_on_base(self) -> bool:
        """Whether this is the branch into which pull requests are merged, or its local copy."""
        return bool(self.branch) and self.branch == self.base_name

    @property
    def base_name(self) -> str:
        """Name, on its server, of the branch into which pull requests are merged."""
        remote, slash, branch = self.base.partition("/")
        return branch if slash and remote in self.remotes else self.base

    @property
    def repository(self) -> str:
        """OWNER/NAME of the repository that receives pull requests; "" if unknown."""
        return self.remotes.get(self.base.partition("/")[0], "")


@dataclass(frozen=True)
class CloneState:
    """The state of a clone, as far as both contributors and maintainers need it."""

    tree: WorkTree = field(default_factory=WorkTree)
    is_board: bool = True
    """Whether the folder is in a repository of submissions."""
    refusal: str = ""
    """Why git cannot read the clone; "" if it can."""
    refusal_fix: str = ""
    """Advice about the refusal."""

    def refusal_lines(self, role: str, subject: str = "") -> Iterator[str]:
        """Yield why git cannot read the clone, and what to do.

        `subject`, such as " of the branch", says of what nothing is known.
        """
        yield f"{role}: git cannot read this clone, so nothing is known{subject}"
        yield self.refusal
        yield f"fix: {self.refusal_fix}"


class OpenClone(NamedTuple):
    """The git repository of a board's clone, and the state of its working tree."""

    repository: GitRepository
    tree: WorkTree


def open_clone(layout: Layout) -> OpenClone:
    """Return the git repository of a board and the state of its working tree.

    Raises BadRepository, and UsageProblem if the layout has no submissions.
    """
    repository = repository_at(layout)
    return OpenClone(repository, read_work_tree(repository, repository_folders(layout)))


def read_work_tree(repository: GitRepository, folders: RepositoryFolders) -> WorkTree:
    """Return the state of a working tree; nothing is written, not even git's index.

    `folders` are the folders of the board. Raises BadRepository.
    """
    status = repository.run("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    headers: dict[str, str] = {}
    paths: dict[str, list[str]] = {"?": [], _TRACKED: [], _UNMERGED: []}
    for kind, entry in _status_entries(os.fsdecode(status).split("\0")):
        if kind == "#":
            header, _, header_text = entry.partition(" ")
            headers[header] = header_text
        else:
            paths[kind].append(entry)
    ahead, behind = (int(word[1:]) for word in headers.get("branch.ab", "+0 -0").split(" "))
    branch, head = headers.get("branch.head", ""), headers.get("branch.oid", "")
    try:
        base = main_branch_of(repository)
    except NoBranch:
        base = ""
    return WorkTree(
        branch="" if branch.startswith("(") else branch,
        head="" if head.startswith("(") else head,
        upstream=headers.get("branch.upstream", ""),
        ahead=ahead,
        behind=behind,
        changed_files=tuple(paths[_TRACKED]),
        untracked_files=tuple(paths["?"]),
        conflicts=tuple(paths[_UNMERGED]),
        ignored_files=tuple(_ignored_board_files(repository, folders)),
        base=base,
        remotes=_repository_by_remote(repository),
    )


def _status_entries(raw_entries: list[str]) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each entry of `git status`; a rename yields both paths."""
    iterator = iter(raw_entries)
    for entry in iterator:
        kind = entry[:1]
        if kind in {"#", "?"}:
            yield kind, entry[2:]
        elif kind in _FIELDS_BEFORE_PATH:
            yield (
                kind if kind == _UNMERGED else _TRACKED,
                entry.split(" ", _FIELDS_BEFORE_PATH[kind])[-1],
            )
        if kind == _RENAMED:
            yield _TRACKED, next(iterator)


def _ignored_board_files(repository: GitRepository, folders: RepositoryFolders) -> Iterator[str]:
    """Yield the paths of ignored files in the folders of a board, without compiled modules."""
    paths = sorted({folders.submissions, folders.cards, folders.extractors, folders.audits})
    listing = repository.run(
        *("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", *paths)
    )
    for path in os.fsdecode(listing).split("\0"):
        if path.endswith(MODEL_FILE_SUFFIXES) and PYTHON_CACHE not in path.split("/"):
            yield path


def _repository_by_remote(repository: GitRepository) -> dict[str, str]:
    """Return OWNER/NAME of the repository of each remote, by the remote's name; "" if unknown."""
    lines = repository.run("config", "--get-regexp", r"^remote\..*\.url$", accepted_codes=(0, 1))
    remotes = {}
    for line in os.fsdecode(lines).splitlines():
        setting, _, address = line.partition(" ")
        match = _GITHUB_ADDRESS.fullmatch(address)
        remotes[setting.removeprefix("remote.").removesuffix(".url")] = match[1] if match else ""
    return remotes


def blob_of_file(root: Path, path: str) -> Blob | None:
    """Return mode and size of a file, as git would store them, without an object id.

    Return None if the file does not exist.
    """
    try:
        status = (root / path).lstat()
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return Blob(SYMLINK, "", status.st_size)
    mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
    return Blob(mode, "", status.st_size)

"""Reads a git repository: commits, trees, blobs."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from geneb_ci.common.config import Layout
from geneb_ci.common.errors import Exit, GenebError, NothingChecked

BOARD_INPUTS = (
    "submissions",
    "leaderboard",
    "schemas",
    "pyproject.toml",
    "benchmark",
    "model_cards",
    "harness/extractors",
)
"""Files and folders from which, with the code, all published files are made: if none of them
changed, the published files are unchanged. They are of every layout (geneb_ci.common.config)."""
CODE_FOLDER = "geneb_ci"
"""The folder of the toolkit in its repository, and the name of its package."""

SUBMISSIONS_FOLDER = "submissions"
"""The folder of submissions in a repository."""
POLICY_FOLDER = "leaderboard/policy"
"""The folder of the maintainers' decisions."""
OFFICIAL_FILE = f"{POLICY_FOLDER}/official.json"
"""File with the digests of the official submissions."""
BENCHMARK_FILE = "schemas/benchmark.json"
"""File with the definition of the benchmark."""
DECISIVE_FILES = (
    OFFICIAL_FILE,
    *(f"{POLICY_FOLDER}/{name}" for name in ("policy.toml", "keys.json", "trusted_root.json")),
    BENCHMARK_FILE,
)
"""Files that determine which evidence counts, for every row."""
AUDITS_FOLDER = "leaderboard/audits"
"""The folder of audit records."""
AUDIT_LOG_FOLDER = f"{AUDITS_FOLDER}/log"
"""The folder of an old log of audits."""

PAGE_FOLDER = "leaderboard"
"""The published folder: the page and the Space card, to which generated files are added."""
UNPUBLISHED_FOLDERS = ("policy", "audits")
"""Folders in `PAGE_FOLDER` that are not published."""


# Settings that make git's output independent of the configuration of machine and repository.
_GIT_SETTINGS = (
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "diff.renames=false",
    "diff.orderFile=/dev/null",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "trailer.separators=:",
)
_FULL_ID = re.compile(r"[0-9a-f]{40}")
"""A commit id with all its digits."""
REGULAR_MODES = frozenset({"100644", "100755"})
"""File modes by which git marks regular files."""
LINK_MODE = "120000"
"""File mode by which git marks symbolic links."""
MISSING_BLOB = "0" * 40
"""Id that git prints in place of a file that does not exist."""
HEAD = "HEAD"
"""Git's name for the commit that is checked out."""
REMOTE_NAMES = ("upstream", "origin")
"""Remotes in which main is searched, in this order; `upstream` is the origin of a fork."""
MAIN_BRANCH_NAMES = ("main", "master")
"""Names that the main branch may have."""


class BadRepository(GenebError):
    """There is no git repository, or it lacks a commit, an object or its history."""


class WrongRepository(BadRepository):
    """The command line names a commit that does not exist, or the folder is in no repository."""

    exit_code = Exit.USAGE


class NoRepository(WrongRepository):
    """A folder is in no git repository."""


_CLONE_FIX = "run this in a full clone of the submissions repository"
"""Advice where a folder is no git repository or an incomplete one."""
_TRUST_FIX = (
    "if you trust the folder, which belongs to another user, run `git config --global "
    "--add safe.directory FOLDER` with the folder that git names, then run this command again"
)
"""Advice where the repository belongs to another user."""
_DAMAGE_PATTERN = (
    r"(is|are) corrupt|object file \S+ is empty|unable to read (tree|sha1|[0-9a-f]{40})|"
    r"missing (blob|tree)|inflate|packfile .* cannot be accessed|hash mismatch|could not parse"
)
"""Messages of git about damaged objects."""
_NO_NAME_PATTERN = (
    r"unable to auto-detect email|tell me who you are|empty ident|no (name|email) was"
)
"""Messages of git about a missing name or address of the committer."""
_NAME_FIX = (
    "run `git config --global user.name NAME` and `git config --global user.email ADDRESS`, "
    "then run this command again"
)
"""Advice where git knows no name for commits."""
_REFUSALS: tuple[tuple[str, str], ...] = (
    (r"dubious ownership", _TRUST_FIX),
    (r"not a git repository", _CLONE_FIX),
    (r"cannot use bare repository|must be run in a work tree", _CLONE_FIX),
    (
        r"\.lock': File exists|Another git process",
        (
            "wait until the other git command has ended; if no git command runs, delete the file "
            "that git names"
        ),
    ),
    (
        r"index file (corrupt|smaller)|bad (index file|signature)|index uses .* extension",
        (
            'make the index again: run `rm "$(git rev-parse --git-path index)"`, then `git reset`; '
            "no file is lost"
        ),
    ),
    (_DAMAGE_PATTERN, "clone the repository again: this clone is damaged, as `git fsck` shows"),
    (
        r"promisor remote|partial clone",
        (
            "connect this machine to the remote of the clone, which lacks objects, or run "
            "`git fetch --refetch`"
        ),
    ),
    (r"bad (numeric )?config|invalid value for '", "correct the setting that git names"),
    (
        r"repo version|unknown repository extension|unknown option",
        "install a newer git: the installed version does not know the format of the repository",
    ),
    (r"(?m): Permission denied\s*$", "give this user the right to read the repository"),
    (r"No space left", "free space on the disk"),
    (r"shallow (file|update)", "get the whole history: run `git fetch --unshallow`"),
    (_NO_NAME_PATTERN, _NAME_FIX),
)
"""Pattern of git's message when it refuses a repository, and what to do, in order of search."""


class NoBranch(NothingChecked):
    """There is no branch to check: no base branch is found, or it contains HEAD."""


class NoClone(NoBranch):
    """There is no branch to check: the folder is no clone of submissions, or HEAD is main."""


class GitRefusal(NamedTuple):
    """Why a git command failed, and what to do."""

    message: str
    """Git's error messages, on one line."""
    fix: str
    """Advice for the reader of the message."""
    is_known: bool
    """Whether `_REFUSALS` has the message, so that git refuses the repository, not an argument."""


def refusal_in(stderr: str) -> GitRefusal:
    """Return the refusal in git's standard error, without git's advice on further lines."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:", "!", "remote:"))]
    message = "; ".join(dict.fromkeys(errors or lines)) or "it printed no reason"
    for pattern, fix in _REFUSALS:
        if re.search(pattern, stderr):
            return GitRefusal(message, fix, is_known=True)
    return GitRefusal(
        message, "fix the error that git reports, then run this command again", is_known=False
    )


class TreeFile(NamedTuple):
    """One file of a commit's tree."""

    mode: str
    """The kind of file, such as `REGULAR_MODES`."""
    blob: str
    """Id of the file's content."""
    path: str
    """Path relative to the top folder."""


class GitRepository:
    """A git repository, read through `git` with fixed arguments."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._settings = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
        # Hooks set these variables, possibly to another repository.
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        } | {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def run(
        self, *arguments: str, stdin: bytes = b"", accepted_codes: tuple[int, ...] = (0,)
    ) -> bytes:
        """Run a git command and return its output.

        Raises BadRepository, with git's message, if the exit code is not in `accepted_codes`, or
        if git refuses the repository; NoRepository where there is none.
        """
        return self._run(arguments, stdin, accepted_codes).stdout

    def _run(
        self, arguments: tuple[str, ...], stdin: bytes, accepted_codes: tuple[int, ...]
    ) -> subprocess.CompletedProcess[bytes]:
        """Return the finished process of a git command. Raises BadRepository for other codes."""
        command = ["git", *self._settings, "-C", str(self.root), *arguments]
        try:
            process = subprocess.run(  # noqa: S603 (fixed arguments; names come after a separator)
                command, input=stdin, capture_output=True, check=False, env=self._environment
            )
        except OSError as error:
            raise BadRepository(f"git cannot be run: {error.strerror}", "install git") from error
        if process.returncode < 0:
            raise BadRepository(
                f"{self.root}: git {arguments[0]} was stopped by signal {-process.returncode}",
                "run this command again; if git is stopped again, the machine may lack memory",
            )
        if process.returncode:
            refusal = refusal_in(process.stderr.decode(errors="replace"))
            if process.returncode not in accepted_codes or refusal.is_known:
                raise self._refused(arguments[0], refusal)
        return process

    def _refused(self, command: str, refusal: GitRefusal) -> BadRepository:
        """Return the error for a command that git refused."""
        if "not a git repository" in refusal.message:
            return NoRepository(f"{self.root}: this is not in a git repository", refusal.fix)
        return BadRepository(f"{self.root}: git {command} failed: {refusal.message}", refusal.fix)

    def resolve(self, revision: str) -> str:
        """Return the 40-hex id of a revision. Raises WrongRepository if it is no commit."""
        match self._ids(("rev-parse", "--verify", "--quiet"), revision):
            case [commit]:
                return commit
        raise self._no_commit(revision)

    def commit_and_tree(self, revision: str) -> tuple[str, str]:
        """Return the ids of a commit and its tree. Raises WrongRepository if it is no commit."""
        match self._ids(("show", "--no-patch", "--format=%H %T"), revision):
            case [commit, tree]:
                return commit, tree
        raise self._no_commit(revision)

    def _ids(self, command: tuple[str, ...], revision: str) -> list[str]:
        """Return the ids that a git command prints for a commit; empty if the command fails."""
        arguments = (*command, "--end-of-options", f"{revision}^{{commit}}")
        process = self._run(arguments, b"", (0, 1, 128))
        ids = process.stdout.decode(errors="replace").split()
        return ids if process.returncode == 0 and all(map(_FULL_ID.fullmatch, ids)) else []

    def _no_commit(self, revision: str) -> WrongRepository:
        """Return the error for a revision that names no commit."""
        return WrongRepository(
            f"{self.root}: {revision!r} is not a commit of this repository",
            "pass a commit, branch or tag that `git log` shows; `git fetch` gets newer ones",
        )

    def require_whole(self) -> None:
        """Raise BadRepository if the clone is shallow."""
        if self.run("rev-parse", "--is-shallow-repository").strip() == b"true":
            raise BadRepository(
                f"{self.root}: the clone is shallow, but the whole history is needed",
                "run `git fetch --unshallow`; in GitHub Actions, use actions/checkout with "
                "fetch-depth: 0",
            )

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `older` is `newer` or one of its ancestors; False if either is unknown."""
        process = self._run(
            ("merge-base", "--is-ancestor", "--end-of-options", older, newer), b"", (0, 1, 128)
        )
        return process.returncode == 0

    def time_of(self, commit: str) -> str:
        """Return the time of a commit in UTC, such as 2026-11-20T08:30:00Z."""
        seconds = int(self.run("show", "--no-patch", "--format=%ct", "--end-of-options", commit))
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def newest_change(self, commit: str, paths: Iterable[str]) -> str | None:
        """Return the newest first-parent ancestor that changed one of the paths; None if none did.

        The commit itself counts as an ancestor.
        """
        output = self.run(
            *("log", "-1", "--first-parent", "--format=%H", "--end-of-options", commit, "--"),
            *paths,
        )
        return output.decode().strip() or None

    def tree(self, commit: str, paths: Iterable[str]) -> list[TreeFile]:
        """Return the files of a commit under the given paths."""
        listing = self.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
        files = []
        for line in listing.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.decode().split(" ")
            files.append(TreeFile(mode, blob, path.decode(errors="surrogateescape")))
        return files

    def blobs(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield id and bytes of each blob once, from one git process."""
        requested = list(dict.fromkeys(blob_ids))
        if not requested:
            return
        output = self.run("cat-file", "--batch", stdin="\n".join(requested).encode() + b"\n")
        start = 0
        for blob_id in requested:
            end = output.index(b"\n", start)
            object_id, object_type, size = (*output[start:end].decode().split(" "), "", "")[:3]
            if object_id != blob_id or object_type != "blob":
                raise BadRepository(
                    f"{self.root}: the clone lacks the object {blob_id}",
                    "run `git fetch --unshallow`; in a partial clone, `git fetch --refetch`",
                )
            content_start = end + 1
            yield blob_id, output[content_start : content_start + int(size)]
            start = content_start + int(size) + 1


_FORBIDDEN_NAMES = frozenset({"", ".", "..", ".git"})
"""Names of files and folders that git never checks out."""


def write_commit_files(
    repository: GitRepository, commit: str, folder: Path, paths: Iterable[str] = BOARD_INPUTS
) -> None:
    """Write the files of a commit under `paths`, by default the board's inputs, into a folder.

    The folder must be empty. Only regular files are written. A symbolic link becomes a link to
    itself, which cannot be read and cannot lead out of the folder. Raises BadRepository for a path
    that git would not check out.
    """
    files = repository.tree(commit, paths)
    contents = dict(repository.blobs(file.blob for file in files if file.mode in REGULAR_MODES))
    for file in files:
        names = file.path.split("/")
        if _FORBIDDEN_NAMES.intersection(names):
            raise BadRepository(
                f"commit {commit}: git cannot check out the path {file.path!r}",
                "delete or rename this path in a new commit",
            )
        path = folder.joinpath(*names)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.mode in REGULAR_MODES:
            path.write_bytes(contents[file.blob])
        elif file.mode == LINK_MODE:
            path.symlink_to(path.name)
        else:
            path.mkdir()  # a submodule: git also checks out an empty folder


def top_folder(folder: Path) -> Path:
    """Return the top folder of the git repository that a folder is in.

    Raises NoRepository if it is in none, and BadRepository, with git's own words, if git refuses.
    """
    output = GitRepository(folder).run("rev-parse", "--show-toplevel")
    return Path(os.fsdecode(output.removesuffix(b"\n")))


def require_clone(folder: Path) -> None:
    """Raise NoClone if a folder is in no clone; no git process is started."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        raise NoClone(f"{folder} is not in a clone", "clone the board's repository, or your fork")


def has_remote(folder: Path) -> bool:
    """Whether a folder is in a clone with a remote, so that others may read its commits."""
    try:
        return bool(GitRepository(folder).run("remote").strip())
    except BadRepository:
        return False


def main_branch_of(repository: GitRepository) -> str:
    """Return the main branch of a remote, such as origin/main, or else of the clone.

    Raises NoBranch if there is none.
    """
    listing = repository.run("for-each-ref", "--format=%(refname) %(symref)")
    lines = listing.decode(errors="replace").splitlines()
    targets = {name: target or name for name, _, target in (line.partition(" ") for line in lines)}
    remote_names = [
        f"refs/remotes/{remote}/{branch}"
        for remote in REMOTE_NAMES
        for branch in (HEAD, *MAIN_BRANCH_NAMES)
    ]
    for ref in (*remote_names, *(f"refs/heads/{branch}" for branch in MAIN_BRANCH_NAMES)):
        if targets.get(ref) in targets:  # the branch that HEAD of a remote names may be gone
            return targets[ref].removeprefix("refs/remotes/").removeprefix("refs/heads/")
    raise NoBranch(
        "no main branch to compare with was found, neither of a remote nor of the clone",
        "name the branch that you propose to: --base REF",
    )


def repository_at(layout: Layout) -> GitRepository:
    """Return the git repository whose top folder is the root of a layout.

    Raises NoRepository if the root is in none, WrongRepository if it is below its top folder, and
    BadRepository, with git's own words, if git refuses the repository.
    """
    repository = GitRepository(layout.root)
    top = top_folder(layout.root)
    if top.resolve() != layout.root.resolve():
        raise WrongRepository(
            f"{layout.root}: the submissions are not at the root of the git repository",
            f"move the files of {layout.root} to the root of the git repository, {top}",
        )
    return repository


def repository_of(layout: Layout, revision: str) -> tuple[GitRepository, str]:
    """Return the git repository of a layout, and the id of the commit that `revision` names.

    Raises WrongRepository if there is no such repository or commit.
    """
    repository = repository_at(layout)
    return repository, repository.resolve(revision)


def paths_inside(layout: Layout, *paths: Path | None) -> list[str]:
    """Return the given paths that are inside the repository, sorted and relative to its root."""
    inner_paths = (path for path in paths if path is not None and path.is_relative_to(layout.root))
    return sorted({str(path.relative_to(layout.root)) for path in inner_paths} - {"."})

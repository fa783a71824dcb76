"""Reads and writes repositories on the Hugging Face Hub: the Space, and data sets."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from geneb_ci.publish import manifest
from geneb_ci.publish.faults import (
    HubRefused,
    RepoMissing,
    SpaceDiffers,
    UnknownOutcome,
    translated_errors,
)
from geneb_ci.publish.manifest import Manifest
from geneb_ci.publish.session import REQUEST_TIMEOUT_S, Clock, hub_session, with_retries
from reference_harness.formats.files import blob_id, file_blob_id, file_sha256, has_sha256
from reference_harness.formats.hub_storage import set_xet_environment
from reference_harness.formats.text import Say, silent

READ_BYTES_MAX = 400_000_000
"""Maximum size of a file that is read back from the Hub; values.csv has 132 kB per row."""

Content = bytes | Path
"""Bytes, or the path of a file that contains them."""
C = TypeVar("C", bound=Content)
"""Type of contents: bytes or a path."""


class HubFileDigest(NamedTuple):
    """The digest by which the Hub names the content of a file."""

    blob: str | None
    """Git object id of the file; for a large file, that of the pointer to it."""
    lfs: str | None
    """SHA-256 of a large file; None for any other file."""

    def matches(self, content: Content) -> bool:
        """Whether the file has these bytes."""
        if isinstance(content, bytes):
            if self.lfs is not None:
                return has_sha256(content, self.lfs)
            return blob_id(content) == self.blob
        if self.lfs is not None:
            return file_sha256(content) == self.lfs
        return file_blob_id(content) == self.blob


class PastCommit(NamedTuple):
    """One earlier commit of a repository."""

    commit: str
    message: str


@dataclass(frozen=True)
class RepositoryState:
    """The files of a repository on the Hub at one commit."""

    head: str
    """Id of the commit."""
    files: Mapping[str, HubFileDigest] = field(default_factory=dict)
    """Digest of each file, by path."""

    def differing(self, files: Mapping[str, C]) -> dict[str, C]:
        """Return the given files that the repository lacks or has with other bytes."""
        return {
            name: content
            for name, content in files.items()
            if name not in self.files or not self.files[name].matches(content)
        }


class HubRepository:
    """A repository on the Hub; methods raise Retryable if a retry may help, else PublishFault."""

    def __init__(
        self,
        kind: Literal["space", "dataset"],
        name: str,
        *,
        token: str | None,
        endpoint: str | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        from huggingface_hub import HfApi  # a second to import
        from huggingface_hub.utils import (
            disable_progress_bars,
        )

        disable_progress_bars()
        set_xet_environment()
        self.name = name
        self.resource = f"{kind}s/{name}"
        self._kind = kind
        self._timeout_s = timeout_s
        # False means anonymous; None would make the client search for a token.
        self._api = HfApi(endpoint=endpoint, token=token or False)

    def state(self, revision: str | None = None) -> RepositoryState:
        """Return the files of the newest commit, or of the commit `revision`."""
        hub_session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            request_info = self._api.space_info if self._kind == "space" else self._api.dataset_info
            # This call ignores the timeout of the session.
            info = request_info(
                self.name, revision=revision, files_metadata=True, timeout=self._timeout_s
            )
            files = {
                file.rfilename: HubFileDigest(file.blob_id, file.lfs.sha256 if file.lfs else None)
                for file in info.siblings or []
            }
            if not info.sha:
                raise UnknownOutcome(f"the Hub returned no commit of {self.resource}")
            return RepositoryState(info.sha, files)

    def read(self, path: str, revision: str = "main", bytes_max: int = READ_BYTES_MAX) -> bytes:
        """Return the bytes of one file. Raises HubRefused if it is larger than `bytes_max`."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers

        address = hf_hub_url(
            self.name, path, repo_type=self._kind, revision=revision, endpoint=self._api.endpoint
        )
        return self._fetched(address, path, bytes_max, build_hf_headers(token=self._api.token))

    def _fetched(
        self, address: str, path: str, bytes_max: int, headers: Mapping[str, str]
    ) -> bytes:
        """Return the bytes at an address. Raises HubRefused if they are more than `bytes_max`."""
        from huggingface_hub.utils import hf_raise_for_status

        with (
            translated_errors(self.resource, writing=False),
            hub_session(self._timeout_s).stream("GET", address, headers=headers) as response,
        ):
            hf_raise_for_status(response)
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > bytes_max:
                    raise HubRefused(
                        f"{self.resource}: {path} is larger than {bytes_max:,} bytes",
                        "delete the file on the Hub: geneb-ci publishes no file of this size",
                    )
        return bytes(content)

    def read_if_exists(self, path: str, revision: str, bytes_max: int) -> bytes | None:
        """Return the bytes of one file of a commit; None where the commit has no such file."""
        try:
            return self.read(path, revision, bytes_max)
        except RepoMissing:
            return None

    def commit(
        self, parent: str, files: Mapping[str, Content], deleted: Iterable[str], message: str
    ) -> str:
        """Commit on `parent`: write `files`, delete `deleted`, and return the commit's id."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        title, _, description = message.partition("\n")
        added = [CommitOperationAdd(name, content) for name, content in files.items()]

        def large_names() -> list[str]:
            # The client stores the upload mode there.
            return [part.path_in_repo for part in added if part._upload_mode == "lfs"]  # noqa: SLF001

        hub_session(self._timeout_s)
        with (
            translated_errors(self.resource, writing=True, large_files=large_names),
            warnings.catch_warnings(),
        ):
            # Of values.parquet: a Space is no place for data sets, and it is no data set.
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")
            commit = self._api.create_commit(
                self.name,
                [*added, *(CommitOperationDelete(name, is_folder=False) for name in deleted)],
                repo_type=self._kind,
                commit_message=title,
                commit_description=description.strip(),
                parent_commit=parent,
            )
        return str(commit.oid)

    def past_commits(self) -> list[PastCommit]:
        """Return all commits of the main branch, newest first."""
        hub_session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            commits = self._api.list_repo_commits(self.name, repo_type=self._kind)
        return [
            PastCommit(commit.commit_id, f"{commit.title}\n{commit.message}") for commit in commits
        ]


@dataclass(frozen=True)
class SpaceState(RepositoryState):
    """The files of a Space at one commit, and its manifest; None without one."""

    manifest: Manifest | None = None
    """Content of manifest.json; None without a board."""


class SpaceSite(NamedTuple):
    """The site of a Space: its state and address on the Hub."""

    name: str
    """Present name, as OWNER/NAME, which differs from the requested one if it was renamed."""
    is_private: bool
    is_disabled: bool
    stage: str | None
    """State such as "RUNNING" or "PAUSED"; None where the Hub states none."""
    address: str | None
    """Address at which visitors get its files; None where the Hub states none."""


class Space(HubRepository):
    """A Space on the Hub."""

    def __init__(
        self,
        name: str,
        *,
        token: str | None,
        endpoint: str | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        super().__init__("space", name, token=token, endpoint=endpoint, timeout_s=timeout_s)

    def state(self, revision: str | None = None) -> SpaceState:
        """Return the files and the manifest of the newest commit, or of the commit `revision`."""
        state = super().state(revision)
        published_manifest = None
        if manifest.MANIFEST_FILE in state.files:
            raw = self.read(manifest.MANIFEST_FILE, state.head, manifest.MANIFEST_BYTES_MAX)
            published_manifest = manifest.parse_manifest(raw, f"{self.resource} at {state.head}")
        return SpaceState(state.head, state.files, published_manifest)

    def service(self) -> SpaceSite:
        """Return the state of the Space's site, according to the Hub."""
        hub_session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            info = self._api.space_info(self.name, timeout=self._timeout_s)
        stage = None if info.runtime is None else str(info.runtime.stage)
        host = info.host or (f"https://{info.subdomain}.static.hf.space" if info.subdomain else "")
        # An address without https is accepted only from an endpoint without https.
        scheme = f"{urlsplit(self._api.endpoint).scheme}://"
        address = host.rstrip("/") if host.startswith(("https://", scheme)) else None
        return SpaceSite(info.id, bool(info.private), bool(info.disabled), stage, address)

    def read_served(self, address: str, path: str, bytes_max: int) -> bytes:
        """Return the bytes of a file that visitors get from the Space, without a token."""
        return self._fetched(f"{address}/{path}", path, bytes_max, {})


@dataclass(frozen=True)
class SpaceChange:
    """A change of a repository that is to be made in one commit."""

    before: RepositoryState
    """Files of the repository before the change."""
    files: Mapping[str, Content]
    """Files that the repository must have afterwards; those that it already has are not sent."""
    deleted: Sequence[str]
    """Names of files in the repository that it must not have afterwards."""
    message: str
    """Message of the commit."""

    def files_not_as_published(self, after: RepositoryState) -> set[str]:
        """Return the names of files that a change should have written or deleted, but has not."""
        return {*after.differing(self.files), *after.files.keys() & set(self.deleted)}


class CommitResult(NamedTuple):
    """The commit that has the files, and whether this program made it."""

    commit: str
    is_new: bool
    """Whether this program made the commit."""


def commit_change(
    remote: HubRepository,
    plan: Callable[[], SpaceChange],
    *,
    clock: Clock = time,
    say: Say = silent,
) -> CommitResult:
    """Make the change that `plan` returns in one commit, read it back, and compare digests.

    `plan` reads the head of the repository; it is called again before each retry. No commit is made
    if nothing differs. Raises PublishFault.
    """
    may_be_made = False  # whether an earlier try may have made the commit

    def commit_once() -> CommitResult:
        nonlocal may_be_made
        change = plan()  # this also shows whether a try without an answer succeeded
        head, changed_files = change.before.head, change.before.differing(change.files)
        if not changed_files and not change.deleted:
            return CommitResult(head, may_be_made)
        try:
            commit = remote.commit(head, changed_files, change.deleted, change.message)
        except UnknownOutcome:
            may_be_made = True
            raise
        may_be_made = True
        if wrong_names := sorted(change.files_not_as_published(remote.state(commit))):
            raise SpaceDiffers(
                f"{remote.resource} at {commit} differs from the upload: {', '.join(wrong_names)}",
                "check for a .gitignore in the repository and for other writers, then run the "
                "command again",
            )
        return CommitResult(commit, is_new=True)

    return with_retries(commit_once, clock=clock, say=say)


TASK_FOLDERS = ("tasks/", "flat/")
"""Folders of task data in the repository, in which files that are not uploaded are deleted."""
UPLOAD_MESSAGE = "Task data in both layouts"
"""Message of the commit that uploads task data."""


def files_of_folder(folder: Path) -> dict[str, Path]:
    """Return all files in a folder and its subfolders, by their path relative to the folder."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def upload_files(
    remote: HubRepository,
    files: dict[str, Path],
    *,
    say: Say = silent,
    message: str = UPLOAD_MESSAGE,
    folders: tuple[str, ...] = TASK_FOLDERS,
) -> CommitResult:
    """Upload these files in one commit, unless the repository already has them.

    Other files below `folders` are deleted. Large files that an earlier try uploaded are not
    uploaded again. Raises PublishFault.
    """

    def plan() -> SpaceChange:
        remote_state = remote.state()
        dropped = sorted(
            name for name in remote_state.files if name.startswith(folders) and name not in files
        )
        return SpaceChange(remote_state, files, dropped, message)

    return commit_change(remote, plan, say=say)

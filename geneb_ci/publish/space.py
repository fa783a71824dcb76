"""Repositories on the Hub: listing, reading, and writing one commit; the Space."""

import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
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
from geneb_ci.publish.session import TIMEOUT_S, Clock, attempt, session
from reference_harness.formats.files import blob_id, file_blob_id, file_sha256, has_sha256
from reference_harness.formats.hub_storage import limit_storage
from reference_harness.formats.text import Say, silent

FILE_BYTES_MAX = 400_000_000  # of a file that is read back; values.csv has 132 kB per row

Content = bytes | Path
"""Bytes, or the file that contains them."""


class HubFileDigest(NamedTuple):
    """Digest of a file on the Hub."""

    blob: str | None
    """Git object id; that of a pointer for a large file."""
    lfs: str | None
    """SHA-256 of a large file; None for any other file."""

    def are_of(self, content: Content) -> bool:
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


class Listing(NamedTuple):
    """The files of a repository at one commit."""

    head: str
    """Id of the commit."""
    files: dict[str, HubFileDigest]


class Remote:
    """A repository on the Hub; methods raise Retryable if a retry may help, else PublishFault."""

    def __init__(
        self,
        kind: Literal["space", "dataset"],
        name: str,
        *,
        token: str | None,
        endpoint: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        from huggingface_hub import HfApi  # a second to import
        from huggingface_hub.utils import (
            disable_progress_bars,
        )

        disable_progress_bars()
        limit_storage()
        self.name = name
        self.resource = f"{kind}s/{name}"
        self._kind = kind
        self._timeout_s = timeout_s
        # False means anonymous; None would make the client search for a token.
        self._api = HfApi(endpoint=endpoint, token=token or False)

    def listing(self, revision: str | None = None) -> Listing:
        """List the files of the head, or of a commit."""
        session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            ask = self._api.space_info if self._kind == "space" else self._api.dataset_info
            # This call ignores the timeout of the session.
            info = ask(self.name, revision=revision, files_metadata=True, timeout=self._timeout_s)
            files = {
                file.rfilename: HubFileDigest(file.blob_id, file.lfs.sha256 if file.lfs else None)
                for file in info.siblings or []
            }
            if not info.sha:
                raise UnknownOutcome(f"the Hub returned no commit of {self.resource}")
            return Listing(info.sha, files)

    def read(self, path: str, revision: str = "main", bytes_max: int = FILE_BYTES_MAX) -> bytes:
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
        from huggingface_hub.utils import hf_raise_for_status

        with (
            translated_errors(self.resource, writing=False),
            session(self._timeout_s).stream("GET", address, headers=headers) as response,
        ):
            hf_raise_for_status(response)
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if len(content) > bytes_max:
                    raise HubRefused(
                        f"{self.resource}: {path} is larger than {bytes_max:,} bytes",
                        "geneb-ci publishes no file of this size: delete it there",
                    )
        return bytes(content)

    def read_if_there(self, path: str, revision: str, bytes_max: int) -> bytes | None:
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

        title, _, text = message.partition("\n")
        added = [CommitOperationAdd(name, content) for name, content in files.items()]

        def large() -> list[str]:
            # The client stores the upload mode there.
            return [part.path_in_repo for part in added if part._upload_mode == "lfs"]  # noqa: SLF001

        session(self._timeout_s)
        with (
            translated_errors(self.resource, writing=True, large_files=large),
            warnings.catch_warnings(),
        ):
            # Of values.parquet: a Space is no place for data sets, and it is no data set.
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")
            commit = self._api.create_commit(
                self.name,
                [*added, *(CommitOperationDelete(name, is_folder=False) for name in deleted)],
                repo_type=self._kind,
                commit_message=title,
                commit_description=text.strip(),
                parent_commit=parent,
            )
        return str(commit.oid)

    def past(self) -> list[PastCommit]:
        """Return the commits, newest first."""
        session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            commits = self._api.list_repo_commits(self.name, repo_type=self._kind)
        return [
            PastCommit(commit.commit_id, f"{commit.title}\n{commit.message}") for commit in commits
        ]


@dataclass(frozen=True)
class SpaceState:
    """The Space at one commit."""

    head: str
    files: Mapping[str, HubFileDigest] = field(default_factory=dict)
    manifest: Manifest | None = None

    def holds(self, files: Mapping[str, Content]) -> bool:
        """Whether the Space has all these files with these bytes."""
        return all(
            name in self.files and self.files[name].are_of(content)
            for name, content in files.items()
        )


class Service(NamedTuple):
    """The site of a Space: its state and address on the Hub."""

    name: str
    """Present name, as OWNER/NAME, which differs from the requested one if it was renamed."""
    is_private: bool
    is_disabled: bool
    stage: str | None
    """State such as "RUNNING" or "PAUSED"; None where the Hub states none."""
    address: str | None
    """Address at which visitors get its files; None where the Hub states none."""


class Space(Remote):
    """A Space on the Hub."""

    def __init__(
        self,
        name: str,
        *,
        token: str | None,
        endpoint: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__("space", name, token=token, endpoint=endpoint, timeout_s=timeout_s)

    def state(self, revision: str | None = None) -> SpaceState:
        """Return the files and the manifest of the head, or of a commit."""
        head, files = self.listing(revision)
        published_manifest = None
        if manifest.NAME in files:
            raw = self.read(manifest.NAME, head, manifest.BYTES_MAX)
            published_manifest = manifest.parse_manifest(raw, f"{self.resource} at {head}")
        return SpaceState(head, files, published_manifest)

    def service(self) -> Service:
        """Return the state of the Space's site, according to the Hub."""
        session(self._timeout_s)
        with translated_errors(self.resource, writing=False):
            info = self._api.space_info(self.name, timeout=self._timeout_s)
        stage = None if info.runtime is None else str(info.runtime.stage)
        host = info.host or (f"https://{info.subdomain}.static.hf.space" if info.subdomain else "")
        # An address without https is accepted only from an endpoint without https.
        scheme = f"{urlsplit(self._api.endpoint).scheme}://"
        address = host.rstrip("/") if host.startswith(("https://", scheme)) else None
        return Service(info.id, bool(info.private), bool(info.disabled), stage, address)

    def served(self, address: str, path: str, bytes_max: int) -> bytes:
        """Return the bytes of a file that visitors get, without a token."""
        return self._fetched(f"{address}/{path}", path, bytes_max, {})


# Folders of task data in the repository, in which files that are not uploaded are deleted.
TASK_FOLDERS = ("tasks/", "flat/")
MESSAGE = "Task data in both layouts"


class UploadResult(NamedTuple):
    """The revision with the uploaded files, and whether this upload made it."""

    revision: str
    new: bool


def staged_files(folder: Path) -> dict[str, Path]:
    """Return the files of a staged folder, by their path in the repository."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def upload(
    remote: Remote,
    files: dict[str, Path],
    *,
    clock: Clock = time,
    say: Say = silent,
    message: str = MESSAGE,
    folders: tuple[str, ...] = TASK_FOLDERS,
) -> UploadResult:
    """Upload these files in one commit, unless the repository already has them.

    Other files below `folders` are deleted. Large files that an earlier try uploaded are not
    uploaded again. Raises PublishFault.
    """
    may_be_made = False  # whether an earlier try may have made the commit

    def once() -> UploadResult:
        nonlocal may_be_made
        listing = remote.listing()
        changed_files, dropped_names = _difference(listing, files, folders)
        if not changed_files and not dropped_names:
            return UploadResult(listing.head, may_be_made)
        try:
            commit = remote.commit(listing.head, changed_files, dropped_names, message)
        except UnknownOutcome:
            may_be_made = True
            raise
        may_be_made = True
        changed_files, dropped_names = _difference(remote.listing(commit), files, folders)
        if changed_files or dropped_names:
            raise SpaceDiffers(
                f"{remote.resource} at {commit} differs from the upload: "
                f"{', '.join([*changed_files, *dropped_names])}",
                "check for a .gitignore in the repository, then push again",
            )
        return UploadResult(commit, new=True)

    return attempt(once, clock=clock, say=say)


def _difference(
    listing: Listing, files: dict[str, Path], folders: tuple[str, ...]
) -> tuple[dict[str, Path], list[str]]:
    changed_files = {
        name: path
        for name, path in files.items()
        if name not in listing.files or not listing.files[name].are_of(path)
    }
    dropped_names = sorted(
        name for name in listing.files if name.startswith(folders) and name not in files
    )
    return changed_files, dropped_names


def lacking_there(remote: Remote, files: dict[str, Path], say: Say) -> dict[str, Path]:
    """Return the files that a repository lacks or has with other bytes. Raises PublishFault."""
    return _difference(attempt(remote.listing, say=say), files, ())[0]

"""Where an audit runs: its folder, which outlives a kill, and the checked parts of a rerun.

Every file of the folder is written whole. A lock, which the kernel releases however a process ends,
keeps a second process out. Settings that change the numbers are pinned when the audit begins. The
digest of each result is kept beside it: this finds damage and files from elsewhere, and does not
hold an auditor back, who has the key and could sign anything.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import Field, ValidationError

from geneb_ci.audit.compare.outcome import Decoys
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.honesty import Repeatability
from geneb_ci.common.errors import LeftOver, unwritable
from geneb_ci.sandbox import processes
from reference_harness.formats.base import (
    Count,
    Hex64,
    Moment,
    Name,
    Positive,
    StrictModel,
    first_error,
)
from reference_harness.formats.files import NotReadable, file_sha256, read_regular, write_whole

BYTES_MAX = 1 << 28
"""Of one JSON file of the folder: rescorings are the largest."""
LOCK, SETTINGS, SCRATCH, DIGESTS = "lock", "settings.json", "scratch", "digests.json"
EMBEDDED, SEQUENCES, EMBEDDINGS = "embedded.json", "sequences.txt", "embeddings.npy"
FURTHER_FILE, FURTHER_EMBEDDINGS = "further.json", "further.npy"
POLL_SECONDS = 0.05  # between two looks whether they have ended
ENDING_SECONDS = 10.0
"""Time for the processes of a killed audit to end: their parent's death kills them."""

_M = TypeVar("_M", bound=StrictModel)


class WorkSettings(StrictModel):
    """Settings that may not change while an audit runs: its tasks would not belong together."""

    commitment: Hex64
    version: Name
    """Version of geneb-ci."""
    level: Count
    device: Name
    """`cpu` or `cuda`: which of several GPUs does not matter."""
    noise: Name
    copies: Positive
    seed: Count
    """Seed of the jitter, which is drawn once."""
    nonce: Hex64
    """Of the variants: drawn once, secret until the record is signed."""
    fresh: Hex64 | None = None
    """Commitment to the fresh set, where the audit has one."""
    started_at: Moment | None = None
    """When the rerun began, after the draw; None until then."""
    weights: dict[str, Hex64] | None = None
    """Name to sha256 of each file of the weights, configuration included; None until they are
    verified for the first time."""


class ResultDigests(StrictModel):
    """Digests of the results that are kept."""

    files: dict[str, Hex64]
    """By the name below the work folder."""


OPTION_OF = {
    "level": "--level",
    "device": "--device",
    "noise": "--noise",
    "copies": "--copies",
    "fresh": "--fresh-commitment",
}
"""Option that sets each; the commitment and the version follow from the checkout."""


class EmbeddedTask(StrictModel):
    """A task whose embeddings are kept."""

    sequences_sha256: Hex64
    embeddings_sha256: Hex64
    computed: Count
    """Sequences that were embedded; those of earlier tasks were copied."""
    decoys: Decoys | None
    """None where every sequence was embedded for an earlier task."""
    attempts: list[str]
    seconds: float = Field(ge=0)
    """In the sandbox, its start and the second run for the decoys included."""
    peak: Count
    """Bytes of memory."""
    token_budget: Count
    """Padded tokens that a batch had at most, as the worker said; 0 if it did not."""
    further: Count
    """Variants and fresh sequences among what was embedded."""
    further_sha256: Hex64 | None
    """Of their embeddings; None where there are none, or where the matrix has them."""
    repeated: Repeatability | None
    """How far embeddings of one sequence in other batches differ; None without decoys."""
    repeats: list[Count] = Field(default=[])
    """Numbers of the sequences whose embeddings in other batches follow those of all in the matrix;
    an audit of tasks keeps none."""


class Work:
    """A work folder, locked by this process; `open_work` makes one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def scratch(self) -> Path:
        """The folder of the sandbox, below this one."""
        return self.folder / SCRATCH

    def clear(self) -> None:
        """Remove the scratch folder of a killed audit, once its processes have ended.

        Raises LeftOver when they still run.
        """
        deadline = time.monotonic() + ENDING_SECONDS
        while processes.surviving_pids(self.scratch) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if processes.surviving_pids(self.scratch):
            processes.refuse_leftovers(self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def task(self, name: str) -> Path:
        """Return the folder of a task, and make it; a task's id is a file name."""
        folder = self.folder / "tasks" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(self, path: Path | str, content: str) -> None:
        """Write a text file, whole. Raises UsageProblem or MachineFault when it cannot."""
        self.keep_binary(path, lambda stream: stream.write(content.encode()))

    def keep_binary(self, path: Path | str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file, whole, by a function that gets it open; raises as `keep` does."""
        target = self.folder / path
        try:
            write_whole(target, write)
        except OSError as error:
            raise unwritable(str(target), error, "name another folder: --work DIR") from error

    def read(self, path: Path | str) -> bytes | None:
        """Return the bytes of a file; None where there is none. Raises AuditRefused."""
        target = self.folder / path
        try:
            return read_regular(target, BYTES_MAX)
        except NotReadable as error:
            if error.missing:
                return None
            raise AuditRefused(f"{target}: {error.reason}", _again(target)) from error

    def read_as(self, path: Path | str, model: type[_M]) -> _M | None:
        """Return the value in a file; None where there is none. Raises AuditRefused."""
        raw = self.read(path)
        if raw is None:
            return None
        try:
            return model.model_validate_json(raw)
        except ValidationError as error:
            target = self.folder / path
            raise AuditRefused(f"{target}: {first_error(error)}", _again(target)) from error

    def keep_result(self, path: Path | str, content: str) -> None:
        """Write a text file and its digest, so that `has_result` knows it; raises as `keep` does.

        Whenever the process is killed, the old result, the new one or none is there.
        """
        (self.folder / path).unlink(missing_ok=True)
        self._note(path, hashlib.sha256(content.encode()).hexdigest())
        self.keep(path, content)

    def note_result(self, path: Path | str) -> None:
        """Keep the digest of a result that another program wrote; raises as `keep` does."""
        self._note(path, file_sha256(self.folder / path))

    def has_result(self, path: Path | str) -> bool:
        """Whether a result is there that this audit wrote; a file without a digest is none.

        Raises AuditRefused when it is not the file that was written.
        """
        target = self.folder / path
        expected = self._digests().get(self._name(path))
        if expected is None or not target.exists():
            return False
        if not target.is_file() or file_sha256(target) != expected:
            raise AuditRefused(f"{target}: not the file that was written", _again(target))
        return True

    def _name(self, path: Path | str) -> str:
        return (self.folder / path).relative_to(self.folder).as_posix()

    def _digests(self) -> dict[str, str]:
        digests = self.read_as(DIGESTS, ResultDigests)
        return {} if digests is None else digests.files

    def _note(self, path: Path | str, sha256: str) -> None:
        digests = ResultDigests(files=self._digests() | {self._name(path): sha256})
        self.keep(DIGESTS, digests.model_dump_json(indent=1) + "\n")

    def pin(self, settings: WorkSettings) -> WorkSettings:
        """Keep the settings of a new audit; return those of one that continues.

        Raises AuditRefused when they differ; seed and nonce are those of the beginning.
        """
        earlier = self.read_as(SETTINGS, WorkSettings)
        if earlier is None:
            self.keep(SETTINGS, settings.model_dump_json(indent=1) + "\n")
            return settings
        for name, value in settings.model_dump(
            exclude={"seed", "nonce", "started_at", "weights"}
        ).items():
            begun = getattr(earlier, name)
            if value != begun:
                option = OPTION_OF.get(name)
                raise AuditRefused(
                    f"this audit began with {name.replace('_', ' ')} {begun}, now it is {value}: "
                    "its tasks would not belong together",
                    f"pass {option} {begun}, or begin in another folder: --work DIR"
                    if option
                    else f"restore what it began with, or remove {self.folder}",
                )
        return earlier

    def pin_weights(self, digests: dict[str, str]) -> None:
        """Keep the digests of all files of the weights, or compare them with those of the start.

        Raises AuditRefused, which names a file, when they differ.
        """
        settings = self.settings()
        if settings.weights is None:
            pinned = settings.model_copy(update={"weights": digests})
            self.keep(SETTINGS, pinned.model_dump_json(indent=1) + "\n")
            return
        for name in sorted(settings.weights.keys() | digests.keys()):
            begun, now = settings.weights.get(name), digests.get(name)
            if begun != now:
                raise AuditRefused(
                    f"file {name} of the weights: this audit began with {_digest_text(begun)}, now "
                    f"there is {_digest_text(now)}: its tasks would not belong together",
                    "restore the folder of the weights, or begin in another folder: --work DIR",
                )

    def begin(self, now: str) -> str:
        """Return when the rerun of a drawn plan began: now, or when an earlier call began it."""
        settings = self.settings()
        if settings.started_at is not None:
            return settings.started_at
        begun = settings.model_copy(update={"started_at": now})
        self.keep(SETTINGS, begun.model_dump_json(indent=1) + "\n")
        return now

    def settings(self) -> WorkSettings:
        """Return the settings that were pinned. Raises AuditRefused when they are gone."""
        settings = self.read_as(SETTINGS, WorkSettings)
        if settings is None:
            raise AuditRefused(
                f"{self.folder / SETTINGS}: was removed while the audit ran",
                f"remove {self.folder} and begin again",
            )
        return settings

    def embedded(self, task: str) -> EmbeddedTask | None:
        """Return the stored embeddings of a task; None where it is not embedded yet.

        Raises AuditRefused when a file is not the one that was written.
        """
        folder = self.task(task)
        if not self.has_result(folder / EMBEDDED):
            return None
        entry = self.read_as(folder / EMBEDDED, EmbeddedTask)
        if entry is None:
            return None
        files = [(SEQUENCES, entry.sequences_sha256), (EMBEDDINGS, entry.embeddings_sha256)]
        if entry.further_sha256 is not None:
            files.append((FURTHER_EMBEDDINGS, entry.further_sha256))
        for name, expected in files:
            path = folder / name
            if not path.is_file() or file_sha256(path) != expected:
                raise AuditRefused(f"{path}: not the file that was written", _again(folder))
        return entry


@contextlib.contextmanager
def open_work(folder: Path) -> Iterator[Work]:
    """Make a work folder, or open it again, and lock it.

    Raises LeftOver while another process has it, UsageProblem or MachineFault where it cannot be
    written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(str(folder), error, "name another folder: --work DIR") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LeftOver(
                f"{folder}: another process runs this audit", "wait until it ends, or end it"
            ) from error
        yield Work(folder)
    finally:
        os.close(lock)


def _digest_text(sha256: str | None) -> str:
    return "no such file" if sha256 is None else f"sha256 {sha256}"


def _again(path: Path) -> str:
    return f"remove {path} and run the command again: only that is computed again"

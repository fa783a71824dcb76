"""The work folder of an audit, from which a stopped audit continues.

Each file is written completely or not at all. A lock, which the kernel releases however the process
ends, prevents a second process from using the folder. Settings that change the numbers are pinned
when the audit begins. The digest of each result is kept to detect damaged and foreign files; it
does not stop the auditor, who has the key and could sign anything.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

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

if TYPE_CHECKING:
    import numpy as np

WORK_FILE_BYTES_MAX = 1 << 28
"""Largest size of a JSON file of the work folder, in bytes; files of scores are the largest."""
LOCK, SETTINGS, SCRATCH, DIGESTS = "lock", "settings.json", "scratch", "digests.json"
EMBEDDED, SEQUENCES, EMBEDDINGS = "embedded.json", "sequences.txt", "embeddings.npy"
FURTHER_FILE, FURTHER_EMBEDDINGS = "further.json", "further.npy"
"""Names in a work folder: of files of the audit, of files of a task, and of those with the variants
and fresh sequences of a task."""
POLL_SECONDS = 0.05
"""Seconds between two tests whether all processes of a killed audit have ended."""
ENDING_SECONDS = 10.0
"""Seconds to wait until the processes of a killed audit have ended, which die with their parent."""

_M = TypeVar("_M", bound=StrictModel)


class WorkSettings(StrictModel):
    """Settings that may not change during an audit, since its tasks would not be comparable."""

    commitment: Hex64
    """Digest of the commitment."""
    version: Name
    """Version of geneb-ci."""
    level: Count
    """Level of the sandbox."""
    device: Name
    """`cpu` or `cuda`: which of several GPUs does not matter."""
    noise: Name
    """Dtype whose rounding errors the jittered copies have."""
    copies: Positive
    """Number of jittered copies of the embeddings."""
    seed: Count
    """Random seed of the jitter."""
    nonce: Hex64
    """Random number that decides the variants, secret until the record is signed."""
    fresh: Hex64 | None = None
    """Salted digest of the fresh set; None if the audit has none."""
    started_at: Moment | None = None
    """When the rerun began, after the draw; None until then."""
    weights: dict[str, Hex64] | None = None
    """SHA-256 of each file of the weights, by name, configuration included; None before the first
    verification."""


class ResultDigests(StrictModel):
    """The digests of the finished results in a work folder."""

    files: dict[str, Hex64]
    """Digest of each file, by its path below the work folder."""


OPTION_BY_SETTING = {
    "level": "--level",
    "device": "--device",
    "noise": "--noise",
    "copies": "--copies",
    "fresh": "--fresh-commitment",
}
"""The option that sets each setting; commitment and version follow from the checkout."""


class EmbeddedTask(StrictModel):
    """Facts about saved embeddings: of a task, or of one part of a sample of embeddings."""

    sequences_sha256: Hex64
    """Digest of the file of sequences."""
    embeddings_sha256: Hex64
    """Digest of the file with the matrix of embeddings."""
    computed: Count
    """Number of sequences that were embedded; the others were copied from earlier tasks."""
    decoys: Decoys | None
    """Result of the decoys; None if every sequence was embedded for an earlier task."""
    attempts: list[str]
    """Names of calls by foreign Python code that no extractor needs, such as `socket.connect`."""
    seconds: float = Field(ge=0)
    """Seconds in the sandbox, with its start and the second run for the decoys."""
    peak: Count
    """Largest memory of the extractor, in bytes."""
    token_budget: Count
    """Largest number of padded tokens in a batch, as reported by the worker; 0 if unknown."""
    further: Count
    """Number of variants and fresh sequences that were embedded."""
    further_sha256: Hex64 | None
    """Digest of the embeddings of the variants and fresh sequences; None without these, or if the
    matrix contains them."""
    repeated: Repeatability | None
    """The difference between embeddings of one sequence in several batches; None without decoys."""
    repeats: list[Count] = Field(default=[])
    """Indices of the sequences that were embedded again, in other batches; these embeddings are the
    last rows of the matrix. An audit of tasks keeps none."""


class WorkFolder:
    """A work folder, which `open_work_folder` locks for this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def scratch(self) -> Path:
        """The scratch folder of the sandbox."""
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

    def task_folder(self, task_id: str) -> Path:
        """Make the folder of a task, whose id is a valid file name, and return it."""
        folder = self.folder / "tasks" / task_id
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_text(self, path: Path | str, content: str) -> None:
        """Write a text file completely. Raises UsageProblem or MachineFault if that fails."""
        self.write_binary(path, lambda stream: stream.write(content.encode()))

    def write_binary(self, path: Path | str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file completely, by a function of the open file. Raises as `write_text`."""
        file = self.folder / path
        try:
            write_whole(file, write)
        except OSError as error:
            raise unwritable(str(file), error, "name another folder: --work DIR") from error

    def write_matrix(self, path: Path | str, matrix: "np.ndarray") -> None:
        """Write an array as an `.npy` file completely. Raises as `write_text`."""
        import numpy as np  # slow to import, and only needed here

        self.write_binary(
            path, lambda stream: np.lib.format.write_array(stream, matrix, allow_pickle=False)
        )

    def read(self, path: Path | str) -> bytes | None:
        """Return the bytes of a file; None if missing. Raises AuditRefused if it cannot be read."""
        file = self.folder / path
        try:
            return read_regular(file, WORK_FILE_BYTES_MAX)
        except NotReadable as error:
            if error.missing:
                return None
            raise AuditRefused(f"{file}: {error.reason}", _remove_fix(file)) from error

    def read_as(self, path: Path | str, model_class: type[_M]) -> _M | None:
        """Return the object in a JSON file; None if missing. Raises AuditRefused if invalid."""
        raw = self.read(path)
        if raw is None:
            return None
        try:
            return model_class.model_validate_json(raw)
        except ValidationError as error:
            file = self.folder / path
            raise AuditRefused(f"{file}: {first_error(error)}", _remove_fix(file)) from error

    def write_result(self, path: Path | str, content: str) -> None:
        """Write a text file, and save its digest for `has_result`. Raises as `write_text`.

        If the process is killed, the folder has the old result, the new result or none.
        """
        (self.folder / path).unlink(missing_ok=True)
        self._set_digest(path, hashlib.sha256(content.encode()).hexdigest())
        self.write_text(path, content)

    def record_digest(self, path: Path | str) -> None:
        """Save the digest of a result that another program wrote. Raises as `write_text`."""
        self._set_digest(path, file_sha256(self.folder / path))

    def has_result(self, path: Path | str) -> bool:
        """Return whether the folder has a result whose digest this audit saved.

        Raises AuditRefused if the file was changed.
        """
        file = self.folder / path
        expected = self._digests().get(self._relative_name(path))
        if expected is None or not file.exists():
            return False
        if not file.is_file() or file_sha256(file) != expected:
            raise AuditRefused(f"{file}: was changed after the audit wrote it", _remove_fix(file))
        return True

    def _relative_name(self, path: Path | str) -> str:
        """Return the path of a file below the work folder."""
        return (self.folder / path).relative_to(self.folder).as_posix()

    def _digests(self) -> dict[str, str]:
        """Return the saved digest of each result, by its path below the work folder."""
        digests = self.read_as(DIGESTS, ResultDigests)
        return {} if digests is None else digests.files

    def _set_digest(self, path: Path | str, sha256: str) -> None:
        """Save the digest of a result for `has_result`."""
        digests = ResultDigests(files=self._digests() | {self._relative_name(path): sha256})
        self.write_text(DIGESTS, digests.model_dump_json(indent=1) + "\n")

    def pin_settings(self, settings: WorkSettings) -> WorkSettings:
        """Save the settings of a new audit, or return those of a continued audit.

        Raises AuditRefused when settings other than seed and nonce differ.
        """
        pinned_settings = self.read_as(SETTINGS, WorkSettings)
        if pinned_settings is None:
            self.write_text(SETTINGS, settings.model_dump_json(indent=1) + "\n")
            return settings
        for setting, new_value in settings.model_dump(
            exclude={"seed", "nonce", "started_at", "weights"}
        ).items():
            first_value = getattr(pinned_settings, setting)
            if new_value != first_value:
                raise self._setting_error(setting, first_value, new_value)
        return pinned_settings

    def _setting_error(self, setting: str, first_value: object, new_value: object) -> AuditRefused:
        """Return the error about a setting that differs from the one that an audit began with."""
        consequence = "the tasks of this audit would not be comparable"
        if setting == "fresh":
            first_set, new_set = (
                f"the fresh set with the digest {value}" if value else "no fresh set"
                for value in (first_value, new_value)
            )
            return AuditRefused(
                f"this audit began with {first_set}, and the command has {new_set}: {consequence}",
                "pass the first set by --fresh and --fresh-commitment, or begin in another folder: "
                "--work DIR"
                if first_value
                else "leave out --fresh and --fresh-commitment, or begin in another folder: "
                "--work DIR",
            )
        if option := OPTION_BY_SETTING.get(setting):
            return AuditRefused(
                f"this audit began with {option} {first_value}, and the command has {option} "
                f"{new_value}: {consequence}",
                f"pass {option} {first_value}, or begin in another folder: --work DIR",
            )
        return AuditRefused(
            f"this audit began with {setting} {first_value}, expected {new_value}: {consequence}",
            f"check out the version and the files with which the audit began, or remove "
            f"{self.folder}",
        )

    def pin_weights(self, digests: dict[str, str]) -> None:
        """Save the digests of all files of the weights, or compare them with the saved ones.

        Raises AuditRefused, which names a file, when they differ.
        """
        settings = self.settings()
        if settings.weights is None:
            settings_with_weights = settings.model_copy(update={"weights": digests})
            self.write_text(SETTINGS, settings_with_weights.model_dump_json(indent=1) + "\n")
            return
        for file_name in sorted(settings.weights.keys() | digests.keys()):
            first_digest, digest = settings.weights.get(file_name), digests.get(file_name)
            if first_digest != digest:
                raise AuditRefused(
                    f"file {file_name} of the weights: this audit began with "
                    f"{_digest_text(first_digest)}, now there is {_digest_text(digest)}: the tasks "
                    "of this audit would not be comparable",
                    "restore the folder of the weights, or begin in another folder: --work DIR",
                )

    def start_time(self, now: str) -> str:
        """Return the time at which the rerun began; the first call saves `now` as this time."""
        settings = self.settings()
        if settings.started_at is not None:
            return settings.started_at
        settings_with_start = settings.model_copy(update={"started_at": now})
        self.write_text(SETTINGS, settings_with_start.model_dump_json(indent=1) + "\n")
        return now

    def settings(self) -> WorkSettings:
        """Return the pinned settings. Raises AuditRefused if they were removed."""
        settings = self.read_as(SETTINGS, WorkSettings)
        if settings is None:
            raise AuditRefused(
                f"{self.folder / SETTINGS}: was removed while the audit ran",
                f"remove {self.folder} and begin the audit again",
            )
        return settings

    def embedded_task(self, task: str) -> EmbeddedTask | None:
        """Return the facts about an embedded task; None if the task is not yet embedded.

        Raises AuditRefused if a file was changed.
        """
        folder = self.task_folder(task)
        if not self.has_result(folder / EMBEDDED):
            return None
        facts = self.read_as(folder / EMBEDDED, EmbeddedTask)
        if facts is None:
            return None
        files = [(SEQUENCES, facts.sequences_sha256), (EMBEDDINGS, facts.embeddings_sha256)]
        if facts.further_sha256 is not None:
            files.append((FURTHER_EMBEDDINGS, facts.further_sha256))
        for file_name, expected in files:
            path = folder / file_name
            if not path.is_file() or file_sha256(path) != expected:
                raise AuditRefused(
                    f"{path}: was changed after the audit wrote it", _remove_fix(folder)
                )
        return facts


@contextlib.contextmanager
def open_work_folder(folder: Path) -> Iterator[WorkFolder]:
    """Create or open a work folder, lock it, and yield it.

    Raises LeftOver while another process has the lock, UsageProblem or MachineFault if the folder
    cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock_handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(str(folder), error, "name another folder: --work DIR") from error
    try:
        try:
            fcntl.flock(lock_handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LeftOver(
                f"{folder}: another process runs this audit",
                "wait until that process ends, or end that process",
            ) from error
        yield WorkFolder(folder)
    finally:
        os.close(lock_handle)


def _digest_text(sha256: str | None) -> str:
    """Return a digest as text; None stands for a missing file."""
    return "no such file" if sha256 is None else f"sha256 {sha256}"


def _remove_fix(path: Path) -> str:
    """Return the fix for a wrong file or folder of the work folder."""
    return f"remove {path} and run the command again: only that is computed again"

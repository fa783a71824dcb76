"""Faults that are ours or the caller's, never the submission's: those are findings.

GenebError
├── BrokenInstallation   exit 1   our own files are missing or wrong
├── BadConfiguration     exit 1   benchmark.json or [tool.geneb-ci] cannot be used
├── MachineFault         exit 1   this machine or its network fails: a full disk, no permission
├── UsageProblem         exit 2   the command line asks for what does not exist
├── NothingChecked       exit 3   no file matched, or none could be read
├── SandboxUnavailable   exit 3   this machine cannot confine an extractor as asked
├── SandboxLeaks         exit 3   an attempt of the probe suite got out
├── StillRunning         exit 1   a process of a sandbox outlives its kill
├── LeftOver             exit 3   something of an earlier audit is still there
├── WeightsRefused       exit 3   weights that are not pinned, not those committed, or malformed
└── ExtractorRefused     exit 3   what ran in the sandbox gave no embeddings that count
    ├── ExtractorFailed           it ended with an error
    ├── LimitExceeded             it was stopped at a limit
    └── ResultRefused             what it gave back is no matrix of the agreed shape
"""

import errno
import os
import ssl
from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes; the README has the table."""

    CLEAN = 0
    OWN_FAULT = 1
    USAGE = 2
    NOT_CHECKED = 3
    MOVED = 4
    WARNINGS = 10
    ERRORS = 11


class GenebError(Exception):
    """Base of all: `message` says what was found and expected, `fix` what to do next."""

    exit_code: ClassVar[Exit] = Exit.OWN_FAULT

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class BrokenInstallation(GenebError):
    """A file that ships with the package is missing or damaged."""


class BadConfiguration(GenebError):
    """The benchmark definition, the policy or the configuration cannot be used."""


class MachineFault(GenebError):
    """This machine, its disk or its network does not do what it is asked to."""


class UsageProblem(GenebError):
    """The command line names something that does not exist."""

    exit_code = Exit.USAGE


class NothingChecked(GenebError):
    """There was nothing to check, or it could not be read."""

    exit_code = Exit.NOT_CHECKED


class SandboxUnavailable(GenebError):
    """This machine cannot give the level of sandbox that was asked for."""

    exit_code = Exit.NOT_CHECKED


class SandboxLeaks(GenebError):
    """An attempt of the probe suite succeeded: nothing untrusted may run."""

    exit_code = Exit.NOT_CHECKED


class StillRunning(GenebError):
    """Processes of a sandbox that nothing could end."""


class LeftOver(GenebError):
    """A folder or a process of an earlier audit is still there."""

    exit_code = Exit.NOT_CHECKED


class WeightsRefused(GenebError):
    """Weights that are not pinned, not those committed to, or malformed."""

    exit_code = Exit.NOT_CHECKED


class ExtractorRefused(GenebError):
    """What ran in the sandbox gave no embeddings that count; `log` is what it printed."""

    exit_code = Exit.NOT_CHECKED
    log: str = ""


class ExtractorFailed(ExtractorRefused):
    """The extractor ended with an error of its own."""


class LimitExceeded(ExtractorRefused):
    """The extractor was stopped from outside, at the limit named."""

    def __init__(self, limit: str, message: str, fix: str = "") -> None:
        super().__init__(message, fix)
        self.limit = limit


class ResultRefused(ExtractorRefused):
    """The bytes that came back are not the embeddings that were asked for."""


_SPACE = "free some space, or write to another disk; temporary files go where TMPDIR says"
_RIGHTS = (
    "write to a folder that you may write to, or change who may; TMPDIR is for temporary files"
)
_PLACE = "name another file or folder"
_FILES = "raise the limit (ulimit -n), or end other programs"
_MACHINE_FIXES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit of the size of files (ulimit -f), or write to another disk",
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EIO: "the disk fails: look at the system's log, and use another one",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: "end other programs, or use a machine with more memory",
    errno.ENOTDIR: _PLACE,
    errno.EISDIR: _PLACE,
    errno.EEXIST: _PLACE,
    errno.ELOOP: _PLACE,
    errno.ENAMETOOLONG: _PLACE,
}
"""What a user can do, by the number of an error that no code of ours can be at fault for."""
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE})
_NETWORK_FIX = "look at the network, then run the command again"
_NO_TEMPORARY_FOLDER = "No usable temporary directory"


def unwritable(place: str, error: OSError, fix: str) -> GenebError:
    """Say that a file or folder that the user named cannot be written: by the place, or the disk.

    `fix` says what to do where another place helps.
    """
    fault = machine_fault(error)
    if error.errno in _DISK and fault is not None:
        return MachineFault(f"{place}: cannot be written: {error.strerror}", fault.fix)
    return UsageProblem(f"{place}: cannot be written: {error.strerror}", fix)


def machine_fault(error: OSError) -> MachineFault | None:
    """Say what an error of the operating system means; None where it may be a fault of ours."""
    said = error.strerror or str(error)
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    if isinstance(error, ssl.SSLError):
        fix = "look at this machine's clock and certificates (SSL_CERT_FILE)"
        return MachineFault(f"no secure connection: {said}", fix)
    if isinstance(error, ConnectionError | TimeoutError):
        return MachineFault(f"{where}the connection failed: {said}", _NETWORK_FIX)
    if _NO_TEMPORARY_FOLDER in said:
        return MachineFault(said, "free some space there, or set TMPDIR to a folder that has some")
    if error.errno not in _MACHINE_FIXES:
        return None
    return MachineFault(f"{where}{said}", _MACHINE_FIXES[error.errno])

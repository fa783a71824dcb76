"""Exceptions: errors of geneb-ci, its caller or the machine. Those of submissions are findings.

GenebError
├── BrokenInstallation   exit 1   a file of the package is missing or damaged
├── BadConfiguration     exit 1   benchmark.json or [tool.geneb-ci] cannot be used
├── MachineFault         exit 1   machine or network failure: disk full, permission denied
├── UsageProblem         exit 2   the command line is wrong, or names what does not exist
├── NothingChecked       exit 3   no file matched, or none could be read
├── SandboxUnavailable   exit 3   this machine does not support the requested sandbox level
├── SandboxLeaks         exit 3   an attempt of the escape suite succeeded
├── StillRunning         exit 1   a process of the sandbox could not be killed
├── LeftOver             exit 3   a folder or process of an earlier audit still exists
├── WeightsRefused       exit 3   weights are not pinned, not those committed to, or malformed
└── ExtractorRefused     exit 3   the extractor returned no valid embeddings
    ├── ExtractorFailed           it exited with an error
    ├── LimitExceeded             it was stopped at a resource limit
    └── ResultRefused             its result is not a matrix of the expected shape
"""

import errno
import os
import sys
from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes; docs/contributor/check.md has the table."""

    CLEAN = 0
    """No error was found."""
    OWN_FAULT = 1
    """geneb-ci has a bug, or the machine failed."""
    USAGE = 2
    """The command line is wrong, or refers to a rule, folder or commit that does not exist."""
    NOT_CHECKED = 3
    """There is no input: no file, a file that is not a submission, or no model for a request."""
    MOVED = 4
    """The pull request has new commits since it was read."""
    WARNINGS = 10
    """With --strict: at least one warning, and no error."""
    ERRORS = 11
    """At least one error in a submission, or an audit that differs."""


class GenebError(Exception):
    """Base class: `message` says what was found and what was expected, `fix` what to do next."""

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
    """The machine, its disk or its network failed."""


class UsageProblem(GenebError):
    """The command line is wrong, or refers to something that does not exist."""

    exit_code = Exit.USAGE


class NothingChecked(GenebError):
    """There was no file to check, or it could not be read."""

    exit_code = Exit.NOT_CHECKED


class SandboxUnavailable(GenebError):
    """This machine does not support the requested sandbox level."""

    exit_code = Exit.NOT_CHECKED


class SandboxLeaks(GenebError):
    """An attempt of the escape suite succeeded: no untrusted code may run."""

    exit_code = Exit.NOT_CHECKED


class StillRunning(GenebError):
    """Processes of a sandbox could not be killed."""


class LeftOver(GenebError):
    """A folder or a process of an earlier audit still exists."""

    exit_code = Exit.NOT_CHECKED


class WeightsRefused(GenebError):
    """Weights are not pinned, not those committed to, or malformed."""

    exit_code = Exit.NOT_CHECKED


class ExtractorRefused(GenebError):
    """The extractor in the sandbox returned no valid embeddings."""

    exit_code = Exit.NOT_CHECKED
    log: str = ""
    """The output of the extractor."""
    stage: str = "embedding"
    """The step of the audit that failed."""
    task: str = ""
    """The task whose sequences were embedded; "" if they belong to no task."""
    aborted_run: object = None
    """The `AbortedRun` of the audit, which its signed abort contains; None outside of audits."""


class ExtractorFailed(ExtractorRefused):
    """The extractor exited with an error."""


class LimitExceeded(ExtractorRefused):
    """The extractor was stopped at a resource limit; `limit` is the name of the limit."""

    def __init__(self, limit: str, message: str, fix: str = "") -> None:
        super().__init__(message, fix)
        self.limit = limit


class ResultRefused(ExtractorRefused):
    """The result is not a matrix of finite numbers of the expected shape."""


_SPACE_FIX = "free disk space, or write to another disk; TMPDIR sets the folder of temporary files"
_RIGHTS_FIX = (
    "write to another folder, or change its permissions; TMPDIR sets the folder of temporary files"
)
_OTHER_PATH_FIX = "name another file or folder"
_OPEN_FILES_FIX = "raise the limit of open files (ulimit -n), or close other programs"
_FIX_BY_ERRNO = {
    errno.ENOSPC: _SPACE_FIX,
    errno.EDQUOT: _SPACE_FIX,
    errno.EFBIG: "raise the file size limit (ulimit -f), or write to another disk",
    errno.EROFS: _RIGHTS_FIX,
    errno.EACCES: _RIGHTS_FIX,
    errno.EPERM: _RIGHTS_FIX,
    errno.EIO: "check the system log for disk errors, and use another disk",
    errno.EMFILE: _OPEN_FILES_FIX,
    errno.ENFILE: _OPEN_FILES_FIX,
    errno.ENOMEM: "close other programs, or use a machine with more memory",
    errno.ENOTDIR: _OTHER_PATH_FIX,
    errno.EISDIR: _OTHER_PATH_FIX,
    errno.EEXIST: _OTHER_PATH_FIX,
    errno.ELOOP: _OTHER_PATH_FIX,
    errno.ENAMETOOLONG: _OTHER_PATH_FIX,
}
"""Advice by errno, for errors that no bug in geneb-ci causes."""
_DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
)
"""Values of errno for a full or broken disk, and for limits of the system."""
_NETWORK_FIX = "check the network connection, then run the command again"
_NO_TEMPORARY_FOLDER_TEXT = "No usable temporary directory"
"""Part of the message of Python's error where no folder for temporary files can be written."""


def unwritable(path: str, error: OSError, fix: str) -> GenebError:
    """Return the error for a file or folder of the user that cannot be written.

    It is a MachineFault if the disk or a limit is the cause, else a UsageProblem with `fix`.
    """
    fault = machine_fault(error)
    if error.errno in _DISK_ERRORS and fault is not None:
        return MachineFault(f"{path}: cannot be written: {error.strerror}", fault.fix)
    return UsageProblem(f"{path}: cannot be written: {error.strerror}", fix)


def machine_fault(error: OSError) -> MachineFault | None:
    """Return the MachineFault for an OSError; None if a bug in geneb-ci could be the cause."""
    message = error.strerror or str(error)
    file_prefix = (
        f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    )
    ssl = sys.modules.get("ssl")  # it takes 10 ms to import, and no file has such an error
    if ssl is not None and isinstance(error, ssl.SSLError):
        fix = "check the clock and the certificates (SSL_CERT_FILE) of this machine"
        return MachineFault(f"the secure connection failed: {message}", fix)
    if isinstance(error, ConnectionError | TimeoutError):
        return MachineFault(f"{file_prefix}the connection failed: {message}", _NETWORK_FIX)
    if _NO_TEMPORARY_FOLDER_TEXT in message:
        return MachineFault(message, "free disk space there, or set TMPDIR to another folder")
    if error.errno not in _FIX_BY_ERRNO:
        return None
    return MachineFault(f"{file_prefix}{message}", _FIX_BY_ERRNO[error.errno])

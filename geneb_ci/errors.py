"""Faults that are ours or the caller's, never the submission's: those are findings.

GenebError
├── BrokenInstallation   exit 1   our own files are missing or wrong
├── BadConfiguration     exit 1   benchmark.json or [tool.geneb-ci] cannot be used
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

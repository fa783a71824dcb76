"""Faults that are ours or the caller's, never the submission's: those are findings.

GenebError
├── BrokenInstallation   exit 1   our own files are missing or wrong
├── BadConfiguration     exit 1   benchmark.json or [tool.geneb-ci] cannot be used
├── UsageProblem         exit 2   the command line asks for what does not exist
└── NothingChecked       exit 3   no file matched, or none could be read
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

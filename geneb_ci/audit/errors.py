"""Errors of audits: a step with another result, and a submission that cannot be audited."""

from typing import ClassVar

from geneb_ci.common.errors import Exit, GenebError, UsageProblem


class StepMismatch(GenebError):  # noqa: N818 (named after what is wrong)
    """A step of a plan or record whose result differs when it is computed again."""

    exit_code: ClassVar[Exit] = Exit.ERRORS

    def __init__(self, step: str, message: str, fix: str = "") -> None:
        super().__init__(
            f"{step}: {message}",
            fix or "do not trust this file: download it again from where it was published",
        )
        self.step = step


class MissingInput(StepMismatch):
    """A step that cannot be computed again, because a file that it needs is missing."""


class AuditRefused(GenebError):  # noqa: N818
    """A submission or a request for which no audit may begin."""

    exit_code: ClassVar[Exit] = Exit.ERRORS


class EntryMissing(UsageProblem):
    """A run of format 1.0 is neither in the model registry nor declared by options."""


class EntryIncomplete(AuditRefused):
    """The entry in the model registry does not describe the run, and no option declares it."""

"""Errors of audits: a step that computes otherwise, and a submission that cannot be audited."""

from typing import ClassVar

from geneb_ci.common.errors import Exit, GenebError


class StepMismatch(GenebError):  # noqa: N818 (named after what is wrong)
    """A step of a plan or a record that gives another result when it is computed again."""

    exit_code: ClassVar[Exit] = Exit.ERRORS

    def __init__(self, step: str, message: str, fix: str = "") -> None:
        super().__init__(
            f"{step}: {message}",
            fix or "do not trust this file; take it from where it was published",
        )
        self.step = step


class MissingInput(StepMismatch):
    """A step that cannot be computed, because something it needs is missing here."""


class AuditRefused(GenebError):  # noqa: N818
    """A submission or a request for which no audit may begin."""

    exit_code: ClassVar[Exit] = Exit.ERRORS

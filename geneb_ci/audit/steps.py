"""Errors of an audit: a step that does not follow from public data, an audit that cannot begin."""

from typing import ClassVar

from geneb_ci.common.errors import Exit, GenebError

COMMITMENT = "commitment"
ROUND = "round"
SIGNATURE = "signature"
SEED = "seed"
TICKETS = "tickets"
SAMPLE = "sample"
STEPS = (COMMITMENT, ROUND, SIGNATURE, SEED, TICKETS, SAMPLE)
"""The steps of a draw, in the order in which each follows from the one before."""


class StepMismatch(GenebError):  # noqa: N818 (named after what is wrong)
    """A step of a plan or a record that gives another result when it is computed again."""

    exit_code: ClassVar[Exit] = Exit.ERRORS

    def __init__(self, step: str, message: str, fix: str = "") -> None:
        super().__init__(
            f"{step}: {message}",
            fix or "do not trust this file; take it from where it was published",
        )
        self.step = step


class AuditRefused(GenebError):  # noqa: N818
    """A submission or a request for which no audit may begin."""

    exit_code: ClassVar[Exit] = Exit.ERRORS
